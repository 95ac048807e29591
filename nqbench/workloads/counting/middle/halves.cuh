// Lists the half boards on sets of columns, as upper halves of the board: a lower half is one that is
// flipped, so that one list serves both sides, and with odd N all queens of the middle row.
//
// A half board is one word of 2 N bits: the diagonals that it attacks in the row below, those towards
// larger columns in the low N bits. From bit 58 on stands the first row with a queen in the middle column.
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
    // Of `order`: threads of a block, blocks of a multiprocessor, and bits of a key that tell the bucket.
    unsigned order_threads, order_blocks, bucket_bits;
    __host__ __device__ constexpr unsigned half() const { return n / 2; }
    __host__ __device__ constexpr bool odd() const { return n % 2 == 1; }
    // Rows of the quarter at the border, and of the one at the middle, whose lists are longer.
    __host__ __device__ constexpr unsigned outer() const { return half() / 2; }
    __host__ __device__ constexpr unsigned inner() const { return half() - outer(); }
    __host__ __device__ constexpr unsigned list_threads() const { return n < 21 ? 128 : 512; }
    __host__ __device__ constexpr unsigned board() const { return (1u << n) - 1; }
};

using Half = unsigned long long;
using Quarter = uint2;  // `rising` with `crossed` in its highest bits, `falling` (groups.py)
using Span = uint2;     // the first quarter of a set of columns, and the one after the last

constexpr unsigned kRow = 58, kAnyRow = 15;      // of a half
constexpr unsigned kCrossed = 29, kNowhere = 7;  // of a quarter
constexpr unsigned kQuarterThreads = 128;
constexpr unsigned kAtOnce = 8;  // quarters; as many follow the last one
enum Count { kTaken, kOrdered, kJoined, kCounts };
constexpr unsigned kColumns = 24, kSizes = 8;  // of the binomials

// Calls `use` with the placements of `Rows` rows on a set of columns that attack none of their own,
// depth first: those whose first two queens are in these columns.
template <Middle C, unsigned Rows, class Use> struct Placer {
    Use use;
    unsigned nowhere;  // for a row with a queen in a middle column
    unsigned first = ~0u, second = ~0u;
    // `rising` are the diagonals that this row meets, `falling` those that the first row met.
    template <unsigned Row>
    __device__ void place(unsigned left, unsigned rising, Half falling, unsigned crossed) {
        constexpr unsigned kMiddle = 1u << C.n / 2 | 1u << (C.n - 1) / 2;
        unsigned open = left & ~(rising | unsigned(falling >> Row));
        if constexpr (Row < 2) open &= Row == 0 ? first : second;
        for (; open != 0; open &= open - 1) {
            const unsigned queen = open & -open, up = rising | queen;
            const Half down = falling | Half(queen) << Row;
            const unsigned row = crossed == nowhere && (queen & kMiddle) ? Row : crossed;
            if constexpr (Row + 1 < Rows) place<Row + 1>(left ^ queen, up << 1, down, row);
            else use(up, down, row);
        }
    }
};
template <Middle C, unsigned Rows, class Use>
__device__ void place(unsigned set, unsigned nowhere, Use use, unsigned first = ~0u,
                      unsigned second = ~0u) {
    Placer<C, Rows, Use>{use, nowhere, first, second}.template place<0>(set, 0, 0, nowhere);
}

template <Middle C, unsigned Rows>
__device__ void list_quarters(unsigned set, Span* span, Quarter* boards, unsigned* made) {
    unsigned count = 0;
    place<C, Rows>(set, kNowhere, [&](unsigned, Half, unsigned) { ++count; });
    const unsigned begin = atomicAdd(made, count);
    *span = {begin, begin + count};
    place<C, Rows>(set, kNowhere,
                   [&, at = begin](unsigned rising, Half falling, unsigned row) mutable {
                       boards[at++] = {rising | row << kCrossed, unsigned(falling)};
                   });
}

