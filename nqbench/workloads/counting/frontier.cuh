// Loops written for speed: the current row lives in registers, and only rows to come back to are
// stored. Each form takes one step from the one before it:
//
//   registers   every row that is left is stored; branches
//   siblings    a row is stored only if it has another candidate and the queen stands; branches
//   predicated  stored if it has another candidate; loading it back at once after a dead queen costs
//               less than the branches, since both are single predicated accesses
//   selected    as predicated, but a dead queen leaves row and memory alone
//   lookahead   as predicated, but a queen stands only if she also leaves the row after the next one
//               a column; the last row is counted, not entered
#pragma once
#include "search.cuh"

// One row of the path. `open`: columns without a queen, and what else a walk keeps in the top bits.
struct Node {
    unsigned open, left, right, candidates;
};

// How a path goes down: the rule of a symmetry on nodes.
template <Config C, Symmetry Y = C.symmetry> struct Walk {
    unsigned weight;

    __device__ void idle() { weight = 0; }
    template <class S> __device__ Node begin(const S& source, unsigned job) {
        weight = source.rule(job).weight;
        const Attack attack = load_job<C>(source.jobs, job);
        return {C.board() & ~attack.columns, attack.left, attack.right, attack.template open<C>()};
    }
    // Sums instead of disjunctions (the bits are disjoint): additions run beside the logic.
    __device__ Node below(const Node& node, unsigned queen) const {
        const unsigned open = node.open - queen;
        const unsigned left = (node.left + queen) * 2, right = (node.right + queen) >> 1;
        return {open, left, right, open & ~(left | right)};
    }
    __device__ unsigned columns(const Node& node) const { return node.open; }
    __device__ unsigned weigh(const Node&, unsigned) const { return weight; }
};

// The top bits hold the row and the ties, so that one comparison says whether a row may use the
// border columns. Boards over 25 leave no room for the row: there the open columns are counted.
template <Config C> struct Walk<C, Symmetry::full> {
    static constexpr unsigned kN = C.n;
    static constexpr unsigned kBorder = 1u | 1u << (kN - 1);
    static constexpr bool kPacked = kN <= 25;
    static constexpr unsigned kRowShift = kPacked ? 27 : 0;
    static constexpr unsigned kTie = 1u << (kPacked ? 25 : 30);
    static constexpr unsigned kStep = kPacked ? 1u << kRowShift : 0;

    unsigned begin_, inner_, tied_, ends_, corners_;

    __device__ void idle() { begin_ = inner_ = tied_ = ends_ = corners_ = 0; }
    // Rows below the row `distance`, in units of row numbers; a huge number above it.
    __device__ unsigned below_distance(unsigned open) const {
        if constexpr (kPacked) return open - begin_;
        return kN - __popc(open & C.board()) - begin_;
    }
    __device__ unsigned candidates(unsigned open, unsigned left, unsigned right, bool inner) const {
        return open & ~(left | right) & (inner ? C.board() & ~kBorder : C.board());
    }
    template <class S> __device__ Node begin(const S& source, unsigned job) {
        const Rule<C> rule = source.rule(job);
        const unsigned distance = rule.distance;
        ends_ = rule.ends();
        corners_ = rule.corners();
        begin_ = distance << kRowShift;
        tied_ = (kN - 2 * distance) << kRowShift;
        inner_ = 2 * distance + 2 < kN ? (kN - 2 - 2 * distance) << kRowShift : 0;
        const Attack attack = load_job<C>(source.jobs, job);
        unsigned open = C.board() & ~attack.columns;
        open += (attack.columns >> kTieShift) * kTie + C.depth * kStep;
        const unsigned row = C.depth;
        const bool inner = row > distance && row < kN - 1 - distance;
        return {open, attack.left, attack.right,
                candidates(open, attack.left, attack.right, inner)};
    }
    __device__ Node below(const Node& node, unsigned queen) const {
        // Rows distance .. n-1-distance: of these, only the first and the last take border queens.
        const unsigned rows = below_distance(node.open);
        const bool tie = (queen & kBorder) && rows < tied_;
        const unsigned open = node.open - queen + kStep + (tie ? kTie : 0);
        const unsigned left = (node.left + queen) * 2, right = (node.right + queen) >> 1;
        return {open, left, right, candidates(open, left, right, rows < inner_)};
    }
    __device__ unsigned columns(const Node& node) const { return node.open & C.board(); }
    // Of a solution whose queen in the last row is `queen`.
    __device__ unsigned weigh(const Node& node, unsigned queen) const {
        const unsigned ties = (node.open / kTie & 3) + ((queen & ends_) != 0);
        return queen & corners_ ? share_of(ties) : 0;
    }
};

