// The kernels of test_own_kernel.py.
#include "factor.cuh"
__constant__ float weights[4];
__device__ int offset;
template <int Step>
__global__ void scale(const float* x, float* y, int* seen, int n, float alpha) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * Step;
    for (int k = i; k < i + Step && k < n; ++k) y[k] = FACTOR * alpha * x[k] + weights[k % 4];
    if (i < n) atomicAdd(seen + (i + offset) % 8, 1);
}
template <class Real> __global__ void axpy(const Real* x, Real* y, Real alpha, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
}
struct Shape {
    char tag;
    double alpha;
    int n;
};
__device__ int counts[3];
__global__ void counted(const float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(counts + (x[i] > 0.5f), i);
}
#ifdef DOUBLED
__device__ float doubled(float);
__global__ void shaped(const float* x, float* y, Shape s) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < s.n) y[i] = doubled(s.alpha * x[i]) + s.tag;
}
#endif
extern "C" __global__ void naive(const float* x, float* y, int* seen, int n, float alpha) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * alpha * x[i] + weights[i % 4];
    if (i < n) atomicAdd(seen + (i + offset) % 8, 1);
}
struct Ends {
    float* from;
    float* to;
};
__global__ void gathered(const Ends* ends, const float* const* rows, int n) {
    const int i = threadIdx.x;
    if (i < n) ends->to[i] = ends->from[i] + *rows[i];
}
__global__ void joined(Ends ends, int n) {
    const int i = threadIdx.x;
    if (i < n) ends.to[i] = 2 * ends.from[i];
}
