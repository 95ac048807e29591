// The two lists of a group, or of one of the cells into which diagonals cut it.
#pragma once

#include "halves.cuh"

constexpr unsigned kWeight = 62;
constexpr unsigned kDropped = 64;

// A listed half as the lower one of the board: flipped, as the row below the upper one meets it.
template <Middle C> __device__ Half flipped(Half half) {
    const Half ahead = half & C.board(), behind = half >> C.n;
    if constexpr (C.odd()) return behind | ahead << C.n;
    return behind << 1 | ahead >> 1 << C.n;
}

// A side of a group: halves of a list with all diagonals that it `needs` and none that it `lacks`. Of an
// odd board, upper halves with a queen of the middle column in row `last` count once and those with one
// above it twice.
template <Middle C> struct Members {
    const Half* list;
    unsigned size;
    bool lower;
    unsigned last;
    Half needs, lacks, useful;  // `useful` are the diagonals of any
    // That the board is odd, with a queen of the middle row in this column.
    __device__ void meet(unsigned queen) {
        lacks = (Half(1) << C.n | 1) << queen;
        if (C.symmetry == Symmetry::middle && !lower && queen < C.half()) last = queen;
    }
    // Makes a half of the list one of this side, with its weight; whether it is a member.
    __device__ bool take(Half& half) const {
        const unsigned row = half >> kRow;
        half &= (Half(1) << 2 * C.n) - 1;
        if (lower) half = flipped<C>(half);
        const bool member = (half & (needs | lacks)) == needs && row <= last;
        const unsigned weight = lower ? 0 : 1 + (last != kAnyRow && row != last);
        half |= Half(weight) << kWeight;
        return member;
    }
    // Leaves those of the cell of this number: of the diagonals `place` 0, 1, .. upper and lower
    // halves cut in turns. A cut gives a cell whose halves have the diagonal on one side and lack it
    // on the other, and one whose halves lack it on the first side: the other side's halves that lack
    // it are in both, and no pair is lost or in both.
    __device__ void cut(const unsigned* place, unsigned cuts, unsigned number) {
        for (unsigned bit = 0; bit < 2 * C.n; ++bit) {
            if (place[bit] >= cuts) continue;
            const bool own = place[bit] % 2 == lower, has = number >> place[bit] & 1;
            if (own && has) needs |= Half(1) << bit;
            if (own != has) lacks |= Half(1) << bit;
        }
    }
};

// How often a sample of both sides has each bit, and the places of those in `useful`, the most
// decisive first: a bit decides as often as it occurs on both sides.
template <Middle C, unsigned Threads> struct Ranking {
    static constexpr unsigned kBits = 2 * C.n, kSample = C.n < 20 ? 256 : 1024;  // of each list
    unsigned often[2][kBits];
    unsigned place[kBits];

    // All threads of the block.
    __device__ void make(const Members<C> sides[2], Half useful) {
        static_assert(Threads / kWarp % 2 == 0);  // a warp looks at one side
        const unsigned lane = lane_number(), warp = threadIdx.x / kWarp;
        for (unsigned i = threadIdx.x; i < 2 * kBits; i += Threads) (&often[0][0])[i] = 0;
        __syncthreads();
        const Members<C> side = warp % 2 ? sides[1] : sides[0];
        const unsigned taken = min(side.size, kSample);
        unsigned found[2] = {0, 0};  // of the bits `lane` and `lane` + 32
        for (unsigned number = warp / 2 * kWarp; number < taken; number += Threads / 2) {
            const bool there = number + lane < taken;
            Half half = there ? side.list[(number + lane) * (side.size / taken)] : 0;
            if (!there || !side.take(half)) half = 0;
            unsigned column[2] = {0, 0};
#pragma unroll
            for (unsigned bit = 0; bit < kBits; ++bit) {
                const unsigned with = __ballot_sync(kAllLanes, half >> bit & 1);
                if (lane == bit % kWarp) column[bit / kWarp] = with;
            }
            found[0] += __popc(column[0]), found[1] += __popc(column[1]);
        }
        if (lane < kBits) atomicAdd(&often[warp % 2][lane], found[0]);
        if (lane + kWarp < kBits) atomicAdd(&often[warp % 2][lane + kWarp], found[1]);
        __syncthreads();
        for (unsigned bit = threadIdx.x; bit < kBits; bit += Threads) {
            unsigned before = 0;
            for (unsigned other = 0; other < kBits; ++other)
                before += (useful >> other & 1) && comes_before(other, bit);
            place[bit] = useful >> bit & 1 ? before : kDropped;
        }
        __syncthreads();
    }
    __device__ bool comes_before(unsigned a, unsigned b) const {
        const unsigned of_a = often[0][a] * often[1][a], of_b = often[0][b] * often[1][b];
        return C.order == Order::none || of_a == of_b ? a < b : of_a > of_b;
    }
};
