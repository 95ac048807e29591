// Conflicts in O(n): count the queens of every diagonal; c queens on one make c(c-1)/2 conflicts.
//
// Tally::arrival adds to the sum, for each queen, how many were counted on her diagonals before:
// 0 + 1 + ... + (c-1) = c(c-1)/2, in whatever order they arrive, and the counters need not be
// read again. Tally::final sums over the counters afterwards.
#include "../variants.cuh"
#include "../warp.cuh"
#include "board.cuh"

enum class Tally { arrival, final };

// A counter as it was, one unit higher afterwards. Without memory: its number.
template <class Access>
__device__ inline unsigned count_one(unsigned* words, unsigned word, unsigned unit) {
    if constexpr (Access::kMathOnly) return word;
    return atomicAdd(words + word, unit);
}

// Counters of 32 bits, or two of 16 bits in a word (which hold up to 65,535 queens).
template <class Access, int PerWord>
__device__ inline unsigned count_queen(unsigned* words, unsigned diagonal) {
    if constexpr (PerWord == 1) return count_one<Access>(words, diagonal, 1u);
    const unsigned shift = (diagonal & 1) * 16;
    return count_one<Access>(words, diagonal >> 1, 1u << shift) >> shift & 0xffff;
}

__device__ inline Total pairs_of(unsigned queens) { return (Total)queens * (queens - 1) / 2; }

template <int PerWord>
__device__ inline Total pairs_in(unsigned word) {
    if constexpr (PerWord == 1) return word ? pairs_of(word) : 0;
    const unsigned low = word & 0xffff, high = word >> 16;
    return (low ? pairs_of(low) : 0) + (high ? pairs_of(high) : 0);
}

// Count the queens of columns 4q, 4q+1, ...; returns those met before on their diagonals. Boards
// are padded to a multiple of four columns, so that four queens are read at once.
template <class Access, int PerWord>
__device__ inline Total count_four(const int* board, int n, int q, unsigned* words) {
    const int4 rows = Access::load(reinterpret_cast<const int4*>(board), q);
    const int row[4] = {rows.x, rows.y, rows.z, rows.w};
    const unsigned other = 2 * (unsigned)n - 1;  // first counter of the falling diagonals
    Total met = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int column = 4 * q + k;
        if (column >= n) break;
        met += count_queen<Access, PerWord>(words, column + row[k]);
        met += count_queen<Access, PerWord>(words, other + (column - row[k] + n - 1));
    }
    return met;
}

// A block per board, counters in shared memory (`words` of them, a multiple of four).
template <class Access, int PerWord, Tally How>
__global__ void count_shared(const int* __restrict__ boards, int n, int pitch, int words,
                             Total* conflicts) {
    extern __shared__ uint4 space[];
    unsigned* counters = reinterpret_cast<unsigned*>(space);
    for (int k = threadIdx.x; k < words / 4; k += blockDim.x)
        Access::store(space[k], make_uint4(0, 0, 0, 0));
    __syncthreads();

    const int* board = boards + (long long)blockIdx.x * pitch;
    Total sum = 0;
    for (int q = threadIdx.x; q < pitch / 4; q += blockDim.x)
        sum += count_four<Access, PerWord>(board, n, q, counters);
    if constexpr (How == Tally::final) {
        __syncthreads();
        sum = 0;
        for (int k = threadIdx.x; k < words; k += blockDim.x)
            sum += pairs_in<PerWord>(Access::load(counters, k));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) Access::store(conflicts[blockIdx.x], sum);
}

// Counters in global memory: clear, count, and for Tally::final sum.

__global__ void clear(uint4* __restrict__ counters, long long quads, Total* conflicts, int boards) {
    const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < quads) counters[k] = make_uint4(0, 0, 0, 0);
    if (k < boards) conflicts[k] = 0;
}

// `blocks` of the grid for each board, each thread four queens; `words` counters per board.
template <class Access, Tally How>
__global__ void count_global(const int* __restrict__ boards, int n, int pitch, int blocks,
                             long long words, unsigned* counters, Total* conflicts) {
    const int board = blockIdx.x / blocks;
    const int q = (blockIdx.x % blocks) * blockDim.x + threadIdx.x;
    Total met = 0;
    if (q < pitch / 4)
        met = count_four<Access, 1>(boards + (long long)board * pitch, n, q,
                                    counters + board * words);
    if constexpr (How == Tally::arrival) {
        met = block_sum(met);
        if (threadIdx.x == 0 && met) Access::atomic_add(conflicts + board, met);
    }
}

// `blocks` of the grid for each board, which share its counters.
__global__ void sum_global(const uint4* __restrict__ counters, int blocks, long long words,
                           Total* conflicts) {
    const int board = blockIdx.x / blocks;
    const uint4* own = counters + board * (words / 4);
    const long long stride = (long long)blocks * blockDim.x;
    Total sum = 0;
    for (long long k = (long long)(blockIdx.x % blocks) * blockDim.x + threadIdx.x; k < words / 4;
         k += stride) {
        const uint4 four = own[k];
        sum +=
            pairs_in<1>(four.x) + pairs_in<1>(four.y) + pairs_in<1>(four.z) + pairs_in<1>(four.w);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0 && sum) atomicAdd(conflicts + board, sum);
}
