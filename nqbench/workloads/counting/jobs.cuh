// Jobs: how a thread reads one (encoding), and how it comes by the next one (assignment).
#pragma once
#include "../warp.cuh"
#include "config.cuh"

// What the queens above a row attack in it.
struct Attack {
    unsigned columns, left, right;

    template <Config C> __device__ unsigned open() const {
        return C.board() & ~(columns | left | right);
    }
    __device__ Attack below(unsigned queen) const {
        return {columns | queen, (left | queen) << 1, (right | queen) >> 1};
    }
};

// Of three words. With symmetry: full, `left` also holds the distance of the border queens.
template <Config C> __device__ __forceinline__ Attack load_masks(const unsigned* jobs,
                                                                 unsigned job) {
    const unsigned* words = jobs + job * 3;
    Attack attack{words[0], words[1], words[2]};
    if constexpr (C.symmetry == Symmetry::full) attack.left &= C.board();
    return attack;
}

// Attack on the first searched row of a job. Indices stay below 2^30 (checked on the host).
template <Config C> __device__ __forceinline__ Attack load_job(const unsigned* jobs, unsigned job) {
    Attack attack{0, 0, 0};
    if constexpr (C.encoding == Encoding::rows) {
        const unsigned* queens = jobs + job * C.depth;
#pragma unroll
        for (int d = 0; d < C.depth; ++d) attack = attack.below(queens[d]);
    } else if constexpr (C.encoding == Encoding::base_n) {
        // The last digit is the queen nearest to the first searched row: it is one row away.
        unsigned code = jobs[job];
#pragma unroll
        for (int distance = 1; distance <= C.depth; ++distance) {
            const unsigned queen = 1u << (code % C.n);
            code /= C.n;
            attack.columns |= queen;
            attack.left |= queen << distance;
            attack.right |= queen >> distance;
        }
    } else {
        attack = load_masks<C>(jobs, job);
    }
    return attack;
}

__device__ __forceinline__ unsigned thread_number() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// A feed hands out job numbers: `first` once, then `next` until it returns false.
template <Config C, Assignment A = C.assignment> struct Feed;

template <Config C> struct Feed<C, Assignment::one_per_thread> {
    unsigned count;
    __device__ Feed(unsigned jobs, unsigned, unsigned*) : count(jobs) {}
    __device__ bool first(unsigned& job) { return (job = thread_number()) < count; }
    __device__ bool next(unsigned&) { return false; }
};

template <Config C> struct Feed<C, Assignment::strided> {
    unsigned count;
    __device__ Feed(unsigned jobs, unsigned, unsigned*) : count(jobs) {}
    __device__ bool first(unsigned& job) { return (job = thread_number()) < count; }
    __device__ bool next(unsigned& job) { return (job += gridDim.x * blockDim.x) < count; }
};

// Thread t has jobs t * share .. (t + 1) * share - 1.
template <Config C> struct Feed<C, Assignment::contiguous> {
    unsigned begin, end;
    __device__ Feed(unsigned jobs, unsigned share, unsigned*)
        : begin(thread_number() * share), end(min(begin + share, jobs)) {}
    __device__ bool first(unsigned& job) { return (job = begin) < end; }
    __device__ bool next(unsigned& job) { return ++job < end; }
};

// Each block owns the jobs b * pool .. (b + 1) * pool - 1 and a shared index into them
// (zhang2011, section 4.3). The first jobs go by thread number; a last pool may be shorter.
template <Config C> struct Feed<C, Assignment::block_pool> {
    unsigned begin, end;
    unsigned* seek;
    __device__ Feed(unsigned jobs, unsigned pool, unsigned*)
        : begin(blockIdx.x * pool), end(min(begin + pool, jobs)) {
        __shared__ unsigned block_seek;
        seek = &block_seek;
        if (threadIdx.x == 0) *seek = begin + blockDim.x;
        __syncthreads();
    }
    __device__ bool first(unsigned& job) { return (job = begin + threadIdx.x) < end; }
    __device__ bool next(unsigned& job) { return (job = atomicAdd(seek, 1u)) < end; }
};

// One counter for all blocks, from which a warp takes many jobs at once.
template <Config C> struct Feed<C, Assignment::warp_pool> {
    unsigned count;
    unsigned* seek;
    __device__ Feed(unsigned jobs, unsigned, unsigned* counter) : count(jobs), seek(counter) {}
    // The first of `jobs` jobs for this warp, all of its lanes alike; the last ones may not exist.
    __device__ unsigned share(unsigned jobs) {
        unsigned first = 0;
        if (threadIdx.x % kWarp == 0) first = atomicAdd(seek, jobs);
        return __shfl_sync(kAllLanes, first, 0);
    }
};

// One counter for all blocks, starting at the number of threads (tanaka2011, Figure 4; zhang2011,
// monolithic pool). The first fetch is guarded: with few jobs there are more threads than jobs,
// and the printed kernel would read past the array.
template <Config C> struct Feed<C, Assignment::global_pool> {
    unsigned count;
    unsigned* seek;
    __device__ Feed(unsigned jobs, unsigned, unsigned* counter) : count(jobs), seek(counter) {}
    __device__ bool first(unsigned& job) { return (job = thread_number()) < count; }
    __device__ bool next(unsigned& job) { return (job = atomicAdd(seek, 1u)) < count; }
};
