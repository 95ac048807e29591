// y = A x for a sparse matrix in CSR form: the entries of row r are those from start[r] up to
// start[r + 1]. Blocks have 256 threads. The kernels are called like the levels of `per_row`.

__global__ void thread(const int* start, const int* column, const float* entry, const float* x,
                       float* y, int n) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int i = start[row]; i < start[row + 1]; ++i) sum += entry[i] * x[column[i]];
    y[row] = sum;
}

__global__ void warp(const int* start, const int* column, const float* entry, const float* x,
                     float* y, int n) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    float sum = 0;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += entry[i] * x[column[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
}
