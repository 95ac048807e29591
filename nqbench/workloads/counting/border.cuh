// What a symmetry leaves to be searched, and for how many boards a solution stands.
//
// Symmetry::full searches one eighth of the tree with its rows in order (border.py has the rule and its
// job format): the first queen has the largest distance to her nearest corner of the four border
// queens. Ties are counted in the top bits of the attacked columns, so every frame holds them.
// Its jobs can be made here, too (make_jobs).
#pragma once
#include "frame.cuh"
#include "jobs.cuh"

template <class P, Symmetry Y = P::kSymmetry> struct Rule {
    unsigned weight;

    __device__ static Rule of(const unsigned*, unsigned job, unsigned light_from) {
        if constexpr (P::kJobWeights) return {job < light_from ? 2u : 1u};
        return {1u};
    }
    __device__ unsigned open(const Attack& attack) const { return attack.template open<P>(); }
    __device__ Attack below(const Attack& attack, unsigned queen) const {
        return attack.below(queen);
    }
    template <class F> __device__ unsigned weigh(const F&, int, unsigned) const { return weight; }
};

constexpr int kTieShift = 27;  // above the widest board

// 12 / (1 + ties): whole for all four. The host multiplies the sum by 2 / 3.
__device__ __forceinline__ unsigned share_of(unsigned ties) {
    return 0x0304060cu >> (8 * ties) & 0xffu;
}

template <class P> struct Rule<P, Symmetry::full> {
    static constexpr unsigned kN = P::kN;
    static constexpr unsigned kBorder = 1u | 1u << (kN - 1);
    unsigned distance;

    __device__ static Rule of(const unsigned* jobs, unsigned job, unsigned) {
        return {jobs[job * 3 + 1] >> kTieShift};
    }
    // Columns within `distance` of a corner.
    __device__ unsigned corners() const {
        const unsigned corner = (2u << distance) - 1u;
        return corner | corner << (kN - 1 - distance);
    }
    __device__ unsigned ends() const { return 1u << distance | 1u << (kN - 1 - distance); }
    __device__ unsigned open(const Attack& attack) const {
        const unsigned row = __popc(attack.columns & P::kBoard);
        unsigned allowed = P::kBoard;
        if (row == kN - 1) allowed = corners();
        if (row > distance && row < kN - 1 - distance) allowed &= ~kBorder;
        return allowed & ~(attack.columns | attack.left | attack.right);
    }
    __device__ Attack below(const Attack& attack, unsigned queen) const {
        const unsigned row = __popc(attack.columns & P::kBoard);
        Attack next = attack.below(queen);
        if ((row == distance || row == kN - 1 - distance) && (queen & kBorder))
            next.columns += 1u << kTieShift;
        return next;
    }
    // Of a queen in the last row, at this cursor.
    template <class F> __device__ unsigned weigh(F& frame, int row, unsigned queen) const {
        const unsigned ties = frame.template load<kColumns>(row) >> kTieShift;
        return share_of(ties + ((queen & ends()) != 0));
    }
};

// `Closed`: with as many rows more as it takes until the next one cannot use the border columns.
template <int N, int Depth, bool Closed> struct Jobs {
    static constexpr int kN = N;
    static constexpr int kDepth = Depth;
    static constexpr int kMiddle = (N - 1) / 2;
    static constexpr int kMostRows = Closed && kMiddle > Depth ? kMiddle : Depth;
    __device__ static int rows_needed(int distance) {
        return Closed && distance < kMiddle ? distance + 1 : Depth;
    }
    static constexpr unsigned kBoard = (1u << N) - 1u;
    static constexpr Symmetry kSymmetry = Symmetry::full;
};

// Writes the jobs below a placement of Row rows, in depth-first order.
template <class J, int Row>
__device__ __forceinline__ void expand(const Rule<J>& rule, const Attack& attack, unsigned*& out) {
    if (Row == J::kMostRows || (Row >= J::kDepth && Row >= J::rows_needed(rule.distance))) {
        out[0] = attack.columns;
        out[1] = (attack.left & J::kBoard) | rule.distance << kTieShift;
        out[2] = attack.right;
        out += 3;
    } else if constexpr (Row < J::kMostRows) {
        unsigned open = rule.open(attack);
        if (Row == 1 && 2 * rule.distance == J::kN - 1) open &= (1u << rule.distance) - 1u;
        while (open != 0) {
            const unsigned queen = open & (0u - open);
            open ^= queen;
            expand<J, Row + 1>(rule, rule.below(attack, queen), out);
        }
    }
}

// All jobs of Depth rows or more, a thread for each placement of Row rows: its three words, and how many
// jobs those before it have (border.starts).
template <int N, int Depth, int Row, bool Closed>
__global__ void make_jobs(const uint4* __restrict__ above, unsigned count, unsigned* jobs) {
    using J = Jobs<N, Depth, Closed>;
    const unsigned thread = thread_number();
    if (thread >= count) return;
    const uint4 start = above[thread];
    unsigned* out = jobs + 3 * start.w;
    expand<J, Row>(Rule<J>{start.y >> kTieShift}, {start.x, start.y & J::kBoard, start.z}, out);
}
