// Lists the half boards of a side of a group: an upper half on the columns C, or a lower half on the
// others, seen from below. Both are lists of the same kind, so that one kernel makes them.
//
// A half board is one word of 2 N bits: the diagonals that it attacks between the halves (even N) or
// in the middle row (odd N), those towards larger columns from above in the low N bits. Two halves
// make a solution if their words share no bit. Bits 62 and 63 are the weight.
#pragma once

#include "../../warp.cuh"

enum class Listing { walk, quarters };
enum class Order { none, plain, gray };
enum class Masks { none, and_, and_or };
enum class PairTest { words, shuffle };
enum class Symmetry { mirror, quarter, middle };

struct Middle {
    unsigned n;
    Listing listing;
    Order order;
    Masks masks;
    PairTest pairs;
    Symmetry symmetry;
    unsigned split;
    __host__ __device__ constexpr unsigned half() const { return n / 2; }
    __host__ __device__ constexpr bool odd() const { return n % 2 == 1; }
    // Rows of the quarter at the border, and of the one at the middle, whose lists are longer.
    __host__ __device__ constexpr unsigned outer() const { return half() / 2; }
    __host__ __device__ constexpr unsigned inner() const { return half() - outer(); }
    __host__ __device__ constexpr unsigned board() const { return (1u << n) - 1; }
    // Bits of a word by which a list is sorted: as many as make a few entries of each.
    __host__ __device__ constexpr unsigned key_bits() const {
        return n < 12 ? 6 : n < 18 ? n - 6 : 12;
    }
    __host__ __device__ constexpr unsigned order_threads() const { return n < 19 ? 512 : 1024; }
};

using Half = unsigned long long;
using Quarter = uint2;  // `rising` with `crossed` in its highest bits, `falling` (groups.py)

constexpr unsigned kWeight = 62;
constexpr unsigned kCrossed = 29;
constexpr unsigned kNowhere = 7;
constexpr unsigned kListThreads = 128;
constexpr unsigned kStaged = 256;  // halves of a warp
constexpr unsigned kAtOnce = 8;    // quarters; as many follow the last one
constexpr unsigned kColumns = 24;
constexpr unsigned kSizes = 8;

// A set of groups, the quarter lists of the board, and where halves go: `room` to each side.
struct Groups {
    const unsigned* __restrict__ upper;
    const unsigned* __restrict__ lower;
    const unsigned* __restrict__ middle;
};

struct Quarters {
    const unsigned* __restrict__ starts;
    const Quarter* __restrict__ boards;
};

__device__ __forceinline__ unsigned lane_number() { return threadIdx.x % kWarp; }

// Sum over the lanes before this one.
__device__ __forceinline__ unsigned before(unsigned value, unsigned& total) {
    unsigned sum = value;
#pragma unroll
    for (unsigned step = 1; step < kWarp; step *= 2) {
        const unsigned other = __shfl_up_sync(kAllLanes, sum, step);
        if (lane_number() >= step) sum += other;
    }
    total = __shfl_sync(kAllLanes, sum, kWarp - 1);
    return sum - value;
}

