// Kernels of the programs in programs.py.

__device__ unsigned long long nanoseconds() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void wait(unsigned long long ns) {
    const unsigned long long start = nanoseconds();
    while (nanoseconds() - start < ns) {
    }
}

__global__ void empty(int* out, int step) {
    if (step < 0) *out = step;
}

__global__ void count(int* out, int step) { atomicAdd(out, step); }

__global__ void stray(int* out) { out[1ull << 40] = 1; }

// Single precision: 4 fused operations per round and thread, and one store.
__global__ void fused(float* out, int rounds) {
    float a = threadIdx.x, b = 1.5f, c = 0.25f, d = 2.0f;
    for (int i = 0; i < rounds; i++) {
        a = fmaf(a, 0.5f, 1.0f);
        b = fmaf(b, 0.5f, 1.0f);
        c = fmaf(c, 0.5f, 1.0f);
        d = fmaf(d, 0.5f, 1.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

__global__ void child(int* out, int base, int n) {
    const int i = base + threadIdx.x;
    if (i < n) out[i] = i * i;
}

// Thread t launches a kernel for the t-th part of the output.
template <int WIDTH>
__global__ void parent(int* out, int n) {
    const int base = threadIdx.x * WIDTH;
    if (base < n) child<<<1, WIDTH>>>(out, base, n);
}
