// What a GPU can do at most: one kernel that copies, and works on what it copies as long as asked.
#include "../variants.cuh"

enum class Operation { copy, fma, float_add, int_add, logic };

// One operation on each of four words. Every result depends on the one before, four chains side by
// side, and no compiler can foresee them: a, b come from the launch, and words are used twice.
template <Operation O> __device__ __forceinline__ void step(uint4& w, unsigned a, unsigned b) {
    if constexpr (O == Operation::fma) {
        const float x = __uint_as_float(a), y = __uint_as_float(b);
        w.x = __float_as_uint(fmaf(__uint_as_float(w.x), x, y));
        w.y = __float_as_uint(fmaf(__uint_as_float(w.y), x, y));
        w.z = __float_as_uint(fmaf(__uint_as_float(w.z), x, y));
        w.w = __float_as_uint(fmaf(__uint_as_float(w.w), x, y));
    } else if constexpr (O == Operation::float_add) {
        const float x = __uint_as_float(a);
        w.x = __float_as_uint(__fadd_rn(__uint_as_float(w.x), x));
        w.y = __float_as_uint(__fadd_rn(__uint_as_float(w.y), x));
        w.z = __float_as_uint(__fadd_rn(__uint_as_float(w.z), x));
        w.w = __float_as_uint(__fadd_rn(__uint_as_float(w.w), x));
    } else if constexpr (O == Operation::int_add) {
        w.x += w.y;
        w.y += w.x;
        w.z += w.w;
        w.w += w.z;
    } else if constexpr (O == Operation::logic) {
        w.x ^= w.y & a;
        w.y ^= w.x | b;
        w.z ^= w.w & a;
        w.w ^= w.z | b;
    }
}

template <Operation O>
__device__ __forceinline__ uint4 worked(uint4 words, unsigned steps, unsigned a, unsigned b) {
#pragma unroll 32
    for (unsigned k = 0; k < steps; ++k) step<O>(words, a, b);
    return words;
}

// Thread t takes the four words from 4t on.
template <class Access, Operation O>
__global__ void stream(unsigned quads, unsigned steps, unsigned a, unsigned b,
                       const uint4* __restrict__ in, uint4* __restrict__ out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const uint4 words = Access::load(in, i);
    Access::store(out[i], Access::result(worked<O>(words, steps, a, b), words));
}

// An array that is read past the L1 cache.
struct PastL1 {
    const uint4* words;
    __device__ uint4 operator[](unsigned i) const { return __ldcg(words + i); }
};

// Reads the whole array `passes` times, past the L1 cache, another part in each pass; `quads` is a
// power of two.
template <class Access>
__global__ void read(unsigned quads, unsigned passes, const uint4* __restrict__ in,
                     uint4* __restrict__ out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 8
    for (unsigned k = 0; k < passes; ++k) {
        const unsigned place = (i + k * 37 * blockDim.x) & (quads - 1);
        const uint4 words = Access::load(PastL1{in}, place, stand_in<uint4>(place));
        sum.x += words.x;
        sum.y += words.y;
        sum.z += words.z;
        sum.w += words.w;
    }
    Access::store(out[i], sum);
}
