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
    unsigned
        few;  // each value of the diagonals that a tile agrees in has 2^few halves; 32: none agrees
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
using Bits = uint2;     // the number of each bit of `rising` and of `falling`, kBits for each
using Columns = uint2;  // which of 32 quarters have a bit of `rising`, and one of `falling`
using Span = uint2;     // the first quarter of a set of columns, and the one after the last

constexpr unsigned kRow = 58, kAnyRow = 15;                          // of a half
constexpr unsigned kCrossed = 29, kNowhere = 7;                      // of a quarter
constexpr unsigned kQuarterThreads = 128, kBits = 5, kDropped = 64;  // place of no diagonal
enum Count { kTaken, kOrdered, kJoined, kCounts };

// The numbers of the bits of a set, one for each queen of a quarter.
__device__ unsigned numbers(unsigned set) {
    unsigned found = 0;
    for (; set != 0; set &= set - 1) found = found << kBits | (__ffs(set) - 1);
    return found;
}

template <Middle C> constexpr unsigned kMiddle = 1u << C.n / 2 | 1u << (C.n - 1) / 2;  // columns

// Orders of so many rows, and room for the quarters on a set: whole warps.
constexpr unsigned orders(unsigned rows) { return rows < 2 ? 1 : rows * orders(rows - 1); }
constexpr unsigned room_of(unsigned rows) { return (orders(rows) + kWarp - 1) / kWarp * kWarp; }

// A warp lists the quarters of `Rows` rows on a set of columns, of which each lane tries an order;
// returns how many there are. `rising` are the diagonals that a row meets, `falling` those that the first did.
template <Middle C, unsigned Rows>
__device__ unsigned list_quarters(unsigned set, Quarter* boards, Bits* bits) {
    unsigned count = 0;
    for (unsigned number = lane_number(); number < room_of(Rows); number += kWarp) {
        unsigned left = set, choices = number, rising = 0, falling = 0, crossed = kNowhere;
        bool free = number < orders(Rows);
#pragma unroll
        for (unsigned row = 0; row < Rows; ++row) {
            unsigned open = left;
            for (unsigned skipped = choices % (Rows - row); skipped > 0; --skipped)
                open &= open - 1;
            choices /= Rows - row;
            const unsigned queen = open & -open;
            left ^= queen, rising <<= 1;
            free &= (queen & (rising | falling >> row)) == 0;
            rising |= queen, falling |= queen << row;
            if (crossed == kNowhere && (queen & kMiddle<C>)) crossed = row;
        }
        const unsigned kept = __ballot_sync(kAllLanes, free);
        const unsigned at = count + __popc(before_own(kept));
        if (free) boards[at] = {rising | crossed << kCrossed, falling};
        if (free && Rows == C.outer()) bits[at] = {numbers(rising), numbers(falling)};
        count += __popc(kept);
    }
    __syncwarp();
    return count;
}

// A warp lists the quarters on a set of columns: on those for the border, of which there are `outer`,
// then on those for the middle, unless these have as many rows. Of the latter it makes the columns of each
// 32: lane i those of the bits i of quarters above.
template <Middle C>
__global__ void __launch_bounds__(kQuarterThreads)
    quarters(const unsigned* sets, unsigned outer, unsigned count, Span* spans, Quarter* boards,
             Bits* bits, Columns* columns) {
    const unsigned number = (blockIdx.x * kQuarterThreads + threadIdx.x) / kWarp;
    const unsigned lane = lane_number();
    if (number >= count) return;
    const bool above = number < outer;
    const unsigned inner = above ? 0 : number - outer;
    const unsigned begin = room_of(C.outer()) * (number - inner) + room_of(C.inner()) * inner;
    const unsigned found =
        above ? list_quarters<C, C.outer()>(sets[number], boards + begin, bits + begin)
              : list_quarters<C, C.inner()>(sets[number], boards + begin, bits + begin);
    if (lane == 0) spans[sets[number]] = {begin, begin + found};
    for (unsigned i = lane; (C.outer() == C.inner() || !above) && i - lane < found; i += kWarp) {
        const Quarter own = i < found ? boards[begin + i] : Quarter{0, 0};
        const unsigned rising = own.x % (1u << kCrossed) >> C.inner();
        const unsigned falling = (own.y & C.board()) << C.outer();
        Columns of_bit{0, 0};
#pragma unroll
        for (unsigned bit = 0; bit < C.n + C.outer(); ++bit) {
            const unsigned up = __ballot_sync(kAllLanes, rising >> bit & 1);
            const unsigned down = __ballot_sync(kAllLanes, falling >> bit & 1);
            if (lane == bit) of_bit = {up, down};
        }
        columns[begin + i] = of_bit;
    }
}

