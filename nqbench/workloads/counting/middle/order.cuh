// Orders the two lists of a group so that neighbours share their most decisive diagonals.
//
// The bits of all words are permuted so that the most decisive come first, those that only one side
// has are dropped, and the words are sorted by the position of their first bits in a Gray code:
// neighbours differ in few bits, so that the AND of 32 of them has many. A list that is too long for
// shared memory is sorted in pieces, and then as many keys at a time as fit, from all pieces.
#pragma once

#include "cells.cuh"

constexpr unsigned kAhead = 4;  // halves of a thread that are under way
constexpr unsigned kKey = 48;   // first bit of a permuted word's place in the order
constexpr unsigned kKeyBits = 14;
constexpr unsigned kBinBits = 10, kBins = 1u << kBinBits;  // of 8 halves or more
constexpr Half kDiagonals = (Half(1) << kKey) - 1;
constexpr unsigned kOr = 48;  // first bit of the OR of a tile's first blocks in its mask
template <Middle C> constexpr unsigned kOrBits = C.n < 22 ? 5 : 10;

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
        for (unsigned i = threadIdx.x; i < kNibbles * 16; i += C.order_threads) {
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

// Replaces the sizes of bins by the sums of those before. All threads of the block.
template <Middle C> __device__ void sum_up(unsigned* bins) {
    constexpr unsigned kEach = kBins / C.order_threads;
    __shared__ unsigned of_warps[C.order_threads / kWarp];
    unsigned own = 0, total;
    for (unsigned k = 0; k < kEach; ++k) own += bins[threadIdx.x * kEach + k];
    unsigned sum = before(own, total);
    if (lane_number() == 0) of_warps[threadIdx.x / kWarp] = total;
    __syncthreads();
    for (unsigned warp = 0; warp < threadIdx.x / kWarp; ++warp) sum += of_warps[warp];
    for (unsigned k = 0; k < kEach; ++k) {
        const unsigned size = bins[threadIdx.x * kEach + k];
        bins[threadIdx.x * kEach + k] = sum;
        sum += size;
    }
    __syncthreads();
}

// Sorted pieces of a list in global memory, each with the ends of its bins.
template <Middle C> struct Pieces {
    static constexpr unsigned kWords =
        C.most_staged + kBins * sizeof(unsigned short) / sizeof(Half);
    Half* words;
    unsigned room;
    __device__ Half* of(unsigned piece) const { return words + size_t(piece) * kWords; }
    __device__ unsigned short* ends(unsigned piece) const {
        return reinterpret_cast<unsigned short*>(of(piece) + C.most_staged);
    }
};

template <Middle C> struct Sorter {
    unsigned bins[kBins];
    unsigned short order[C.most_staged + kWarp];

    // Finds the order of `size` staged halves, of which `word` makes what is sorted, by so many bits of
    // their keys, of which `count` values from `low` on occur; `bins` become the begins of the keys.
    template <class Word>
    __device__ void sort(Half* stage, unsigned size, unsigned bits, unsigned low, unsigned count,
                         Word word) {
        const auto bin = [&](Half half, unsigned i) -> unsigned {
            if constexpr (C.order == Order::none) return i * count / size;
            const unsigned key = half << (64 - kKey - kKeyBits) >> (64 - bits);
            return key > low ? key - low : 0;  // lower ones are left of the keys before
        };
        for (unsigned i = threadIdx.x; i < kBins; i += C.order_threads) bins[i] = 0;
        __syncthreads();
        constexpr unsigned kEach = C.most_staged / C.order_threads + 1;
        unsigned place[kEach];  // the bin, and how many of it came before
#pragma unroll
        for (unsigned k = 0; k < kEach; ++k) {
            const unsigned i = k * C.order_threads + threadIdx.x;
            if (i >= size) break;
            const Half half = stage[i] = word(stage[i]);
            const unsigned own = bin(half, i);
            place[k] = own << 16 | atomicAdd(bins + own, 1);
        }
        __syncthreads();
        sum_up<C>(bins);
#pragma unroll
        for (unsigned k = 0; k < kEach; ++k) {
            const unsigned i = k * C.order_threads + threadIdx.x;
            if (i >= size) break;
            order[bins[place[k] >> 16] + place[k] % (1u << 16)] = i;
        }
        __syncthreads();
    }
    // Writes the first words of the order, the last tile filled with words without weight, and the
    // mask of each tile: what all of its words have in common, and the OR of its first blocks.
    __device__ void write(const Half* stage, unsigned size, Half* to, Half* masks) const {
        const unsigned lane = lane_number();
        for (unsigned base = threadIdx.x - lane; base < size; base += C.order_threads) {
            const bool there = base + lane < size;
            const Half half = there ? stage[order[base + lane]] : 0;
            to[base + lane] = half;
            const Half common = all_of_warp(there ? half : ~Half(0)) & ((Half(1) << kOr) - 1);
            const Half first = any_of_warp(unsigned(half) % (1u << kOrBits<C>));
            if (lane == 0) masks[base / kWarp] = common | first << kOr;
        }
        __syncthreads();
    }
};

// What 32 tiles have in common, of their masks; a list begins at a multiple of 32 tiles.
template <Middle C> __device__ void mask_tops(const Half* masks, unsigned tiles, Half* tops) {
    for (unsigned top = threadIdx.x / kWarp; top * kWarp < tiles; top += C.order_threads / kWarp) {
        const unsigned tile = top * kWarp + lane_number();
        const Half mask = all_of_warp(tile < tiles ? masks[tile] : ~Half(0));
        if (lane_number() == 0) tops[top] = mask;
    }
}

// The ordered lists of a group or cell, in tiles from the begin of `ordered`, and how many diagonals they use.
struct Pair {
    unsigned group, useful;
    unsigned tile[2], size[2];
};

template <Middle C> struct Orderer {
    Ranking<C, C.order_threads> ranking;
    Permutation<C> permute;
    Sorter<C> sorter;
    Members<C> sides[2];
    unsigned number, filled, fitting, tile;

    __device__ void sort_members(Half* stage, unsigned size, unsigned bits) {
        sorter.sort(stage, size, bits, 0, 1u << bits, [&](Half half) { return permute(half); });
    }
    // Stages the members of a side, and keeps what does not fit in pieces; returns how many members
    // there are. If there is a piece all are in pieces, those that there is room for.
    __device__ unsigned read(const Members<C> side, Half* stage, unsigned staged,
                             const Pieces<C>& pieces, unsigned& made) {
        constexpr unsigned kStep = kAhead * C.order_threads;
        const unsigned lane = lane_number();
        const bool all = !C.odd() && (side.needs | side.lacks) == 0;  // are members
        unsigned read = 0;
        unsigned most = 0;  // are staged; where these may be too many, warps wait and count them
        made = 0;
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        for (unsigned base = 0;; base += kStep) {
            const unsigned left = base < side.size ? side.size - base : 0;
            if (left == 0 || most + min(left, kStep) > staged) {
                __syncthreads();
                most = filled;
                __syncthreads();
                if (left ? most + min(left, kStep) > staged : made > 0 && most > 0) {
                    sort_members(stage, most, kBinBits);
                    if (made < pieces.room) {
                        for (unsigned i = threadIdx.x; i < most; i += C.order_threads)
                            pieces.of(made)[i] = stage[sorter.order[i]];
                        for (unsigned i = threadIdx.x; i < kBins; i += C.order_threads)
                            pieces.ends(made)[i] = i + 1 < kBins ? sorter.bins[i + 1] : most;
                    }
                    read += most, ++made, most = 0;
                    if (threadIdx.x == 0) filled = 0;
                    __syncthreads();
                }
            }
            if (left == 0) return made > 0 ? read : most;
            Half half[kAhead];
            unsigned kept[kAhead], found = 0, at = most;
#pragma unroll
            for (unsigned k = 0; k < kAhead; ++k) {
                const unsigned i = k * C.order_threads + threadIdx.x;
                if (i < left) half[k] = side.list[base + i];
            }
            most += min(left, kStep);
            if (all) {
#pragma unroll
                for (unsigned k = 0; k < kAhead; ++k) {
                    const unsigned i = k * C.order_threads + threadIdx.x;
                    if (i < left && side.take(half[k])) stage[at + i] = half[k];
                }
                if (threadIdx.x == 0) filled = most;
                continue;
            }
#pragma unroll
            for (unsigned k = 0; k < kAhead; ++k) {
                const unsigned i = k * C.order_threads + threadIdx.x;
                kept[k] = __ballot_sync(kAllLanes, i < left && side.take(half[k]));
                found += __popc(kept[k]);
            }
            if (lane == 0) at = atomicAdd(&filled, found);
            at = __shfl_sync(kAllLanes, at, 0);
#pragma unroll
            for (unsigned k = 0; k < kAhead; ++k) {
                const unsigned before = kept[k] & ((1u << lane) - 1);
                if (kept[k] >> lane & 1) stage[at + __popc(before)] = half[k];
                at += __popc(kept[k]);
            }
        }
    }
    // Stages the words of the bins `from` to `to` of some pieces behind the others.
    __device__ void gather(const Pieces<C>& pieces, unsigned piece, unsigned end, unsigned from,
                           unsigned to, Half* stage) {
        const unsigned lane = lane_number();
        for (piece += threadIdx.x / kWarp; piece < end; piece += C.order_threads / kWarp) {
            const unsigned short* ends = pieces.ends(piece);
            const unsigned begin = from ? ends[from - 1] : 0, size = ends[to - 1] - begin;
            unsigned place = 0;
            if (lane == 0) place = atomicAdd(&filled, size);
            place = __shfl_sync(kAllLanes, place, 0);
#pragma unroll 4
            for (unsigned i = lane; i < size; i += kWarp)
                stage[place + i] = pieces.of(piece)[begin + i];
        }
        __syncthreads();
    }
    // Writes the `size` words of all pieces in order.
    __device__ void merge(const Pieces<C>& pieces, unsigned made, unsigned size, Half* stage,
                          unsigned staged, Half* to, Half* masks) {
        constexpr unsigned kOwn = kBins / C.order_threads;
        unsigned upto[kOwn] = {};  // words up to bins of this thread
        for (unsigned piece = 0; piece < made; ++piece)
            for (unsigned i = 0; i < kOwn; ++i)
                upto[i] += pieces.ends(piece)[i * C.order_threads + threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) filled = 0;
        unsigned written = 0;
        for (unsigned from = 0; written < size;) {
            __syncthreads();
            const unsigned most = written + filled + staged - kWarp;
            if (threadIdx.x == 0) fitting = 0;
            __syncthreads();
            unsigned own = 0;
            for (unsigned i = 0; i < kOwn; ++i) own += upto[i] <= most;
            own = warp_all(own, [](unsigned a, unsigned b) { return a + b; });
            if (lane_number() == 0) atomicAdd(&fitting, own);
            __syncthreads();
            const unsigned end = max(fitting, from + 1);
            const unsigned together = fitting > from ? made : 1;  // a bin of a piece always fits
            const unsigned more = min(kKeyBits - kBinBits, __clz(end - from - 1) - (32 - kBinBits));
            for (unsigned piece = 0; piece < made; piece += together) {
                gather(pieces, piece, piece + together, from, end, stage);
                const unsigned found = filled, rest = written + found == size ? 0 : found % kWarp;
                sorter.sort(stage, found, kBinBits + more, from << more, (end - from) << more,
                            [](Half half) { return half; });
                sorter.write(stage, found - rest, to + written, masks + written / kWarp);
                const bool kept = threadIdx.x < rest;
                const Half half = kept ? stage[sorter.order[found - rest + threadIdx.x]] : 0;
                __syncthreads();
                if (kept) stage[threadIdx.x] = half;
                if (threadIdx.x == 0) filled = rest;
                written += found - rest;
                __syncthreads();
            }
            from = end;
        }
    }
};

// Blocks order the lists of groups, each cut into cells by so many diagonals, take what they need of the
// `tiles` of `ordered`, and share the room for `pieces`. Of a group, `queens` has the column of the queen
// in the middle row, and its weight from bit 8 on. `spilled` is how many groups find no room, and then
// has a 1 for each of them.
template <Middle C>
__global__ void __launch_bounds__(C.order_threads, C.order_blocks)
    order(unsigned first, unsigned groups, unsigned at, unsigned room, const unsigned* queens,
          const unsigned* list_of, const unsigned* sizes, const Half* useful, const Half* halves,
          unsigned cuts, unsigned* counts, unsigned* spilled, unsigned staged, unsigned tiles,
          Half* ordered, Half* masks, Half* tops, Pair* pairs, Half* scratch, unsigned pieces) {
    extern __shared__ Half stage[];
    __shared__ Orderer<C> own;
    const unsigned all = groups << cuts;
    if (blockIdx.x >= all) return;
    const unsigned share = pieces / min(gridDim.x, all);
    const Pieces<C> kept{scratch + size_t(blockIdx.x) * share * Pieces<C>::kWords, share};
    const auto spill = [&](unsigned group) {
        if (atomicExch(spilled + 1 + first + group, 1) == 0) atomicAdd(spilled, 1);
    };
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) own.number = atomicAdd(counts + kOrdered, 1);
        __syncthreads();
        const unsigned number = own.number, group = number >> cuts, cell = number % (1u << cuts);
        if (number >= all) return;
        if (const unsigned side = threadIdx.x; side < 2) {
            const unsigned list = list_of[2 * (at + group) + side];
            const Half any = side ? flipped<C>(useful[list]) : useful[list];
            own.sides[side] = {
                halves + size_t(list) * room, sizes[list], side == 1, kAnyRow, 0, 0, any};
            if constexpr (C.odd()) own.sides[side].meet(queens[first + group] % 256);
        }
        __syncthreads();
        Half both = own.sides[0].useful & own.sides[1].useful & ~own.sides[0].lacks;
        bool found_room = max(own.sides[0].size, own.sides[1].size) <= room;
        Pair pair{group, 0, {0, 0}, {0, 0}};
        if (threadIdx.x == 0) {
            pairs[number] = pair;
            if (!found_room) spill(group);
        }
        if (!found_room || cell >> min(cuts, __popcll(both)) != 0) continue;
        for (unsigned ranked = 0; ranked < 1 + (cuts > 0); ++ranked) {
            if (ranked > 0) {
                if (threadIdx.x < 2) own.sides[threadIdx.x].cut(own.ranking.place, cuts, cell);
                __syncthreads();
                for (unsigned bit = 0; bit < 2 * C.n; ++bit)
                    if (own.ranking.place[bit] < cuts) both &= ~(Half(1) << bit);
                __syncthreads();
            }
            own.ranking.make(own.sides, both);
        }
        own.permute.make(own.ranking.place);
        pair.useful = __popcll(both);
#pragma unroll 1
        for (unsigned side = 0; side < 2 && found_room; ++side) {
            unsigned made;
            const unsigned size = own.read(own.sides[side], stage, staged, kept, made);
            if (size == 0) break;  // no pairs
            const unsigned needed = (size + kWarp * kWarp - 1) / (kWarp * kWarp) * kWarp;
            if (threadIdx.x == 0) own.tile = atomicAdd(counts + kTaken, needed);
            __syncthreads();
            const unsigned begin = own.tile;
            found_room = begin + needed <= tiles && made <= share;
            if (!found_room) break;
            Half* const to = ordered + size_t(begin) * kWarp;
            if (made > 0) {
                own.merge(kept, made, size, stage, staged, to, masks + begin);
            } else {
                own.sort_members(stage, size, min(kBinBits, 28 - __clz(size | 256)));
                own.sorter.write(stage, size, to, masks + begin);
            }
            mask_tops<C>(masks + begin, (size + kWarp - 1) / kWarp, tops + begin / kWarp);
            if (side == 0) pair.tile[0] = begin, pair.size[0] = size;
            else pair.tile[1] = begin, pair.size[1] = size;
        }
        if (threadIdx.x != 0) continue;
        if (found_room) pairs[number] = pair;
        else spill(group);
    }
}
