// Makes tiles of the two lists of a group, ordered so that neighbours share their most decisive diagonals.
//
// The bits of all words are permuted so that the most decisive come first, and the words are sorted by the
// position of these in a Gray code: neighbours differ in few bits, so that the AND of 32 of them has many.
// Lists of large boards are dealt out to buckets; shared memory has as many bins of a bucket as fit.
#pragma once

#include "halves.cuh"
#include "ranking.cuh"

// Halves of a thread that are under way.
template <Middle C> constexpr unsigned kAhead = C.n < 20 || C.order_threads == 1024 ? 4 : 8;
template <Middle C> constexpr unsigned kBinBits = C.n < 18 ? 8 : C.n < 24 ? 10 : 17 - C.bucket_bits;
template <Middle C> constexpr unsigned kBins = 1u << kBinBits<C>;
// A permuted word: its diagonals, those first that tiles do not agree in, its place in the order, its weight.
template <Middle C> constexpr unsigned kKeyBits = C.bucket_bits + kBinBits<C>;
template <Middle C> constexpr unsigned kKey = kWeight<C> - kKeyBits<C>;
template <Middle C> constexpr Half kCommon = (Half(1) << kKey<C>)-1;

template <Middle C> struct Permutation {
    static constexpr unsigned kNibbles = (kDiagonals<C> + 3) / 4;
    Half table[kNibbles][16];

    __device__ void make(const unsigned* place, unsigned agreed, unsigned useful) {
        for (unsigned i = threadIdx.x; i < kNibbles * 16; i += C.order_threads) {
            Half to = 0;
            for (unsigned bit = i / 16 * 4, set = i % 16; set != 0; ++bit, set /= 2) {
                if (set % 2 == 0 || bit >= kDiagonals<C> || place[bit] == kDropped) continue;
                const unsigned own = place[bit], first = own < agreed ? useful : 0;
                // The inverse of the Gray code is linear: a bit flips all below it.
                const unsigned below = own < kKeyBits<C> ? 1u << (kKeyBits<C> - own) : 1;
                const Half key = C.order == Order::plain ? below / 2 : below - 1;
                to ^= Half(1) << (first + own - agreed) | key << kKey<C>;
            }
            (&table[0][0])[i] = to;
        }
        __syncthreads();
    }
    __device__ Half operator()(Half half) const {
        Half found = half >> kWeight<C> << kWeight<C>;
        for (unsigned i = 0; i < kNibbles; ++i) found ^= table[i][half >> (4 * i) & 15];
        return found;
    }
};

