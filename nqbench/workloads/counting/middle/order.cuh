// Orders the two lists of a cell so that neighbours share their most decisive diagonals.
//
// The bits of all words are permuted so that the most decisive come first, those that only one side
// has are dropped, and the words are sorted by the position of their first bits in a Gray code:
// neighbours differ in few bits, so that the AND of 32 of them has many. A list that is too long for
// shared memory is sorted piece by piece.
#pragma once

#include "cells.cuh"

constexpr unsigned kOrderThreads = 512;
constexpr unsigned kMostStaged = 8192;  // halves in shared memory, of both sides or a piece
constexpr unsigned kStep = 2 * kOrderThreads;
constexpr unsigned kKey = 48;  // first bit of a permuted word's place in the order
constexpr unsigned kKeyBits = 12;
constexpr Half kDiagonals = (Half(1) << kKey) - 1;
constexpr unsigned kOr = 48;  // first bit of the OR of a tile's first block in its mask
constexpr unsigned kOrBits = 5;
constexpr Half kOrMask = (Half(1) << kOrBits) - 1;

__device__ __forceinline__ unsigned all_of_warp(unsigned word) {
#if __CUDA_ARCH__ >= 800
    return __reduce_and_sync(kAllLanes, word);
#else
    return warp_all(word, [](unsigned a, unsigned b) { return a & b; });
#endif
}
__device__ __forceinline__ Half all_of_warp(Half word) {
    return Half(all_of_warp(unsigned(word >> 32))) << 32 | all_of_warp(unsigned(word));
}
template <class Word> __device__ __forceinline__ Word any_of_warp(Word word) {
    return ~all_of_warp(Word(~word));
}

template <Middle C> struct Permutation {
    static constexpr unsigned kNibbles = (2 * C.n + 3) / 4;
    Half table[kNibbles][16];

    // The inverse of the Gray code is linear: a bit flips all below it.
    __device__ static Half image(unsigned place) {
        if (place == kDropped) return 0;
        Half key = 0;
        if (place < kKeyBits && C.order == Order::plain) key = 1u << (kKeyBits - 1 - place);
        if (place < kKeyBits && C.order == Order::gray) key = (1u << (kKeyBits - place)) - 1;
        return Half(1) << place | key << kKey;
    }
    __device__ void make(const unsigned* place) {
        for (unsigned i = threadIdx.x; i < kNibbles * 16; i += kOrderThreads) {
            Half to = 0;
            for (unsigned j = 0; j < 4; ++j) {
                const unsigned bit = i / 16 * 4 + j;
                if ((i >> j & 1) && bit < 2 * C.n) to ^= image(place[bit]);
            }
            (&table[0][0])[i] = to;
        }
        __syncthreads();
    }
    __device__ Half operator()(Half half) const {
        Half found = half >> kWeight << kWeight;
#pragma unroll
        for (unsigned i = 0; i < kNibbles; ++i) found ^= table[i][half >> (4 * i) & 15];
        return found;
    }
};

// Replaces `count` numbers, a power of two, by the sums of those before. All threads of the block.
template <unsigned Threads> __device__ void sum_up(unsigned* bins, unsigned count) {
    constexpr unsigned kWarps = Threads / kWarp;
    __shared__ unsigned of_warps[kWarps];
    const unsigned each = (count + Threads - 1) / Threads, warp = threadIdx.x / kWarp;
    const unsigned from = min(threadIdx.x * each, count), to = min(from + each, count);
    unsigned own = 0, total;
    for (unsigned i = from; i < to; ++i) own += bins[i];
    unsigned sum = before(own, total);
    if (lane_number() == 0) of_warps[warp] = total;
    __syncthreads();
    for (unsigned other = 0; other < warp; ++other) sum += of_warps[other];
    for (unsigned i = from; i < to; ++i) {
        const unsigned size = bins[i];
        bins[i] = sum;
        sum += size;
    }
    __syncthreads();
}

// A place in a list that the active lanes of a warp lengthen.
__device__ __forceinline__ unsigned next_place(unsigned* filled) {
    const unsigned active = __activemask(), leader = __ffs(active) - 1;
    unsigned begin = 0;
    if (lane_number() == leader) begin = atomicAdd(filled, __popc(active));
    begin = __shfl_sync(active, begin, leader);
    return begin + __popc(active & ((1u << lane_number()) - 1));
}

