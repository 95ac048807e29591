// What the kernels of the fitness workload share. A board lists the row of each column's queen.
#pragma once

using Total = unsigned long long;  // conflicts: up to n(n-1)/2, beyond 32 bits from n = 92,683 on

// Whether queens in rows a and b, `distance` columns apart, are on a common diagonal.
__device__ inline bool conflict(int a, int b, int distance) { return abs(a - b) == distance; }

// Threads of this thread's warp that exist: the last warp of a block may have fewer than 32.
__device__ inline unsigned members() { return min(32u, blockDim.x - (threadIdx.x & ~31u)); }

// Sum over the warp, valid in its first lane. All threads of the warp must call it.
__device__ inline Total warp_sum(Total value) {
    const unsigned lane = threadIdx.x & 31, here = members();
    const unsigned mask = here == 32 ? ~0u : (1u << here) - 1;
    for (unsigned offset = 16; offset > 0; offset >>= 1) {
        const bool there = lane + offset < here;  // a lane that is not there has no value to read
        const Total other = __shfl_sync(mask, value, there ? lane + offset : lane);
        if (there) value += other;
    }
    return value;
}

// Sum over the block, valid in thread 0. All threads must call it; `partial` has a word per warp.
__device__ inline Total block_sum(Total value, Total (&partial)[32]) {
    const Total of_warp = warp_sum(value);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = of_warp;
    __syncthreads();
    Total sum = 0;
    if (threadIdx.x == 0)
        for (unsigned warp = 0; warp < (blockDim.x + 31) / 32; ++warp) sum += partial[warp];
    return sum;
}
