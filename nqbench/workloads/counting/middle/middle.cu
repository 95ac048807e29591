// Counts the solutions of the N-Queens problem from the middle: pairs of half boards whose words
// share no bit (groups.py). Kernels: of halves.cuh, cells.cuh, order.cuh, and `join`.
#include "order.cuh"

constexpr unsigned kJoinThreads = 128;
constexpr unsigned kTogether = 4;  // tiles of lower halves of a warp

// 32 lower halves as tables: lane i of table k has, in bit b, whether half b has one of the
// diagonals 5 k + j for which bit j of i is set. A lane looks up its own upper half by shuffles.
template <unsigned Blocks> struct Tables {
    unsigned of[Blocks];
    __device__ void make(Half half, bool there) {
        const unsigned lane = lane_number();
        const unsigned missing = ~__ballot_sync(kAllLanes, there);
        const unsigned words[2] = {unsigned(half), unsigned(half >> 32)};
#pragma unroll
        for (unsigned k = 0; k < Blocks; ++k) {
            unsigned table = k + 1 == Blocks ? missing : 0;
#pragma unroll
            for (unsigned j = 0; j < 5; ++j) {
                const unsigned bit = 5 * k + j;
                const unsigned column = __ballot_sync(kAllLanes, words[bit / 32] >> bit % 32 & 1);
                table |= column & (0u - (lane >> j & 1));
            }
            of[k] = table;
        }
    }
    // The lower halves that an upper half meets on none of the blocks from `First` on, of which
    // `parts` are the diagonals.
    template <unsigned First> __device__ unsigned free(const unsigned (&parts)[Blocks]) const {
        unsigned blocked = 0;
        constexpr unsigned kLast = Blocks - First > 1 ? 2 : 1;
#pragma unroll
        for (unsigned k = First; k < Blocks - kLast; ++k)
            blocked |= __shfl_sync(kAllLanes, of[k], parts[k]);
        const unsigned last = __shfl_sync(kAllLanes, of[Blocks - 1], parts[Blocks - 1]);
        if constexpr (kLast == 1) return ~(blocked | last);
        const unsigned more = __shfl_sync(kAllLanes, of[Blocks - 2], parts[Blocks - 2]);
        unsigned free;  // of ~(a | b | c) the compiler makes two instructions
        asm("lop3.b32 %0, %1, %2, %3, 1;" : "=r"(free) : "r"(blocked), "r"(more), "r"(last));
        return free;
    }
};

template <unsigned Value> struct Number {
    static constexpr unsigned value = Value;
};

// The number of the highest bit; that of the lowest one costs an instruction more.
__device__ __forceinline__ unsigned last_of(unsigned bits) { return 31 - __clz(bits); }

struct Lists {
    const Half* upper;
    const Half* lower;
    const Half* upper_masks;
    const Half* upper_tops;
    const Half* lower_masks;
    unsigned uppers, lowers, useful;
};