template <Middle C> struct Orderer {
    static constexpr unsigned kBuckets = 1u << C.bucket_bits;
    static constexpr unsigned kStep = kAhead<C> * C.order_threads;  // words under way in a block
    static_assert(kKey<C> >= kDiagonals<C> && kBins<C> % C.order_threads == 0);
    Ranking<C, C.order_threads> ranking;
    Permutation<C> permute;
    Members<C> sides[2];
    unsigned bins[kBins<C>];   // of a bucket: how many words, then where the next one goes
    unsigned dealt[kBuckets];  // words of each bucket
    unsigned number, filled, tile;

    // Calls `use` with some words and their numbers; a thread has several under way.
    template <class Use>
    static __device__ void each(const Half* words, unsigned begin, unsigned end, Use use) {
        for (unsigned base = begin + threadIdx.x; base < end; base += kStep) {
            Half word[kAhead<C>];
            for (unsigned k = 0; k < kAhead<C>; ++k)
                if (const unsigned i = base + k * C.order_threads; i < end) word[k] = words[i];
#pragma unroll
            for (unsigned k = 0; k < kAhead<C>; ++k)
                if (const unsigned i = base + k * C.order_threads; i < end) use(word[k], i);
        }
    }
    // The bits of a word's key from `first` on, as many as there are `bits`.
    static __device__ unsigned part(Half word, unsigned first, unsigned bits) {
        return word << (64 - kWeight<C> + first) >> (64 - bits);
    }
    static __device__ unsigned bin(Half word) { return part(word, C.bucket_bits, kBinBits<C>); }
    // Writes the members of a side to `to`, or to tiles as `join` reads them; returns how many there are.
    __device__ unsigned collect(const Members<C> side, Half* to) {
        const unsigned lane = lane_number();
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        for (unsigned base = threadIdx.x - lane; base < side.size; base += kStep) {
            Half half[kAhead<C>];
            unsigned kept[kAhead<C>], found = 0;
            for (unsigned k = 0; k < kAhead<C>; ++k)
                if (const unsigned i = base + k * C.order_threads + lane; i < side.size)
                    half[k] = side.list[i];
#pragma unroll
            for (unsigned k = 0; k < kAhead<C>; ++k) {
                const unsigned i = base + k * C.order_threads + lane;
                kept[k] = __ballot_sync(kAllLanes, i < side.size && side.take(half[k]));
                found += __popc(kept[k]);
            }
            unsigned at = warp_take(&filled, found);
            for (unsigned k = 0; k < kAhead<C>; ++k) {
                if (kDirect<C> && !side.lower) half[k] = spread<C>(half[k]);
                if (kept[k] >> lane & 1) to[at + __popc(before_own(kept[k]))] = half[k];
                at += __popc(kept[k]);
            }
        }
        __syncthreads();
        const unsigned missing = kDirect<C> ? -filled % kWarp : 0;
        if (threadIdx.x < missing) to[filled + threadIdx.x] = filler<C>(side.lower);
        return filled;
    }
    // Permutes words, which are all of a list if that has not been `collected`, and deals them out to
    // the buckets, which have so much `room`. Of a single bucket it counts the bins at once.
    __device__ void deal(const Half* words, unsigned size, bool collected, const Members<C> side,
                         Half* to, unsigned room) {
        clear(bins), clear(dealt);
        __syncthreads();
        each(words, 0, size, [&](Half half, unsigned i) {
            if (!collected) side.take(half);
            const Half word = permute(half);
            if constexpr (kBuckets == 1) {
                to[i] = word;
                atomicAdd(bins + bin(word), 1);
            } else {
                const unsigned bucket = part(word, 0, C.bucket_bits);
                const unsigned at = atomicAdd(dealt + bucket, 1);
                if (at < room) to[size_t(bucket) * room + at] = word;
            }
        });
        if (kBuckets == 1 && threadIdx.x == 0) dealt[0] = filled = size;
        __syncthreads();
    }
    template <unsigned Size> static __device__ void clear(unsigned (&counts)[Size]) {
        for (unsigned i = threadIdx.x; i < Size; i += C.order_threads) counts[i] = 0;
    }
    // How many diagonals tiles agree in: as many as save blocks and leave most tiles full.
    static __device__ unsigned agree(unsigned useful, unsigned halves) {
        if constexpr (!kAgree<C>) return 0;
        const unsigned most = min(31 - __clz(halves >> C.few % 32 | 1), kKeyBits<C>);
        const unsigned least = useful - min(useful, 5 * kBlocks<C>);
        const unsigned first = C.pairs == PairTest::words ? most : max(least, most);
        return useful - min(useful, (useful - min(useful, first) + 4) / 5 * 5);
    }
    // Writes words in tiles, the last one filled, and what all words of each have in common.
    __device__ void write(const Half* stage, unsigned size, bool lower, Half* to, Half* masks) {
        const unsigned lane = lane_number();
        for (unsigned base = threadIdx.x - lane; base < size; base += C.order_threads) {
            const Half half = base + lane < size ? stage[base + lane] : filler<C>(lower);
            to[base + lane] = lower ? half : spread<C>(half);
            const Half common = all_of_warp(half >> kWeight<C> != lower ? half : ~Half(0));
            if (lane == 0) masks[base / kWarp] = common & kCommon<C>;
        }
    }
    // Writes the words of a bucket by bin; `carried` words, less than a tile, wait in the stage.
    __device__ void write_bucket(const Half* words, unsigned size, Half* stage, unsigned staged,
                                 unsigned& carried, unsigned agreed, bool lower, Half*& to,
                                 Half*& masks) {
        if constexpr (kBuckets > 1) {
            if (threadIdx.x == 0) filled = size;
            clear(bins);
            __syncthreads();
            each(words, 0, size, [&](Half word, unsigned) { atomicAdd(bins + bin(word), 1); });
            __syncthreads();
        }
        // After so many bins, whose words agree in the first diagonals, a tile is filled.
        const unsigned apart = agreed ? kBins<C> >> max(agreed, C.bucket_bits) - C.bucket_bits : 0;
        for (unsigned end = threadIdx.x / kWarp * apart; apart > 0 && end < kBins<C>;
             end += (C.order_threads / kWarp - 1) * apart) {
            unsigned sum = 0;
            for (unsigned i = lane_number(); i < apart; i += kWarp) sum += bins[end + i];
            const unsigned missing = -sum_of_warp(sum) % kWarp;
            end += apart;
            if (lane_number() == 0) bins[end - 1] += missing, atomicAdd(&filled, missing);
        }
        if (apart > 0) __syncthreads();
        const unsigned all = apart > 0 ? filled : size;
        block_scan<C.order_threads>(bins);
        unsigned from = 0, written = 0;
        while (written < all) {
            // Those bins that fit into the stage. If the next one alone does not, its words are taken
            // from so many of all words at a time.
            const bool votes = all - written > staged;
            unsigned end = votes ? 0 : kBins<C>, step = size;
            for (unsigned i = threadIdx.x; votes && i < kBins<C>; i += C.order_threads)
                end +=
                    __syncthreads_count((i + 1 < kBins<C> ? bins[i + 1] : all) <= written + staged);
            if (end <= from) end = from + 1, step = staged;
            for (unsigned begin = 0; begin < size; begin += step) {
                each(words, begin, min(size, begin + step), [&](Half word, unsigned) {
                    const unsigned own = bin(word);
                    if (own - from < end - from)
                        stage[carried + atomicAdd(bins + own, 1) - written] = word;
                });
                __syncthreads();
                unsigned upto = bins[end - 1];
                if (apart > 0 && begin + step >= size) {
                    unsigned i = from / apart + threadIdx.x;
                    for (; i < end / apart; i += C.order_threads)
                        for (unsigned at = bins[(i + 1) * apart - 1]; at % kWarp != 0; ++at)
                            stage[carried + at - written] = filler<C>(lower);
                    if (end % apart == 0) upto = (upto + kWarp - 1) / kWarp * kWarp;
                    __syncthreads();
                }
                const unsigned found = carried + upto - written;
                const unsigned rest = found % kWarp;
                write(stage, found - rest, lower, to, masks);
                const Half kept = threadIdx.x < rest ? stage[found - rest + threadIdx.x] : 0;
                __syncthreads();
                if (threadIdx.x < rest) stage[threadIdx.x] = kept;
                to += found - rest, masks += found / kWarp;
                written = upto, carried = rest;
            }
            from = end;
        }
    }
};

