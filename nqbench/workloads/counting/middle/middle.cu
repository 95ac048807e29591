// Counts the solutions of the N-Queens problem from the middle: pairs of half boards whose words
// share no bit (groups.py). Kernels: of halves.cuh, order.cuh, and `join`.
#include "order.cuh"

constexpr unsigned kJoinThreads = 128, kTogether = 6;  // tiles of lower halves of a warp

// Tables of some tiles of 32 lower halves, in shared memory: word i of table k of a tile has, in bit b,
// whether half b has none of the diagonals 5 k + j for which bit j of i is set. A lane looks up its own
// upper half; 32 lanes that read words of one table meet in no bank.
template <unsigned Blocks> struct Tables {
    unsigned* words;  // of the block
    unsigned begin;   // of those of this warp, in bytes
    __device__ void make(unsigned tile, Half half, bool there) {
        const unsigned lane = lane_number();
        const unsigned present = __ballot_sync(kAllLanes, there);
        const unsigned of[2] = {unsigned(half), unsigned(half >> 32)};
        for (unsigned k = 0; k < Blocks; ++k) {
            unsigned table = k + 1 == Blocks ? present : ~0u;
            for (unsigned j = 0; j < 5; ++j) {
                const unsigned bit = 5 * k + j;
                const unsigned column = with_bit(of[bit / 32], 1u << bit % 32);
                table &= ~(column & (0u - (lane >> j & 1)));
            }
            at(begin + 4 * lane, tile, k) = table;
        }
    }
    __device__ unsigned& at(unsigned place, unsigned tile, unsigned table) const {
        char* const of_tile = reinterpret_cast<char*>(words + (tile * Blocks + table) * kWarp);
        return *reinterpret_cast<unsigned*>(of_tile + place);
    }
    // The places of an upper half (`spread`) in the tables of the first tile, in bytes.
    __device__ void find(Half half, unsigned (&places)[Blocks]) const {
        for (unsigned k = 0; k < Blocks; ++k) {
            const unsigned word = half >> k / 4 * 32;
            if (k == 0) places[k] = word & 4 * (kWarp - 1) | begin;
            else places[k] = __byte_perm(word, begin, 0x7650 + k % 4);
            asm volatile("" : "+r"(places[k]));  // once for all tiles
        }
    }
    // The lower halves of a tile that an upper half meets nowhere.
    __device__ unsigned free(unsigned tile, const unsigned (&places)[Blocks]) const {
        unsigned free = ~0u;
        for (unsigned k = 0; k < Blocks; ++k) free &= at(places[k], tile, k);
        return free;
    }
};

struct Ordered {
    const Half *words, *masks, *tops;
};

