// Our evaluation: a block takes a rectangle of pairs (x, y), a thread X consecutive x in registers, and
// all walk up the same y. Of the eight distances of a move only (X + 2) / X are new ones: the distances
// from x to y - 1, y and y + 1 are kept, and those between neighbours on the tour are added up once.
// Sums are made in the order of `cost_change`, so that the bits are the same.
#pragma once

#include "../parts.cuh"
#include "distance.cuh"

constexpr unsigned long long NO_BEST = ~0ull;

// A move and its change in one word: the smaller goes first, ties to the lexicographically smaller
// move. Only negative changes are packed; among those the larger bit pattern is the smaller number.
__device__ __forceinline__ unsigned long long packed(float delta, unsigned x, unsigned y) {
    return (unsigned long long)(~__float_as_uint(delta)) << 32 | x << 16 | y;
}
__device__ __forceinline__ float delta_of(unsigned long long key) {
    return __uint_as_float(~unsigned(key >> 32));
}

struct Tile {
    unsigned n, x, y;     // first x of the thread, first y of the block
    unsigned first, rows;  // first row that a thread of the warp has a move in, end of the rows
    const float2* place;     // in shared memory: position y - 1 + i
    const float* taken;      // in shared memory: cost of the edges at position y + i
};

// The best move of a thread's part of the tile that is not above `bound`. A clear tile has y >= x + 2
// everywhere; the others leave out y <= x and take the special case of neighbours.
template <int X, bool Clear>
__device__ __forceinline__ unsigned long long scan(const Tile& tile, const float2* places, float bound) {
    float2 own[X + 2];  // positions x - 1 .. x + X; beyond the tour anything, never used
#pragma unroll
    for (int i = 0; i < X + 2; ++i)
        own[i] = LOAD(places[min(tile.x - 1 + i, tile.n - 1)], part::stand_in<float2>(tile.x + i));
    float taken[X], last[X + 2], here[X + 2], next[X + 2];
#pragma unroll
    for (int i = 0; i < X; ++i) taken[i] = removal(own[i], own[i + 1], own[i + 2]);
#pragma unroll
    for (int i = 0; i < X + 2; ++i) {
        last[i] = distance(own[i], LOAD(tile.place[tile.first], part::stand_in<float2>(tile.y)));
        here[i] = distance(own[i], LOAD(tile.place[tile.first + 1], part::stand_in<float2>(tile.y + 1)));
    }
    unsigned long long best = NO_BEST;
    float sum = 0.0f;  // of all that is read, where there is no arithmetic
    if constexpr (part::memory_only) {
#pragma unroll
        for (int i = 0; i < X + 2; ++i) sum += own[i].x + own[i].y;
        const float2 before = tile.place[tile.first], at = tile.place[tile.first + 1];
        sum += before.x + before.y + at.x + at.y;
    }
    const auto step = [&](float(&last)[X + 2], float(&here)[X + 2], float(&next)[X + 2], unsigned row) {
        const unsigned y = tile.y + row;
        const float2 beyond = LOAD(tile.place[row + 2], part::stand_in<float2>(y));
        const float given = LOAD(tile.taken[row], part::stand_in<float>(y));
        if constexpr (part::memory_only) {
            sum += beyond.x + beyond.y + given;
            return;
        }
        float delta[X];
        float least = 0.0f;
#pragma unroll
        for (int i = 0; i < X + 2; ++i) next[i] = distance(own[i], beyond);
#pragma unroll
        for (int i = 0; i < X; ++i) {
            const float added = __fadd_rn(__fadd_rn(here[i], here[i + 2]), __fadd_rn(last[i + 1], next[i + 1]));
            delta[i] = __fsub_rn(added, __fadd_rn(taken[i], given));
            if (!Clear) {
                const unsigned x = tile.x + i;
                const float neighbours = __fsub_rn(__fadd_rn(here[i], next[i + 1]), __fadd_rn(last[i], next[i + 2]));
                delta[i] = y > x + 1 ? delta[i] : y == x + 1 ? neighbours : 0.0f;
            }
            least = fminf(least, delta[i]);
        }
        if (least <= bound) {  // seldom, once the search has settled
#pragma unroll
            for (int i = 0; i < X; ++i)
                if (delta[i] <= bound) best = min(best, packed(delta[i], tile.x + i, y));
            bound = fminf(bound, least);
        }
    };
    // Three rows at a time, so that the arrays change their roles and nothing is moved. By hand:
    // `#pragma unroll 3` made NVRTC 13.5 leave out the tests for the end between the rows.
    for (unsigned row = tile.first;; row += 3) {
        step(last, here, next, row);
        if (row + 1 >= tile.rows) break;
        step(here, next, last, row + 1);
        if (row + 2 >= tile.rows) break;
        step(next, last, here, row + 2);
        if (row + 3 >= tile.rows) break;
    }
    if constexpr (part::memory_only) return part::bits(sum);
    return best;
}