// Blocks order the lists of groups, each cut into cells by so many diagonals, and take what they need of
// the `tiles` of `ordered`. They share the `scratch`, of which each has `rooms` for a list. Of a group,
// `queens` has the column of the queen in the middle row, and its weight from bit 8 on.
template <Middle C>
__global__ void __launch_bounds__(C.order_threads, C.order_blocks)
    order(unsigned first, unsigned groups, unsigned at, unsigned room, const unsigned* queens,
          const unsigned* list_of, const unsigned* sizes, const Half* useful, const Half* halves,
          unsigned cuts, unsigned* counts, Half* answer, unsigned staged, unsigned tiles,
          Half* ordered, Half* masks, Half* tops, Pair* pairs, Half* scratch, Half scratch_size,
          unsigned rooms) {
    extern __shared__ Half stage[];
    __shared__ Orderer<C> own;
    const unsigned cells = groups << cuts, lane = lane_number();
    // As many blocks work as there is scratch for `rooms` lists each, at least one.
    const unsigned fitting = max(Half(1), scratch_size / (Half(room) * rooms));
    const unsigned working = min(min(gridDim.x, cells), fitting);
    if (blockIdx.x >= working) return;
    // Of a block: room for buckets, and behind it for what is collected; a single bucket is in place.
    constexpr bool kDeals = kOrders<C> && C.bucket_bits > 0;
    const Half share = scratch_size / working;
    const Half bucket_room = share < room ? 0 : share - kDeals * room >> C.bucket_bits;
    Half* const words = scratch + blockIdx.x * share;
    Half* const members = kDeals ? words + share - room : words;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) own.number = atomicAdd(counts + kOrdered, 1);
        __syncthreads();
        const unsigned number = own.number, group = number >> cuts, cell = number % (1u << cuts);
        if (number >= cells) return;
        if (threadIdx.x == 0) pairs[number] = {group, kDiagonals<C>, {0, 0}, {0, 0}};
        if (const unsigned side = threadIdx.x; side < 2) {
            const unsigned list = list_of[2 * (at + group) + side];
            const Half any = side ? flipped<C>(useful[list]) : useful[list];
            own.sides[side] = {
                halves + size_t(list) * room, sizes[list], side == 1, kAnyRow, 0, 0, any};
            if constexpr (C.odd()) own.sides[side].meet(queens[first + group] % 256);
        }
        __syncthreads();
        Half both = (own.sides[0].useful & own.sides[1].useful & ~own.sides[0].lacks) >> 1;
        const bool there = cell >> min(cuts, __popcll(both)) == 0;
        bool found_room = max(own.sides[0].size, own.sides[1].size) <= room && bucket_room > 0;
        unsigned agreed = 0;
        for (unsigned ranked = 0; kOrders<C> && found_room && there && ranked < 1 + (cuts > 0);
             ++ranked) {
            if (ranked > 0) {
                if (threadIdx.x < 2) own.sides[threadIdx.x].cut(own.ranking.place, cuts, cell);
                for (unsigned bit = 0; bit < kDiagonals<C>; ++bit)
                    if (own.ranking.place[bit] < cuts) both &= ~(Half(1) << bit);
                __syncthreads();
            }
            own.ranking.make(own.sides, both);
            const unsigned useful = __popcll(both);
            agreed = own.agree(useful, own.sides[0].size + own.sides[1].size >> cuts);
            own.permute.make(own.ranking.place, agreed, useful);
            if (threadIdx.x == 0) pairs[number].useful = useful - agreed;
        }