template <Middle C> struct Lister {
    static constexpr unsigned kOuter = C.outer(), kInner = C.inner();
    Quarters outer, inner;
    unsigned middle;  // column of the middle row's queen
    bool lower;
    Half* halves;
    unsigned room;
    unsigned* found;
    Half* stage;  // of this warp
    Half seen = 0;

    // Whether half boards are weighed by the row of their queen in the middle column.
    __device__ bool weighs() const {
        return C.symmetry == Symmetry::middle && C.odd() && !lower && middle < C.half();
    }
    // The word of a half whose last row meets these diagonals.
    __device__ Half word(unsigned rising, unsigned falling) const {
        rising &= C.board();
        const unsigned ahead = (rising << 1) & C.board(), behind = falling >> 1;
        if (!lower) return ahead | Half(behind) << C.n;
        return (C.odd() ? behind : falling) | Half(C.odd() ? ahead : rising) << C.n;
    }
    // `row`: of the queen in the middle column.
    __device__ Half weight(unsigned row) const {
        return Half(lower ? 0 : 1 + (weighs() && row != middle)) << kWeight;
    }
    // Every half below the placements of the first two rows that this lane takes, depth first.
    __device__ void walk(unsigned set, const unsigned* columns) {
        unsigned left[C.half()], rising[C.half()], falling[C.half()], open[C.half()];
        unsigned crossed = 0;
        for (unsigned prefix = threadIdx.x; prefix < C.half() * C.half(); prefix += blockDim.x) {
            const unsigned second = 1u << columns[prefix / C.half()];
            unsigned row = 0;
            left[0] = set, rising[0] = falling[0] = 0;
            open[0] = 1u << columns[prefix % C.half()];
            for (;;) {
                if (open[row] == 0) {
                    if (row-- == 0) break;
                    continue;
                }
                const unsigned queen = open[row] & -open[row];
                open[row] ^= queen;
                if (queen == 1u << C.half()) crossed = row;
                const unsigned up = rising[row] | queen, down = falling[row] | queen;
                if (row + 1 == C.half()) {
                    add(up, down, crossed);
                    continue;
                }
                left[row + 1] = left[row] & ~queen;
                ++row;
                rising[row] = up << 1, falling[row] = down >> 1;
                open[row] = left[row] & ~(rising[row] | falling[row]);
                if (row == 1) open[row] &= second;
            }
        }
    }
    __device__ void add(unsigned rising, unsigned falling, unsigned crossed) {
        if (C.odd() && ((rising << 1 | falling >> 1) >> middle & 1)) return;
        if (weighs() && crossed > middle) return;
        const Half half = word(rising, falling);
        seen |= half;
        const unsigned place = atomicAdd(found, 1);
        if (place < room) halves[place] = half | weight(crossed);
    }
    // All pairs of two quarters: a lane has one below, and tries 32 above it.
    __device__ void combine(unsigned above, unsigned above_end, unsigned below,
                            unsigned below_end) {
        const unsigned lane = lane_number();
        constexpr unsigned kRow = 1u << kCrossed;
        for (; below < below_end; below += kWarp) {
            bool tried = below + lane < below_end;
            const Quarter own = tried ? __ldg(inner.boards + below + lane) : Quarter{0, 0};
            const unsigned crossed = own.x >> kCrossed;
            unsigned rising = own.x % kRow, falling = own.y;
            if constexpr (C.odd()) {
                const unsigned queen = 1u << middle;
                tried &= ((rising << 1 | falling >> kInner) & queen) == 0;
            }
            if (weighs()) tried &= crossed == kNowhere || kOuter + crossed <= middle;
            rising >>= kInner;
            falling = (falling & C.board()) << kOuter;
            if constexpr (C.odd()) {  // what is above attacks the middle row's queen
                if (middle > kInner) rising |= 1u << (middle - kInner - 1);
                falling |= middle + C.half() < 32 ? 1u << (middle + C.half()) : 0;
            }
            for (unsigned first = above; first < above_end; first += kWarp)
                try_32(first, above_end, tried, rising, falling, own);
        }
    }
    __device__ void try_32(unsigned first, unsigned end, bool tried, unsigned rising,
                           unsigned falling, Quarter own) {
        const unsigned lane = lane_number();
        bool allowed = first + lane < end;
        if (weighs() && allowed) {
            const unsigned crossed = __ldg(&outer.boards[first + lane].x) >> kCrossed;
            allowed = crossed == kNowhere || crossed <= middle;
        }
        unsigned hits = 0;
        for (unsigned k = 0; k < min(kWarp, end - first); k += kAtOnce) {  // may read beyond `end`
            unsigned some = 0;
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                const Quarter other = __ldg(outer.boards + first + k + j);
                if (((other.x & rising) | (other.y & falling)) == 0) some |= 1u << j;
            }
            hits |= some << k;
        }
        const unsigned all = __ballot_sync(kAllLanes, allowed);
        hits = tried ? hits & all : 0;
        if (!__any_sync(kAllLanes, hits)) return;
        unsigned total, base = 0;
        const unsigned own_place = before(__popc(hits), total);
        if (lane == 0) base = atomicAdd(found, total);
        base = __shfl_sync(kAllLanes, base, 0);
        for (unsigned place = own_place; hits != 0; hits &= hits - 1, ++place) {
            const Quarter other = __ldg(outer.boards + first + __ffs(hits) - 1);
            const Half half = word((other.x << kInner) | own.x,
                                   (other.y >> (C.half() - 1)) | (own.y >> (kInner - 1)));
            const unsigned row = other.x >> kCrossed;
            seen |= half;
            put(base, place, half | weight(row != kNowhere ? row : kOuter + (own.x >> kCrossed)));
        }
        __syncwarp();
        for (unsigned place = lane; place < min(total, kStaged); place += kWarp)
            if (base + place < room) halves[base + place] = stage[place];
        __syncwarp();
    }
    // Lanes write whole sectors if they stage what they found.
    __device__ void put(unsigned base, unsigned place, Half half) {
        if (place < kStaged) stage[place] = half;
        else if (base + place < room) halves[base + place] = half;
    }
};

