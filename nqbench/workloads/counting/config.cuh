// A point of the factor space as a template argument: every choice is made at compile time, so an
// instance carries no branch, register or argument for a choice it did not make.
//
// N, depth, block size and row count are compile-time constants for every system. Two papers need
// that anyway (static shared arrays of N * BLOCK or MAX_BOARD * BLOCK words); for the third, whose
// dynamic versions took them as arguments, it folds the board mask and the row bounds into
// immediates. All systems get the same treatment, so no comparison inside this harness rests on it.
#pragma once

enum class Memory { local, shared_stack, shared, global };
enum class Rows { max, n, remaining };
enum class Allocation { none, fixed, at_launch };
enum class Storage { none, arrays, chunk, records, vector };
enum class Layout { none, per_thread, interleaved, padded };
// `registers`, `siblings` and `selected` are for the ablation only: what each trick of the others
// is worth (docs/count.md). Nobody counts with them.
// clang-format off
enum class Loop {
    somers, branchy, place_first, irrc,                    // search.cuh
    registers, siblings, predicated, selected, lookahead,  // frontier.cuh
    unrolled                                               // unrolled.cuh
};
// clang-format on
enum class Assignment { one_per_thread, strided, contiguous, block_pool, global_pool, warp_pool };
enum class Encoding { rows, base_n, masks, packed };
enum class Symmetry { none, mirror, full };
enum class Adders { none, alu, both };

using Total = unsigned long long;

// nqueens<Config{.n = 18, .depth = 7, ...}>: the factors by their names (factors.py); a factor that
// means nothing next to the others is left out.
struct Config {
    int n, depth;
    int block_size = 128;
    int max_board = 32;
    Memory memory = Memory::shared;
    Rows rows = Rows::remaining;
    Allocation allocation = Allocation::none;
    Storage storage = Storage::none;
    Layout layout = Layout::none;
    Loop loop = Loop::irrc;
    Assignment assignment = Assignment::one_per_thread;
    Encoding encoding = Encoding::masks;
    Symmetry symmetry = Symmetry::mirror;
    // Of Loop::unrolled: which pipes add, steps between two votes, rows that a queen must leave
    // open.
    Adders adders = Adders::none;
    int steps = 0;
    int lookahead = 0;

    __device__ consteval unsigned board() const { return (1u << n) - 1u; }

    // Rows reserved per thread, and which of them are searched. Only `remaining` renumbers.
    __device__ consteval int rows_reserved() const {
        return rows == Rows::max ? max_board : rows == Rows::n ? n : n - depth;
    }
    __device__ consteval int first_row() const { return rows == Rows::remaining ? 0 : depth; }
    __device__ consteval int last_row() const { return first_row() + (n - depth) - 1; }

    // feinbube2010 Listings 4 to 6 dimension the stack two words longer than the mask arrays.
    __device__ consteval int stack_extra() const {
        const bool listed = storage == Storage::none || storage == Storage::arrays;
        return loop == Loop::somers && rows == Rows::max && listed ? 2 : 0;
    }

    // Listing 4 replays the given rows into the arrays; with trimmed rows (Listing 9) or a job
    // that no longer knows its rows there is nothing to replay into, or from.
    __device__ consteval bool replays() const {
        return rows != Rows::remaining && encoding == Encoding::rows;
    }

    __device__ consteval bool takes_more_jobs() const {
        return assignment != Assignment::one_per_thread;
    }

    // zhang2011 puts the full middle column of an odd board into its jobs: those count once, all
    // others twice. The other encodings restrict the second queen instead, so that all jobs weigh
    // the same and the factor is applied once per thread.
    __device__ consteval bool jobs_have_weights() const {
        return symmetry == Symmetry::mirror && encoding == Encoding::masks && n % 2 == 1;
    }
    __device__ consteval unsigned thread_weight() const {
        return symmetry == Symmetry::mirror && !jobs_have_weights() ? 2 : 1;
    }

    // Whether jobs have rows enough that the border columns never close below them (border.py).
    __device__ consteval bool takes_closed_jobs() const { return loop == Loop::unrolled; }
};

// Per-thread solution counter. 18 is the last N whose whole count fits 32 bits, whatever a thread
// is given; Somers' loop keeps the 64-bit counter of its listing.
constexpr int kLastNarrowN = 18;
template <Config C> __device__ consteval auto no_solutions() {
    if constexpr (C.loop == Loop::somers || C.n > kLastNarrowN) return Total{0};
    else return 0u;
}
template <Config C> using Counter = decltype(no_solutions<C>());

template <Config C> __device__ constexpr void check() {
    static_assert(C.n >= 5 && C.n <= 31, "a board row must fit one word");
    static_assert(C.depth >= 2 && C.depth <= C.n - 3, "at least two rows given, three to search");
    static_assert(C.last_row() < C.rows_reserved(), "the board does not fit the rows reserved");
    static_assert(C.symmetry != Symmetry::full || C.encoding == Encoding::masks ||
                      C.encoding == Encoding::packed,
                  "a job without masks has no room for its border queens");
}
