// Our evaluation: a block takes a rectangle of pairs (x, y), a thread X consecutive x in registers,
// and all walk up the same y. Of the eight distances of a move only (X + 2) / X are new ones: the
// distances from x to y - 1, y and y + 1 are kept, and those between neighbours on the tour are
// added up once.
//
// Changes are computed twice. Each move gets a rough one, with the hardware's approximate root. It
// is off by at most `slack` (see `slack.py`), so that a move whose rough change is more than that
// above the best known change cannot be better. The few others are computed again by `cost_change`:
// only its bits choose the move.
#pragma once

#include "../variants.cuh"
#include "../warp.cuh"
#include "distance.cuh"

constexpr unsigned long long kNoBest = ~0ull;
constexpr int kHints = 32;  // one for each lane of the warp that applies a move
constexpr int kGroup = 3;   // rows between two votes
constexpr float kFar = __builtin_bit_cast(float, 0x7f800000u);

// Most threads of a block; more would leave too few registers (`MAX_BLOCK` in levels.py).
template <int X> constexpr int kMostThreads = X < 4 ? 1024 : 512;

// A move and its change in one word: the smaller goes first, ties to the lexicographically smaller
// move. Only negative changes are packed; among those the larger bit pattern is the smaller number.
__device__ __forceinline__ unsigned long long packed(float delta, unsigned x, unsigned y) {
    return (unsigned long long)(~__float_as_uint(delta)) << 32 | x << 16 | y;
}
__device__ __forceinline__ float delta_of(unsigned long long key) {
    return __uint_as_float(~unsigned(key >> 32));
}

__device__ __forceinline__ unsigned long long least_of_warp(unsigned long long key) {
    return warp_all(key, [](unsigned long long a, unsigned long long b) { return min(a, b); });
}

__device__ __forceinline__ float rough_distance(float2 a, float2 b) {
    const float dx = __fsub_rn(a.x, b.x), dy = __fsub_rn(a.y, b.y);
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(__fmaf_rn(dx, dx, __fmul_rn(dy, dy))));
    return root;
}
__device__ __forceinline__ float rough_removal(float2 before, float2 here, float2 after) {
    return __fadd_rn(rough_distance(before, here), rough_distance(here, after));
}

struct Tile {
    unsigned n, x, y;      // first x of the thread, first y of the block
    unsigned first, rows;  // first row that a thread of the warp has a move in, end of the rows
    float slack;
    const float2* places;  // of the tour
    const float2* place;   // in shared memory: position y - 1 + i
    const float* taken;    // in shared memory: rough cost of the edges at position y + i
};

// The best move of a thread in the rows `row + i` with bit i set, if it is not above `bound`.
template <int X>
__device__ __forceinline__ unsigned long long look_closely(const Tile& tile, unsigned row,
                                                           unsigned rows, float bound) {
    unsigned long long best = kNoBest;
    for (; rows; rows &= rows - 1) {
        const unsigned at = row + __ffs(rows) - 1, y = tile.y + at;
        if (at >= tile.rows) break;
        const unsigned end = min(tile.x + X, y);
#pragma unroll 1
        for (unsigned x = tile.x; x < end; ++x) {
            const float delta =
                cost_change(x, y, tile.n, [&](unsigned p) { return tile.places[p]; });
            if (delta <= bound) best = min(best, packed(delta, x, y));
        }
    }
    return best;
}

