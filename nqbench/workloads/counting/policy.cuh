// The factor space as a type: every choice is a template argument, so an instance carries no
// branch, register or argument for a choice it did not make.
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
enum class Loop {
    somers, branchy, place_first, irrc,                     // search.cuh
    registers, siblings, predicated, selected, lookahead,  // frontier.cuh
    unrolled                                               // unrolled.cuh
};
enum class Assignment { one_per_thread, strided, contiguous, block_pool, global_pool, warp_pool };
enum class Encoding { rows, base_n, masks, packed };
enum class Symmetry { none, mirror, full };
enum class Adders { none, alu, both };

using Total = unsigned long long;

// Per-thread solution counter. 18 is the last N whose whole count fits 32 bits, whatever a thread
// is given; Somers' loop keeps the 64-bit counter of its listing.
template <bool Wide> struct CounterOf { using Type = unsigned; };
template <> struct CounterOf<true> { using Type = Total; };
constexpr int kLastNarrowN = 18;

template <int N, int Depth, int BlockSize, int MaxBoard, Memory M, Rows R, Allocation A, Storage S,
          Layout L, Loop Form, Assignment W, Encoding E, Symmetry Y, Adders U, int Steps, int Ahead>
struct Policy {
    static_assert(N >= 5 && N <= 31, "a board row must fit one word");
    static_assert(Depth >= 2 && Depth <= N - 3, "at least two rows given, three to search");

    static constexpr int kN = N;
    static constexpr int kDepth = Depth;
    static constexpr int kBlockSize = BlockSize;
    static constexpr Memory kMemory = M;
    static constexpr Rows kRowRule = R;
    static constexpr Allocation kAllocation = A;
    static constexpr Storage kStorage = S;
    static constexpr Layout kLayout = L;
    static constexpr Loop kLoop = Form;
    static constexpr Assignment kAssignment = W;
    static constexpr Encoding kEncoding = E;
    static constexpr Symmetry kSymmetry = Y;
    // Of Loop::unrolled: which pipes add, steps between two votes, rows that a queen must leave open.
    static constexpr Adders kAdders = U;
    static constexpr int kSteps = Steps;
    static constexpr int kAhead = Ahead;

    static constexpr unsigned kBoard = (1u << N) - 1u;

    // Rows reserved per thread, and which of them are searched. Only `remaining` renumbers.
    static constexpr int kRows = R == Rows::max ? MaxBoard : R == Rows::n ? N : N - Depth;
    static constexpr int kFirstRow = R == Rows::remaining ? 0 : Depth;
    static constexpr int kLastRow = kFirstRow + (N - Depth) - 1;
    static_assert(kLastRow < kRows, "the board does not fit the rows reserved");

    // feinbube2010 Listings 4 to 6 dimension the stack two words longer than the mask arrays.
    static constexpr int kStackExtra =
        Form == Loop::somers && R == Rows::max && S != Storage::chunk && S != Storage::records &&
                S != Storage::vector
            ? 2
            : 0;

    // Listing 4 replays the given rows into the arrays; with trimmed rows (Listing 9) or a job
    // that no longer knows its rows there is nothing to replay into, or from.
    static constexpr bool kReplay = R != Rows::remaining && E == Encoding::rows;

    static constexpr bool kPersistent = W != Assignment::one_per_thread;

    // zhang2011 puts the full middle column of an odd board into its jobs: those count once, all
    // others twice. The other encodings restrict the second queen instead, so that all jobs weigh
    // the same and the factor is applied once per thread.
    static constexpr bool kJobWeights = Y == Symmetry::mirror && E == Encoding::masks && N % 2 == 1;
    static constexpr unsigned kThreadWeight = Y == Symmetry::mirror && !kJobWeights ? 2 : 1;

    static_assert(Y != Symmetry::full || E == Encoding::masks || E == Encoding::packed,
                  "a job without masks has no room for its border queens");

    static constexpr bool kBlockSum = Form == Loop::branchy || Form == Loop::irrc;

    using Counter = typename CounterOf<(Form == Loop::somers || N > kLastNarrowN)>::Type;
};
