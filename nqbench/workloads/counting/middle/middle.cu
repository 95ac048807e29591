// Counts the solutions of the N-Queens problem from the middle: pairs of half boards whose words
// share no bit (groups.py). Kernels: of halves.cuh, cells.cuh, order.cuh, and `join`.
#include "order.cuh"

constexpr unsigned kJoinThreads = 512;

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
    // The lower halves that the upper half of this lane meets on none of the blocks from `First` on.
    template <unsigned First> __device__ unsigned free(Half half) const {
        unsigned blocked = 0;
#pragma unroll
        for (unsigned k = First; k < Blocks; ++k)
            blocked |= __shfl_sync(kAllLanes, of[k], unsigned(half >> (5 * k)));
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

// The number of the highest bit of `bits`, which is cleared: the lowest one costs an instruction more
// on the pipe that also counts bits.
__device__ __forceinline__ unsigned take_last(unsigned& bits) {
    const unsigned bit = 31 - __clz(bits);
    bits ^= 1u << bit;
    return bit;
}

struct Lists {
    const Half* upper;
    const Half* lower;
    const Half* upper_masks;
    const Half* upper_tops;
    const Half* lower_masks;
    unsigned uppers, lowers, useful;
};

// Pairs of this lane's upper halves, in the first `to` tiles, with tile `lower` of the others.
template <Middle C, unsigned Blocks>
__device__ Half with_tile(const Lists& lists, unsigned lower, unsigned to) {
    constexpr unsigned kSkipped = Blocks > 1 ? kOrBits / 5 : 0;  // blocks that the OR may answer
    constexpr Half kCommon = (Half(1) << kOr) - 1;
    const unsigned lane = lane_number(), first = lower * kWarp;
    const bool there = first + lane < lists.lowers;
    const Half below = there ? lists.lower[first + lane] : 0;
    const unsigned inside = __ballot_sync(kAllLanes, below >> kWeight & 1);  // of `exact` cells
    Tables<Blocks> tables;
    if constexpr (C.pairs == PairTest::shuffle) tables.make(below, there);
    const Words words{lists.lower + first, min(kWarp, lists.lowers - first)};
    const Half mask = C.masks == Masks::none ? 0 : lists.lower_masks[lower];
    unsigned count = 0;  // of at most 2^22 tiles
    const Half* const own = lists.upper + lane;
    const auto test = [&](const Half* tiles, unsigned tile, bool skip) {
        const Half half = __ldg(tiles + tile * kWarp);
        unsigned free;
        if constexpr (C.pairs == PairTest::words) free = words.free(half);
        else if (skip) free = tables.template free<kSkipped>(half);
        else free = tables.template free<0>(half);
        const unsigned weight = half >> kWeight;
        if constexpr (C.exact()) {
            if (weight != 0) count += __popc(free) + (weight == 2 ? __popc(free & inside) : 0);
        } else {
            count += __popc(free) * weight;
        }
    };
    const auto test_32 = [&](unsigned base) {
        Half other = kOrMask << kOr;
        if (base + lane < to) other = C.masks == Masks::none ? 0 : lists.upper_masks[base + lane];
        const bool meets = base + lane >= to || (mask & other & kCommon) != 0;
        const Half* const at = own + base * kWarp;
        unsigned tested = ~__ballot_sync(kAllLanes, meets);
        if constexpr (C.masks == Masks::and_or && C.pairs == PairTest::shuffle && kSkipped > 0) {
            unsigned light = tested & __ballot_sync(kAllLanes, (mask & other) >> kOr == 0);
            tested ^= light;
            while (light != 0) test(at, take_last(light), true);
        }
        while (tested != 0) test(at, take_last(tested), false);
    };
    for (unsigned base = 0; base < to; base += kWarp * kWarp) {
        bool may = base + lane * kWarp < to;
        if (C.masks != Masks::none && may)
            may = (mask & lists.upper_tops[base / kWarp + lane] & kCommon) == 0;
        unsigned tops = __ballot_sync(kAllLanes, may);
        while (tops != 0) test_32(base + take_last(tops) * kWarp);
    }
    return count;
}

// `next` is the tile of lower halves that the warps of a block take next.
template <Middle C, unsigned Blocks>
__device__ Half join_lists(const Lists& lists, unsigned* next) {
    constexpr unsigned kLeast =
        C.pairs == PairTest::shuffle && 2 * C.n / 5 > 4 ? 2 * C.n / 5 - 4 : 1;
    if constexpr (Blocks > kLeast) {
        if (lists.useful <= 5 * (Blocks - 1)) return join_lists<C, Blocks - 1>(lists, next);
    }
    const unsigned uppers = (lists.uppers + kWarp - 1) / kWarp;
    const unsigned lowers = (lists.lowers + kWarp - 1) / kWarp;
    Half count = 0;
    for (;;) {
        unsigned lower = 0;
        if (lane_number() == 0) lower = atomicAdd(next, 1);
        lower = __shfl_sync(kAllLanes, lower, 0);
        if (lower >= lowers) return count;
        count += with_tile<C, Blocks>(lists, lower, uppers);
    }
}

// Blocks count the pairs of the cells of a round.
template <Middle C>
__global__ void __launch_bounds__(kJoinThreads, 4)
    join(unsigned first, unsigned groups, unsigned capacity, unsigned round, unsigned* counts,
         const Half* ordered, const Half* masks, const Half* tops, const Pair* pairs,
         const unsigned* spilled, Half* sums) {
    __shared__ unsigned next;
    const unsigned all = cells_of(counts, groups, capacity, round);
    for (unsigned number; (number = next_ticket(counts + kJoined)) < all;) {
        const Pair pair = pairs[number];
        if (pair.size[0] == 0 || pair.size[1] == 0 || spilled[first + pair.group]) continue;
        if (threadIdx.x == 0) next = 0;
        __syncthreads();
        const Lists lists{ordered + size_t(pair.tile[0]) * kWarp,
                          ordered + size_t(pair.tile[1]) * kWarp,
                          masks + pair.tile[0],
                          tops + pair.tile[0] / kWarp,
                          masks + pair.tile[1],
                          pair.size[0],
                          pair.size[1],
                          pair.useful};
        const Half found =
            block_sum<kJoinThreads>(join_lists<C, (2 * C.n - 2 + 4) / 5>(lists, &next));
        if (threadIdx.x == 0 && found != 0) atomicAdd(sums + first + pair.group, found);
    }
}
