// Instrumented builds: what a probe sees of a search, and where it leaves its numbers.
//
// A probe is a template argument of its own kernel, nqueens_probed; the kernel that is timed has
// the empty one, whose calls vanish. Numbers stay in registers until a job or a thread ends.
#pragma once
#include "frame.cuh"
#include "jobs.cuh"

struct NoProbe {
    template <Config C> using FrameOf = Frame<C>;

    __device__ void job_begins(unsigned) {}
    // One pass of the search loop; `places`: whether this lane places a queen or steps back.
    __device__ void iteration(bool) {}
    __device__ void job_ends() {}
    template <class F> __device__ void thread_ends(const F&) {}
};

__device__ __forceinline__ unsigned warp_number() {
    return blockIdx.x * ((blockDim.x + kWarp - 1) / kWarp) + threadIdx.x / kWarp;
}

// Loop iterations: by_job[job], by_group[thread].
struct IterationProbe : NoProbe {
    Total* by_job;
    Total* by_group;
    unsigned job = 0;
    Total here = 0, all = 0;

    __device__ IterationProbe(Total* jobs, Total* threads) : by_job(jobs), by_group(threads) {}
    __device__ void job_begins(unsigned next) {
        job = next;
        here = 0;
    }
    __device__ void iteration(bool) { ++here; }
    __device__ void job_ends() {
        by_job[job] = here;
        all += here;
    }
    template <class F> __device__ void thread_ends(const F&) { by_group[thread_number()] = all; }
};

// Clock cycles of the multiprocessor from the start of a job to its last pass of the loop:
// by_job[job], and their sum by_group[thread]. The clock is read in every pass: one reading at the
// end would, in Somers' loop on real hardware, come after the lane has waited for its warp.
struct ClockProbe : NoProbe {
    Total* by_job;
    Total* by_group;
    unsigned job = 0;
    long long begun = 0, seen = 0;
    Total all = 0;

    __device__ ClockProbe(Total* jobs, Total* threads) : by_job(jobs), by_group(threads) {}
    __device__ void job_begins(unsigned next) {
        job = next;
        begun = clock64();
    }
    __device__ void iteration(bool) { seen = clock64(); }
    __device__ void job_ends() {
        const Total taken = static_cast<Total>(seen - begun);
        by_job[job] = taken;
        all += taken;
    }
    template <class F> __device__ void thread_ends(const F&) { by_group[thread_number()] = all; }
};

// The place-or-retreat branch, by ballot among the lanes that reach it together:
// by_group[3 * warp + ...] = passes, passes in which the lanes go both ways, lanes over all passes.
struct DivergenceProbe : NoProbe {
    Total* by_group;
    Total passes = 0, split = 0, lanes = 0;

    __device__ DivergenceProbe(Total*, Total* warps) : by_group(warps) {}
    __device__ void iteration(bool places) {
        const unsigned active = __activemask();
        const unsigned placing = __ballot_sync(active, places);
        const unsigned first = __ffs(active) - 1;  // one lane keeps the books of this pass
        if (threadIdx.x % kWarp == first) {
            ++passes;
            split += placing != 0 && placing != active;
            lanes += __popc(active);
        }
    }
    template <class F> __device__ void thread_ends(const F&) {
        Total* own = by_group + 3 * static_cast<size_t>(warp_number());
        atomicAdd(own, passes);
        atomicAdd(own + 1, split);
        atomicAdd(own + 2, lanes);
    }
};

// A frame that counts its 32-bit loads and stores.
template <Config C> class CountedFrame : Frame<C> {
    using Base = Frame<C>;

public:
    static constexpr int kStep = Base::kStep;
    static constexpr int kStackStep = Base::kStackStep;
    static constexpr bool kDirect = false;
    Total loads = 0, stores = 0;

    __device__ explicit CountedFrame(unsigned* scratch) : Base(scratch) {}
    __device__ int row(int number) const { return Base::row(number); }
    __device__ int stack(int number) const { return Base::stack(number); }
    template <Quantity Q> __device__ unsigned load(int cursor) {
        ++loads;
        return Base::template load<Q>(cursor);
    }
    template <Quantity Q> __device__ void store(int cursor, unsigned value) {
        ++stores;
        Base::template store<Q>(cursor, value);
    }
    __device__ unsigned pop(int cursor) {
        ++loads;
        return Base::pop(cursor);
    }
    __device__ void push(int cursor, unsigned value) {
        ++stores;
        Base::push(cursor, value);
    }
    __device__ uint4 load_row(int cursor) {
        loads += 4;
        return Base::load_row(cursor);
    }
    __device__ void store_row(int cursor, uint4 words) {
        stores += 4;
        Base::store_row(cursor, words);
    }
};

// Accesses to the work space as the listings write them, whatever the compiler keeps in registers:
// by_group[2 * warp + ...] = loads, stores.
struct AccessProbe : NoProbe {
    template <Config C> using FrameOf = CountedFrame<C>;
    Total* by_group;

    __device__ AccessProbe(Total*, Total* warps) : by_group(warps) {}
    template <class F> __device__ void thread_ends(const F& frame) {
        Total* own = by_group + 2 * static_cast<size_t>(warp_number());
        atomicAdd(own, frame.loads);
        atomicAdd(own + 1, frame.stores);
    }
};
