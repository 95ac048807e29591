// Counts the solutions of the N-Queens problem from the middle: pairs of half boards whose words
// share no bit (groups.py). Three kernels: halves.cuh, order.cuh and this one.
#include "order.cuh"

constexpr unsigned kJoinThreads = 256;

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
        unsigned count = 0;
        for (unsigned i = 0; i < there; ++i)
            count += (half & halves[i]) << 2 == 0;
        return count;
    }
};

struct Lists {
    const Half* upper;
    const Half* lower;
    const Half* upper_masks;
    const Half* lower_masks;
    unsigned uppers, lowers, useful;
};

// Pairs of this lane's upper halves with the tile `lower` of the other list.
template <Middle C, unsigned Blocks>
__device__ unsigned with_tile(const Lists& lists, unsigned lower) {
    constexpr unsigned kSkipped = Blocks > 3 ? 3 : 0;  // blocks that the OR may answer
    const unsigned lane = lane_number(), first = lower * kWarp;
    const bool there = first + lane < lists.lowers;
    Tables<Blocks> tables;
    if constexpr (C.pairs == Pairs::shuffle)
        tables.make(there ? lists.lower[first + lane] : 0, there);
    const Words words{lists.lower + first, min(kWarp, lists.lowers - first)};
    const Half mask = C.masks == Masks::none ? 0 : lists.lower_masks[lower];
    const unsigned tiles = (lists.uppers + kWarp - 1) / kWarp;
    unsigned count = 0;
    const auto test = [&](unsigned tile, bool skip) {
        const Half half = lists.upper[tile * kWarp + lane];
        unsigned pairs;
        if constexpr (C.pairs == Pairs::words) pairs = words.free(half);
        else if (skip) pairs = __popc(tables.template free<kSkipped>(half));
        else pairs = __popc(tables.template free<0>(half));
        count += pairs * unsigned(half >> kWeight);
    };
    for (unsigned base = 0; base < tiles; base += kWarp) {
        Half other = kOrMask << kOr;
        if (base + lane < tiles) other = C.masks == Masks::none ? 0 : lists.upper_masks[base + lane];
        const bool meets = base + lane >= tiles || (mask & other & ((Half(1) << kOr) - 1)) != 0;
        unsigned tested = ~__ballot_sync(kAllLanes, meets);
        if constexpr (C.masks == Masks::and_or && C.pairs == Pairs::shuffle && kSkipped > 0) {
            unsigned light = tested & __ballot_sync(kAllLanes, (mask & other) >> kOr == 0);
            tested &= ~light;
            for (; light != 0; light &= light - 1) test(base + __ffs(light) - 1, true);
        }
        for (; tested != 0; tested &= tested - 1) test(base + __ffs(tested) - 1, false);
    }
    return count;
}

template <Middle C, unsigned Blocks>
__device__ Half join_lists(const Lists& lists, unsigned* next) {
    constexpr unsigned kLeast = C.pairs == Pairs::shuffle && 2 * C.n / 5 > 4 ? 2 * C.n / 5 - 4 : 1;
    if constexpr (Blocks > kLeast) {
        if (lists.useful <= 5 * (Blocks - 1)) return join_lists<C, Blocks - 1>(lists, next);
    }
    Half count = 0;
    for (;;) {
        unsigned tile = 0;
        if (lane_number() == 0) tile = atomicAdd(next, 1);
        tile = __shfl_sync(kAllLanes, tile, 0);
        if (tile * kWarp >= lists.lowers) return count;
        count += with_tile<C, Blocks>(lists, tile);
    }
}

// Blocks `blockIdx.x` count the pairs of group `first + blockIdx.x`; `gridDim.y` of them share the
// tiles of the lower halves by the word `next` of the group. A group whose lists had no room is
// `spilled`.
template <Middle C>
__global__ void __launch_bounds__(kJoinThreads)
    join(unsigned first, unsigned count, unsigned room, const unsigned* sizes, const Half* useful,
         const Half* ordered, const Half* masks, unsigned* next, unsigned* spilled, Half* sums) {
    const unsigned group = blockIdx.x;
    if (group >= count) return;
    Lists lists;
    lists.uppers = sizes[2 * group];
    lists.lowers = sizes[2 * group + 1];
    if (lists.uppers == 0 || lists.lowers == 0) return;
    if (max(lists.uppers, lists.lowers) > room) {
        if (threadIdx.x == 0) spilled[first + group] = 1;
        return;
    }
    lists.upper = ordered + size_t(2 * group) * room;
    lists.lower = lists.upper + room;
    lists.upper_masks = masks + size_t(2 * group) * (room / kWarp);
    lists.lower_masks = lists.upper_masks + room / kWarp;
    lists.useful = __popcll(useful[2 * group] & useful[2 * group + 1]);
    const Half found = block_sum<kJoinThreads>(
        join_lists<C, (2 * C.n - 2 + 4) / 5>(lists, next + first + group));
    if (threadIdx.x == 0 && found != 0) atomicAdd(sums + first + group, found);
}
