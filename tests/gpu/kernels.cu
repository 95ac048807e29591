// Kernels that each show one thing about the device; see test_cuda_gpu.py.

__global__ void add(int* jobs, int* total, int bias) {
    if (threadIdx.x == 0 && blockIdx.x == 0) *total += 1;
    jobs[blockIdx.x * blockDim.x + threadIdx.x] += bias;
}

__global__ void mixed(double* out, int a, long long b, float c, unsigned char d) {
    out[0] = a;
    out[1] = static_cast<double>(b);
    out[2] = c;
    out[3] = d;
}

// Every word of dynamic shared memory is written by one thread and read by another.
__global__ void turn(unsigned long long* sum, int words) {
    extern __shared__ unsigned stored[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) stored[i] = i;
    __syncthreads();
    unsigned long long own = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) own += stored[words - 1 - i];
    atomicAdd(sum, own);
}

__device__ unsigned long long now_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void wait(unsigned long long ns) {
    const unsigned long long start = now_ns();
    while (now_ns() - start < ns) {
    }
}

// Reads every word once, one dependent block-stride pass; touches `words` x 4 bytes.
__global__ void sweep(const unsigned* data, unsigned long long* sum, int words) {
    unsigned long long own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        own += data[i];
    }
    atomicAdd(sum, own);
}

__global__ void stray(int* out) { out[1ull << 40] = 1; }

template <int REGISTERS, int SHARED_WORDS>
__global__ void __launch_bounds__(256) loaded(unsigned* out, int n) {
    __shared__ unsigned words[SHARED_WORDS];
    unsigned a[REGISTERS];
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) a[i] = out[threadIdx.x * REGISTERS + i];
    for (int r = 0; r < n; r++) {
        const unsigned first = a[0];
#pragma unroll
        for (int i = 0; i < REGISTERS - 1; i++) a[i] = a[i] * 3 + a[i + 1];
        a[REGISTERS - 1] ^= first;
    }
    words[threadIdx.x % SHARED_WORDS] = a[0];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < REGISTERS; i++)
        out[threadIdx.x * REGISTERS + i] = a[i] + words[i % SHARED_WORDS];
}
