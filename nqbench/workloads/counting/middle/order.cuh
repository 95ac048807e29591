// Orders the two lists of a group so that neighbours share their most decisive diagonals.
//
// A diagonal decides as often as it occurs on both sides; a sample says how often. The bits of all
// words are permuted so that the most decisive come first, those that occur on one side only are
// dropped, and the words are sorted by the position of their first bits in a Gray code: neighbours
// differ in few bits, so that the AND of 32 of them has many.
#pragma once

#include "halves.cuh"

constexpr unsigned kOrderThreads = 512;
constexpr unsigned kSample = 512;  // of each list
constexpr unsigned kDropped = 64;
constexpr unsigned kOr = 48;  // first bit of the OR of a tile's first blocks in its mask
constexpr unsigned kOrBits = 15;
constexpr Half kOrMask = (Half(1) << kOrBits) - 1;

template <Middle C> struct Permutation {
    static constexpr unsigned kBits = 2 * C.n, kNibbles = (kBits + 3) / 4;
    Half table[kNibbles][16];
    unsigned often[2][kBits];
    unsigned place[kBits];
    unsigned useful;

    // All threads of the block.
    __device__ void make(const Half* const halves[2], const unsigned sizes[2], Half both) {
        constexpr unsigned kWarps = kOrderThreads / kWarp;
        const unsigned lane = lane_number(), warp = threadIdx.x / kWarp;
        for (unsigned i = threadIdx.x; i < 2 * kBits; i += kOrderThreads) (&often[0][0])[i] = 0;
        if (threadIdx.x == 0) useful = __popcll(both);
        __syncthreads();
        for (unsigned part = warp; part < 2 * kSample / kWarp; part += kWarps) {
            const unsigned side = part % 2, number = part / 2 * kWarp + lane;
            const unsigned size = sizes[side];
            const unsigned taken = min(size, kSample);
            const bool there = number < taken;
            const Half half = there ? halves[side][Half(number) * size / taken] : 0;
            unsigned mine[2] = {0, 0};
            for (unsigned bit = 0; bit < kBits; ++bit) {
                const unsigned count = __popc(__ballot_sync(kAllLanes, half >> bit & 1));
                if (bit % kWarp == lane) mine[bit / kWarp] = count;
            }
            if (lane < kBits) atomicAdd(&often[side][lane], mine[0]);
            if (lane + kWarp < kBits) atomicAdd(&often[side][lane + kWarp], mine[1]);
        }
        __syncthreads();
        for (unsigned bit = threadIdx.x; bit < kBits; bit += kOrderThreads) {
            unsigned before = 0;
            for (unsigned other = 0; other < kBits; ++other)
                before += (both >> other & 1) && score(other, bit) < 0;
            place[bit] = both >> bit & 1 ? before : kDropped;
        }
        __syncthreads();
        for (unsigned i = threadIdx.x; i < kNibbles * 16; i += kOrderThreads) {
            Half to = 0;
            for (unsigned j = 0; j < 4; ++j) {
                const unsigned bit = i / 16 * 4 + j;
                if ((i >> j & 1) && bit < kBits && place[bit] != kDropped)
                    to |= Half(1) << place[bit];
            }
            (&table[0][0])[i] = to;
        }
        __syncthreads();
    }
    // Negative if bit `a` comes before bit `b`.
    __device__ int score(unsigned a, unsigned b) const {
        const unsigned of_a = often[0][a] * often[1][a], of_b = often[0][b] * often[1][b];
        if (C.order == Order::none || of_a == of_b) return int(a) - int(b);
        return of_a > of_b ? -1 : 1;
    }
    __device__ Half operator()(Half half) const {
        Half found = half >> kWeight << kWeight;
#pragma unroll
        for (unsigned i = 0; i < kNibbles; ++i) found |= table[i][half >> (4 * i) & 15];
        return found;
    }
};

// Where a word stands in the order.
template <Middle C> __device__ __forceinline__ unsigned key_of(Half half) {
    unsigned key = __brev(unsigned(half)) >> (32 - C.key_bits());
    if constexpr (C.order == Order::gray) {  // the inverse of the Gray code
#pragma unroll
        for (unsigned step = 1; step < C.key_bits(); step *= 2) key ^= key >> step;
    }
    return key;
}

