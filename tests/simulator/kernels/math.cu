// What kernels on floats, 64-bit integers and vectors look like, for comparing with numpy.
__global__ void distances(const float* x, const float* y, const int* tour, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int a = __ldg(tour + i), b = __ldg(tour + (i + 1) % n);
    const float dx = x[a] - x[b], dy = y[a] - y[b];
    out[i] = sqrtf(dx * dx + dy * dy);
}

__global__ void functions(const float* x, float* out, double* out_d, int n) {
    const int i = threadIdx.x;
    out[i] = expf(-x[i]);
    out[n + i] = logf(x[i]);
    out[2 * n + i] = roundf(x[i]) + floorf(x[i]) + truncf(-x[i]) + rintf(x[i]);
    out[3 * n + i] = fminf(x[i], 2.0f) + fmaxf(x[i], 3.0f) + fabsf(-x[i]);
    out[4 * n + i] = rsqrtf(x[i]);
    out_d[i] = exp(-(double)x[i]);
    out_d[n + i] = log((double)x[i]);
    out_d[2 * n + i] = sqrt((double)x[i]) / 3.0 + fma((double)x[i], 2.0, 0.125);
}

__global__ void atomics(const int* x, int* whole, unsigned long long* wide, float* f, double* d) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(whole, x[i]);
    atomicMin(whole + 1, x[i]);
    atomicMax(whole + 2, x[i]);
    atomicAdd(wide, (unsigned long long)x[i] * x[i]);
    atomicMin(wide + 1, ((unsigned long long)(unsigned)(x[i] + 1000) << 32) | i);
    atomicMax(reinterpret_cast<long long*>(wide) + 2, (long long)x[i]);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
}