// The rows to come back to, in a frame; a cursor is where the next one goes, and moves with it.
template <Config C, class F> struct Stack {
    static constexpr int kStep = F::kStep;
    using Cursor = int;
    F& frame;
    unsigned one;  // 1

    __device__ Cursor bottom() const { return frame.row(C.first_row()); }
    __device__ void push_if(bool stored, Cursor& top, const Node& node) {
        const Cursor cursor = top;
        top += stored ? kStep : 0;
        if (!stored) return;
        if constexpr (C.storage == Storage::vector) {
            frame.store_row(cursor, {node.open, node.left, node.right, node.candidates});
        } else {
            frame.template store<kColumns>(cursor, node.open);
            frame.template store<kLeft>(cursor, node.left);
            frame.template store<kRight>(cursor, node.right);
            frame.template store<kFree>(cursor, node.candidates);
        }
    }
    __device__ void pop_if(bool loaded, Cursor& top, Node& node) {
        const Cursor cursor = top -= loaded ? kStep : 0;
        if (!loaded) return;
        if constexpr (C.storage == Storage::vector) {
            const uint4 words = frame.load_row(cursor);
            node = {words.x, words.y, words.z, words.w};
        } else {
            node = {frame.template load<kColumns>(cursor), frame.template load<kLeft>(cursor),
                    frame.template load<kRight>(cursor), frame.template load<kFree>(cursor)};
        }
    }
};

// The same in shared memory, by single predicated instructions on shared addresses. The compiler
// would make branches of them, at which the lanes that step back wait until all others do too.
template <Config C, class F> struct PredicatedStack {
    static constexpr int kStep = 4 * F::kStep;
    using Cursor = unsigned;
    F& frame;
    unsigned one;  // 1; the compiler makes an addition of the multiply-add

    __device__ Cursor bottom() const { return frame.address(frame.row(C.first_row())); }
    __device__ void push_if(bool stored, Cursor& top, const Node& node) {
        asm volatile(
            "{ .reg .pred stored; setp.ne.u32 stored, %1, 0;"
            " @stored st.shared.v4.u32 [%0], {%2, %3, %4, %5}; @stored mad.lo.u32 %0, %6, %7, %0; }"
            : "+r"(top)
            : "r"(unsigned(stored)), "r"(node.open), "r"(node.left), "r"(node.right),
              "r"(node.candidates), "n"(kStep), "r"(one)
            : "memory");
    }
    __device__ void pop_if(bool loaded, Cursor& top, Node& node) {
        asm volatile(
            "{ .reg .pred loaded; setp.ne.u32 loaded, %5, 0;"
            " @loaded mad.lo.u32 %4, %6, %7, %4; @loaded ld.shared.v4.u32 {%0, %1, %2, %3}, [%4]; }"
            : "+r"(node.open), "+r"(node.left), "+r"(node.right), "+r"(node.candidates), "+r"(top)
            : "r"(unsigned(loaded)), "n"(-kStep), "r"(one)
            : "memory");
    }
};

template <Config C, class F>
constexpr bool kPredicated = C.loop >= Loop::predicated && C.memory == Memory::shared &&
                             C.storage == Storage::vector && F::kDirect;
template <Config C, class F, bool Direct = kPredicated<C, F>> struct StackOf {
    using Type = Stack<C, F>;
};
template <Config C, class F> struct StackOf<C, F, true> {
    using Type = PredicatedStack<C, F>;
};

