// Reductions over a warp and over a block. `Threads` of a block, or 0 if only the launch knows.
#pragma once

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = ~0u;

template <unsigned Threads> __device__ __forceinline__ unsigned block_threads() {
    return Threads ? Threads : blockDim.x;
}

// The lanes of this thread's warp that exist: the last warp of a block may be short.
template <unsigned Threads = 0> __device__ __forceinline__ unsigned warp_lanes() {
    return min(kWarp, block_threads<Threads>() - (threadIdx.x & ~(kWarp - 1)));
}
__device__ __forceinline__ unsigned mask_of(unsigned lanes) {
    return lanes == kWarp ? kAllLanes : (1u << lanes) - 1;
}

// Sum over the warp, valid in its first lane. All threads of the warp must call it.
template <unsigned Threads = 0, class T> __device__ __forceinline__ T warp_sum(T value) {
    const unsigned lane = threadIdx.x % kWarp, lanes = warp_lanes<Threads>();
    const unsigned mask = mask_of(lanes);
    for (unsigned step = kWarp / 2; step > 0; step /= 2) {
        const bool there = lane + step < lanes;  // a lane that is not there has no value to read
        const T other = __shfl_sync(mask, value, there ? lane + step : lane);
        if (there) value += other;
    }
    return value;
}

// A reduction over a whole warp, valid in all of its lanes.
template <class T, class Operation>
__device__ __forceinline__ T warp_all(T value, Operation operation) {
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2)
        value = operation(value, __shfl_xor_sync(kAllLanes, value, step));
    return value;
}

// Sum over the block, valid in thread 0. All threads must call it.
template <unsigned Threads = 0, class T> __device__ __forceinline__ T block_sum(T value) {
    constexpr unsigned kWarps = Threads ? (Threads + kWarp - 1) / kWarp : 32;
    value = warp_sum<Threads>(value);
    if constexpr (kWarps == 1) return value;
    __shared__ T of_warps[kWarps];
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    // Thread 0 has the first warp's sum; in a loop of unknown length, to keep it costs registers.
    constexpr bool kKept = Threads > 0;
    T sum = kKept ? value : 0;
    if (threadIdx.x == 0)
        for (unsigned warp = kKept; warp < (block_threads<Threads>() + kWarp - 1) / kWarp; ++warp)
            sum += of_warps[warp];
    return sum;
}
