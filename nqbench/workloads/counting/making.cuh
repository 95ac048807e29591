// Makes the jobs of Symmetry::full on the GPU, from placements of fewer rows.
#pragma once
#include "unrolled.cuh"

// Jobs have C.depth rows. Closed ones (Config::takes_closed_jobs) have as many more as it takes
// until the next one cannot use the border columns.
template <Config C> constexpr int kMiddle = (C.n - 1) / 2;
template <Config C>
constexpr int kMostRows = C.takes_closed_jobs() && kMiddle<C> > C.depth ? kMiddle<C> : C.depth;
template <Config C> __device__ int rows_needed(int distance) {
    return C.takes_closed_jobs() && distance < kMiddle<C> ? distance + 1 : C.depth;
}

template <Config C>
__device__ __forceinline__ void store_job(unsigned* jobs, unsigned job, const Attack& attack,
                                          unsigned distance) {
    if constexpr (C.encoding == Encoding::packed) {
        reinterpret_cast<uint4*>(jobs)[job] = packed<C.n>(attack, distance);
    } else {
        unsigned* words = jobs + 3 * job;
        words[0] = attack.columns;
        words[1] = (attack.left & C.board()) | distance << kTieShift;
        words[2] = attack.right;
    }
}

// Calls visit(placement) for every placement of the jobs' rows below one of Row rows, or of fewer
// rows where kMost is reached first.
template <Config C, int kMost, int Row, class Visit>
__device__ __forceinline__ void below(const Rule<C>& rule, const Attack& attack, Visit& visit) {
    if (Row == kMost || (Row >= C.depth && Row >= rows_needed<C>(rule.distance))) {
        visit(attack);
    } else if constexpr (Row < kMost) {
        unsigned open = rule.open(attack);
        if (Row == 1 && 2 * rule.distance == C.n - 1) open &= (1u << rule.distance) - 1u;
        while (open != 0) {
            const unsigned queen = open & (0u - open);
            open ^= queen;
            below<C, kMost, Row + 1>(rule, rule.below(attack, queen), visit);
        }
    }
}

// All jobs, a warp for each placement of Row rows (three words, as Encoding::masks). It places two
// rows more, deals what it finds to its lanes, counts the jobs below, takes as many places from
// `made`, and stores them; so the order of the jobs is that of the warps.
constexpr int kMakers = 4;  // warps of a block
constexpr int kMakerThreads = kWarp * kMakers;
template <Config C, int Row>
__global__ void __launch_bounds__(kMakerThreads)
    make_jobs(const unsigned* __restrict__ above, unsigned count, unsigned* jobs, unsigned* made) {
    constexpr int kDealt = Row + 2 < C.depth ? Row + 2 : C.depth;
    __shared__ Attack dealt[kMakers][C.n * C.n];
    Attack* const mine = dealt[threadIdx.x / kWarp];
    const unsigned start = thread_number() / kWarp, lane = threadIdx.x % kWarp;
    if (start >= count) return;
    const Rule<C> rule = Rule<C>::of(above, start, 0);
    unsigned found = 0;
    auto deal = [&](const Attack& attack) {
        if (found % kWarp == lane) mine[found] = attack;
        ++found;
    };
    below<C, kDealt, Row>(rule, load_masks<C>(above, start), deal);

    unsigned own = 0;
    auto number = [&](const Attack&) { ++own; };
    for (unsigned k = lane; k < found; k += kWarp)
        below<C, kMostRows<C>, kDealt>(rule, mine[k], number);
    unsigned end = own;  // of this lane's, among the warp's
    for (unsigned step = 1; step < kWarp; step *= 2) {
        const unsigned before = __shfl_up_sync(kAllLanes, end, step);
        if (lane >= step) end += before;
    }
    unsigned place = 0;
    if (lane == kWarp - 1) place = atomicAdd(made, end);
    place = __shfl_sync(kAllLanes, place, kWarp - 1) + end - own;
    auto store = [&](const Attack& attack) { store_job<C>(jobs, place++, attack, rule.distance); };
    for (unsigned k = lane; k < found; k += kWarp)
        below<C, kMostRows<C>, kDealt>(rule, mine[k], store);
}