// A thread lists the quarters on a set of columns: on those for the border, of which there are
// `outer`, then on those for the middle, unless these have as many rows. `made` is how many there are.
template <Middle C>
__global__ void __launch_bounds__(kQuarterThreads)
    quarters(const unsigned* sets, unsigned outer, unsigned count, Span* spans, Quarter* boards,
             unsigned* made) {
    const unsigned number = blockIdx.x * kQuarterThreads + threadIdx.x;
    if (number >= count) return;
    if (number < outer) list_quarters<C, C.outer()>(sets[number], spans + number, boards, made);
    else list_quarters<C, C.inner()>(sets[number], spans + number, boards, made);
}

template <Middle C> struct Lister {
    static constexpr unsigned kOuter = C.outer(), kInner = C.inner();
    const Quarter* __restrict__ boards;
    Half* halves;
    unsigned room;
    unsigned* found;
    unsigned short* stage;  // of this warp
    Half seen = 0;

    // The word of a half whose last row meets these diagonals.
    __device__ Half word(unsigned rising, unsigned falling) const {
        return ((rising & C.board()) << 1 & C.board()) | Half((falling & C.board()) >> 1) << C.n;
    }
    // Every half below the placements of the first two rows that this lane takes.
    __device__ void walk(unsigned set, const unsigned* columns) {
        for (unsigned prefix = threadIdx.x; prefix < C.half() * C.half(); prefix += blockDim.x)
            place<C, C.half()>(
                set, kOuter + kNowhere,
                [&](unsigned rising, Half falling, unsigned row) {
                    const Half half = word(rising, unsigned(falling >> (C.half() - 1)));
                    seen |= half;
                    const unsigned place = atomicAdd(found, 1);
                    if (place < room) halves[place] = half | Half(row) << kRow;
                },
                1u << columns[prefix % C.half()], 1u << columns[prefix / C.half()]);
    }
    // All pairs of two quarters: a lane has one below, and tries 32 above it.
    __device__ void combine(unsigned above, unsigned above_end, unsigned below,
                            unsigned below_end) {
        const unsigned lane = lane_number();
        for (; below < below_end; below += kWarp) {
            const bool tried = below + lane < below_end;
            const Quarter own = tried ? __ldg(boards + below + lane) : Quarter{0, 0};
            const unsigned rising = own.x % (1u << kCrossed) >> kInner;
            const unsigned falling = (own.y & C.board()) << kOuter;
            for (unsigned first = above; first < above_end; first += kWarp)
                try_32(first, above_end, tried, rising, falling, own);
        }
    }
    __device__ void try_32(unsigned first, unsigned end, bool tried, unsigned rising,
                           unsigned falling, Quarter own) {
        const unsigned lane = lane_number();
        unsigned hits = 0;
        for (unsigned k = 0; k < min(kWarp, end - first); k += kAtOnce) {  // may read beyond `end`
            unsigned some = 0;
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                const Quarter other = __ldg(boards + first + k + j);
                if (((other.x & rising) | (other.y & falling)) == 0) some |= 1u << j;
            }
            hits |= some << k;
        }
        if (end - first < kWarp) hits &= (1u << (end - first)) - 1;
        hits = tried ? hits : 0;
        if (!__any_sync(kAllLanes, hits)) return;
        unsigned total, base = 0, place = before(__popc(hits), total);
        if (lane == 0) base = atomicAdd(found, total);
        base = __shfl_sync(kAllLanes, base, 0);
        for (; hits != 0; hits &= hits - 1) stage[place++] = (__ffs(hits) - 1) * kWarp + lane;
        __syncwarp();
        for (unsigned i = lane; i - lane < total; i += kWarp) {  // every lane makes one
            const unsigned pair = i < total ? stage[i] : 0;
            const Quarter other = __ldg(boards + first + pair / kWarp);
            const unsigned x = __shfl_sync(kAllLanes, own.x, pair);
            const unsigned y = __shfl_sync(kAllLanes, own.y, pair);
            if (i >= total) continue;
            const Half half =
                word((other.x << kInner) | x, (other.y >> (C.half() - 1)) | (y >> (kInner - 1)));
            seen |= half;
            const unsigned row = other.x >> kCrossed;
            const unsigned crossed = row != kNowhere ? row : kOuter + (x >> kCrossed);
            if (base + i < room) halves[base + i] = half | Half(crossed) << kRow;
        }
        __syncwarp();
    }
};

