// The fastest loop: several placements between two votes of the warp, on nodes packed for the
// fewest operations. Only Symmetry::full (border.py has the rule).
//
// A packed node:
//   open        columns without a queen, in the top N bits; below them three fields:
//               `kClosed` where the border columns are closed, the row, the ties so far
//   left        twice the left diagonals attacked in its row: one multiply-add gives those of a child
//   right       the right diagonals attacked in its row
//   candidates  columns still to be tried
//
// `left` always blocks the fields, so a child's candidates are one three-input operation. The
// border columns of the rows between `distance` and n - 1 - distance are missing from `open`, and
// return when the row number says so; no row masks its candidates. kClosed is blocked by bit 0 of
// `right`, which the shift to the next row removes: no test ahead says that a row is full whose
// border columns are still to return.
#pragma once
#include "frontier.cuh"

// The words of a packed node.
template <unsigned N> struct Word {
    static constexpr unsigned kShift = 32 - N;
    static constexpr unsigned kFirst = 1u << kShift, kLast = 1u << 31;
    static constexpr unsigned kBorder = kFirst | kLast;
    static constexpr unsigned kBoard = ~0u << kShift, kInner = kBoard & ~kBorder;
    static constexpr unsigned kMiddle = (N - 1) / 2;  // the largest distance; never closes

    static constexpr unsigned kClosed = 1, kRow = 2, kRows = 31 * kRow, kTie = 64, kTies = 3 * kTie;
    static constexpr unsigned kFields = kRows | kTies;
    static constexpr unsigned kMarked = 1;  // bit 0 of `right`

    // On even boards the middle family ties in two rows that follow each other: these differ in one
    // bit of their numbers.
    __device__ static constexpr unsigned row(unsigned number) {
        return (number + (N / 2 - 1) % 2) * kRow;
    }

    // A node for lanes without a job: none of its 16 candidates leaves a child with candidates. It
    // takes as many steps until it runs out, and a vote comes before that.
    static constexpr unsigned kIdle = 0x24924900u;
    __device__ static constexpr Node idle() {
        const unsigned open = kIdle | kIdle << 1;
        return {open, kIdle | kFields, kIdle << 2 | kMarked, open};
    }
};

// A job as its first node: `open`, the left diagonals of its row and not of the next one, `right`;
// the border columns that return, with the distance below them.
template <unsigned N>
__device__ __forceinline__ uint4 packed(const Attack& attack, unsigned distance) {
    using K = Word<N>;
    const unsigned row = __popc(attack.columns & (1u << N) - 1u);
    const bool closed = row > distance && row < N - 1 - distance;
    unsigned open = K::kBoard & ~(attack.columns << K::kShift);
    const unsigned returned = closed ? open & K::kBorder : 0;
    open -= returned;
    if (returned != 0) open |= K::kClosed;
    open += K::row(row) + (attack.columns >> kTieShift) * K::kTie;
    return {open, attack.left << K::kShift | K::kFields, attack.right << K::kShift | K::kMarked,
            returned | distance};
}

// What is the same for all jobs of one distance: a row of a table in shared memory.
template <Config C> struct Family {
    using K = Word<C.n>;
    unsigned opening;  // number of the row in which the border columns return, and tie
    unsigned mask;     // bits of it that count
    unsigned corners;  // where the last row's queen may stand
    unsigned ends;     // where she ties

    __device__ static uint4 entry(unsigned distance) {
        const Rule<C> rule{distance};
        const bool two_rows = C.n % 2 == 0 && distance == K::kMiddle;
        return {K::row(C.n - 1 - distance), two_rows ? K::kRows & ~K::kRow : K::kRows,
                rule.corners() << K::kShift, rule.ends() << K::kShift};
    }
    __device__ void load(uint4 entry) {
        opening = entry.x;
        mask = entry.y;
        corners = entry.z;
        ends = entry.w;
    }
    // Of a solution: `open` of its last row.
    __device__ unsigned weigh(unsigned open) const {
        const unsigned ties = (open & K::kTies) / K::kTie + ((open & ends) != 0);
        return open & corners ? share_of(ties) : 0;
    }
};

