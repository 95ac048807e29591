// The papers' four loops. Each is one flat loop for all the jobs of a thread: a lane that has
// finished a job fetches the next one inside the loop, while its neighbours continue with theirs.
#pragma once
#include "border.cuh"
#include "frame.cuh"
#include "jobs.cuh"
#include "probe.cuh"

// Everything a loop needs of the world outside its frame.
template <Config C, class Probe> struct Source {
    const unsigned* jobs;
    unsigned light_from;  // first job of weight one, where jobs have weights
    Feed<C> feed;
    Probe& probe;

    __device__ Rule<C> rule(unsigned job) const { return Rule<C>::of(jobs, job, light_from); }
};

__device__ __forceinline__ unsigned lowest(unsigned bits) { return bits & (0u - bits); }

// Attack on the next row, stored there; returns that row's open columns.
template <Config C, class F>
__device__ __forceinline__ unsigned descend(F& frame, const Rule<C>& rule, int from, int to,
                                            unsigned queen) {
    const Attack above{frame.template load<kColumns>(from), frame.template load<kLeft>(from),
                       frame.template load<kRight>(from)};
    const Attack attack = rule.below(above, queen);
    frame.template store<kColumns>(to, attack.columns);
    frame.template store<kLeft>(to, attack.left);
    frame.template store<kRight>(to, attack.right);
    return rule.open(attack);
}

template <Config C, class F>
__device__ __forceinline__ unsigned write_first_row(F& frame, const unsigned* jobs, unsigned job) {
    const Attack attack = load_job<C>(jobs, job);
    const int row = frame.row(C.first_row());
    frame.template store<kColumns>(row, attack.columns);
    frame.template store<kLeft>(row, attack.left);
    frame.template store<kRight>(row, attack.right);
    return Rule<C>::of(jobs, job, 0).open(attack);
}

// Fills the frame down to the first searched row the way Listing 4 does, given rows included;
// returns the open columns of that row.
template <Config C, class F>
__device__ __forceinline__ unsigned replay(F& frame, const unsigned* jobs, unsigned job) {
    const unsigned* queens = jobs + job * C.depth;
    frame.template store<kColumns>(frame.row(0), 0u);
    frame.template store<kLeft>(frame.row(0), 0u);
    frame.template store<kRight>(frame.row(0), 0u);
    frame.push(frame.stack(0), ~0u);
    unsigned open = (1u << (C.n / 2)) - 1u;
    for (int d = 0; d < C.depth; ++d) {
        const unsigned queen = queens[d];
        frame.push(frame.stack(d + 1), open & ~queen);
        open = descend<C>(frame, Rule<C>{}, frame.row(d), frame.row(d + 1), queen);
    }
    return open;
}

// feinbube2010, Listings 4 to 9: candidates of the current row in a register, those of the rows
// above on a stack. The stack's lowest word is a sentinel; popping it ends the job.
template <Config C, class F, class Probe>
__device__ Counter<C> search_somers(F& frame, Source<C, Probe>& source) {
    Counter<C> count = 0;
    unsigned job;
    if (!source.feed.first(job)) return count;

    const int bottom = frame.row(C.last_row());
    const int sentinel = frame.stack(C.replays() ? C.first_row() : 0);
    auto begin = [&]() -> unsigned {
        source.probe.job_begins(job);
        if constexpr (C.replays()) return replay<C>(frame, source.jobs, job);
        frame.push(sentinel, 0u);
        return write_first_row<C>(frame, source.jobs, job);
    };
    unsigned open = begin();
    Rule<C> rule = source.rule(job);
    int row = frame.row(C.first_row());
    int top = sentinel + F::kStackStep;
    for (;;) {
        source.probe.iteration(open != 0);
        if (open == 0) {
            top -= F::kStackStep;
            open = frame.pop(top);
            if (top == sentinel) {
                source.probe.job_ends();
                if (!source.feed.next(job)) break;
                open = begin();
                rule = source.rule(job);
                row = frame.row(C.first_row());
                top = sentinel + F::kStackStep;
            } else {
                row -= F::kStep;
            }
        } else {
            const unsigned queen = lowest(open);
            open ^= queen;
            if (row != bottom) {
                frame.push(top, open);
                top += F::kStackStep;
                open = descend<C>(frame, rule, row, row + F::kStep, queen);
                row += F::kStep;
            } else {
                count += rule.weigh(frame, row, queen);
                top -= F::kStackStep;
                open = frame.pop(top);
                row -= F::kStep;
            }
        }
    }
    return count;
}