// The same for a whole block; brings the least key of all blocks into `best`.
template <int X>
__device__ void scan_block(const float2* places, unsigned n, unsigned rows, float threshold,
                           unsigned long long* best) {
    extern __shared__ float2 place[];
    float* const taken = reinterpret_cast<float*>(place + rows + 2);
    const unsigned block_x = 1 + blockIdx.x * blockDim.x * X, y = 2 + blockIdx.y * rows;
    rows = min(rows, n - y);
    if (y + rows <= block_x + 1) return;  // below the diagonal
    for (unsigned i = threadIdx.x; i < rows + 2; i += blockDim.x)
        STORE(place[i], LOAD(places[y - 1 + i == n ? 0 : y - 1 + i], part::stand_in<float2>(y + i)));
    __syncthreads();
    for (unsigned i = threadIdx.x; i < rows; i += blockDim.x) {
        const auto at = [=](unsigned k) { return LOAD(place[k], part::stand_in<float2>(y + k)); };
        STORE(taken[i], ARITHMETIC(removal(at(i), at(i + 1), at(i + 2)),
                                   at(i).x + at(i).y + at(i + 1).x + at(i + 1).y + at(i + 2).x + at(i + 2).y));
    }
    __syncthreads();

    // Beside the diagonal each warp leaves out what lies below it: its x span 32 X positions, those of
    // the block several times as many.
    const unsigned warp_x = block_x + threadIdx.x / 32 * 32 * X;
    if (y + rows <= warp_x + 1) return;
    const unsigned first = warp_x + 1 > y ? warp_x + 1 - y : 0;
    const Tile tile{n, block_x + threadIdx.x * X, y, first, rows, place, taken};
    const bool clear = y >= warp_x + 32 * X + 1;
    unsigned long long key = clear ? scan<X, true>(tile, places, threshold) : scan<X, false>(tile, places, threshold);
    if constexpr (!part::full) {  // once the search has settled, a move to report is rare
        if (part::unforeseen(key)) atomicMin(best, key);
        return;
    }
    if (!__any_sync(0xffffffffu, key != NO_BEST)) return;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) key = min(key, __shfl_xor_sync(0xffffffffu, key, step));
    if (threadIdx.x % 32 == 0) atomicMin(best, key);
}

__device__ __forceinline__ void swap_positions(unsigned* tour, float2* places, unsigned long long key) {
    const unsigned x = unsigned(key) >> 16, y = unsigned(key) & 0xffffu;
    const unsigned city = tour[x];
    tour[x] = tour[y];
    tour[y] = city;
    const float2 place = places[x];
    places[x] = places[y];
    places[y] = place;
}

template <int X>
__global__ void evaluation_tiled(const float2* places, unsigned n, unsigned rows, float threshold,
                                 unsigned long long* best) {
    scan_block<X>(places, n, rows, threshold, best);
}

// One thread: the best move of all blocks is known.
__global__ void apply_best(unsigned* tour, float2* places, unsigned long long* best, float* deltas) {
    const unsigned long long key = *best;
    if (key != NO_BEST) swap_positions(tour, places, key);
    deltas[0] = key == NO_BEST ? 0.0f : delta_of(key);
    *best = NO_BEST;
}

// Words of the search's state on the device.
enum State { tickets, done, evaluations, applied };

// Evaluation whose last block applies the move, so that the next launch needs no word from the host.
// After the search has stopped a launch returns at once.
template <int X>
__global__ void evaluation_resident(unsigned* tour, float2* places, unsigned n, unsigned rows,
                                    float threshold, unsigned long long* best, unsigned* state) {
    if (state[done]) return;  // set only by the last block of an earlier launch
    scan_block<X>(places, n, rows, threshold, best);
    __threadfence();  // this block's part of `best`, before its ticket
    __syncthreads();
    if (threadIdx.x) return;
    if (atomicAdd(&state[tickets], 1u) + 1 < gridDim.x * gridDim.y) return;
    __threadfence();
    const unsigned long long key = atomicExch(best, NO_BEST);
    state[tickets] = 0;
    state[evaluations] += 1;
    if (key == NO_BEST) {
        state[done] = 1;
    } else {
        state[applied] += 1;
        swap_positions(tour, places, key);
    }
}
