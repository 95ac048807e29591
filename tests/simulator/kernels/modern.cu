#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

struct Many { int values[40]; };

__global__ void copies(const int* in, int* out) {
    __shared__ int box[32];
    __shared__ int4 wide[8];
    int i = threadIdx.x;
    __pipeline_memcpy_async(&box[i], in + i, 4);
    if (i < 8) __pipeline_memcpy_async(&wide[i], in + 4 * i, 16, i % 2 ? 8 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[i] = box[31 - i] + 100 * ((int*)wide)[i];
}

__global__ void phases(int* out) {
    __shared__ __mbarrier_t ready;
    __shared__ int sums[2];
    int i = threadIdx.x;
    if (i == 0) { __mbarrier_init(&ready, blockDim.x); sums[0] = sums[1] = 0; }
    __syncthreads();
    for (int step = 0; step < 2; step++) {
        atomicAdd(&sums[step], i + step * sums[0]);
        __mbarrier_token_t token = __mbarrier_arrive(&ready);
        while (!__mbarrier_test_wait(&ready, token)) {}
    }
    out[i] = sums[1];
}

__global__ void bulk(const int* in, int* out) {  // one thread brings bytes for all
    __shared__ alignas(16) int box[96];
    __shared__ __mbarrier_t ready;
    int i = threadIdx.x;
    if (i == 0) __mbarrier_init(&ready, blockDim.x);
    __syncthreads();
    unsigned to = __cvta_generic_to_shared(box), bar = __cvta_generic_to_shared(&ready);
    for (int phase = 0; phase < 3; phase++) {
        if (i == 0) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :: "r"(to), "l"(in + 96 * phase), "r"(384), "r"(bar) : "memory");
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(384) : "memory");
        }
        __mbarrier_token_t token = __mbarrier_arrive(&ready);
        while (!__mbarrier_test_wait(&ready, token)) {}
        out[96 * phase + i] = box[95 - i];
        __syncthreads();
    }
}

__global__ void elected(int* out) {
    unsigned mask = threadIdx.x < 12 ? 0xfff : ~0xfffu, leader, mine;
    if (threadIdx.x < 12)
        asm volatile("{.reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(mine) : "r"(mask));
    else
        asm volatile("{.reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(mine) : "r"(mask));
    out[threadIdx.x] = leader * 10 + mine;
}

__global__ void parts(int* out) {  // producers arrive at a barrier at which consumers wait
    __shared__ int box[32];
    int i = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        box[i] = i * i;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[i] = box[31 - i];
    }
}

__global__ void dots(const int* a, const int* b, int* out) {
    int i = threadIdx.x;
    out[i] = __dp4a(a[i], b[i], 5) + (int)__dp4a((unsigned)a[i], (unsigned)b[i], 7u) * 3 + __dp2a_hi(a[i], b[i], 1);
}

__global__ void short_swaps(unsigned short* out) {
    int i = threadIdx.x;
    atomicCAS(&out[i / 2], (unsigned short)(i % 2 ? 60000 : i / 2), (unsigned short)(1000 + i));
}

__global__ void vectors(float4* out) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(out + threadIdx.x % 8), "f"(1.f), "f"(2.f), "f"(3.f), "f"(4.f) : "memory");
}

__global__ void clamps(const int* in, int* out) {
    int low, high;
    asm("{.reg .s8 a; cvt.sat.s8.s32 a, %1; cvt.s32.s8 %0, a;}" : "=r"(low) : "r"(in[threadIdx.x]));
    asm("{.reg .u8 a; cvt.sat.u8.s32 a, %1; cvt.u32.u8 %0, a;}" : "=r"(high) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = low * 1000 + high;
}

__global__ void wide_sums(const unsigned long long* a, unsigned long long* out) {
    unsigned long long low, high;
    int i = threadIdx.x;
    asm("add.cc.u64 %0, %2, %3; addc.u64 %1, 0, 0;" : "=l"(low), "=l"(high) : "l"(a[i]), "l"(a[31 - i]));
    unsigned r, s;
    asm("sub.cc.u32 %0, %2, %3; subc.u32 %1, 0, 0;" : "=r"(r), "=r"(s) : "r"((unsigned)a[i]), "r"(5u));
    out[i] = low ^ (high << 8) ^ ((unsigned long long)s << 32) ^ r;
}

// Divisions of 128 bits read with addc what sub.cc left.
__global__ void quotients(const unsigned long long* a, unsigned long long* out) {
    int i = threadIdx.x;
    unsigned __int128 n = static_cast<unsigned __int128>(a[i]) << 64 | a[31 - i], d = a[i ^ 1] >> i;
    out[i] = static_cast<unsigned long long>(n / d) ^ static_cast<unsigned long long>(n % d);
}

__global__ void parameters(Many many, int* out) { out[threadIdx.x] = many.values[(threadIdx.x * 7) % 40]; }
