// The fastest loop: several placements between two votes of the warp, on nodes packed for the fewest
// operations. Only Symmetry::full (border.py has the rule).
//
// A packed node:
//   open        columns without a queen, in the top N bits; below them three fields:
//               `kClosed` where the border columns are closed, the row, the ties so far
//   left        twice the left diagonals attacked in its row: one multiply-add gives those of a child
//   right       the right diagonals attacked in its row
//   candidates  columns still to be tried
//
// `left` always blocks the fields, so a child's candidates are one three-input operation. The border
// columns of the rows between `distance` and n - 1 - distance are missing from `open`, and return when
// the row number says so; no row masks its candidates. kClosed is blocked by bit 0 of `right`, which the
// shift to the next row removes: no test ahead says that a row is full whose border columns are still to return.
#pragma once
#include "frontier.cuh"

// One logic instruction for three words; `Table` is its truth table, bit 4 a + 2 b + c. Written out,
// since the compiler rearranges such expressions into more instructions where it shares parts of them.
template <unsigned Table> __device__ __forceinline__ unsigned logic(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(Table));
    return result;
}
__device__ __forceinline__ unsigned without(unsigned a, unsigned b, unsigned c) {
    return logic<0x10>(a, b, c);  // a & ~(b | c)
}
__device__ __forceinline__ unsigned differing(unsigned a, unsigned b, unsigned mask) {
    return logic<0x28>(a, b, mask);  // (a ^ b) & mask
}

// Arithmetic of a step. On Hopper, logic and shifts fill one pipe; multiply-adds have another one.
// `one` is 1, which the compiler must not know: it would undo the multiplications.
template <class P> struct Adder {
    unsigned one, two, minus_one;

    __device__ explicit Adder(unsigned hidden)
        : one(hidden), two(2 * hidden), minus_one(0u - hidden) {}
    __device__ unsigned add(unsigned a, unsigned b) const {
        return P::kAdders == Adders::both ? multiply_add(a, one, b) : a + b;
    }
    // 2 a + b
    __device__ unsigned twice(unsigned a, unsigned b) const {
        return P::kAdders == Adders::both ? multiply_add(a, two, b) : 2 * a + b;
    }
    __device__ static unsigned multiply_add(unsigned a, unsigned b, unsigned c) {
        unsigned result;
        asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
        return result;
    }
    // Without a branch, or a selection before it.
    __device__ void add_if(bool really, unsigned& sum, unsigned a) const {
        if constexpr (P::kAdders == Adders::both) {
            asm("{ .reg .pred really; setp.ne.u32 really, %1, 0;"
                " @really mad.lo.u32 %0, %2, %3, %0; }"
                : "+r"(sum)
                : "r"(unsigned(really)), "r"(a), "r"(one));
        } else {
            asm("{ .reg .pred really; setp.ne.u32 really, %1, 0; @really add.u32 %0, %2, %0; }"
                : "+r"(sum)
                : "r"(unsigned(really)), "r"(a));
        }
    }
};

template <class P> struct Packed {
    static constexpr unsigned kN = P::kN;
    static constexpr unsigned kShift = 32 - kN;
    static constexpr unsigned kFirst = 1u << kShift, kLast = 1u << 31;
    static constexpr unsigned kBorder = kFirst | kLast;
    static constexpr unsigned kInner = (P::kBoard << kShift) & ~kBorder;
    static constexpr unsigned kMiddle = (kN - 1) / 2;  // the largest distance; never closes

    static constexpr unsigned kClosed = 1, kRow = 2, kRows = 31 * kRow, kTie = 64, kTies = 3 * kTie;
    static constexpr unsigned kFields = kRows | kTies;
    static constexpr unsigned kMarked = 1;  // bit 0 of `right`
    static_assert(kShift >= 8, "no room for the fields");

    // On even boards the middle family ties in two rows that follow each other: these differ in one
    // bit of their numbers.
    __device__ static constexpr unsigned row(unsigned number) { return (number + (kN / 2 - 1) % 2) * kRow; }

    // A node for lanes without a job: none of its 16 candidates leaves a child with candidates. It
    // takes as many steps until it runs out, and a vote comes before that.
    static constexpr unsigned kIdle = 0x24924900u;
    __device__ static constexpr Node idle() {
        const unsigned open = kIdle | kIdle << 1;
        return {open, kIdle | kFields, kIdle << 2 | kMarked, open};
    }
    static_assert(P::kSteps <= 15, "the idle node has 16 candidates");
};