// The best move of a warp's part of the tile that is not above `bound`. A clear tile has y >= x + 2
// everywhere; the others leave out y <= x and take the special case of neighbours.
template <class Access, int X, bool Clear>
__device__ __forceinline__ unsigned long long scan(const Tile& tile, const float2 (&own)[X + 2],
                                                   float bound) {
    float taken[X], last[X + 2], here[X + 2], next[X + 2];
#pragma unroll
    for (int i = 0; i < X; ++i) taken[i] = rough_removal(own[i], own[i + 1], own[i + 2]);
#pragma unroll
    for (int i = 0; i < X + 2; ++i) {
        last[i] =
            rough_distance(own[i], Access::load(tile.place, tile.first, stand_in<float2>(tile.y)));
        here[i] = rough_distance(
            own[i], Access::load(tile.place, tile.first + 1, stand_in<float2>(tile.y + 1)));
    }
    unsigned long long best = kNoBest;
    float limit = __fadd_ru(bound, tile.slack);
    float sum = 0.0f;  // of all that is read, in the variant without arithmetic
    if constexpr (Access::kMemoryOnly) {
#pragma unroll
        for (int i = 0; i < X + 2; ++i) sum += own[i].x + own[i].y;
        const float2 before = tile.place[tile.first], at = tile.place[tile.first + 1];
        sum += before.x + before.y + at.x + at.y;
    }
    // Whether a move of the row may be the best one.
    const auto step = [&](float (&last)[X + 2], float (&here)[X + 2], float (&next)[X + 2],
                          unsigned row) {
        const unsigned y = tile.y + row;
        const float2 beyond = Access::load(tile.place, row + 2, stand_in<float2>(y));
        const float given = Access::load(tile.taken, row, stand_in<float>(y));
        if constexpr (Access::kMemoryOnly) {
            sum += beyond.x + beyond.y + given;
            return false;
        }
#pragma unroll
        for (int i = 0; i < X + 2; ++i) next[i] = rough_distance(own[i], beyond);
        float least;  // of all changes, without `given`
#pragma unroll
        for (int i = 0; i < X; ++i) {
            const float added =
                __fadd_rn(__fadd_rn(here[i], here[i + 2]), __fadd_rn(last[i + 1], next[i + 1]));
            float rough = __fsub_rn(added, taken[i]);
            if (!Clear) {
                // The edge between neighbours is in both sums of what is taken, but stays.
                const unsigned x = tile.x + i;
                rough = __fadd_rn(rough, y > x + 1 ? 0.0f : y == x + 1 ? 2.0f * here[i + 1] : kFar);
            }
            least = i ? fminf(least, rough) : rough;
        }
        if constexpr (Access::kMathOnly) sum = fminf(sum, __fsub_rn(least, given));
        return !(least > __fadd_ru(limit, given));  // also if there is a NaN
    };
    // Three rows at a time, so that the arrays change their roles and nothing is moved, and that
    // the roots of one row need not wait for the vote on the row before.
    for (unsigned row = tile.first; row < tile.rows; row += kGroup) {
        const unsigned first = step(last, here, next, row);
        const unsigned second = step(here, next, last, row + 1);
        const unsigned third = step(next, last, here, row + 2);
        if constexpr (Access::kFull) {
            const unsigned rows = first | second << 1 | third << 2;
            if (__any_sync(kAllLanes, rows)) {  // seldom: see `hints`
                best = least_of_warp(min(best, look_closely<X>(tile, row, rows, bound)));
                if (best != kNoBest) bound = delta_of(best);
                limit = __fadd_ru(bound, tile.slack);
            }
        }
    }
    if constexpr (!Access::kFull) return bits(sum);
    return best;
}

// Whether a block's tile has no move at all.
template <int X>
__device__ __forceinline__ bool below_diagonal(unsigned n, unsigned rows) {
    return min(2 + (blockIdx.y + 1) * rows, n) <= 2 + blockIdx.x * blockDim.x * X;
}