// A block lists one side: 2 k is the upper, 2 k + 1 the lower one of group `first + k`. A side of
// more than `room` halves has only so many written, and its true size.
template <Middle C>
__global__ void __launch_bounds__(kListThreads, 8)
    list(const unsigned* __restrict__ upper, const unsigned* __restrict__ lower,
         const unsigned* __restrict__ middle, const unsigned* __restrict__ binomials,
         const unsigned* __restrict__ picks, unsigned pick_count,
         const unsigned* __restrict__ outer_starts, const Quarter* __restrict__ outer_boards,
         const unsigned* __restrict__ inner_starts, const Quarter* __restrict__ inner_boards,
         unsigned first, unsigned count, unsigned room, Half* halves, unsigned* sizes, Half* useful,
         unsigned* taken) {
    __shared__ unsigned binomial[kColumns * kSizes];
    __shared__ unsigned columns[kColumns];
    __shared__ Half stage[kListThreads / kWarp][kStaged];
    __shared__ unsigned found;
    __shared__ Half seen;
    const unsigned side = blockIdx.x, lane = lane_number();
    if (side == 0 && threadIdx.x == 0) *taken = 0;  // for `order`
    if (side >= 2 * count) return;
    const unsigned group = first + side / 2;
    const unsigned set = (side % 2 ? lower : upper)[group];
    for (unsigned i = threadIdx.x; i < kColumns * kSizes; i += kListThreads)
        binomial[i] = __ldg(binomials + i);
    if (threadIdx.x < C.n && (set >> threadIdx.x & 1))
        columns[__popc(set & ((1u << threadIdx.x) - 1))] = threadIdx.x;
    if (threadIdx.x == 0) found = 0, seen = 0;
    __syncthreads();
    Lister<C> lister{{outer_starts, outer_boards},
                     {inner_starts, inner_boards},
                     middle[group],
                     side % 2 == 1,
                     halves + size_t(side) * room,
                     room,
                     &found,
                     stage[threadIdx.x / kWarp]};
    if constexpr (C.listing == Listing::walk) {
        lister.walk(set, columns);
        pick_count = 0;
    }
    for (unsigned base = threadIdx.x - lane; base < pick_count; base += kListThreads) {
        // Every lane ranks another pair of column sets among the sets of their sizes.
        const bool there = base + lane < pick_count;
        const unsigned pick = there ? __ldg(picks + base + lane) : 0;
        unsigned rank[2] = {0, 0};
        unsigned above = 0;
#pragma unroll
        for (unsigned i = 0; i < C.half(); ++i) {
            const bool picked = pick >> i & 1;
            above += picked;
            const unsigned size = picked ? above : i + 1 - above;
            const unsigned sets = there ? binomial[columns[i] * kSizes + size] : 0;
            if (picked) rank[0] += sets;
            else rank[1] += sets;
        }
        const unsigned begins = there ? __ldg(outer_starts + rank[0]) : 0;
        const unsigned ends = there ? __ldg(outer_starts + rank[0] + 1) : 0;
        const unsigned begins_below = there ? __ldg(inner_starts + rank[1]) : 0;
        const unsigned ends_below = there ? __ldg(inner_starts + rank[1] + 1) : 0;
        for (unsigned k = 0; k < min(kWarp, pick_count - base); ++k)
            lister.combine(__shfl_sync(kAllLanes, begins, k), __shfl_sync(kAllLanes, ends, k),
                           __shfl_sync(kAllLanes, begins_below, k),
                           __shfl_sync(kAllLanes, ends_below, k));
    }
    const auto either = [](unsigned a, unsigned b) { return a | b; };
    const Half all = warp_all(unsigned(lister.seen), either) |
                     Half(warp_all(unsigned(lister.seen >> 32), either)) << 32;
    if (lane == 0) atomicOr(&seen, all);
    __syncthreads();
    if (threadIdx.x == 0) sizes[side] = found, useful[side] = seen;
}