// One lane's job: what its family of placements decides.
template <class P> struct Family {
    using K = Packed<P>;
    unsigned opening;   // number of the row in which the border columns return, and tie
    unsigned mask;      // bits of it that count
    unsigned returned;  // what that row adds to `open`
    Rule<P> rule;

    __device__ Node begin(const unsigned* jobs, unsigned job) {
        rule = Rule<P>::of(jobs, job, 0);
        const Attack attack = load_job<P>(jobs, job);
        const unsigned distance = rule.distance, row = __popc(attack.columns & P::kBoard);
        opening = K::row(K::kN - 1 - distance);
        mask = K::kN % 2 == 0 && distance == K::kMiddle ? K::kRows & ~K::kRow : K::kRows;
        unsigned open = (P::kBoard & ~attack.columns) << K::kShift;
        returned = 0;
        if (row > distance && row < K::kN - 1 - distance) {
            returned = open & K::kBorder;
            open &= ~K::kBorder;
            if (returned != 0) {
                open |= K::kClosed;
                returned -= K::kClosed;
            }
        }
        open += K::row(row) + (attack.columns >> kTieShift) * K::kTie;
        const unsigned left = attack.left << K::kShift | K::kFields;
        const unsigned right = attack.right << K::kShift | K::kMarked;
        return {open, 2 * left - K::kFields, right, open & ~(left | right)};
    }
    // Of a solution: `open` of its last row.
    __device__ unsigned weigh(unsigned open) const {
        const unsigned ends = rule.ends() << K::kShift, corners = rule.corners() << K::kShift;
        const unsigned ties = (open & K::kTies) / K::kTie + ((open & ends) != 0);
        return open & corners ? share_of(ties) : 0;
    }
};

