// Half boards as words: as they are listed, on a side of a group, and as `join` looks them up.
//
// A listed half board has 2 N bits: the diagonals that it attacks in the row below, those towards larger
// columns in the low N bits. From bit 58 on stands the first row with a queen in the middle column.
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
    unsigned few;  // a tile agrees in diagonals of which each value has 2^few halves; 32: in none
    __host__ __device__ constexpr unsigned half() const { return n / 2; }
    __host__ __device__ constexpr bool odd() const { return n % 2 == 1; }
    // Rows of the quarter at the border, and of the one at the middle, whose lists are longer.
    __host__ __device__ constexpr unsigned outer() const { return half() / 2; }
    __host__ __device__ constexpr unsigned inner() const { return half() - outer(); }
    __host__ __device__ constexpr unsigned list_threads() const { return n < 21 ? 128 : 512; }
    __host__ __device__ constexpr unsigned list_blocks() const { return n < 21 ? 12 : 4; }
    __host__ __device__ constexpr unsigned board() const { return (1u << n) - 1; }
};

using Half = unsigned long long;

constexpr unsigned kRow = 58, kAnyRow = 15, kDropped = 64;  // kDropped: place of an unused diagonal
enum Count { kTaken, kOrdered, kJoined, kCounts };

template <Middle C> constexpr bool kOrders = C.order != Order::none;
// That halves go to their tiles as they are read, on even boards as they are listed.
template <Middle C> constexpr bool kDirect = !kOrders<C> && C.masks == Masks::none;
template <Middle C> constexpr bool kListed = kDirect<C> && !C.odd();

// Diagonals of a word: those of a half but for the first and the last one, which upper halves never have.
// From which bit on stands its weight, at most 1, of odd boards 2.
template <Middle C> constexpr unsigned kDiagonals = 2 * C.n - 2;
template <Middle C> constexpr unsigned kWeight = C.odd() ? 62 : 63;

// A listed half as the lower one of the board: flipped, as the row below the upper one meets it.
template <Middle C> __device__ Half flipped(Half half) {
    const Half ahead = half & C.board(), behind = half >> C.n;
    if constexpr (C.odd()) return behind | ahead << C.n;
    return behind << 1 | ahead >> 1 << C.n;
}

// A side of a group: halves of a list with all diagonals that it `needs` and none that it `lacks`. Of an
// odd board, upper halves with a queen of the middle column in row `last` count once and those with one
// above it twice.
template <Middle C> struct Members {
    const Half* list;
    unsigned size;
    bool lower;
    unsigned last;
    Half needs, lacks, useful;  // `useful` are the diagonals of any
    // That the board is odd, with a queen of the middle row in this column.
    __device__ void meet(unsigned queen) {
        lacks = (Half(1) << C.n | 1) << queen;
        if (C.symmetry == Symmetry::middle && !lower && queen < C.half()) last = queen;
    }
    // Makes a half of the list a word of this side; whether it is a member.
    __device__ bool take(Half& half) const {
        const unsigned row = half >> kRow;
        half &= (Half(1) << 2 * C.n) - 1;
        if (lower) half = flipped<C>(half);
        const bool member = (half & (needs | lacks)) == needs && row <= last;
        const unsigned weight = lower ? 0 : 1 + (last != kAnyRow && row != last);
        half = half >> 1 | Half(weight) << kWeight<C>;
        return member;
    }
    // Leaves those of the cell of this number: diagonals with `place` 0, 1, .. cut upper and lower
    // halves in turns. A cut gives a cell of halves with the diagonal on one side and without it on
    // the other, and one of halves without it on the first side: each pair that counts is in one.
    __device__ void cut(const unsigned* place, unsigned cuts, unsigned number) {
        for (unsigned bit = 0; bit < kDiagonals<C>; ++bit) {
            if (place[bit] >= cuts) continue;
            const bool own = place[bit] % 2 == lower, has = number >> place[bit] & 1;
            if (own && has) needs |= Half(2) << bit;
            if (own != has) lacks |= Half(2) << bit;
        }
    }
};

template <Middle C> constexpr bool kAgree = C.few < 32;  // halves of a tile, in the first diagonals
// How many blocks of five diagonals `join` looks up, at most.
template <Middle C>
constexpr unsigned kBlocks = C.pairs == PairTest::words ? 1
                             : kAgree<C> && C.n > 18    ? 7
                                                        : (kDiagonals<C> + 4) / 5;

// An upper half as `join` looks it up: its blocks, times four, in bytes, above the weight, so that a
// place is one instruction away.
template <Middle C> __device__ Half spread(Half half) {
    if (C.pairs == PairTest::words) return half;
    Half bytes = half >> kWeight<C>;
    for (unsigned k = 0; k < 8; ++k) bytes |= (half >> 5 * k & 31) << 8 * k + 2;
    return bytes;
}

// The lists of a group or cell as `join` takes them: tiles, and how many diagonals tiles do not agree in.
struct Pair {
    unsigned group, useful, tile[2], tiles[2];
};
// Behind the number of solutions stands how many groups find no room, and then a 1 for each of them.
__device__ void no_room(Half* answer, unsigned group) {
    if (atomicExch(answer + 2 + group, 1) == 0) atomicAdd(answer + 1, 1);
}
// What fills a tile: an upper half without weight, or a lower one with it.
template <Middle C> __device__ Half filler(bool lower) { return Half(lower) << kWeight<C>; }
