// Conflicts in O(n): count the queens of every diagonal; c queens on one make c(c-1)/2 conflicts.
//
// The sum adds, for each queen, how many were counted on her diagonals before: 0 + 1 + ... + (c-1) =
// c(c-1)/2, in whatever order they arrive, and the counters need not be read again.
#include "../variants.cuh"
#include "../warp.cuh"
#include "board.cuh"

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
template <class Access, int PerWord>
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
    sum = block_sum(sum);
    if (threadIdx.x == 0) Access::store(conflicts[blockIdx.x], sum);
}

// Counters in global memory: clear, count.

__global__ void clear(uint4* __restrict__ counters, long long quads, Total* conflicts, int boards) {
    const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < quads) counters[k] = make_uint4(0, 0, 0, 0);
    if (k < boards) conflicts[k] = 0;
}

// `blocks` of the grid for each board, each thread four queens; `words` counters per board.
template <class Access>
__global__ void count_global(const int* __restrict__ boards, int n, int pitch, int blocks,
                             long long words, unsigned* counters, Total* conflicts) {
    const int board = blockIdx.x / blocks;
    const int q = (blockIdx.x % blocks) * blockDim.x + threadIdx.x;
    Total met = 0;
    if (q < pitch / 4)
        met = count_four<Access, 1>(boards + (long long)board * pitch, n, q,
                                    counters + board * words);
    met = block_sum(met);
    if (threadIdx.x == 0 && met) Access::atomic_add(conflicts + board, met);
}
