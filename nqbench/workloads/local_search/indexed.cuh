// The paper's two kernels (section 5 and appendix A): moves by number, best of each thread to
// global memory, one block that chooses and applies. Every version is one setting of the template
// arguments.
#pragma once

#include "../variants.cuh"
#include "distance.cuh"
#include "mapping.cuh"

enum class Moves { consecutive, strided };
enum class Reduction { consecutive, strided };
enum class Unroll { none, full };

constexpr unsigned kNoMove = 0xffffffffu;

// Best move of each thread, the first of equals. A number that the mapping sends outside the
// triangle is counted in `invalid` and left out: the paper's program reads out of bounds there.
template <class Access, Moves M, Mapping P>
__global__ void evaluation(const unsigned* tour, const float2* cities, unsigned n, unsigned moves,
                           float* deltas, unsigned* best_moves, unsigned long long* invalid) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned threads = gridDim.x * blockDim.x;
    const unsigned share = (moves + threads - 1) / threads;
    const unsigned first = M == Moves::consecutive ? thread * share : thread;
    const unsigned step = M == Moves::consecutive ? 1 : threads;
    const unsigned end = M == Moves::consecutive ? min(first + share, moves) : moves;
    const auto city = [=](unsigned position) {
        if constexpr (Access::kMathOnly) return stand_in<float2>(position);
        else return cities[tour[position]];
    };
    const Index<P> positions(n);

    float best = 0.0f;
    unsigned best_move = kNoMove;
    for (unsigned k = first; k < end; k += step) {
        const Positions move = positions(k);
        if (!valid(move, n)) {
            atomicAdd(invalid, 1ull);
            continue;
        }
        if constexpr (Access::kMemoryOnly) {
            best += coordinates(move.x, move.y, n, city);
            continue;
        }
        const float delta = cost_change(move.x, move.y, n, city);
        if (delta < best) {
            best = delta;
            best_move = k;
        }
    }
    Access::store(deltas[thread], best);
    Access::store(best_moves[thread], best_move);
}

// Whether (delta, move) goes before another: ties go to the smaller number, whatever the order of
// comparisons, so that every version takes the same move.
__device__ __forceinline__ bool before(float delta, unsigned move, float other,
                                       unsigned other_move) {
    return delta < other || (delta == other && move < other_move);
}

template <int Size> struct Shared {
    float delta[Size];
    unsigned move[Size];
    __device__ void combine(unsigned t, unsigned other) {
        if (before(delta[other], move[other], delta[t], move[t])) {
            delta[t] = delta[other];
            move[t] = move[other];
        }
    }
};

// Leaves the best of the block in element 0.
template <Unroll U, int Size> __device__ void reduce_block(Shared<Size>& best) {
    const unsigned t = threadIdx.x;
    if (U == Unroll::none) {
#pragma unroll 1
        for (unsigned half = Size / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t < half) best.combine(t, t + half);
        }
    } else {
#pragma unroll
        for (unsigned half = Size / 2; half >= 32; half /= 2) {
            __syncthreads();
            if (t < half) best.combine(t, t + half);
        }
        if (t < 32) {  // one warp is left: no block barrier any more
#pragma unroll
            for (unsigned half = Size / 2 < 16 ? Size / 2 : 16; half > 0; half /= 2) {
                __syncwarp();
                if (t < half) best.combine(t, t + half);
            }
        }
    }
}

// Chooses among `count` moves and applies the best, unless it is above the threshold at which the
// search stops. The best change goes to deltas[0], where the host looks for it.
template <Reduction R, Unroll U, Mapping P, int Size>
__global__ void apply(unsigned* tour, unsigned n, unsigned count, float* deltas,
                      const unsigned* moves, float threshold) {
    __shared__ Shared<Size> best;
    const unsigned t = threadIdx.x;
    const unsigned share = (count + Size - 1) / Size;
    const unsigned first = R == Reduction::consecutive ? t * share : t;
    const unsigned step = R == Reduction::consecutive ? 1 : Size;
    const unsigned end = R == Reduction::consecutive ? min(first + share, count) : count;
    float delta = 0.0f;
    unsigned move = kNoMove;
    for (unsigned i = first; i < end; i += step) {
        const float other = deltas[i];
        if (before(other, moves[i], delta, move)) {
            delta = other;
            move = moves[i];
        }
    }
    best.delta[t] = delta;
    best.move[t] = move;
    reduce_block<U, Size>(best);
    if (t == 0) {
        if (best.delta[0] <= threshold) {
            const Positions p = Index<P>(n)(best.move[0]);
            const unsigned city = tour[p.x];
            tour[p.x] = tour[p.y];
            tour[p.y] = city;
        }
        deltas[0] = best.delta[0];
    }
}