// One step, in C++. It places the lowest candidate; where she leaves nothing open in one of the
// next C.lookahead rows, the search goes on with the last node of the stack. `stack` and
// `solutions` are the lane's own, one word of `solutions` for the row of each solution found.
template <Config C>
__device__ void plain_step(Node& node, const Family<C>& family, unsigned returned, uint4* stack,
                           unsigned& top, unsigned* solutions, unsigned& found) {
    using K = Word<C.n>;
    const auto at_row = [](unsigned open, unsigned number, unsigned mask = K::kRows) {
        return ((open ^ number) & mask) == 0;
    };
    const unsigned others = node.candidates & (node.candidates - 1);
    const unsigned queen = node.candidates - others;
    node.candidates = others;
    if (others != 0) stack[top++] = {node.open, node.left, node.right, node.candidates};

    const bool on_border = (queen & K::kInner) == 0;
    const bool tie = on_border && at_row(node.open, family.opening, family.mask);
    unsigned open = node.open - queen + K::kRow;
    if (at_row(open, family.opening, family.mask)) open += returned;
    if (tie) open += K::kTie;
    const unsigned diagonals = queen | node.right | 2 * K::kMarked;
    const unsigned below = 2 * queen + node.left, left = 2 * below - K::kFields;
    const Node child{open, left, diagonals >> 1, open & ~below & ~(diagonals >> 1)};

    const bool last = at_row(open, K::row(C.n - 1));
    bool stands = child.candidates != 0 && !last;
    if (C.lookahead >= 2) stands = stands && (open & ~left & ~(diagonals >> 2)) != 0;
    if (C.lookahead >= 3 && !at_row(open, K::row(C.n - 2)))
        stands = stands && (open & ~(2 * left - K::kFields) & ~(diagonals >> 3)) != 0;
    if (last && child.candidates != 0) solutions[found++] = open;
    if (stands) {
        node = child;
    } else {
        const uint4 words = stack[--top];
        node = {words.x, words.y, words.z, words.w};
    }
}

// One step, as instructions: logic and shifts fill one pipe of Hopper, multiply-adds have another
// one, so additions multiply by `one`. The compiler would rearrange the logic into more
// instructions, and branch: `plain_step` says in C++ what this does (a test holds the two
// together). lop3's last operand is the truth table of its three words, bit 4 a + 2 b + c; behind
// `|` it gives whether the result has a bit, combined with one more predicate (compute capability
// 7.0 and later).
//   %0 .. %3  the node: open, left, right, candidates   %10 %11 %12  opening, its mask, returned
//   %4        top of the stack                          %13 %14 %15  one, two, minus_one
//   %5        where the next solution goes              %16 %17      numbers of the last two rows
//   %6 .. %9  the child                                 %18 %19      bytes to the next stack entry, solution
//   %20       the columns inside the border             %21 %22 %23  one row, mark (<< 1), tie
//   %24       -kFields                                  %25          bits of the row's number
// clang-format off
#define NQBENCH_STEP(look_ahead, so_far)                                                                  \
    asm volatile(                                                                                         \
        "{ .reg .pred again, opens, tie, more, stands, none, solution;"                                   \
        " .reg .u32 less, others, queen, word, below, above, further, number;"                            \
        /* the lowest candidate; the node is pushed if there are others */                                \
        " mad.lo.u32 less, %3, %13, -1;"                                                                  \
        " lop3.b32 others, %3, less, 0, 0xc0;"                                                            \
        " setp.ne.u32 again, others, 0;"                                                                  \
        " mad.lo.u32 queen, others, %15, %3;"                                                             \
        " mov.u32 %3, others;"                                                                            \
        " @again st.shared.v4.u32 [%4], {%0, %1, %2, %3};"                                                \
        " @again mad.lo.u32 %4, %13, %18, %4;"                                                            \
        /* tie: no inner column, and the row `opening`: (queen & inner) | ((open ^ opening) & mask) */    \
        " lop3.b32 word, %0, %10, %11, 0x28;"                                                             \
        " lop3.b32 word, queen, %20, word, 0xea;"                                                         \
        " setp.eq.u32 tie, word, 0;"                                                                      \
        /* the next row's number; the border columns return in the row `opening` */                       \
        " sub.u32 %6, %0, queen; add.u32 %6, %6, %21;"                                                    \
        " lop3.b32 word, %6, %10, %11, 0x28;"                                                             \
        " setp.eq.u32 opens, word, 0;"                                                                    \
        " @opens mad.lo.u32 %6, %12, %13, %6;"                                                            \
        " @tie mad.lo.u32 %6, %13, %23, %6;"                                                              \
        /* Not a sum: diagonals that have left the board lie below it, and would carry. */                \
        " lop3.b32 above, queen, %2, %22, 0xfe;"                                                          \
        " shr.u32 %8, above, 1;"                                                                          \
        " mad.lo.u32 below, queen, 2, %1;"                                                                \
        " mad.lo.u32 %7, below, %14, %24;"                                                                \
        " lop3.b32 number, %6, %16, %25, 0x28;"                                                           \
        " setp.ne.u32 more, number, 0;"                                                                   \
        look_ahead " lop3.and.b32 %9|stands, %6, below, %8, 0x10, " so_far ";"                            \
        /* Solutions are weighed at the next vote: a branch here would be taken by one lane in thirty. */ \
        " setp.ne.and.u32 solution, %9, 0, !more;"                                                        \
        " @solution st.shared.u32 [%5], %6;"                                                              \
        " @solution mad.lo.u32 %5, %13, %19, %5;"                                                         \
        " @!stands mad.lo.u32 %4, %15, %18, %4;"                                                          \
        " @!stands ld.shared.v4.u32 {%6, %7, %8, %9}, [%4]; }"                                            \
        : "+r"(node.open), "+r"(node.left), "+r"(node.right), "+r"(node.candidates), "+r"(top),           \
          "+r"(newest), "=&r"(child.open), "=&r"(child.left), "=&r"(child.right),                         \
          "=&r"(child.candidates)                                                                         \
        : "r"(family.opening), "r"(family.mask), "r"(returned), "r"(one), "r"(two),                       \
          "r"(minus_one), "r"(K::row(C.n - 1)), "r"(K::row(C.n - 2)), "n"(kEntry),                        \
          "n"(kSolution), "n"(K::kInner), "n"(K::kRow), "n"(2 * K::kMarked), "n"(K::kTie),                \
          "n"(0u - K::kFields), "n"(K::kRows)                                                             \
        : "memory")
