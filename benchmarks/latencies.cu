// Micro-kernels for the facts of a GPU model: clocks of one dependent step, and clocks per access
// of what a multiprocessor or the chip can take. Each writes the clocks of its first warp's lane 0.

constexpr int kSteps = 256;

// The clock is read after everything before it, which `value` depends on, and before what follows.
__device__ __forceinline__ long long now(unsigned& value) {
    asm volatile("" : "+r"(value) : : "memory");
    const long long clocks = clock64();
    asm volatile("" : "+r"(value) : : "memory");
    return clocks;
}

__device__ __forceinline__ void tell(long long begin, unsigned value, long long* clocks) {
    const long long end = now(value);
    if (threadIdx.x == 0 && blockIdx.x == 0) clocks[0] = end - begin;
    if (value == 0xffffffffu) clocks[1] = 1;  // so that no result is unused
}

__global__ void add(unsigned a, unsigned b, long long* clocks) {
    unsigned x = a + threadIdx.x;
    const long long begin = now(x);
#pragma unroll
    for (int i = 0; i < kSteps; i++) x = (x ^ b) + a;
    tell(begin, x, clocks);
}

__global__ void shared(unsigned size, long long* clocks) {
    __shared__ unsigned next[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += 32) next[i] = (i + 32) % size;
    __syncwarp();
    unsigned x = threadIdx.x;
    const long long begin = now(x);
#pragma unroll
    for (int i = 0; i < kSteps; i++) x = next[x];
    tell(begin, x, clocks);
}

// A second pass over the same words finds them in the cache.
__global__ void l1(const unsigned* next, long long* clocks) {
    unsigned x = threadIdx.x;
    long long begin = 0;
    for (int pass = 0; pass < 2; pass++) {
        begin = now(x);
#pragma unroll
        for (int i = 0; i < kSteps; i++) x = __ldca(next + x);
    }
    tell(begin, x, clocks);
}

__global__ void l2(const unsigned* next, long long* clocks) {
    unsigned x = threadIdx.x;
    long long begin = 0;
    for (int pass = 0; pass < 2; pass++) {
        begin = now(x);
#pragma unroll
        for (int i = 0; i < kSteps; i++) x = __ldcg(next + x);
    }
    tell(begin, x, clocks);
}

__global__ void memory(const unsigned* next, long long* clocks) {
    unsigned x = threadIdx.x;
    const long long begin = now(x);
#pragma unroll
    for (int i = 0; i < kSteps; i++) x = __ldcg(next + x);
    tell(begin, x, clocks);
}

// One addition, one comparison, one branch that depends on it.
__global__ void branch(unsigned steps, unsigned by, long long* clocks) {
    unsigned x = 0;
    const long long begin = now(x);
#pragma unroll 1
    while (x < steps) x += by;
    tell(begin, x, clocks);
}

// The same, and a special register on the way.
__global__ void special(unsigned steps, unsigned by, long long* clocks) {
    unsigned x = 0, lane;
    const long long begin = now(x);
#pragma unroll 1
    do {
        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
        x += by;
    } while (x < steps + lane);
    tell(begin, x, clocks);
}

// Every lane reads a word of another line: `blockDim.x / 32` warps, kSteps requests each.
__global__ void lines(const unsigned* words, unsigned rows, long long* clocks) {
    unsigned sum = 0;
    for (unsigned i = threadIdx.x; i < 32 * rows; i += blockDim.x) sum += __ldca(words + 32 * i);
    __syncthreads();
    const long long begin = now(sum);
#pragma unroll 8
    for (unsigned i = 0; i < kSteps; i++)
        sum += __ldca(words + 32 * ((threadIdx.x % 32 + i) % (32 * rows)));
    __syncthreads();
    tell(begin, sum, clocks);
}

// Every lane writes four bytes of another sector; all of it stays in L2.
__global__ void stores(unsigned* words, unsigned sectors, unsigned rounds, long long* clocks) {
    const unsigned threads = gridDim.x * blockDim.x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    const long long begin = now(first);
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = first; i < sectors; i += threads) words[8 * i + round % 8] = round;
    tell(begin, first, clocks);
}
