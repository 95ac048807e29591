// The sum of each block's numbers. One warp adds the last 64, as the slides on reductions of 2007 had it: `volatile`
// words, and trust that the lanes of a warp run in step. Since Volta they need not.

template <int Block, bool Wait>
__global__ void sums(const int* x, int* total) {
    __shared__ volatile int s[Block];
    const int t = threadIdx.x;
    s[t] = x[blockIdx.x * Block + t];
    __syncthreads();
    for (int step = Block / 2; step > 32; step /= 2) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
    if (t >= 32) return;
    int sum = s[t];
    for (int step = 32; step > 0; step /= 2) {
        sum += s[t + step];
        if (Wait) __syncwarp();
        s[t] = sum;
        if (Wait) __syncwarp();
    }
    if (t == 0) total[blockIdx.x] = sum;
}