// Gives the next jobs to the lanes that are `out` of rows, of which `idle` is the set: `job` is this
// lane's, and `some` whether there was one.
template <class P, Assignment A = P::kAssignment> struct Refill {
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
template <class P> struct Refill<P, Assignment::warp_pool> {
    static constexpr unsigned kShare = 128;
    unsigned next = 0, end = 0, below;
    bool dry = false;

    __device__ explicit Refill(unsigned lane) : below((1u << lane) - 1u) {}
    template <class S>
    __device__ void operator()(S& source, unsigned idle, bool out, bool& some, unsigned& job) {
        unsigned mine = next + __popc(idle & below);
        next += __popc(idle);
        if (next > end && !dry) {
            const unsigned fresh = source.feed.share(kShare);
            if (mine >= end) mine += fresh - end;
            next += fresh - end;
            end = fresh + kShare;
            dry = fresh >= source.feed.count;
        }
        if (out) {
            job = mine;
            some = mine < source.feed.count;
        }
    }
};

template <class P, class F, class Probe> struct Walker {
    using K = Packed<P>;
    using Rows = typename StackOf<P, F>::Type;
    Source<P, Probe>& source;
    Rows rows;
    Adder<P> adder;
    typename Rows::Cursor bottom, top;
    Node node;
    Family<P> family;
    Refill<P> refill;
    unsigned job = 0;
    bool busy = true;  // there may be a next job
    bool began = false;
    unsigned found, newest;  // addresses: of the solutions since the last vote, and of the next one

    __device__ Walker(F& frame, Source<P, Probe>& jobs, unsigned hidden)
        : source(jobs),
          rows{frame, P::kAdders == Adders::both ? hidden : 1},
          adder(hidden),
          refill(threadIdx.x % 32) {
        __shared__ unsigned leaves[P::kSteps * P::kBlockSize];
        found = newest = static_cast<unsigned>(__cvta_generic_to_shared(leaves + threadIdx.x));
        bottom = top = rows.bottom();
        family = {};
        family.opening = ~0u;
        rest();
    }
    __device__ void rest() {
        node = K::idle();
        top = bottom;
        rows.push_if(true, top, node);
        top = bottom;
    }
    // A job without candidates leaves the lane idle until the next vote.
    __device__ void begin() {
        source.probe.job_begins(job);
        began = true;
        const Node first = family.begin(source.jobs, job);
        if (first.candidates == 0) return;
        node = first;
        top += Rows::kStep;  // above the idle node
    }
    // False when no lane of the warp has a job.
    __device__ bool vote() {
        const unsigned idle = __ballot_sync(~0u, top == bottom);
        if (idle != 0) {
            const bool out = top == bottom;
            if (out && began) source.probe.job_ends();
            began = began && !out;
            refill(source, idle, out, busy, job);
            if (out) {
                rest();
                if (busy) begin();
            }
        }
        return idle != ~0u || __any_sync(~0u, busy);
    }
    __device__ void step() {
        if (top != bottom) source.probe.iteration(true);
        const unsigned less = adder.add(node.candidates, ~0u);
        const unsigned queen = without(node.candidates, less, 0);
        const unsigned apart = differing(node.open, family.opening, family.mask);
        const bool tie = logic<0xea>(queen, K::kInner, apart) == 0;  // (queen & inner) | apart
        node.candidates &= less;
        rows.push_if(node.candidates != 0, top, node);
        const unsigned left = queen * 2 + node.left;
        // Not a sum: diagonals that have left the board lie below it, and would carry.
        const unsigned right = logic<0xfe>(queen, node.right, 2 * K::kMarked);
        unsigned open = node.open - queen + K::kRow;
        adder.add_if(differing(open, family.opening, family.mask) == 0, open, family.returned);
        adder.add_if(tie, open, K::kTie);
        node.open = open;
        node.left = adder.twice(left, 0u - K::kFields);
        node.right = right >> 1;
        node.candidates = without(open, left, node.right);
        bool stands = node.candidates != 0;
        if constexpr (P::kAhead >= 2) stands = stands & (without(open, node.left, right >> 2) != 0);
        if constexpr (P::kAhead >= 3) {
            const unsigned further = adder.twice(node.left, 0u - K::kFields);
            const bool none = differing(open, K::row(K::kN - 2), K::kRows) == 0;  // there is no such row
            stands = stands & ((without(open, further, right >> 3) != 0) | none);
        }
        const bool last = differing(open, K::row(K::kN - 1), K::kRows) == 0;
        keep_if(last & (node.candidates != 0), open);
        rows.pop_if(!(stands & !last), top, node);
    }
    // Solutions are weighed at the next vote: a branch here would be taken by one lane in thirty.
    __device__ void keep_if(bool solution, unsigned open) {
        asm volatile(
            "{ .reg .pred solution; setp.ne.u32 solution, %1, 0;"
            " @solution st.shared.u32 [%0], %2; }" ::"r"(newest), "r"(unsigned(solution)), "r"(open)
            : "memory");
        adder.add_if(solution, newest, 4 * P::kBlockSize);
    }
    __device__ unsigned weigh() {
        unsigned sum = 0;
        for (unsigned leaf = found; __any_sync(~0u, leaf < newest); leaf += 4 * P::kBlockSize) {
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

template <class P, class F, class Probe>
__device__ typename P::Counter search_unrolled(F& frame, Source<P, Probe>& source, unsigned hidden) {
    static_assert(P::kBlockSize % 32 == 0, "whole warps vote");
    typename P::Counter count = 0;
    Walker<P, F, Probe> walker(frame, source, hidden);
    while (walker.vote()) {
#pragma unroll
        for (int k = 0; k < P::kSteps; ++k) walker.step();
        count += walker.weigh();
    }
    return count;
}

template <class P, class F, class Probe>
__device__ __forceinline__ typename P::Counter search(F& frame, Source<P, Probe>& source,
                                                       unsigned hidden) {
    constexpr Loop kForm = P::kLoop;
    if constexpr (kForm == Loop::somers) return search_somers<P>(frame, source);
    else if constexpr (kForm == Loop::irrc) return search_irrc<P>(frame, source);
    else if constexpr (kForm == Loop::branchy || kForm == Loop::place_first)
        return search_two_way<P>(frame, source);
    else if constexpr (kForm == Loop::registers || kForm == Loop::siblings)
        return search_by_branches<P>(frame, source);
    else if constexpr (kForm == Loop::unrolled) return search_unrolled<P>(frame, source, hidden);
    else return search_by_predicates<P>(frame, source);
}