// clang-format on

// A queen must leave a column open in the row after the next one, and in the one below that where
// there is such a row.
#define NQBENCH_SECOND_ROW     \
    " shr.u32 word, above, 2;" \
    " lop3.and.b32 word|stands, %6, %7, word, 0x10, more;"
#define NQBENCH_THIRD_ROW                                    \
    " lop3.b32 number, %6, %17, %25, 0x28;"                  \
    " setp.eq.u32 none, number, 0;"                          \
    " mad.lo.u32 further, %7, %14, %24;"                     \
    " shr.u32 word, above, 3;"                               \
    " lop3.or.b32 word|none, %6, further, word, 0x10, none;" \
    " and.pred stands, stands, none;"

// The same with these instructions. Addresses of shared memory instead of arrays: of the first free
// stack entry (kEntry bytes each) and of the next solution (kSolution bytes apart).
template <Config C, int kEntry, int kSolution>
__device__ __forceinline__ void fast_step(Node& node, const Family<C>& family, unsigned returned,
                                          unsigned& top, unsigned& newest, unsigned one,
                                          unsigned two, unsigned minus_one) {
    using K = Word<C.n>;
    Node child;
    if constexpr (C.lookahead == 1) NQBENCH_STEP("", "more");
    if constexpr (C.lookahead == 2) NQBENCH_STEP(NQBENCH_SECOND_ROW, "stands");
    if constexpr (C.lookahead == 3) NQBENCH_STEP(NQBENCH_SECOND_ROW NQBENCH_THIRD_ROW, "stands");
    node = child;
}
#undef NQBENCH_STEP
#undef NQBENCH_SECOND_ROW
#undef NQBENCH_THIRD_ROW

// Gives the next jobs to the lanes that are `out` of rows, of which `idle` is the set: `job` is
// this lane's, and `some` whether there was one.
template <Config C, Assignment A = C.assignment> struct Refill {
    bool fresh = true;

    __device__ explicit Refill(unsigned) {}
    template <class S>
    __device__ void operator()(S& source, unsigned, bool out, bool& some, unsigned& job) {
        if (!out || !some) return;
        some = fresh ? source.feed.first(job) : source.feed.next(job);
        fresh = false;
    }
};

// A warp takes many jobs from the counter at a time, for all of its lanes.
template <Config C> struct Refill<C, Assignment::warp_pool> {
    static constexpr unsigned kShare = 128;
    unsigned next = 0, end = 0, below;
    bool exhausted = false;

    __device__ explicit Refill(unsigned lane) : below((1u << lane) - 1u) {}
    template <class S>
    __device__ void operator()(S& source, unsigned idle, bool out, bool& some, unsigned& job) {
        unsigned mine = next + __popc(idle & below);
        next += __popc(idle);
        if (next > end && !exhausted) {
            const unsigned fresh = source.feed.share(kShare);
            if (mine >= end) mine += fresh - end;
            next += fresh - end;
            end = fresh + kShare;
            exhausted = fresh >= source.feed.count;
        }
        if (out) {
            job = mine;
            some = mine < source.feed.count;
        }
    }
};

