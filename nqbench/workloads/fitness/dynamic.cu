// Coarse-grained with dynamic parallelism (section 2.8, Algorithms 11 and 12).
#include "board.cuh"

// results[0]: conflicts; results[1]: launches that the device refused, whose pairs are missing.

__device__ inline void compare(const int* board, int n, int i, int from, int count,
                               Total* results) {
    const int own = board[i], end = min(from + count, n);
    for (int j = from; j < end; ++j)
        if (conflict(own, board[j], j - i)) atomicAdd(results, 1ull);
}

struct Row {
    const int* board;
    Total* results;
    int n, i;        // the queen whose row of pairs is compared
    int first, end;  // sub-threads of this level and all below
    int threshold;   // comparisons of a sub-thread
    int levels;      // nesting that is left, this level included
    int block;       // threads per block of a sub-kernel
};

__global__ void sub_kernel(Row row);

// Launch the next level for the sub-threads that are left.
__device__ inline void descend(Row row) {
    const int here = (row.end - row.first + row.levels - 1) / row.levels;
    sub_kernel<<<(here + row.block - 1) / row.block, row.block>>>(row);
    if (cudaGetLastError() != cudaSuccess) atomicAdd(row.results + 1, 1ull);
}

// Each level takes an equal share of the sub-threads; the paper has a single level.
__global__ void sub_kernel(Row row) {
    const int here = (row.end - row.first + row.levels - 1) / row.levels;
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s == 0 && row.first + here < row.end) {
        Row rest = row;
        rest.first += here;
        --rest.levels;
        descend(rest);
    }
    if (s >= here) return;
    const int from = row.i + 1 + row.threshold * (row.first + s);
    compare(row.board, row.n, row.i, from, row.threshold, row.results);
}

__global__ void dynamic(const int* board, int n, int threshold, int nesting, int child_block,
                        Total* results) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int work = n - i - 1;
    if (work <= threshold) compare(board, n, i, i + 1, work, results);
    else
        descend({board, results, n, i, 0, (work + threshold - 1) / threshold, threshold, nesting,
                 child_block});
}
