// A bitonic sort of one block's values in shared memory.
extern "C" __global__ void bitonic(unsigned *values) {
    __shared__ unsigned keys[512];
    const unsigned t = threadIdx.x;
    keys[t] = values[t];
    keys[t + 256] = values[t + 256];
    for (unsigned size = 2; size <= 512; size *= 2) {
        const bool up = (t & (size / 2)) != 0;
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const unsigned at = 2 * t - (t & (stride - 1));
            const unsigned a = keys[at], b = keys[at + stride];
            if ((a > b) != up) {
                keys[at] = b;
                keys[at + stride] = a;
            }
        }
    }
    __syncthreads();
    values[t] = keys[t];
    values[t + 256] = keys[t + 256];
}
