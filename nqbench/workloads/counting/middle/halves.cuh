// Lists the half boards on sets of columns, as upper halves of the board: a lower half is one that is
// flipped, so that one list serves both sides and all queens of the middle row; or as tiles (kListed).
#pragma once

#include "words.cuh"

using Quarter = uint2;  // `rising` with `crossed` from kCrossed on, `falling` (groups.py)
using Span = uint2;     // the first quarter of a set of columns, and the one after the last

constexpr unsigned kCrossed = 29, kNowhere = 7, kQuarterThreads = 128;

template <Middle C> constexpr unsigned kMiddle = 1u << C.n / 2 | 1u << (C.n - 1) / 2;  // columns

// Orders of so many rows, and room for the quarters on a set: whole warps.
constexpr unsigned orders(unsigned rows) { return rows < 2 ? 1 : rows * orders(rows - 1); }
constexpr unsigned room_of(unsigned rows) { return (orders(rows) + kWarp - 1) / kWarp * kWarp; }

// A warp lists the quarters of `Rows` rows on a set of columns, of which each lane tries an order;
// returns how many there are. `rising` are the diagonals that a row meets, `falling` those that the first did.
template <Middle C, unsigned Rows>
__device__ unsigned list_quarters(unsigned set, Quarter* boards) {
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
             unsigned* columns) {
    const unsigned number = (blockIdx.x * kQuarterThreads + threadIdx.x) / kWarp;
    const unsigned lane = lane_number();
    if (number >= count) return;
    const bool above = number < outer;
    const unsigned inner = above ? 0 : number - outer;
    const unsigned begin = room_of(C.outer()) * (number - inner) + room_of(C.inner()) * inner;
    const unsigned found = above ? list_quarters<C, C.outer()>(sets[number], boards + begin)
                                 : list_quarters<C, C.inner()>(sets[number], boards + begin);
    if (lane == 0) spans[sets[number]] = {begin, begin + found};
    for (unsigned i = lane; (C.outer() == C.inner() || !above) && i - lane < found; i += kWarp) {
        const Quarter own = i < found ? boards[begin + i] : Quarter{0, 0};
        const unsigned rising = own.x % (1u << kCrossed) >> C.inner();
        const unsigned falling = (own.y & C.board()) << C.outer();
        unsigned of_bit[2] = {0, 0};
        for (unsigned bit = 0; bit < C.n + C.outer(); ++bit) {
            const unsigned up = __ballot_sync(kAllLanes, rising >> bit & 1);
            const unsigned down = __ballot_sync(kAllLanes, falling >> bit & 1);
            if (lane == bit) of_bit[0] = up, of_bit[1] = down;
        }
        unsigned* const to = columns + 2 * size_t(begin + i) - lane;
        to[0] = of_bit[0], to[kWarp] = of_bit[1];
    }
}

template <Middle C> struct Lister {
    static constexpr unsigned kOuter = C.outer(), kInner = C.inner();
    static constexpr unsigned kStaged = 256;  // pairs that wait
    const Quarter* boards;
    const unsigned* columns;
    Half* halves;
    unsigned room;
    unsigned* found;
    uint2* stage;  // of this warp: the numbers of an upper and a lower quarter
    bool lower;    // of which side the set is, where it matters
    Half seen = 0;

    // The word of a half whose last row meets these diagonals.
    __device__ Half word(unsigned rising, unsigned falling) const {
        return ((rising & C.board()) << 1 & C.board()) | Half((falling & C.board()) >> 1) << C.n;
    }
    __device__ void keep(Half half, unsigned place, unsigned crossed) {
        seen |= half;
        if constexpr (kListed<C>) {
            Members<C>{nullptr, 0, lower, kAnyRow, 0, 0, 0}.take(half);
            if (!lower) half = spread<C>(half);
        } else half |= Half(crossed) << kRow;
        if (place < room) halves[place] = half;
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
            const unsigned row =
                crossed == kOuter + kNowhere && (queen & kMiddle<C>) ? Row : crossed;
            if constexpr (Row + 1 < C.half())
                walk<Row + 1>(begin, left ^ queen, up << 1, down, row);
            else keep(word(up, unsigned(down >> Row)), atomicAdd(found, 1), row);
        }
    }
    // All pairs of the quarters of picks, of which each lane has one if it is `there`. The items of a
    // pick are its quarters above with 32 below each, at least one, so that no two picks begin at the
    // same one; a lane takes an item, and looks up which below it meets.
    __device__ void combine(Span above, Span below, bool there) {
        constexpr bool kOne = room_of(kInner) == kWarp;  // item of each quarter
        const unsigned lane = lane_number(), many = above.y - above.x;
        const unsigned size = many == 0 ? 0 : below.y - below.x;
        const unsigned items = there ? max(many * ((size + kWarp - 1) / kWarp), 1) : 0;
        const unsigned sizes = many << 16 | size;
        const float share = 1.0f / max(many, 1);
        unsigned staged = 0, picks = 0, total, start = before(items, total);
        if (!there) start = ~0u;
        for (unsigned base = 0; base < total; base += kWarp) {
            const unsigned place = min(lane, total - 1 - base);
            const unsigned begin = any_of_warp(start - base < kWarp ? 1u << (start - base) : 0);
            const unsigned pick = picks + __popc(begin & (2u << place) - 1) - 1;
            picks += __popc(begin);
            const unsigned own = base + place - __shfl_sync(kAllLanes, start, pick);
            const unsigned of = __shfl_sync(kAllLanes, sizes, pick);
            const unsigned chunk = kOne ? 0 : (own + 0.5f) * __shfl_sync(kAllLanes, share, pick);
            const unsigned upper = __shfl_sync(kAllLanes, above.x, pick) + own - chunk * (of >> 16);
            const unsigned first = __shfl_sync(kAllLanes, below.x, pick) + chunk * kWarp;
            const unsigned left = of % (1u << 16) - chunk * kWarp;
            const unsigned* column = columns + 2 * size_t(first);
            asm("" : "+l"(column));  // one instruction adds a bit
            unsigned met = lane > place ? ~0u : left < kWarp ? ~0u << left : 0;
            if (C.n > 15 || left != 0) {  // on four columns and more there always are some
                Quarter queens = __ldg(boards + upper);
                queens.x %= 1u << kCrossed;
                for (unsigned row = 0; row < kOuter; ++row) {
                    const unsigned up = last_of(queens.x), down = last_of(queens.y);
                    queens.x ^= 1u << up, queens.y ^= 1u << down;
                    met |= __ldg(column + up) | __ldg(column + kWarp + down);
                }
            }
            for (unsigned hits = ~met;;) {
                unsigned more, to = min(staged + before(__popc(hits), more), kStaged);
#pragma unroll 1
                for (const unsigned end = min(to + __popc(hits), kStaged); to < end; ++to) {
                    const unsigned lower = last_of(hits);
                    hits ^= 1u << lower;
                    stage[to] = {upper, first + lower};
                }
                staged += more;
                if (staged < kStaged) break;
                make(kStaged), staged = 0;  // and then those that found no place
            }
        }
        make(staged);
    }
    // Makes the halves of staged pairs.
    __device__ void make(unsigned staged) {
        __syncwarp();
        const unsigned base = warp_take(found, staged);
        for (unsigned i = lane_number(); i < staged; i += kWarp) {
            const Quarter own = __ldg(boards + stage[i].x), other = __ldg(boards + stage[i].y);
            const unsigned row = own.x >> kCrossed;
            keep(word((own.x << kInner) | other.x,
                      (own.y >> (C.half() - 1)) | (other.y >> (kInner - 1))),
                 base + i, row != kNowhere ? row : kOuter + (other.x >> kCrossed));
        }
        __syncwarp();
    }
};

