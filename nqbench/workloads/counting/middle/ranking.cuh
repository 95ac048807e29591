// The diagonals of a group, or of one of its cells, by how much they decide.
#pragma once

#include "words.cuh"

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
                if (left >> bit & 1) best = max(best, decides(bit));
            const unsigned bit = warp_all(best, [](Half a, Half b) { return max(a, b); }) % 64;
            left &= ~(Half(1) << bit);
            const unsigned* const others = often[1 - warp % 2];
            const float met = float(others[bit]) / float(max(others[kAll], 1));
            for (unsigned k = 0; k < kEach; ++k)
                if (half[k] >> bit & 1) weight[k] -= unsigned(float(weight[k]) * met);
            if (threadIdx.x == 0) place[bit] = chosen;
            ++chosen;
            count(half, weight);
        }
        for (unsigned bit = warp; bit < kBits; bit += Threads / kWarp) {
            unsigned before = chosen;
            for (unsigned other = lane; other - lane < kBits; other += kWarp) {
                const bool ranked = other < kBits && (left >> other & 1);
                before += __popc(__ballot_sync(kAllLanes, ranked && decides(other) > decides(bit)));
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
            for (unsigned k = 0; k < kEach; ++k) with += half[k] >> bit & 1 ? weight[k] : 0;
            with = sum_of_warp(with);
            if (lane == bit % kWarp) found[bit / kWarp] = with;
        }
        if (lane <= kBits) atomicAdd(&often[side][lane], found[0]);
        if (lane + kWarp <= kBits) atomicAdd(&often[side][lane + kWarp], found[1]);
        __syncthreads();
    }
    // How many pairs of the samples have the bit, at most 2^54; of equal ones the higher bit counts more.
    __device__ Half decides(unsigned bit) const {
        return Half(often[0][bit]) * often[1][bit] << 6 | bit;
    }
};
