// Counts the solutions of the N-Queens problem, one sub-tree ("job") at a time.
//
// One kernel for three papers, everything between them, and the fastest: nqueens<Config{...}>. The
// listings it follows are feinbube2010 (4 to 9), tanaka2011 (Figures 2 to 4) and zhang2011 (Figures
// 1, 3, 5).
#include "making.cuh"

// All of a thread's jobs, by the loop of the configuration. `hidden` is 1 where the loop is
// `unrolled`, and the compiler does not know it.
template <Config C, class F, class Probe>
__device__ __forceinline__ Counter<C> search(F& frame, Source<C, Probe>& source, unsigned hidden) {
    constexpr Loop kForm = C.loop;
    // search.cuh: the papers' loops
    if constexpr (kForm == Loop::somers) return search_somers<C>(frame, source);
    else if constexpr (kForm == Loop::irrc) return search_irrc<C>(frame, source);
    else if constexpr (kForm == Loop::branchy || kForm == Loop::place_first)
        return search_two_way<C>(frame, source);
    // frontier.cuh: the current row in registers
    else if constexpr (kForm == Loop::registers || kForm == Loop::siblings)
        return search_by_branches<C>(frame, source);
    // unrolled.cuh: several placements between two votes of the warp
    else if constexpr (kForm == Loop::unrolled) return search_unrolled<C>(frame, source, hidden);
    else return search_by_predicates<C>(frame, source);
}

// Where the count goes is part of each paper's loop: one result per thread (feinbube2010; a 64-bit
// word instead of the 32-bit first word of the job, which would overflow and would need
// the jobs renewed before every launch), one atomic addition per thread (tanaka2011), one result
// per block (zhang2011).
template <Config C>
__device__ __forceinline__ void deliver(Total count, Total* results, unsigned jobs) {
    count *= C.thread_weight();
    if constexpr (C.loop == Loop::somers) {
        const unsigned thread = thread_number();
        if (C.takes_more_jobs() || thread < jobs) results[thread] = count;
    } else if constexpr (C.loop == Loop::place_first) {
        atomicAdd(results, count);
    } else {
        const Total sum = block_sum<C.block_size>(count);
        if (threadIdx.x == 0) results[blockIdx.x] = sum;
    }
}

// jobs        encoded jobs, in depth-first order if the CPU made them
// job_count   number of jobs
// share       jobs per thread (contiguous) or per pool (block_pool), else 1
// light_from  first job that counts once instead of twice (masks, odd N, mirror); unused otherwise
// scratch     work space for Memory::global, Order<C>::kWords words per block
// counter     next job for Assignment::global_pool, initially the number of threads, or for warp_pool,
//             initially 0
// results     one 64-bit word per job or thread (somers), in all (place_first), or per block
template <Config C, class Probe>
__device__ __forceinline__ void run(const unsigned* __restrict__ jobs, unsigned job_count,
                                    unsigned share, unsigned light_from, unsigned* scratch,
                                    unsigned* counter, Total* results, Probe& probe) {
    check<C>();
    typename Probe::template FrameOf<C> frame(scratch);
    Source<C, Probe> source{jobs, light_from, Feed<C>(job_count, share, counter), probe};
    const Total count = search<C>(frame, source, share);
    probe.thread_ends(frame);
    deliver<C>(count, results, job_count);
}

template <Config C>
__global__ void __launch_bounds__(C.block_size)
    nqueens(const unsigned* __restrict__ jobs, unsigned job_count, unsigned share,
            unsigned light_from, unsigned* scratch, unsigned* counter, Total* results) {
    NoProbe probe;
    run<C>(jobs, job_count, share, light_from, scratch, counter, results, probe);
}

// The same search, instrumented; never timed. What the two arrays hold is the probe's to say.
template <Config C, class Probe>
__global__ void __launch_bounds__(C.block_size)
    nqueens_probed(const unsigned* __restrict__ jobs, unsigned job_count, unsigned share,
                   unsigned light_from, unsigned* scratch, unsigned* counter, Total* results,
                   Total* by_job, Total* by_group) {
    Probe probe(by_job, by_group);
    run<C>(jobs, job_count, share, light_from, scratch, counter, results, probe);
}