template <Middle C> struct Lister {
    static constexpr unsigned kOuter = C.outer(), kInner = C.inner();
    static constexpr unsigned kStaged = 1408;  // pairs that wait; those of 32 quarters more fit
    const Quarter* __restrict__ boards;
    const Bits* __restrict__ bits;
    const Columns* __restrict__ columns;
    Half* halves;
    unsigned room;
    unsigned* found;
    // Of this warp: pairs as the number of the lower quarter, of 720 at most, * 32 + lane.
    unsigned short* stage;
    Half seen = 0;

    // The word of a half whose last row meets these diagonals.
    __device__ Half word(unsigned rising, unsigned falling) const {
        return ((rising & C.board()) << 1 & C.board()) | Half((falling & C.board()) >> 1) << C.n;
    }
    __device__ void keep(Half half, unsigned place, unsigned crossed) {
        seen |= half;
        if (place < room) halves[place] = half | Half(crossed) << kRow;
    }
    // Every half whose queens of the first two rows are in the columns `begin`, depth first.
    template <unsigned Row = 0>
    __device__ void walk(const unsigned (&begin)[2], unsigned left, unsigned rising = 0,
                         Half falling = 0, unsigned crossed = kOuter + kNowhere) {
        unsigned open = left & ~(rising | unsigned(falling >> Row));
        if constexpr (Row < 2) open &= begin[Row];
        // One column: no loop. Of twelve loops in each other ptxas 13.0 makes wrong code.
        constexpr bool kOne = Row < 2 || Row + 1 == C.half();
        for (; open != 0; open &= kOne ? 0 : open - 1) {
            const unsigned queen = open & -open, up = rising | queen;
            const Half down = falling | Half(queen) << Row;
            const bool first = crossed == kOuter + kNowhere && (queen & kMiddle<C>);
            const unsigned row = first ? Row : crossed;
            if constexpr (Row + 1 < C.half())
                walk<Row + 1>(begin, left ^ queen, up << 1, down, row);
            else keep(word(up, unsigned(down >> Row)), atomicAdd(found, 1), row);
        }
    }
    // All pairs of two quarters: a lane has one above, and looks up which of 32 below it meets.
    __device__ void combine(Span above, Span below) {
        const unsigned lane = lane_number();
        for (; above.x < above.y; above.x += kWarp) {
            const bool tried = above.x + lane < above.y;
            const Quarter own = tried ? __ldg(boards + above.x + lane) : Quarter{0, 0};
            const Bits bit = tried ? __ldg(bits + above.x + lane) : Bits{0, 0};
            unsigned staged = 0, begin = below.x;
            for (unsigned first = below.x; first < below.y; first += kWarp) {
                const Columns column = __ldg(columns + first + lane);
                unsigned met = tried ? 0 : ~0u;
#pragma unroll
                for (unsigned row = 0; row < kOuter; ++row)
                    met |= __shfl_sync(kAllLanes, column.x, bit.x >> (kBits * row)) |
                           __shfl_sync(kAllLanes, column.y, bit.y >> (kBits * row));
                if (below.y - first < kWarp) met |= ~0u << (below.y - first);
                unsigned total, place = staged + before(__popc(~met), total);
                const unsigned base = first - begin;
                for (unsigned hits = ~met; hits != 0; hits &= hits - 1)
                    stage[place++] = (base + __ffs(hits) - 1) * kWarp + lane;
                staged += total;
                if (staged <= kStaged - kWarp * kWarp) continue;
                make(begin, own, staged);
                staged = 0, begin = first + kWarp;
            }
            make(begin, own, staged);
        }
    }
    // Makes the halves of staged pairs, whose lower quarters are numbered from `begin`.
    __device__ void make(unsigned begin, Quarter own, unsigned staged) {
        const unsigned lane = lane_number();
        if (staged == 0) return;
        __syncwarp();
        const unsigned base = warp_take(found, staged);
        for (unsigned i = lane; i - lane < staged; i += kWarp) {  // every lane makes one
            const unsigned pair = i < staged ? stage[i] : 0;
            const Quarter other = __ldg(boards + begin + pair / kWarp);
            const unsigned x = __shfl_sync(kAllLanes, own.x, pair);
            const unsigned y = __shfl_sync(kAllLanes, own.y, pair);
            if (i >= staged) continue;
            const unsigned row = x >> kCrossed;
            keep(word((x << kInner) | other.x, (y >> (C.half() - 1)) | (other.y >> (kInner - 1))),
                 base + i, row != kNowhere ? row : kOuter + (other.x >> kCrossed));
        }
        __syncwarp();
    }
};