// What both searches share: a lane's job, its path in registers, and the rows to come back to.
template <Config C, class F, class Probe> struct Lane {
    using Rows = typename StackOf<C, F>::Type;
    Source<C, Probe>& source;
    Rows rows;
    typename Rows::Cursor bottom, top;  // of the stack; `top` is its first free entry
    Walk<C> walk;
    Node node;
    unsigned job;

    __device__ Lane(F& frame, Source<C, Probe>& jobs) : source(jobs), rows{frame, 1} {
        bottom = top = rows.bottom();
        idle();
    }
    // A row without columns: nothing can be placed in it, or below it, and nothing counts.
    __device__ void idle() {
        node = {0, 0, 0, 0};
        walk.idle();
    }
    // Takes `job`, or the next one after it that has a candidate; false if there is none.
    __device__ bool begin() {
        for (;;) {
            source.probe.job_begins(job);
            node = walk.begin(source, job);
            if (node.candidates != 0) return true;
            if (!next()) return false;
        }
    }
    __device__ bool next() {
        source.probe.job_ends();
        return source.feed.next(job);
    }
    __device__ void push_if(bool stored) { rows.push_if(stored, top, node); }
    // Back to the last row stored; false if there is none.
    __device__ bool pop() {
        const bool stored = top != bottom;
        rows.pop_if(stored, top, node);
        return stored;
    }
    // The same for lanes where `dead`: a row without candidates below the stack (one row is to
    // spare, since the last one is never stored) saves comparing cursors.
    __device__ void guard() {
        rows.push_if(true, bottom, {0, 0, 0, 0});
        top = bottom;
    }
    __device__ bool pop_guarded_if(bool dead) {
        rows.pop_if(dead, top, node);
        return node.candidates != 0;
    }
};

// Places the lowest candidate; `stands` says whether the search goes on below her.
template <Config C, class L>
__device__ __forceinline__ Node place_lowest(L& lane, bool& stands, Counter<C>& count) {
    const unsigned queen = lowest(lane.node.candidates);
    const Node child = lane.walk.below(lane.node, queen);
    lane.node.candidates ^= queen;
    stands = child.candidates != 0;
    if constexpr (C.loop == Loop::lookahead) {
        // Neither may the next row but one be closed, unless the next row is the last.
        const unsigned open = lane.walk.columns(child);
        const bool last = (open & (open - 1)) == 0;
        if (last && stands) count += lane.walk.weigh(child, open);
        stands = stands && !last && (open & ~(child.left * 2 | child.right >> 1)) != 0;
    } else {
        if (lane.walk.columns(child) == 0) count += lane.walk.weigh(child, queen);
    }
    return child;
}

// `registers` and `siblings`.
template <Config C, class F, class Probe>
__device__ Counter<C> search_by_branches(F& frame, Source<C, Probe>& source) {
    Counter<C> count = 0;
    Lane<C, F, Probe> lane(frame, source);
    if (!source.feed.first(lane.job) || !lane.begin()) return count;
    for (;;) {
        source.probe.iteration(lane.node.candidates != 0);
        bool dead = lane.node.candidates == 0;
        if (C.loop == Loop::siblings || !dead) {
            bool stands;
            const Node child = place_lowest<C>(lane, stands, count);
            const bool again = lane.node.candidates != 0;
            if constexpr (C.loop == Loop::registers) {
                lane.push_if(true);
                lane.node = child;
            } else {
                if (stands) {
                    lane.push_if(again);
                    lane.node = child;
                }
                dead = !stands && !again;
            }
        }
        if (dead && !lane.pop() && !(lane.next() && lane.begin())) break;
    }
    return count;
}

// `predicated`, `selected` and `lookahead`. Lanes without a row to come back to fetch their next
// job when the warp votes that there are any: with a branch of their own they would wait for all
// others.
template <Config C, class F, class Probe>
__device__ Counter<C> search_by_predicates(F& frame, Source<C, Probe>& source) {
    constexpr bool kStays = C.loop == Loop::selected;
    Counter<C> count = 0;
    Lane<C, F, Probe> lane(frame, source);
    const unsigned members =
        C.block_size % kWarp == 0 ? kAllLanes : mask_of(warp_lanes<C.block_size>());
    lane.guard();
    bool busy = source.feed.first(lane.job) && lane.begin();
    if (!busy) lane.idle();
    if (!__any_sync(members, busy)) return count;
    for (;;) {
        if (busy) {
            source.probe.iteration(true);
        }
        bool stands;
        const Node child = place_lowest<C>(lane, stands, count);
        const bool again = lane.node.candidates != 0;
        lane.push_if(again && (stands || !kStays));
        if (stands || !kStays) lane.node = child;
        const bool found = lane.pop_guarded_if(!stands && !(kStays && again));
        if (__any_sync(members, !found)) {
            if (!found) {
                lane.top = lane.bottom;
                busy = busy && lane.next() && lane.begin();
                if (!busy) lane.idle();
            }
            if (!__any_sync(members, busy)) break;
        }
    }
    return count;
}
