// What a symmetry leaves to be searched, and for how many boards a solution stands.
//
// Symmetry::full searches one eighth of the tree with its rows in order (border.py has the rule and
// its job format): the first queen has the largest distance to her nearest corner of the four
// border queens. Ties are counted in the top bits of the attacked columns, so every frame holds
// them.
#pragma once
#include "frame.cuh"
#include "jobs.cuh"

template <Config C, Symmetry Y = C.symmetry> struct Rule {
    unsigned weight;

    __device__ static Rule of(const unsigned*, unsigned job, unsigned light_from) {
        if constexpr (C.jobs_have_weights()) return {job < light_from ? 2u : 1u};
        return {1u};
    }
    __device__ unsigned open(const Attack& attack) const { return attack.template open<C>(); }
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

template <Config C> struct Rule<C, Symmetry::full> {
    static constexpr unsigned kN = C.n;
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
        const unsigned row = __popc(attack.columns & C.board());
        unsigned allowed = C.board();
        if (row == kN - 1) allowed = corners();
        if (row > distance && row < kN - 1 - distance) allowed &= ~kBorder;
        return allowed & ~(attack.columns | attack.left | attack.right);
    }
    __device__ Attack below(const Attack& attack, unsigned queen) const {
        const unsigned row = __popc(attack.columns & C.board());
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