template <Middle C> struct Sorter {
    unsigned bins[1u << kKeyBits];
    unsigned short order[kMostStaged];

    // Writes staged words in order, the last tile filled with words without weight, and the mask of
    // each tile: what all of its words have in common, and the OR of its first block.
    __device__ void write(const Half* stage, unsigned size, Half* to, Half* masks) {
        const unsigned bits = min(kKeyBits, 31 - __clz(size | 32));
        const auto key = [&](unsigned i) -> unsigned {
            if constexpr (C.order == Order::none) return (i << bits) / size;
            return unsigned(stage[i] >> (kKey + kKeyBits - bits)) & ((1u << bits) - 1);
        };
        for (unsigned i = threadIdx.x; i < 1u << bits; i += kOrderThreads) bins[i] = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < size; i += kOrderThreads) atomicAdd(bins + key(i), 1);
        __syncthreads();
        sum_up<kOrderThreads>(bins, 1u << bits);
        for (unsigned i = threadIdx.x; i < size; i += kOrderThreads)
            order[atomicAdd(bins + key(i), 1)] = i;
        __syncthreads();
        const unsigned lane = lane_number();
        for (unsigned base = threadIdx.x - lane; base < size; base += kOrderThreads) {
            const bool there = base + lane < size;
            const Half half = there ? stage[order[base + lane]] : 0;
            to[base + lane] = half;
            const Half common = all_of_warp(there ? half : ~Half(0)) & ((Half(1) << kOr) - 1);
            const Half first = any_of_warp(unsigned(half & kOrMask));
            if (lane == 0) masks[base / kWarp] = common | first << kOr;
        }
        __syncthreads();
    }
};

// What 32 tiles have in common, of their masks; a list begins at a multiple of 32 tiles.
__device__ inline void mask_tops(const Half* masks, unsigned tiles, Half* tops) {
    for (unsigned top = threadIdx.x / kWarp; top * kWarp < tiles; top += kOrderThreads / kWarp) {
        const unsigned tile = top * kWarp + lane_number();
        const Half mask = all_of_warp(tile < tiles ? masks[tile] : ~Half(0));
        if (lane_number() == 0) tops[top] = mask;
    }
}

// The ordered lists of a cell, in tiles from the begin of `ordered`, and how many diagonals they use.
struct Pair {
    unsigned group, useful;
    unsigned tile[2], size[2];
};

template <Middle C> struct Orderer {
    Ranking<C, kOrderThreads> ranking;
    Permutation<C> permute;
    Sorter<C> sorter;
    Half seen[2];
    unsigned filled, tile;

    // Finds what diagonals the members of a side have, and stages them behind the others, as far as
    // there is room; returns how many there are with the others. Without `room` it counts none.
    __device__ unsigned scan(const Members<C>& side, Half* stage, unsigned room) {
        Half own = 0;
        side.template each<kOrderThreads>([&](Half half) {
            if (!side.take(half)) return;
            own |= half;
            if (room == 0) return;
            const unsigned place = next_place(&filled);
            if (place < room) stage[place] = half;
        });
        own = any_of_warp(own);
        if (lane_number() == 0 && own != 0) atomicOr(&seen[side.lower], own);
        __syncthreads();
        const unsigned found = filled;
        __syncthreads();
        return found;
    }
    // Orders a list that does not fit into the stage; returns how many members it has.
    __device__ unsigned write_pieces(const Members<C>& side, Half* stage, unsigned staged, Half* to,
                                     Half* masks) {
        unsigned written = 0;
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        for (unsigned base = threadIdx.x;; base += kStep) {
            const bool ended = base - threadIdx.x >= side.size;
            const unsigned size = filled;
            __syncthreads();
            if (ended || size + kStep > staged) {
                const unsigned sorted = ended ? size : size / kWarp * kWarp;
                sorter.write(stage, sorted, to + written, masks + written / kWarp);
                written += sorted;
                const Half left = threadIdx.x < size - sorted ? stage[sorted + threadIdx.x] : 0;
                __syncthreads();
                if (threadIdx.x < size - sorted) stage[threadIdx.x] = left;
                if (threadIdx.x == 0) filled = size - sorted;
                __syncthreads();
            }
            if (ended) return written;
#pragma unroll
            for (unsigned i = base; i < base + kStep; i += kOrderThreads) {
                if (i >= side.size) continue;
                Half half = side.list[i];
                if (side.take(half)) stage[next_place(&filled)] = permute(half);
            }
            __syncthreads();
        }
    }
};