// The same for a whole block; brings the least key of all blocks into `best`. What is there already
// is a move of this tour. What a warp reports becomes a hint: it is likely to be good in the next
// iteration, too.
template <class Access, int X>
__device__ void scan_block(const float2* places, unsigned n, unsigned rows, float threshold,
                           float slack, unsigned long long* best, unsigned long long* hints,
                           bool stopped = false) {
    extern __shared__ float2 place[];
    float* const taken = reinterpret_cast<float*>(place + rows + kGroup + 1);
    const unsigned block_x = 1 + blockIdx.x * blockDim.x * X, y = 2 + blockIdx.y * rows;
    rows = min(rows, n - y);
    const unsigned x = block_x + threadIdx.x * X;
    float2 own[X + 2];  // positions x - 1 .. x + X; beyond the tour anything, never used
#pragma unroll
    for (int i = 0; i < X + 2; ++i) {
        if constexpr (Access::kMathOnly) own[i] = stand_in<float2>(x + i);
        else own[i] = places[min(x - 1 + i, n - 1)];
    }
    const unsigned long long known =
        Access::load(static_cast<volatile unsigned long long*>(best), 0, kNoBest);
    // Two rows more than there are, of which no vote comes, so that groups may begin anywhere.
    for (unsigned i = threadIdx.x; i < rows + kGroup + 1; i += blockDim.x) {
        const unsigned position = y - 1 + i;
        Access::store(place[i], Access::load(places, position < n ? position : position - n,
                                             stand_in<float2>(y + i)));
    }
    if (stopped) return;  // asked for only here, so that nothing above waits for the answer
    __syncthreads();
    for (unsigned i = threadIdx.x; i < rows + kGroup - 1; i += blockDim.x) {
        const auto at = [=](unsigned k) { return Access::load(place, k, stand_in<float2>(y + k)); };
        Access::store(taken[i],
                      Access::result(i < rows ? rough_removal(at(i), at(i + 1), at(i + 2)) : -kFar,
                                     at(i).x + at(i).y + at(i + 1).x + at(i + 1).y + at(i + 2).x +
                                         at(i + 2).y));
    }
    __syncthreads();

    // Beside the diagonal each warp leaves out what lies below it: its x span 32 X positions, those
    // of the block several times as many.
    const unsigned warp_x = block_x + threadIdx.x / kWarp * kWarp * X;
    if (y + rows <= warp_x + 1) return;
    const unsigned first = warp_x + 1 > y ? warp_x + 1 - y : 0;
    const Tile tile{n, x, y, first, rows, slack, places, place, taken};
    const float bound = fminf(threshold, delta_of(known));
    const bool clear = y >= warp_x + 32 * X + 1;
    const unsigned long long key =
        clear ? scan<Access, X, true>(tile, own, bound) : scan<Access, X, false>(tile, own, bound);
    if constexpr (!Access::kFull) {
        if (unforeseen(key)) atomicMin(best, key);
        return;
    }
    if (key == kNoBest || threadIdx.x % kWarp) return;
    atomicMin(best, key);
    const unsigned warp =
        (blockIdx.y * gridDim.x + blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    // Warps may share a place, and any of their hints will do.
    *static_cast<volatile unsigned long long*>(&hints[warp % kHints]) = key;
}

// One warp: swaps the positions of a key and gives the best hint that is still true, so that the
// next evaluation may start from it. A hint's change holds until a swap touches its positions or
// those beside.
__device__ __forceinline__ unsigned long long swap_positions(unsigned* tour, float2* places,
                                                             volatile unsigned long long* hints,
                                                             unsigned long long key) {
    const unsigned x = unsigned(key) >> 16, y = unsigned(key) & 0xffffu;
    unsigned long long hint = hints[threadIdx.x];
    if (threadIdx.x == 0) {
        const unsigned x_city = tour[x], y_city = tour[y];
        const float2 x_place = places[x], y_place = places[y];
        tour[x] = y_city;
        tour[y] = x_city;
        places[x] = y_place;
        places[y] = x_place;
    }
    const auto touches = [=](unsigned position) {
        return position + 1 - x <= 2 || position + 1 - y <= 2;
    };
    if (touches(unsigned(hint) >> 16) || touches(unsigned(hint) & 0xffffu)) {
        hint = kNoBest;
        hints[threadIdx.x] = hint;
    }
    return least_of_warp(hint);
}

template <class Access, int X>
__global__ void __launch_bounds__(kMostThreads<X>, 1)
    evaluation_tiled(const float2* places, unsigned n, unsigned rows, float threshold, float slack,
                     unsigned long long* best, unsigned long long* hints) {
    if (!below_diagonal<X>(n, rows))
        scan_block<Access, X>(places, n, rows, threshold, slack, best, hints);
}

// One warp: the best move of all blocks is known.
__global__ void apply_best(unsigned* tour, float2* places, unsigned long long* best,
                           unsigned long long* hints, float* deltas) {
    const unsigned long long key = *best;
    const unsigned long long next =
        key == kNoBest ? kNoBest : swap_positions(tour, places, hints, key);
    if (threadIdx.x) return;
    deltas[0] = key == kNoBest ? 0.0f : delta_of(key);
    *best = next;
}

// Words of the search's state on the device.
enum State { tickets, done, evaluations, applied };

// Evaluation whose last block applies the move, so that the next launch needs no word from the
// host. After the search has stopped a launch returns at once. `blocks` have moves.
template <int X>
__global__ void __launch_bounds__(kMostThreads<X>, 1)
    evaluation_resident(unsigned* tour, float2* places, unsigned n, unsigned rows, float threshold,
                        float slack, unsigned long long* best, unsigned long long* hints,
                        unsigned* state, unsigned blocks) {
    if (below_diagonal<X>(n, rows)) return;
    const bool stopped = state[done];  // set only by the last block of an earlier launch
    scan_block<Full, X>(places, n, rows, threshold, slack, best, hints, stopped);
    if (stopped) return;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    unsigned ticket = 0;
    if (threadIdx.x == 0) {
        __threadfence();  // this block's part of `best` and `hints`, before its ticket
        ticket = atomicAdd(&state[tickets], 1u);
    }
    if (__shfl_sync(kAllLanes, ticket, 0) + 1 < blocks) return;
    __threadfence();
    const unsigned long long key = *static_cast<volatile unsigned long long*>(best);
    const unsigned long long next =
        key == kNoBest ? kNoBest : swap_positions(tour, places, hints, key);
    if (threadIdx.x) return;
    *best = next;
    state[tickets] = 0;
    atomicAdd(&state[evaluations], 1u);  // the previous value is not used
    atomicAdd(&state[key == kNoBest ? done : applied], 1u);
}
