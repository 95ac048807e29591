// y = alpha x + y over n elements; every thread does Each of them, a grid apart.

template <int Each>
__global__ void axpy(const float* x, float* y, int n, float alpha) {
    const int threads = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < Each; ++k, i += threads)
        if (i < n) y[i] += alpha * x[i];
}