// A block lists the half boards on a set of columns: of `count` from `first` on. A list of more than
// `room` halves has only so many written, and its true size. With kListed the sets are those of both
// sides of groups in turns, from number `group` on.
template <Middle C>
__global__ void __launch_bounds__(C.list_threads(), C.list_blocks())
    list(const unsigned* sets, const unsigned* picks, const Span* spans, const Quarter* boards,
         const unsigned* columns, unsigned first, unsigned count, unsigned room, unsigned group,
         Half* halves, unsigned* sizes, Half* useful, unsigned* counts, Pair* pairs, Half* answer) {
    // At a time a warp takes so many picks of columns for the quarter above that all have as many.
    constexpr unsigned kThreads = C.list_threads(), kWarps = kThreads / kWarp;
    constexpr unsigned kPicks = orders(C.half()) / orders(C.outer()) / orders(C.inner());
    constexpr unsigned kEach = (kPicks - 1) / ((kPicks + kThreads - 1) / kThreads * kWarps) + 1;
    __shared__ unsigned column[C.half()];  // those of the set, one bit each
    __shared__ uint2 stage[kWarps][Lister<C>::kStaged];
    __shared__ unsigned found;
    __shared__ Half seen;
    const unsigned number = blockIdx.x, lane = lane_number(), warp = threadIdx.x / kWarp;
    if (number == 0 && threadIdx.x < kCounts) counts[threadIdx.x] = 0;  // of the batch
    if (number >= count) return;
    const unsigned set = sets[first + number];
    if (threadIdx.x < C.n && (set >> threadIdx.x & 1))
        column[__popc(set & ((1u << threadIdx.x) - 1))] = 1u << threadIdx.x;
    if (threadIdx.x == 0) found = 0, seen = 0;
    __syncthreads();
    halves += size_t(number) * room;
    Lister<C> lister{boards, columns, halves, room, &found, stage[warp], number % 2 == 1};
    if constexpr (C.listing == Listing::walk)
        for (unsigned i = threadIdx.x; i < C.half() * C.half(); i += kThreads)
            lister.walk({column[i % C.half()], column[i / C.half()]}, set);
    else
        for (unsigned base = warp * kEach; base < kPicks; base += kWarps * kEach) {
            const bool there = lane < kEach && base + lane < kPicks;
            const unsigned pick = there ? __ldg(picks + base + lane) : 0;
            unsigned picked = 0;
            for (unsigned i = 0; i < C.half(); ++i) picked |= pick >> i & 1 ? column[i] : 0;
            const Span above = there ? __ldg(spans + picked) : Span{0, 0};
            const Span below = there ? __ldg(spans + (set ^ picked)) : Span{0, 0};
            lister.combine(above, below, there);
        }
    const Half all = any_of_warp(lister.seen);
    if (lane == 0) atomicOr(&seen, all);
    __syncthreads();
    if (threadIdx.x == 0) sizes[number] = found, useful[number] = seen;
    if constexpr (kListed<C>) {
        const unsigned tiles = (found + kWarp - 1) / kWarp, i = found + threadIdx.x;
        if (i < min(tiles * kWarp, room)) halves[i] = filler<C>(lister.lower);
        if (threadIdx.x != 0) return;
        Pair& pair = pairs[number / 2];
        if (!lister.lower) pair.group = number / 2, pair.useful = kDiagonals<C>;
        pair.tile[lister.lower] = size_t(number) * room / kWarp, pair.tiles[lister.lower] = tiles;
        if (found > room) no_room(answer, group + number / 2);
    }
}
