// How often each of 256 values occurs. Blocks walk over the data with a stride of the whole grid.

constexpr int bins = 256;

// Every element is one atomic addition in global memory.
template <int Threads>
__global__ void global_atomics(const unsigned char* data, unsigned* counts, int n) {
    for (int i = blockIdx.x * Threads + threadIdx.x; i < n; i += gridDim.x * Threads)
        atomicAdd(&counts[data[i]], 1u);
}

// A histogram for each group of warps in shared memory, added to the global one at the end.
template <int Threads, int Copies>
__device__ void in_shared(const unsigned char* data, unsigned* counts, int n) {
    __shared__ unsigned own[Copies][bins];
    for (int i = threadIdx.x; i < Copies * bins; i += Threads) own[i / bins][i % bins] = 0;
    __syncthreads();
    unsigned* mine = own[threadIdx.x / (Threads / Copies)];
    for (int i = blockIdx.x * Threads + threadIdx.x; i < n; i += gridDim.x * Threads)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += Threads) {
        unsigned sum = 0;
        for (int copy = 0; copy < Copies; ++copy) sum += own[copy][bin];
        if (sum > 0) atomicAdd(&counts[bin], sum);
    }
}

template <int Threads>
__global__ void shared_atomics(const unsigned char* data, unsigned* counts, int n) {
    in_shared<Threads, 1>(data, counts, n);
}

template <int Threads>
__global__ void per_warp(const unsigned char* data, unsigned* counts, int n) {
    in_shared<Threads, Threads / 32>(data, counts, n);
}