// Replaces counts by the sums of those before. All threads of the block.
template <unsigned Bins> __device__ void sum_up(unsigned* bins) {
    constexpr unsigned kEach = (Bins + kOrderThreads - 1) / kOrderThreads;
    __shared__ unsigned of_warps[kOrderThreads / kWarp];
    const unsigned from = threadIdx.x * kEach, warp = threadIdx.x / kWarp;
    unsigned own = 0, total;
    for (unsigned i = from; i < min(from + kEach, Bins); ++i) own += bins[i];
    unsigned sum = before(own, total);
    if (lane_number() == 0) of_warps[warp] = total;
    __syncthreads();
    for (unsigned other = 0; other < warp; ++other) sum += of_warps[other];
    for (unsigned i = from; i < min(from + kEach, Bins); ++i) {
        const unsigned count = bins[i];
        bins[i] = sum;
        sum += count;
    }
    __syncthreads();
}

// The mask of each tile: what all of its words have in common, and the OR of its first blocks.
__device__ inline void mask_tiles(const Half* ordered, unsigned size, Half* masks) {
    const unsigned lane = lane_number();
    const auto both = [](unsigned a, unsigned b) { return a & b; };
    const auto either = [](unsigned a, unsigned b) { return a | b; };
    for (unsigned tile = threadIdx.x / kWarp; tile * kWarp < size;
         tile += kOrderThreads / kWarp) {
        const unsigned i = tile * kWarp + lane;
        const Half half = i < size ? ordered[i] : ~Half(0);
        const unsigned low = warp_all(unsigned(half), both);
        const unsigned high = warp_all(unsigned(half >> 32), both);
        const unsigned first = warp_all(i < size ? unsigned(half & kOrMask) : 0, either);
        const Half common = (Half(high) << 32 | low) & ((Half(1) << kOr) - 1);
        if (lane == 0) masks[tile] = common | Half(first) << kOr;
    }
}

// A block orders the lists of group `blockIdx.x` of the launch. The last tile of a list is filled
// with words without weight.
template <Middle C>
__global__ void __launch_bounds__(kOrderThreads)
    order(unsigned count, unsigned room, const Half* halves, const unsigned* sizes,
          const Half* useful, Half* ordered, Half* masks) {
    constexpr unsigned kBins = 1u << C.key_bits();
    __shared__ Permutation<C> permute;
    __shared__ unsigned bins[C.order == Order::none ? 1 : kBins];
    const unsigned group = blockIdx.x;
    if (group >= count) return;
    const unsigned size_of[2] = {sizes[2 * group], sizes[2 * group + 1]};
    if (max(size_of[0], size_of[1]) > room || min(size_of[0], size_of[1]) == 0) return;
    const Half* const lists[2] = {halves + size_t(2 * group) * room,
                                  halves + size_t(2 * group + 1) * room};
    permute.make(lists, size_of, useful[2 * group] & useful[2 * group + 1]);
    for (unsigned side = 0; side < 2; ++side) {
        const unsigned size = size_of[side];
        const Half* list = lists[side];
        Half* to = ordered + size_t(2 * group + side) * room;
        if constexpr (C.order == Order::none) {
            for (unsigned i = threadIdx.x; i < size; i += kOrderThreads) to[i] = permute(list[i]);
        } else {
            for (unsigned i = threadIdx.x; i < kBins; i += kOrderThreads) bins[i] = 0;
            __syncthreads();
            for (unsigned i = threadIdx.x; i < size; i += kOrderThreads)
                atomicAdd(bins + key_of<C>(permute(list[i])), 1);
            __syncthreads();
            sum_up<kBins>(bins);
            for (unsigned i = threadIdx.x; i < size; i += kOrderThreads) {
                const Half half = permute(list[i]);
                to[atomicAdd(bins + key_of<C>(half), 1)] = half;
            }
        }
        const unsigned end = (size + kWarp - 1) / kWarp * kWarp;
        if (threadIdx.x < end - size) to[size + threadIdx.x] = 0;
        __syncthreads();
        mask_tiles(to, size, masks + size_t(2 * group + side) * (room / kWarp));
    }
}