// A block lists the half boards on a set of columns: of `count` from `first` on. A list of more than
// `room` halves has only so many written, and its true size.
template <Middle C>
__global__ void __launch_bounds__(C.list_threads(), 2048 / C.list_threads())
    list(const unsigned* __restrict__ sets, const unsigned* __restrict__ picks,
         const Span* __restrict__ spans, const Quarter* __restrict__ boards,
         const Bits* __restrict__ bits, const Columns* __restrict__ columns, unsigned first,
         unsigned count, unsigned room, Half* halves, unsigned* sizes, Half* useful,
         unsigned* counts) {
    // At a time a warp takes so many picks of columns for the quarter above that all have as many.
    constexpr unsigned kThreads = C.list_threads(), kWarps = kThreads / kWarp;
    constexpr unsigned kPicks = orders(C.half()) / orders(C.outer()) / orders(C.inner());
    constexpr unsigned kEach = (kPicks - 1) / ((kPicks + kThreads - 1) / kThreads * kWarps) + 1;
    __shared__ unsigned column[C.half()];  // those of the set, one bit each
    __shared__ unsigned short stage[kWarps][Lister<C>::kStaged];
    __shared__ unsigned found;
    __shared__ Half seen;
    const unsigned number = blockIdx.x, lane = lane_number();
    if (number == 0 && threadIdx.x < kCounts) counts[threadIdx.x] = 0;  // of the batch
    if (number >= count) return;
    const unsigned set = sets[first + number];
    if (threadIdx.x < C.n && (set >> threadIdx.x & 1))
        column[__popc(set & ((1u << threadIdx.x) - 1))] = 1u << threadIdx.x;
    if (threadIdx.x == 0) found = 0, seen = 0;
    __syncthreads();
    halves += size_t(number) * room;
    unsigned short* const pairs = stage[threadIdx.x / kWarp];
    Lister<C> lister{boards, bits, columns, halves, room, &found, pairs};
    if constexpr (C.listing == Listing::walk)
        for (unsigned i = threadIdx.x; i < C.half() * C.half(); i += kThreads)
            lister.walk({column[i % C.half()], column[i / C.half()]}, set);
    const unsigned end = C.listing == Listing::quarters ? kPicks : 0;
    for (unsigned base = threadIdx.x / kWarp * kEach; base < end; base += kWarps * kEach) {
        const bool there = lane < kEach && base + lane < kPicks;
        const unsigned pick = there ? __ldg(picks + base + lane) : 0;
        unsigned picked = 0;
#pragma unroll
        for (unsigned i = 0; i < C.half(); ++i) picked |= pick >> i & 1 ? column[i] : 0;
        const Span above = there ? __ldg(spans + picked) : Span{0, 0};
        const Span below = there ? __ldg(spans + (set ^ picked)) : Span{0, 0};
        for (unsigned k = 0; k < min(kEach, kPicks - base); ++k)
            lister.combine(
                {__shfl_sync(kAllLanes, above.x, k), __shfl_sync(kAllLanes, above.y, k)},
                {__shfl_sync(kAllLanes, below.x, k), __shfl_sync(kAllLanes, below.y, k)});
    }
    const Half all = any_of_warp(lister.seen);
    if (lane == 0) atomicOr(&seen, all);
    __syncthreads();
    if (threadIdx.x == 0) sizes[number] = found, useful[number] = seen;
}
