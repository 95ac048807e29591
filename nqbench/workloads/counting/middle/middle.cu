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
#pragma unroll
        for (unsigned k = 0; k < Blocks; ++k) {
            unsigned table = k + 1 == Blocks ? missing : 0;
#pragma unroll
            for (unsigned j = 0; j < 5; ++j) {
                const unsigned column = __ballot_sync(kAllLanes, half >> (5 * k + j) & 1);
                table |= column & (0u - (lane >> j & 1));
            }
            of[k] = table;
        }
    }
    // The lower halves that an upper half meets on none of the blocks from `First` on, of which
    // `parts` are the diagonals.
    template <unsigned First> __device__ unsigned free(const unsigned (&parts)[Blocks]) const {
        unsigned blocked = 0;
#pragma unroll
        for (unsigned k = First; k < Blocks; ++k)
            blocked |= __shfl_sync(kAllLanes, of[k], parts[k]);
        return ~blocked;
    }
};

struct Words {
    const Half* halves;
    unsigned there;
    __device__ unsigned free(Half half) const {
        unsigned found = 0;
        for (unsigned i = 0; i < there; ++i) found |= ((half & halves[i] & kDiagonals) == 0) << i;
        return found;
    }
};

template <unsigned Value> struct Number {
    static constexpr unsigned value = Value;
};

// The number of the highest bit; the lowest one costs an instruction more on the pipe that also
// counts bits.
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
    constexpr unsigned kSkipped = Blocks > 1 ? kOrBits / 5 : 0;  // blocks that the OR may answer
    constexpr Half kCommon = (Half(1) << kOr) - 1;
    const unsigned lane = lane_number(), to = (lists.uppers + kWarp - 1) / kWarp;
    const unsigned lowers = (lists.lowers + kWarp - 1) / kWarp;
    Tables<Blocks> tables[kTables];
    Half mask[kTables];
#pragma unroll
    for (unsigned k = 0; k < kTables; ++k) {
        const unsigned own = (first + k) * kWarp + lane;
        const bool there = own < lists.lowers;
        const Half below = there ? lists.lower[own] : 0;
        mask[k] = 0;
        if (C.masks != Masks::none && first + k < lowers) mask[k] = lists.lower_masks[first + k];
        if constexpr (C.pairs == PairTest::shuffle) tables[k].make(below, there);
    }
    const Words words{lists.lower + first * kWarp, min(kWarp, lists.lowers - first * kWarp)};
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
            unsigned free;
            if constexpr (C.pairs == PairTest::words) free = words.free(half);
            else free = tables[k].template free<decltype(skipped)::value>(parts);
            found += __popc(free);
        }
        count += found * weight;
    };
    const auto test_32 = [&](unsigned base) {
        const bool there = base + lane < to;
        const Half other = there && C.masks != Masks::none ? lists.upper_masks[base + lane] : 0;
        unsigned tested[kTables], any = 0;
        Half heavy = 0;
#pragma unroll
        for (unsigned k = 0; k < kTables; ++k) {
            const bool free = there && first + k < lowers && (mask[k] & other & kCommon) == 0;
            tested[k] = __ballot_sync(kAllLanes, free);
            any |= tested[k];
            if (free) heavy |= mask[k] & other;
        }
        const auto test_all = [&](unsigned tiles, auto skipped) {
            if (tiles == 0) return;
            unsigned ahead = last_of(tiles);
            Half half = __ldg(own + (base + ahead % kWarp) * kWarp);
            while (tiles != 0) {  // the next tile is on its way while this one is tested
                const unsigned one = 1u << ahead;
                tiles ^= one;
                ahead = last_of(tiles);
                const Half next = __ldg(own + (base + ahead % kWarp) * kWarp);
                test(half, tested, one, skipped);
                half = next;
            }
        };
        if constexpr (C.masks == Masks::and_or && C.pairs == PairTest::shuffle && kSkipped > 0) {
            const unsigned light = any & __ballot_sync(kAllLanes, heavy >> kOr == 0);
            any ^= light;
            test_all(light, Number<kSkipped>{});
        }
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
            const unsigned top = 31 - __clz(tops);
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
