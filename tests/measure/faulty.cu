// Kernels that do what nobody should: each fault is the real one, on a GPU and in the simulator.

__global__ void good(unsigned long long* out) { out[0] = 42; }

__global__ void wrong(unsigned long long* out) { out[0] = 43; }

template <int N> __global__ void refused(unsigned long long* out) {
    static_assert(N < 0, "this kernel does not compile");
    out[0] = N;
}

// Far beyond any buffer.
__global__ void stray(unsigned long long* out) { out[1ull << 38] = 42; }

// The flag is never set.
__global__ void endless(unsigned long long* out) {
    while (*(volatile unsigned long long*)out != 42) {
    }
}

__global__ void trap(unsigned long long* out) {
    out[0] = 42;
    asm volatile("trap;");
}

// So many values alive at once that 1,024 threads need more registers than there are.
__global__ void heavy(unsigned long long* out) {
    unsigned value[120];
#pragma unroll
    for (int i = 0; i < 120; ++i) value[i] = ((volatile unsigned*)out)[i & 1] + i;
    for (int turn = 0; turn < (int)out[0]; ++turn) {
#pragma unroll
        for (int i = 0; i < 120; ++i) value[i] = value[i] * value[(i + 7) % 120] + turn;
    }
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < 120; ++i) sum ^= value[i];
    out[0] = sum;
}