template <Config C, class F, class Probe> struct Walker {
    using K = Word<C.n>;
    static_assert(K::kShift >= 8, "no room for the fields");
    static_assert(C.steps <= 15, "the idle node has 16 candidates");
    static constexpr unsigned kDistances = 16;
    // Below a row with three columns open, at most two of three steps find a solution.
    static constexpr unsigned kMostFound = (2 * C.steps + 2) / 3;
    using Rows = typename StackOf<C, F>::Type;
    Source<C, Probe>& source;
    Rows rows;
    unsigned one, two, minus_one;  // not known to the compiler if multiply-adds are to add
    typename Rows::Cursor bottom, top;
    Node node;
    Family<C> family;
    unsigned returned = 0;  // what the row `opening` adds to `open`
    const uint4* families;
    Refill<C> refill;
    unsigned job = 0;
    bool busy = true;  // there may be a next job
    bool began = false;
    unsigned found, newest;  // addresses: of the solutions since the last vote, and of the next one

    __device__ Walker(F& frame, Source<C, Probe>& jobs, unsigned hidden)
        : source(jobs),
          rows{frame, 1},
          one(C.adders == Adders::both ? hidden : 1),
          two(2 * one),
          minus_one(0u - one),
          refill(threadIdx.x % kWarp) {
        __shared__ uint4 table[kDistances];
        __shared__ unsigned leaves[kMostFound * C.block_size];
        if (threadIdx.x < kDistances) table[threadIdx.x] = Family<C>::entry(threadIdx.x);
        __syncthreads();
        families = table;
        found = newest = static_cast<unsigned>(__cvta_generic_to_shared(leaves + threadIdx.x));
        bottom = top = rows.bottom();
        family = {};
        family.opening = ~0u;
        reset_to_idle();
    }
    __device__ void reset_to_idle() {
        node = K::idle();
        top = bottom;
        rows.push_if(true, top, node);
        top = bottom;
    }
    __device__ uint4 first_node() const {
        if constexpr (C.encoding == Encoding::packed) {
            return __ldg(reinterpret_cast<const uint4*>(source.jobs) + job);
        } else {
            return packed<C.n>(load_masks<C>(source.jobs, job), source.rule(job).distance);
        }
    }
    // A job without candidates leaves the lane idle until the next vote.
    __device__ void begin() {
        source.probe.job_begins(job);
        began = true;
        const uint4 word = first_node();
        const unsigned candidates = word.x & ~(word.y | word.z);
        if (candidates == 0) return;
        node = {word.x, 2 * word.y - K::kFields, word.z, candidates};
        returned = word.w & K::kBorder;
        if (returned != 0) returned -= K::kClosed;
        family.load(families[word.w % kDistances]);
        top += Rows::kStep;  // above the idle node
    }
    // False when no lane of the warp has a job.
    __device__ bool vote() {
        const unsigned idle = __ballot_sync(kAllLanes, top == bottom);
        if (idle != 0) {
            const bool out = top == bottom;
            if (out && began) source.probe.job_ends();
            began = began && !out;
            refill(source, idle, out, busy, job);
            if (out) {
                reset_to_idle();
                if (busy) begin();
            }
        }
        return idle != kAllLanes || __any_sync(kAllLanes, busy);
    }
    __device__ void step() {
        if (top != bottom) source.probe.iteration(true);
        fast_step<C, Rows::kStep, 4 * C.block_size>(node, family, returned, top, newest, one, two,
                                                    minus_one);
    }
    __device__ unsigned weigh() {
        unsigned sum = 0;
        for (unsigned leaf = found; __any_sync(kAllLanes, leaf < newest);
             leaf += 4 * C.block_size) {
            if (leaf < newest) {
                unsigned open;
                asm volatile("ld.shared.u32 %0, [%1];" : "=r"(open) : "r"(leaf) : "memory");
                sum += family.weigh(open);
            }
        }
        newest = found;
        return sum;
    }
};

template <Config C, class F, class Probe>
__device__ Counter<C> search_unrolled(F& frame, Source<C, Probe>& source, unsigned hidden) {
    static_assert(C.block_size % kWarp == 0, "whole warps vote");
    Counter<C> count = 0;
    Walker<C, F, Probe> walker(frame, source, hidden);
    while (walker.vote()) {
#pragma unroll
        for (int k = 0; k < C.steps; ++k) walker.step();
        count += walker.weigh();
    }
    return count;
}
