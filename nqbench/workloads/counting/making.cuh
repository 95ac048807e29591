// Makes the jobs of Symmetry::full on the GPU, from placements of fewer rows.
#pragma once
#include "unrolled.cuh"

// `Closed`: jobs of Depth rows, and as many more as it takes until the next one cannot use the border
// columns.
template <int N, int Depth, bool Closed, Encoding E> struct Jobs {
    static constexpr int kN = N;
    static constexpr int kDepth = Depth;
    static constexpr Encoding kEncoding = E;
    static constexpr int kMiddle = (N - 1) / 2;
    static constexpr int kMostRows = Closed && kMiddle > Depth ? kMiddle : Depth;
    __device__ static int rows_needed(int distance) {
        return Closed && distance < kMiddle ? distance + 1 : Depth;
    }
    static constexpr unsigned kBoard = (1u << N) - 1u;
    static constexpr Symmetry kSymmetry = Symmetry::full;
};

template <class J>
__device__ __forceinline__ void store_job(unsigned* jobs, unsigned job, const Attack& attack,
                                          unsigned distance) {
    if constexpr (J::kEncoding == Encoding::packed) {
        reinterpret_cast<uint4*>(jobs)[job] = packed<J::kN>(attack, distance);
    } else {
        unsigned* words = jobs + 3 * job;
        words[0] = attack.columns;
        words[1] = (attack.left & J::kBoard) | distance << kTieShift;
        words[2] = attack.right;
    }
}

// Calls visit(placement) for every placement of the jobs' rows below one of Row rows, or of fewer rows
// where kMost is reached first.
template <class J, int kMost, int Row, class Visit>
__device__ __forceinline__ void below(const Rule<J>& rule, const Attack& attack, Visit& visit) {
    if (Row == kMost || (Row >= J::kDepth && Row >= J::rows_needed(rule.distance))) {
        visit(attack);
    } else if constexpr (Row < kMost) {
        unsigned open = rule.open(attack);
        if (Row == 1 && 2 * rule.distance == J::kN - 1) open &= (1u << rule.distance) - 1u;
        while (open != 0) {
            const unsigned queen = open & (0u - open);
            open ^= queen;
            below<J, kMost, Row + 1>(rule, rule.below(attack, queen), visit);
        }
    }
}

// All jobs, a warp for each placement of Row rows (three words, as Encoding::masks). It places two rows
// more, deals what it finds to its lanes, counts the jobs below, takes as many places from `made`, and
// stores them; so the order of the jobs is that of the warps.
constexpr int kMakers = 4;  // warps of a block
template <int N, int Depth, int Row, bool Closed, Encoding E>
__global__ void __launch_bounds__(32 * kMakers)
    make_jobs(const unsigned* __restrict__ above, unsigned count, unsigned* jobs, unsigned* made) {
    using J = Jobs<N, Depth, Closed, E>;
    constexpr int kDealt = Row + 2 < Depth ? Row + 2 : Depth;
    __shared__ Attack dealt[kMakers][N * N];
    Attack* const mine = dealt[threadIdx.x / 32];
    const unsigned start = thread_number() / 32, lane = threadIdx.x % 32;
    if (start >= count) return;
    const Rule<J> rule = Rule<J>::of(above, start, 0);
    unsigned found = 0;
    auto deal = [&](const Attack& attack) {
        if (found % 32 == lane) mine[found] = attack;
        ++found;
    };
    below<J, kDealt, Row>(rule, load_masks<J>(above, start), deal);

    unsigned own = 0;
    auto number = [&](const Attack&) { ++own; };
    for (unsigned k = lane; k < found; k += 32) below<J, J::kMostRows, kDealt>(rule, mine[k], number);
    unsigned end = own;  // of this lane's, among the warp's
    for (unsigned step = 1; step < 32; step *= 2) {
        const unsigned before = __shfl_up_sync(~0u, end, step);
        if (lane >= step) end += before;
    }
    unsigned place = 0;
    if (lane == 31) place = atomicAdd(made, end);
    place = __shfl_sync(~0u, place, 31) + end - own;
    auto store = [&](const Attack& attack) { store_job<J>(jobs, place++, attack, rule.distance); };
    for (unsigned k = lane; k < found; k += 32) below<J, J::kMostRows, kDealt>(rule, mine[k], store);
}