// Blocks order the lists of the cells of a round, and take what they need of the `tiles` of `ordered`.
template <Middle C>
__global__ void __launch_bounds__(kOrderThreads, 2)
    order(unsigned first, unsigned groups, unsigned at, unsigned room, const unsigned* middle,
          const unsigned* list_of, const unsigned* sizes, const Half* useful, Half* halves,
          unsigned dealt, unsigned end, Cell* cells, unsigned capacity, unsigned* counts,
          unsigned* spilled, unsigned round, unsigned staged, unsigned tiles, Half* ordered,
          Half* masks, Half* tops, Pair* pairs) {
    const Batch batch{first,  groups, at,  room,  middle,   list_of, sizes,  useful,
                      halves, dealt,  end, cells, capacity, counts,  spilled};
    extern __shared__ Half stage[];
    __shared__ Orderer<C> own;
    const unsigned all = cells_of(counts, groups, capacity, round);
    for (unsigned number; (number = next_ticket(counts + kOrdered)) < all;) {
        const Cell cell = cell_of<C>(batch, round, number);
        Pair pair{cell.group, 0, {0, 0}, {0, 0}};
        if (threadIdx.x == 0) {
            pairs[number] = pair;
            own.filled = 0, own.seen[0] = own.seen[1] = 0;
        }
        if (min(cell.size[0], cell.size[1]) == 0) continue;
        __syncthreads();
        Members<C> sides[2] = {{batch, cell, 0}, {batch, cell, 1}};
        const unsigned most = C.odd() && !cell.dealt ? kKept * staged : staged;
        const unsigned kept = cell.size[0] + cell.size[1] <= most ? staged : 0;
        unsigned uppers = 0, members = staged + 1;
        Half both = cell.useful;
        if (C.odd() || cell.dealt || kept) {  // else all that were listed are members
            uppers = own.scan(sides[0], stage, kept);
            members = own.scan(sides[1], stage, kept);
            if (kept && (uppers == 0 || members == uppers)) continue;
            both &= own.seen[0] & own.seen[1];
        }
        const bool fits = kept && members <= staged;
        if (fits) sides[0] = {stage, uppers}, sides[1] = {stage + uppers, members - uppers};
        own.ranking.make(sides, both);
        own.permute.make(own.ranking.place);
        pair.useful = __popcll(both);
        bool found_room = true;
#pragma unroll
        for (unsigned side = 0; side < 2; ++side) {
            unsigned size = sides[side].size;
            const unsigned needed = (size + kWarp * kWarp - 1) / (kWarp * kWarp) * kWarp;
            __syncthreads();
            if (threadIdx.x == 0) own.tile = atomicAdd(counts + kTaken, needed);
            __syncthreads();
            const unsigned begin = own.tile;
            found_room &= begin + needed <= tiles;
            if (!found_room) continue;
            Half* const to = ordered + size_t(begin) * kWarp;
            if (fits) {
                Half* const staged_side = stage + (side ? uppers : 0);
                for (unsigned i = threadIdx.x; i < size; i += kOrderThreads)
                    staged_side[i] = own.permute(staged_side[i]);
                __syncthreads();
                own.sorter.write(staged_side, size, to, masks + begin);
            } else {
                size = own.write_pieces(sides[side], stage, staged, to, masks + begin);
            }
            mask_tops(masks + begin, (size + kWarp - 1) / kWarp, tops + begin / kWarp);
            pair.tile[side] = begin, pair.size[side] = size;
        }
        if (threadIdx.x != 0) continue;
        if (found_room) pairs[number] = pair;
        else spilled[first + cell.group] = 1;
    }
}
