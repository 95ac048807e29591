// The sum of n numbers. Each thread adds Items of them, each block adds its threads' sums in one of
// four ways, and one atomic addition per block makes the total. The kernels are called like the
// levels of the factor `step`.

template <int Block, int Items>
__device__ int own_sum(const int* x, int n) {
    int sum = 0;
    for (int i = 0; i < Items; ++i) {
        const int at = (blockIdx.x * Items + i) * Block + threadIdx.x;
        if (at < n) sum += x[at];
    }
    return sum;
}

// Every other thread works, then every fourth: the working lanes lie scattered over all warps.
template <int Block, int Items>
__global__ void divergent(const int* x, int* total, int n) {
    __shared__ int sums[Block];
    const int t = threadIdx.x;
    sums[t] = own_sum<Block, Items>(x, n);
    __syncthreads();
    for (int step = 1; step < Block; step *= 2) {
        if (t % (2 * step) == 0) sums[t] += sums[t + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(total, sums[0]);
}

// The first threads work, on the same pairs: whole warps drop out, but lanes meet in a bank.
template <int Block, int Items>
__global__ void strided(const int* x, int* total, int n) {
    __shared__ int sums[Block];
    const int t = threadIdx.x;
    sums[t] = own_sum<Block, Items>(x, n);
    __syncthreads();
    for (int step = 1; step < Block; step *= 2) {
        const int left = 2 * step * t;
        if (left < Block) sums[left] += sums[left + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(total, sums[0]);
}

// Neighbouring threads work on neighbouring words.
template <int Block, int Items>
__global__ void sequential(const int* x, int* total, int n) {
    __shared__ int sums[Block];
    const int t = threadIdx.x;
    sums[t] = own_sum<Block, Items>(x, n);
    __syncthreads();
    for (int step = Block / 2; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(total, sums[0]);
}

__device__ int warp_sum(int sum) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

// Registers of other lanes in place of shared memory; one barrier, for the sums of the warps.
template <int Block, int Items>
__global__ void shuffle(const int* x, int* total, int n) {
    __shared__ int sums[Block / 32];
    const int t = threadIdx.x;
    const int sum = warp_sum(own_sum<Block, Items>(x, n));
    if (t % 32 == 0) sums[t / 32] = sum;
    __syncthreads();
    if (t >= 32) return;
    const int all = warp_sum(t < Block / 32 ? sums[t] : 0);
    if (t == 0) atomicAdd(total, all);
}
