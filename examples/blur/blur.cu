// A blur of three elements: b[i] = a[i - 1] + a[i] + a[i + 1], with zeros outside.

__global__ void direct(const float* a, float* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = (i ? a[i - 1] : 0) + a[i] + (i + 1 < n ? a[i + 1] : 0);
}

// The same through shared memory: a tile of the block's elements, with one more at each end.
__global__ void tiled(const float* a, float* b, int n) {
    extern __shared__ float tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
    tile[t] = i < n ? a[i] : 0;
    if (t == 1) tile[0] = i ? a[i - 1] : 0;
    if (t == blockDim.x) tile[t + 1] = i + 1 < n ? a[i + 1] : 0;
    __syncthreads();
    if (i < n) b[i] = tile[t - 1] + tile[t] + tile[t + 1];
}
