// Votes, reductions and sums over a warp and over a block. `Threads` of a block, or 0 if only the launch knows.
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

__device__ __forceinline__ unsigned lane_number() { return threadIdx.x % kWarp; }

// Reductions over a whole warp by one instruction where there is one: AND, OR, and a sum.
__device__ __forceinline__ unsigned all_of_warp(unsigned word) {
#if __CUDA_ARCH__ >= 800
    return __reduce_and_sync(kAllLanes, word);
#else
    return warp_all(word, [](unsigned a, unsigned b) { return a & b; });
#endif
}
__device__ __forceinline__ unsigned long long all_of_warp(unsigned long long word) {
    const unsigned long long high = all_of_warp(unsigned(word >> 32));
    return high << 32 | all_of_warp(unsigned(word));
}
template <class Word> __device__ __forceinline__ Word any_of_warp(Word word) {
    return ~all_of_warp(Word(~word));
}
__device__ __forceinline__ unsigned sum_of_warp(unsigned word) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(kAllLanes, word);
#else
    return warp_all(word, [](unsigned a, unsigned b) { return a + b; });
#endif
}

// The lanes whose word has this bit; of a ballot in C++ the compiler makes two instructions more.
__device__ __forceinline__ unsigned with_bit(unsigned word, unsigned bit) {
    unsigned lanes;
    asm volatile(
        "{.reg .pred has; .reg .b32 of; and.b32 of, %1, %2; setp.ne.u32 has, of, 0;"
        "vote.sync.ballot.b32 %0, has, 0xffffffff;}"
        : "=r"(lanes)
        : "r"(word), "r"(bit));
    return lanes;
}

// The number of the highest bit; that of the lowest one costs an instruction more.
__device__ __forceinline__ unsigned last_of(unsigned bits) { return 31 - __clz(bits); }

// Sum over the lanes before this one, of a whole warp, and the `total` of all lanes.
__device__ __forceinline__ unsigned before(unsigned value, unsigned& total) {
    unsigned sum = value;
#pragma unroll
    for (unsigned step = 1; step < kWarp; step *= 2) {
        const unsigned other = __shfl_up_sync(kAllLanes, sum, step);
        if (lane_number() >= step) sum += other;
    }
    total = __shfl_sync(kAllLanes, sum, kWarp - 1);
    return sum - value;
}

// Adds to a counter for the whole warp; what it was, in all lanes. `more` is that of the first lane.
__device__ __forceinline__ unsigned warp_take(unsigned* counter, unsigned more) {
    unsigned first = 0;
    if (lane_number() == 0) first = atomicAdd(counter, more);
    return __shfl_sync(kAllLanes, first, 0);
}

// Which of these lanes are before this one.
__device__ __forceinline__ unsigned before_own(unsigned lanes) {
    return lanes & ((1u << lane_number()) - 1);
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

// Replaces words in shared memory by the sums of those before. All threads must call it.
template <unsigned Threads, unsigned Size>
__device__ __forceinline__ void block_scan(unsigned (&words)[Size]) {
    constexpr unsigned kEach = Size / Threads;
    static_assert(Size % Threads == 0 && Threads % kWarp == 0);
    __shared__ unsigned of_warps[Threads / kWarp];
    unsigned* const own = words + threadIdx.x * kEach;
    unsigned sum = 0, total;
    for (unsigned k = 0; k < kEach; ++k) sum += own[k];
    sum = before(sum, total);
    if (lane_number() == 0) of_warps[threadIdx.x / kWarp] = total;
    __syncthreads();
    for (unsigned warp = 0; warp < threadIdx.x / kWarp; ++warp) sum += of_warps[warp];
    for (unsigned k = 0; k < kEach; ++k) {
        const unsigned word = own[k];
        own[k] = sum;
        sum += word;
    }
    __syncthreads();
}
