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

__global__ void warps(const int* x, int* out, long long* wide, float* f) {
    const int i = threadIdx.x;
    long long sum = x[i] * 1000003ll;
    float least = x[i] * 0.5f;
    for (int step = 16; step; step >>= 1) {
        sum += __shfl_down_sync(~0u, sum, step);
        least = fminf(least, __shfl_xor_sync(~0u, least, step));
    }
    wide[i] = sum;
    f[i] = least;
    out[i] = __reduce_add_sync(~0u, x[i]) + __reduce_min_sync(~0u, x[i]) +
             __popc(__ballot_sync(~0u, x[i] & 1)) + __shfl_sync(~0u, x[i], 3);
}

__global__ void vectors(const int4* x, const float4* y, int2* out, double2* out_d) {
    const int i = threadIdx.x;
    const int4 a = __ldg(x + i);
    const float4 b = y[i];
    out[i] = make_int2(a.x + a.y, a.z - a.w);
    out_d[i] = make_double2((double)b.x * b.y, (double)b.z / b.w);
}

__global__ void wide(const long long* x, long long* out, int n) {
    const int i = threadIdx.x;
    out[i] = x[i] / 7;
    out[n + i] = x[i] % 13;
    out[2 * n + i] = __mul64hi(x[i], x[i]);
    out[3 * n + i] = __popcll(x[i]) + __clzll(x[i]);
    out[4 * n + i] = (long long)floor(((double)x[i] + 0.5) / 3.0);
    // The row of the triangle in which a number lies (Brodtkorb et al., section 6.1).
    const unsigned long long k = (unsigned long long)x[i] >> 24;
    out[5 * n + i] = (long long)((sqrt(8.0 * k + 1.0) - 1.0) / 2.0);
}
