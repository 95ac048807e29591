// c = a b for square matrices; n is a multiple of the tile's edge.
//
// Side   a thread computes Side x Side elements of c in registers
// A block computes a tile of c; its (edge / Side)^2 threads take every (edge / Side)-th row and column.

constexpr int edge = 32;

template <int Side>
__device__ void store(float* c, const float (&sum)[Side][Side], int row, int column, int n) {
    for (int i = 0; i < Side; ++i)
        for (int j = 0; j < Side; ++j)
            c[(row + i * (edge / Side)) * n + column + j * (edge / Side)] = sum[i][j];
}

template <int Side>
__global__ void multiply_global(const float* a, const float* b, float* c, int n) {
    constexpr int step = edge / Side;
    const int row = blockIdx.y * edge + threadIdx.y, column = blockIdx.x * edge + threadIdx.x;
    float sum[Side][Side] = {};
    for (int k = 0; k < n; ++k) {
        float left[Side], right[Side];
        for (int i = 0; i < Side; ++i) left[i] = a[(row + i * step) * n + k];
        for (int j = 0; j < Side; ++j) right[j] = b[k * n + column + j * step];
        for (int i = 0; i < Side; ++i)
            for (int j = 0; j < Side; ++j) sum[i][j] += left[i] * right[j];
    }
    store(c, sum, row, column, n);
}

template <int Side>
__global__ void multiply_shared(const float* a, const float* b, float* c, int n) {
    __shared__ float left_tile[edge][edge + 1];  // padded: lanes of a warp read several rows of it
    __shared__ float right_tile[edge][edge];
    constexpr int step = edge / Side;
    const int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * edge,
              left_edge = blockIdx.x * edge;
    float sum[Side][Side] = {};
    for (int first = 0; first < n; first += edge) {
        for (int i = 0; i < edge * edge; i += step * step) {  // a warp loads a row of each tile
            const unsigned at = i + threadIdx.y * step + threadIdx.x, down = at / edge,
                           across = at % edge;
            left_tile[down][across] = a[(top + down) * n + first + across];
            right_tile[down][across] = b[(first + down) * n + left_edge + across];
        }
        __syncthreads();
        for (int k = 0; k < edge; ++k) {
            float left[Side], right[Side];
            for (int i = 0; i < Side; ++i) left[i] = left_tile[y + i * step][k];
            for (int j = 0; j < Side; ++j) right[j] = right_tile[k][x + j * step];
            for (int i = 0; i < Side; ++i)
                for (int j = 0; j < Side; ++j) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    store(c, sum, top + y, left_edge + x, n);
}