// Pairs of this lane's upper halves with some tiles of the others, from `first` on: what is looked up
// of an upper tile serves all of them.
template <Middle C, unsigned Blocks, unsigned kTables>
__device__ Half with_tiles(const Lists& lists, unsigned first) {
    constexpr Half kCommon = (Half(1) << kOr) - 1, kEnd = Half(1) << (kOr - 1);  // has no diagonal
    const unsigned lane = lane_number(), to = (lists.uppers + kWarp - 1) / kWarp;
    Tables<Blocks> tables[kTables];
    Half mask[kTables];
#pragma unroll
    for (unsigned k = 0; k < kTables; ++k) {
        const unsigned own = (first + k) * kWarp + lane;
        const bool there = own < lists.lowers;
        const Half below = there ? lists.lower[own] : 0;
        mask[k] = kEnd;
        if (C.masks != Masks::none && (first + k) * kWarp < lists.lowers)
            mask[k] |= lists.lower_masks[first + k];
        if constexpr (C.pairs == PairTest::shuffle) tables[k].make(below, there);
    }
    unsigned count = 0;  // of at most 2^20 tiles
    const Half* const own = lists.upper + lane;
    // With the lower tiles for which `tested` has the bit `one` of the upper tile.
    const auto test = [&](Half half, const unsigned (&tested)[kTables], unsigned one,
                          auto skipped) {
        const unsigned weight = half >> kWeight;
        unsigned found = 0, parts[Blocks];
#pragma unroll
        for (unsigned k = 0; k < Blocks; ++k) {
            parts[k] = unsigned(half >> (5 * k));
            asm volatile("" : "+r"(parts[k]));  // once for all tables
        }
#pragma unroll
        for (unsigned k = 0; k < kTables; ++k) {
            if ((tested[k] & one) == 0) continue;
            if constexpr (C.pairs == PairTest::words)
                for (unsigned i = first * kWarp; i < min(first * kWarp + kWarp, lists.lowers); ++i)
                    found += (half & lists.lower[i] & kDiagonals) == 0;
            else found += __popc(tables[k].template free<decltype(skipped)::value>(parts));
        }
        count += found * weight;
    };
    const auto test_32 = [&](unsigned base) {
        Half other = base + lane < to ? 0 : kEnd;
        if (C.masks != Masks::none && other == 0) other = lists.upper_masks[base + lane];
        unsigned tested[kTables], any = 0;
        Half heavy = 0;
#pragma unroll
        for (unsigned k = 0; k < kTables; ++k) {
            const bool free = (mask[k] & other & kCommon) == 0;
            tested[k] = __ballot_sync(kAllLanes, free);
            any |= tested[k];
            if (free) heavy |= mask[k] & other;
        }
        const auto test_all = [&](unsigned tiles, auto skipped) {
            if (tiles == 0) return;
            const Half* begin = own + base * kWarp;
            asm volatile("" : "+l"(begin));  // one instruction adds a tile's offset
            unsigned ahead = last_of(tiles);
            Half next = __ldg(begin + size_t(ahead) * kWarp);
            do {  // the next tile is on its way while this one is tested
                const Half half = next;
                const unsigned one = 1u << ahead;
                tiles ^= one;
                ahead = last_of(tiles);
                if (tiles != 0) next = __ldg(begin + size_t(ahead) * kWarp);
                test(half, tested, one, skipped);
            } while (tiles != 0);
        };
        const auto test_light = [&](auto skipped) {  // those whose ORs answer for so many blocks
            if constexpr (C.masks == Masks::and_or && Blocks > skipped.value) {
                const Half met = heavy & ((Half(1) << (kOr + 5 * skipped.value)) - 1);
                const unsigned light = any & __ballot_sync(kAllLanes, met >> kOr == 0);
                any ^= light;
                test_all(light, skipped);
            }
        };
        if constexpr (kOrBits<C> == 10) test_light(Number<2>{});
        test_light(Number<1>{});
        test_all(any, Number<0>{});
    };
    for (unsigned base = 0; base < to; base += kWarp * kWarp) {
        bool may = base + lane * kWarp < to;
        if (C.masks != Masks::none && may) {
            const Half other = lists.upper_tops[base / kWarp + lane] & kCommon;
            may = false;
#pragma unroll
            for (unsigned k = 0; k < kTables; ++k) may |= (mask[k] & other) == 0;
        }
        for (unsigned tops = __ballot_sync(kAllLanes, may); tops != 0;) {
            const unsigned top = last_of(tops);
            tops ^= 1u << top;
            test_32(base + top * kWarp);
        }
    }
    return count;
}

// One of `parts` of the pairs of a cell, for a warp.
template <Middle C, unsigned Blocks>
__device__ Half join_part(const Lists& lists, unsigned part, unsigned parts) {
    constexpr unsigned kLeast = 2 * C.n / 5 > 4 ? 2 * C.n / 5 - 4 : 1;
    constexpr unsigned kAtOnce = C.pairs == PairTest::shuffle ? kTogether : 1;
    if constexpr (Blocks > kLeast) {
        if (lists.useful <= 5 * (Blocks - 1)) return join_part<C, Blocks - 1>(lists, part, parts);
    }
    Half count = 0;
    for (unsigned first = part * kAtOnce; first * kWarp < lists.lowers; first += parts * kAtOnce)
        count += with_tiles<C, Blocks, kAtOnce>(lists, first);
    return count;
}

// Warps count the pairs of the cells; a cell has `parts`, so that all end together.
template <Middle C>
__global__ void __launch_bounds__(kJoinThreads, 768 / kJoinThreads)
    join(unsigned first, unsigned groups, unsigned cuts, unsigned parts, unsigned* counts,
         const Half* ordered, const Half* masks, const Half* tops, const Pair* pairs,
         const unsigned* spilled, Half* sums) {
    constexpr unsigned kBlocks = C.pairs == PairTest::shuffle ? (2 * C.n - 2 + 4) / 5 : 1;
    const unsigned all = (groups << cuts) * parts;
    for (;;) {
        unsigned number = 0;
        if (lane_number() == 0) number = atomicAdd(counts + kJoined, 1);
        number = any_of_warp(number);
        if (number >= all) return;
        const Pair pair = pairs[number / parts];
        if (pair.size[0] == 0 || pair.size[1] == 0 || spilled[first + pair.group]) continue;
        const Lists lists{ordered + size_t(pair.tile[0]) * kWarp,
                          ordered + size_t(pair.tile[1]) * kWarp,
                          masks + pair.tile[0],
                          tops + pair.tile[0] / kWarp,
                          masks + pair.tile[1],
                          pair.size[0],
                          pair.size[1],
                          pair.useful};
        const Half found = warp_sum(join_part<C, kBlocks>(lists, number % parts, parts));
        if (lane_number() == 0 && found != 0) atomicAdd(sums + first + pair.group, found);
    }
}
