// The two lists of a group, or of one of the cells into which diagonals cut it.
#pragma once

#include "halves.cuh"

// Diagonals of a word: those of a half but for the first and the last one, which upper halves never have.
// From which bit on stands its weight, at most 1, of odd boards 2.
template <Middle C> constexpr unsigned kDiagonals = 2 * C.n - 2;
template <Middle C> constexpr unsigned kWeight = C.odd() ? 62 : 63;

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
    // Makes a half of the list a word of this side; whether it is a member.
    __device__ bool take(Half& half) const {
        const unsigned row = half >> kRow;
        half &= (Half(1) << 2 * C.n) - 1;
        if (lower) half = flipped<C>(half);
        const bool member = (half & (needs | lacks)) == needs && row <= last;
        const unsigned weight = lower ? 0 : 1 + (last != kAnyRow && row != last);
        half = half >> 1 | Half(weight) << kWeight<C>;
        return member;
    }
    // Leaves those of the cell of this number: of the diagonals `place` 0, 1, .. upper and lower
    // halves cut in turns. A cut gives a cell whose halves have the diagonal on one side and lack it
    // on the other, and one whose halves lack it on the first side: the other side's halves that lack
    // it are in both, and no pair is lost or in both.
    __device__ void cut(const unsigned* place, unsigned cuts, unsigned number) {
        for (unsigned bit = 0; bit < kDiagonals<C>; ++bit) {
            if (place[bit] >= cuts) continue;
            const bool own = place[bit] % 2 == lower, has = number >> place[bit] & 1;
            if (own && has) needs |= Half(2) << bit;
            if (own != has) lacks |= Half(2) << bit;
        }
    }
};

// How often a sample of both sides has each bit, and the places of those in `useful`, the most
// decisive first: a bit decides as often as it occurs on both sides. Of some boards a bit is chosen
// from the pairs that those before leave: a half counts for its share of them.
template <Middle C, unsigned Threads> struct Ranking {
    static constexpr unsigned kBits = kDiagonals<C>, kAll = kBits, kOne = 1 << 16;
    static constexpr unsigned kSample = C.n < 20 ? 256 : C.n < 22 ? 512 : 2048;  // of each list
    static constexpr unsigned kEach = (2 * kSample + Threads - 1) / Threads;
    static constexpr unsigned kChosen = C.n > 21 ? 14 : C.n == 20 ? 10 : 0;
    unsigned often[2][kBits + 1];  // with a bit, and all
    unsigned place[kBits];

    // All threads of the block.
    __device__ void make(const Members<C> sides[2], Half useful) {
        static_assert(Threads / kWarp % 2 == 0);  // a warp looks at one side
        const unsigned lane = lane_number(), warp = threadIdx.x / kWarp;
        const Members<C> side = warp % 2 ? sides[1] : sides[0];
        const unsigned taken = min(side.size, kSample);
        Half half[kEach], left = useful;
        unsigned weight[kEach], chosen = 0;
#pragma unroll
        for (unsigned k = 0; k < kEach; ++k) {
            const unsigned number = k * Threads / 2 + warp / 2 * kWarp + lane;
            half[k] = number < taken ? side.list[number * (side.size / taken)] : 0;
            weight[k] = number < taken && side.take(half[k]) ? kOne : 0;
            half[k] |= Half(1) << kAll;
        }
        count(half, weight);
        while (chosen < kChosen && left != 0) {
            Half best = 0;
            for (unsigned bit = lane; bit < kBits; bit += kWarp)
                if (left >> bit & 1) best = max(best, decides(bit) << 6 | bit);
            const unsigned bit = warp_all(best, [](Half a, Half b) { return max(a, b); }) % 64;
            left &= ~(Half(1) << bit);
            const unsigned* const others = often[1 - warp % 2];
            const float met = float(others[bit]) / float(max(others[kAll], 1));
#pragma unroll
            for (unsigned k = 0; k < kEach; ++k)
                if (half[k] >> bit & 1) weight[k] -= unsigned(float(weight[k]) * met);
            if (threadIdx.x == 0) place[bit] = chosen;
            ++chosen;
            count(half, weight);
        }
        for (unsigned bit = warp; bit < kBits; bit += Threads / kWarp) {
            unsigned before = chosen;
#pragma unroll
            for (unsigned other = lane; other - lane < kBits; other += kWarp) {
                const bool ranked = other < kBits && (left >> other & 1);
                before += __popc(__ballot_sync(kAllLanes, ranked && comes_before(other, bit)));
            }
            if (lane != 0) continue;
            if (left >> bit & 1) place[bit] = before;
            else if ((useful >> bit & 1) == 0) place[bit] = kDropped;
        }
        __syncthreads();
    }
    __device__ void count(const Half (&half)[kEach], const unsigned (&weight)[kEach]) {
        const unsigned lane = lane_number(), side = threadIdx.x / kWarp % 2;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < 2 * (kBits + 1); i += Threads) (&often[0][0])[i] = 0;
        __syncthreads();
        unsigned found[2] = {0, 0};  // of the bits `lane` and `lane` + 32
#pragma unroll
        for (unsigned bit = 0; bit <= kBits; ++bit) {
            unsigned with = 0;
#pragma unroll
            for (unsigned k = 0; k < kEach; ++k) with += half[k] >> bit & 1 ? weight[k] : 0;
            with = sum_of_warp(with);
            if (lane == bit % kWarp) found[bit / kWarp] = with;
        }
        if (lane <= kBits) atomicAdd(&often[side][lane], found[0]);
        if (lane + kWarp <= kBits) atomicAdd(&often[side][lane + kWarp], found[1]);
        __syncthreads();
    }
    __device__ Half decides(unsigned bit) const { return Half(often[0][bit]) * often[1][bit]; }
    __device__ bool comes_before(unsigned a, unsigned b) const {
        const Half of_a = decides(a), of_b = decides(b);
        return of_a == of_b ? a < b : of_a > of_b;
    }
};