#pragma unroll 1
        for (unsigned side = 0; side < 2 && found_room && there; ++side) {
            const Members<C> of = own.sides[side];
            const bool all = kOrders<C> && !C.odd() && (of.needs | of.lacks) == 0;  // are members
            const unsigned size = all || kDirect<C> ? of.size : own.collect(of, members);
            if (size == 0) break;  // no pairs
            if (kOrders<C>) own.deal(all ? of.list : members, size, !all, of, words, bucket_room);
            const unsigned most = size + (agreed ? kWarp << max(agreed, C.bucket_bits) : 0);
            const unsigned needed = (most + kWarp * kWarp - 1) / (kWarp * kWarp) * kWarp;
            if (threadIdx.x == 0) own.tile = atomicAdd(counts + kTaken, needed);
            __syncthreads();
            const unsigned begin = own.tile;
            found_room = begin + needed <= tiles;
            for (unsigned dealt : own.dealt) found_room &= !kOrders<C> || dealt <= bucket_room;
            if (!found_room) break;
            Half *to = ordered + size_t(begin) * kWarp, *mask = masks + begin;
            unsigned carried = 0;
            for (unsigned bucket = 0; kOrders<C> && bucket < own.kBuckets; ++bucket)
                own.write_bucket(words + bucket * bucket_room, own.dealt[bucket], stage, staged,
                                 carried, agreed, of.lower, to, mask);
            __syncthreads();
            if (!kOrders<C>) carried = kDirect<C> ? own.collect(of, to) : size;
            if (kDirect<C> && carried == 0) break;
            if (!kDirect<C>) own.write(kOrders<C> ? stage : members, carried, of.lower, to, mask);
            __syncthreads();
            // What 32 tiles have in common; a list begins at a multiple of 32 tiles.
            const unsigned end = mask - masks + (carried + kWarp - 1) / kWarp;
            unsigned tile = begin + threadIdx.x;
            for (; C.masks != Masks::none && tile - lane < end; tile += C.order_threads) {
                const Half common = all_of_warp(tile < end ? masks[tile] : ~Half(0));
                if (lane == 0) tops[tile / kWarp] = common;
            }
            if (threadIdx.x == 0)
                pairs[number].tile[side] = begin, pairs[number].tiles[side] = end - begin;
        }
        if (threadIdx.x == 0 && !found_room) no_room(answer, first + group);
    }
}
