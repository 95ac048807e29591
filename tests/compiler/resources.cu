template <int N>
__device__ __noinline__ int helper(const int* a, int n) {
    int kept[N];
    for (int i = 0; i < N; i++) kept[i] = a[i * n];
    int sum = 0;
    for (int i = 0; i < n; i++) sum += kept[(i * 7) % N];
    return sum;
}
template <int N>
__global__ void stacked(int* out, int n) {
    extern __shared__ int dynamic[];
    __shared__ int fixed[N];
    fixed[threadIdx.x % N] = out[threadIdx.x];
    dynamic[threadIdx.x] = n;
    __syncthreads();
    out[threadIdx.x] = helper<N>(fixed, n) + dynamic[n];
}
template <int N>
__global__ void crowded(unsigned* out, int n) {
    unsigned a[N];
#pragma unroll
    for (int i = 0; i < N; i++) a[i] = out[threadIdx.x * N + i];
    for (int r = 0; r < n; r++) {
        unsigned first = a[0];
#pragma unroll
        for (int i = 0; i < N - 1; i++) a[i] = a[i] * 3 + a[i + 1];
        a[N - 1] ^= first;
    }
#pragma unroll
    for (int i = 0; i < N; i++) out[threadIdx.x * N + i] = a[i];
}
__global__ void other(int* out) { out[threadIdx.x] = 1; }
