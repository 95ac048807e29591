// A program of three kernels for the tests: y += a * x, a sum, and one that counts its own launches.
__global__ void scale(const int* x, int* y, int n, int a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

__global__ void total(const int* y, int n, long long* sum) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((unsigned long long*)sum, (unsigned long long)(long long)y[i]);
}

__device__ int launches = 40;
__global__ void remember(int* where, int place) {
    if (threadIdx.x == 0) where[place] = ++launches;
}

__device__ int others = 7;
__global__ void remember_too(int* where, int place) {
    if (threadIdx.x == 0) where[place] = ++others;
}

__global__ void endless(int* where) {
    while (atomicAdd(where, 1) != -1) {
    }
}