// Takes the lowest open column of `row`: counts it in the last row, otherwise fills the row below.
// Returns the cursor to continue with.
template <Config C, class F>
__device__ __forceinline__ int place(F& frame, const Rule<C>& rule, int row, int bottom,
                                     unsigned open, Counter<C>& count) {
    const unsigned queen = lowest(open);
    frame.template store<kFree>(row, open ^ queen);
    if (row == bottom) {
        count += rule.weigh(frame, row, queen);
        return row;
    }
    const unsigned below = descend<C>(frame, rule, row, row + F::kStep, queen);
    frame.template store<kFree>(row + F::kStep, below);
    return row + F::kStep;
}

// zhang2011, Figure 1 (`branchy`: the empty row is tested first) and tanaka2011, Figure 4
// (`place_first`): the same steps, branches swapped. Every step up costs an iteration.
template <Config C, class F, class Probe>
__device__ Counter<C> search_two_way(F& frame, Source<C, Probe>& source) {
    Counter<C> count = 0;
    unsigned job;
    if (!source.feed.first(job)) return count;

    const int top = frame.row(C.first_row());
    const int bottom = frame.row(C.last_row());
    auto begin = [&]() {
        source.probe.job_begins(job);
        frame.template store<kFree>(top, write_first_row<C>(frame, source.jobs, job));
    };
    begin();
    Rule<C> rule = source.rule(job);
    int row = top;
    auto retreat = [&]() -> bool {
        row -= F::kStep;
        if (row < top) {
            source.probe.job_ends();
            if (!source.feed.next(job)) return false;
            begin();
            rule = source.rule(job);
            row = top;
        }
        return true;
    };
    for (;;) {
        const unsigned open = frame.template load<kFree>(row);
        source.probe.iteration(open != 0);
        if constexpr (C.loop == Loop::branchy) {
            if (open == 0) {
                if (!retreat()) break;
            } else {
                row = place<C>(frame, rule, row, bottom, open, count);
            }
        } else {
            if (open != 0) {
                row = place<C>(frame, rule, row, bottom, open, count);
            } else {
                if (!retreat()) break;
            }
        }
    }
    return count;
}

// zhang2011, Figures 3 and 5: the loop itself steps up, the body makes up for it. The tail check
// looks into the row just filled, so that a dead end costs no further iteration. Row 0 of a job
// is left standing only when it has no open column: that is the end of the job.
template <Config C, class F, class Probe>
__device__ Counter<C> search_irrc(F& frame, Source<C, Probe>& source) {
    Counter<C> count = 0;
    unsigned job;
    if (!source.feed.first(job)) return count;

    const int top = frame.row(C.first_row());
    const int bottom = frame.row(C.last_row());
    auto begin = [&]() {
        source.probe.job_begins(job);
        frame.template store<kFree>(top, write_first_row<C>(frame, source.jobs, job));
    };
    begin();
    Rule<C> rule = source.rule(job);
    for (int row = top; row >= top; row -= F::kStep) {
        const unsigned open = frame.template load<kFree>(row);
        source.probe.iteration(open != 0);
        if (open != 0) {
            const unsigned queen = lowest(open);
            frame.template store<kFree>(row, open ^ queen);
            if (row != bottom) {
                const unsigned below = descend<C>(frame, rule, row, row + F::kStep, queen);
                row += F::kStep;
                frame.template store<kFree>(row, below);
                if (below != 0) row += F::kStep;
            } else {
                count += rule.weigh(frame, row, queen);
            }
        }
        if constexpr (C.takes_more_jobs()) {
            if (row == top) {
                source.probe.job_ends();
                if (!source.feed.next(job)) break;
                begin();
                rule = source.rule(job);
                row += F::kStep;
            }
        } else {
            if (row == top) source.probe.job_ends();
        }
    }
    return count;
}
