// The transpose of an n x n matrix through a tile in shared memory.
//
// Edge   rows and columns of a tile
// Pad    words added to each row of the tile: with 1, a column of it lies in different banks
// Rows   elements of a column that each thread moves

template <int Edge, int Pad, int Rows>
__global__ void transpose(const float* a, float* b, int n) {
    __shared__ float tile[Edge][Edge + Pad];
    const int x = blockIdx.x * Edge + threadIdx.x, top = blockIdx.y * Edge + threadIdx.y;
    constexpr int step = Edge / Rows;
    for (int i = 0; i < Edge; i += step)
        if (x < n && top + i < n) tile[threadIdx.y + i][threadIdx.x] = a[(top + i) * n + x];
    __syncthreads();
    const int column = blockIdx.y * Edge + threadIdx.x, row = blockIdx.x * Edge + threadIdx.y;
    for (int i = 0; i < Edge; i += step)
        if (column < n && row + i < n)
            b[(row + i) * n + column] = tile[threadIdx.x][threadIdx.y + i];
}
