// b = the mean of a's element and its four neighbours. a has one more row and column on each side.
//
// Width, Height   the part of b that a block computes, Width threads wide
// Rows            elements of a column per thread

template <int Width, int Height, int Rows>
__global__ void stencil_global(const float* a, float* b, int n) {
    const int x = blockIdx.x * Width + threadIdx.x, top = blockIdx.y * Height + threadIdx.y,
              wide = n + 2;
    for (int i = 0; i < Height; i += Height / Rows) {
        const int y = top + i;
        if (x >= n || y >= n) continue;
        const float* at = &a[(y + 1) * wide + x + 1];
        b[y * n + x] = 0.2f * (at[0] + at[-1] + at[1] + at[-wide] + at[wide]);
    }
}

template <int Width, int Height, int Rows>
__global__ void stencil_shared(const float* a, float* b, int n) {
    __shared__ float tile[Height + 2][Width + 2];
    const int left = blockIdx.x * Width, top = blockIdx.y * Height, wide = n + 2;
    constexpr int across = Width + 2, threads = Width * Height / Rows;
    for (int i = threadIdx.y * Width + threadIdx.x; i < (Height + 2) * across; i += threads) {
        const int y = i / across,
                  x = i % across;  // the halo needs more loads than the tile has threads
        if (left + x < wide && top + y < wide) tile[y][x] = a[(top + y) * wide + left + x];
    }
    __syncthreads();
    const int x = threadIdx.x;
    for (int y = threadIdx.y; y < Height; y += Height / Rows) {
        if (left + x >= n || top + y >= n) continue;
        const float middle = tile[y + 1][x + 1], sides = tile[y + 1][x] + tile[y + 1][x + 2];
        b[(top + y) * n + left + x] = 0.2f * (middle + sides + tile[y][x + 1] + tile[y + 2][x + 1]);
    }
}