// Pairs of this lane's upper halves with six tiles of the others from `first` on: one fetch serves all.
template <Middle C, unsigned Blocks>
__device__ Half with_tiles(const Ordered& all, const Pair& pair, unsigned first, unsigned* words) {
    const Half* const lower = all.words + size_t(pair.tile[1]) * kWarp;
    constexpr Half kLower = Half(1) << 63, kUpper = kLower / 2;  // tiles that exist
    constexpr bool kLooksUp = C.pairs == PairTest::shuffle;
    const unsigned lane = lane_number();
    Tables<Blocks> tables{words, threadIdx.x / kWarp * kTogether * kBlocks<C> * kWarp * 4};
    __syncwarp();
    Half mask[kTogether];
    for (unsigned k = 0; k < kTogether; ++k) {
        const bool there = first + k < pair.tiles[1];
        const Half below = there ? lower[(first + k) * kWarp + lane] : 0;
        mask[k] = there ? kLower : ~Half(0);
        if (C.masks != Masks::none && there) mask[k] |= all.masks[pair.tile[1] + first + k];
        if constexpr (kLooksUp) tables.make(k, below, below >> kWeight<C> == 0);
    }
    __syncwarp();
    unsigned count = 0;  // of at most 2^20 tiles
    const Half* const own = all.words + size_t(pair.tile[0]) * kWarp + lane;
    // With the lower tiles whose `sets` have this upper one; with all of them without a branch.
    const auto test = [&](Half half, unsigned tile, const unsigned (&sets)[kTogether], bool all) {
        unsigned found = 0, places[Blocks];
        if constexpr (kLooksUp) tables.find(half, places);
        const auto test_one = [&](unsigned k) {
            if constexpr (kLooksUp) found += __popc(tables.free(k, places));
            else
                for (unsigned i = (first + k) * kWarp; i < (first + k + 1) * kWarp; ++i)
                    found += (half & lower[i] & kCommon<C>) == 0 && lower[i] >> kWeight<C> == 0;
        };
        if (all) {
#pragma unroll
            for (unsigned k = 0; k < kTogether; ++k) test_one(k);
        } else {
#pragma unroll
            for (unsigned k = 0; k < kTogether; ++k)
                if (sets[k] & tile) test_one(k);
        }
        count += found * unsigned(kLooksUp ? half & 3 : half >> kWeight<C>);
    };
    const auto test_32 = [&](unsigned base) {
        const bool there = base + lane < pair.tiles[0];
        Half other = there ? kUpper : kLower;
        if (C.masks != Masks::none && there) other |= all.masks[pair.tile[0] + base + lane];
        unsigned sets[kTogether], any = 0, every = ~0u;  // upper tiles to test with each lower one
        for (unsigned k = 0; k < kTogether; ++k) {
            sets[k] = __ballot_sync(kAllLanes, (mask[k] & other) == 0);
            any |= sets[k], every &= sets[k];
        }
        if (any == 0) return;
        const Half* begin = own + base * kWarp;
        asm volatile("" : "+l"(begin));  // one instruction adds a tile's offset
        unsigned ahead = last_of(any);
        Half next = __ldg(begin + size_t(ahead) * kWarp);
        do {  // the next tile is on its way while this one is tested
            const Half half = next;
            const unsigned tile = 1u << ahead;
            any ^= tile;
            ahead = last_of(any);
            if (any != 0) next = __ldg(begin + size_t(ahead) * kWarp);
            test(half, tile, sets, every & tile);
        } while (any != 0);
    };
    for (unsigned base = 0; base < pair.tiles[0]; base += kWarp * kWarp) {
        bool may = base + lane * kWarp < pair.tiles[0];
        if (C.masks != Masks::none && may) {
            const Half other = all.tops[(pair.tile[0] + base) / kWarp + lane];
            may = false;
            for (unsigned k = 0; k < kTogether; ++k) may |= (mask[k] & other) == 0;
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
__device__ Half join_part(const Ordered& all, const Pair& pair, unsigned part, unsigned parts,
                          unsigned* words) {
    constexpr unsigned kLeast = 2 * C.n / 5 > 6 ? 2 * C.n / 5 - 4 : 2;
    if constexpr (Blocks > kLeast)
        if (pair.useful <= 5 * (Blocks - 1))
            return join_part<C, Blocks - 1>(all, pair, part, parts, words);
    Half count = 0;
    for (unsigned at = part * kTogether; at < pair.tiles[1]; at += parts * kTogether)
        count += with_tiles<C, Blocks>(all, pair, at, words);
    return count;
}

// Warps add the solutions of the cells to the `answer`; a cell has `parts`, so that all end together.
template <Middle C>
__global__ void __launch_bounds__(kJoinThreads, 1024 / kJoinThreads)
    join(unsigned first, unsigned groups, unsigned cuts, unsigned parts, unsigned* counts,
         const Half* ordered, const Half* masks, const Half* tops, const Pair* pairs,
         const unsigned* queens, Half* answer) {
    __shared__ unsigned words[kJoinThreads * kTogether * kBlocks<C>];
    for (;;) {
        const unsigned number = any_of_warp(lane_number() ? 0 : atomicAdd(counts + kJoined, 1));
        if (number >= (groups << cuts) * parts) return;
        const Pair pair = pairs[number / parts];
        if (pair.tiles[0] == 0 || pair.tiles[1] == 0 || answer[2 + first + pair.group]) continue;
        const Half found = warp_sum(
            join_part<C, kBlocks<C>>({ordered, masks, tops}, pair, number % parts, parts, words));
        if (lane_number() == 0 && found != 0)
            atomicAdd(answer, found * (queens[first + pair.group] / 256));
    }
}