// A block lists the half boards on a set of columns: of `count` from `first` on. A list of more than
// `room` halves has only so many written, and its true size.
template <Middle C>
__global__ void __launch_bounds__(C.list_threads(), 1024 / C.list_threads())
    list(const unsigned* __restrict__ sets, const unsigned* __restrict__ binomials,
         const unsigned* __restrict__ picks, unsigned pick_count, const Span* __restrict__ spans,
         unsigned inner, const Quarter* __restrict__ boards, unsigned first, unsigned count,
         unsigned room, Half* halves, unsigned* sizes, Half* useful, unsigned* counts) {
    constexpr unsigned kThreads = C.list_threads();
    __shared__ unsigned binomial[kColumns * kSizes];
    __shared__ unsigned columns[kColumns];
    __shared__ unsigned short stage[kThreads / kWarp][kWarp * kWarp];
    __shared__ unsigned found;
    __shared__ Half seen;
    const unsigned number = blockIdx.x, lane = lane_number();
    if (number == 0 && threadIdx.x < kCounts) counts[threadIdx.x] = 0;  // of the batch
    if (number >= count) return;
    const unsigned set = sets[first + number];
    for (unsigned i = threadIdx.x; i < kColumns * kSizes; i += kThreads)
        binomial[i] = __ldg(binomials + i);
    if (threadIdx.x < C.n && (set >> threadIdx.x & 1))
        columns[__popc(set & ((1u << threadIdx.x) - 1))] = threadIdx.x;
    if (threadIdx.x == 0) found = 0, seen = 0;
    __syncthreads();
    Lister<C> lister{boards, halves + size_t(number) * room, room, &found,
                     stage[threadIdx.x / kWarp]};
    if constexpr (C.listing == Listing::walk) {
        lister.walk(set, columns);
        pick_count = 0;
    }
    for (unsigned base = threadIdx.x - lane; base < pick_count; base += kThreads) {
        // Every lane ranks another pair of column sets among the sets of their sizes.
        const bool there = base + lane < pick_count;
        const unsigned pick = there ? __ldg(picks + base + lane) : 0;
        unsigned rank[2] = {0, 0};
        unsigned taken_above = 0;
#pragma unroll
        for (unsigned i = 0; i < C.half(); ++i) {
            const bool picked = pick >> i & 1;
            taken_above += picked;
            const unsigned size = picked ? taken_above : i + 1 - taken_above;
            const unsigned sets = there ? binomial[columns[i] * kSizes + size] : 0;
            if (picked) rank[0] += sets;
            else rank[1] += sets;
        }
        const Span above = there ? __ldg(spans + rank[0]) : Span{0, 0};
        const Span below = there ? __ldg(spans + inner + rank[1]) : Span{0, 0};
        for (unsigned k = 0; k < min(kWarp, pick_count - base); ++k)
            lister.combine(__shfl_sync(kAllLanes, above.x, k), __shfl_sync(kAllLanes, above.y, k),
                           __shfl_sync(kAllLanes, below.x, k), __shfl_sync(kAllLanes, below.y, k));
    }
    const auto either = [](unsigned a, unsigned b) { return a | b; };
    const Half all = warp_all(unsigned(lister.seen), either) |
                     Half(warp_all(unsigned(lister.seen >> 32), either)) << 32;
    if (lane == 0) atomicOr(&seen, all);
    __syncthreads();
    if (threadIdx.x == 0) sizes[number] = found, useful[number] = seen;
}
