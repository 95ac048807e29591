// Kernels whose order of speed is known: benchmarks/rankings.py has the order and where it is from.

#define EDGE 32
#define ROWS 8

// The transpose of an n x n matrix.

extern "C" __global__ void transpose_naive(const float* a, float* b, int n) {
    const int x = blockIdx.x * EDGE + threadIdx.x, y = blockIdx.y * EDGE + threadIdx.y;
    for (int i = 0; i < EDGE; i += ROWS) b[x * n + y + i] = a[(y + i) * n + x];
}

template <int Pad>
__global__ void transpose_tile(const float* a, float* b, int n) {
    __shared__ float tile[EDGE][EDGE + Pad];
    int x = blockIdx.x * EDGE + threadIdx.x, y = blockIdx.y * EDGE + threadIdx.y;
    for (int i = 0; i < EDGE; i += ROWS) tile[threadIdx.y + i][threadIdx.x] = a[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * EDGE + threadIdx.x;
    y = blockIdx.x * EDGE + threadIdx.y;
    for (int i = 0; i < EDGE; i += ROWS) b[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// Sums of blocks of 256 words. How: 0 divergent, 1 bank conflicts, 2 sequential, 3 two words first.

template <int How>
__global__ void reduce(const unsigned* in, unsigned* out) {
    __shared__ unsigned s[256];
    const unsigned t = threadIdx.x, size = blockDim.x;
    unsigned at = blockIdx.x * size + t;
    if (How == 3) at = 2 * blockIdx.x * size + t;
    s[t] = How == 3 ? in[at] + in[at + size] : in[at];
    __syncthreads();
    if (How < 2) {
        for (unsigned step = 1; step < size; step *= 2) {
            if (How == 0) {
                if (t % (2 * step) == 0) s[t] += s[t + step];
            } else {
                const unsigned i = 2 * step * t;
                if (i < size) s[i] += s[i + step];
            }
            __syncthreads();
        }
    } else {
        for (unsigned step = size / 2; step > 0; step /= 2) {
            if (t < step) s[t] += s[t + step];
            __syncthreads();
        }
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// The sum of all floats: every thread an atomic, every warp one, every block one.

template <int How>
__global__ void sum(const float* in, float* out) {
    __shared__ float s[8];
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (How > 0)
        for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
    if (How < 2) {
        if (How == 0 || threadIdx.x % 32 == 0) atomicAdd(out, x);
        return;
    }
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) x += s[i];
        atomicAdd(out, x);
    }
}

// A histogram of 256 bins: in global memory, or first in the block's shared memory.

extern "C" __global__ void histogram_global(const unsigned char* in, unsigned* counts, int n) {
    const int all = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all)
        atomicAdd(&counts[in[i]], 1);
}

extern "C" __global__ void histogram_shared(const unsigned char* in, unsigned* counts, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    const int all = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all) atomicAdd(&own[in[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// The product of an m x k and a k x n matrix, 32 x 32 threads: a warp along a column, along a row, by
// tiles, by tiles with eight results for each of 512 threads.

extern "C" __global__ void product_column(const float* a, const float* b, float* c, int n,
                                          int depth) {
    const int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < depth; k++) sum += a[row * depth + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void product_row(const float* a, const float* b, float* c, int n, int depth) {
    const int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < depth; k++) sum += a[row * depth + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void product_tile(const float* a, const float* b, float* c, int n,
                                        int depth) {
    __shared__ float s[32][32], t[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0;
    for (int k = 0; k < depth; k += 32) {
        s[y][x] = a[row * depth + k + x];
        t[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void product_several(const float* a, const float* b, float* c, int n,
                                           int depth) {
    __shared__ float s[64][8], t[8][64];
    const int x = threadIdx.x % 64, y = threadIdx.x / 64;
    const int inner = threadIdx.x % 8, outer = threadIdx.x / 8;
    const int top = blockIdx.y * 64, left = blockIdx.x * 64;
    float sums[8] = {};
    for (int k = 0; k < depth; k += 8) {
        s[outer][inner] = a[(top + outer) * depth + k + inner];
        t[y][x] = b[(k + y) * n + left + x];
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            const float word = t[i][x];
            for (int j = 0; j < 8; j++) sums[j] += s[8 * y + j][i] * word;
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++) c[(top + 8 * y + j) * n + left + x] = sums[j];
}

// Words of global memory, and passes through a block's shared memory, some words apart.

extern "C" __global__ void global_stride(const float* in, float* out, int stride) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(long long)i * stride % (1 << 24)] + 1;
}

extern "C" __global__ void bank_stride(unsigned* out, unsigned stride) {
    __shared__ unsigned s[1024];
    const unsigned t = threadIdx.x;
    for (unsigned i = t; i < 1024; i += blockDim.x) s[i] = (i + 32 * stride) % 1024;
    __syncthreads();
    unsigned at = t * stride % 1024;
    for (int i = 0; i < 256; i++) at = s[at];
    out[blockIdx.x * blockDim.x + t] = at;
}

// Chains of dependent reads; shared memory that is only allocated says how many blocks are resident.

extern "C" __global__ void occupancy(const unsigned* next, unsigned* out) {
    extern __shared__ unsigned unused[];
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < 32; i++) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

// Four fields of particles: side by side in a struct, or an array each.

struct Particle {
    float x, y, z, w;
};

extern "C" __global__ void structs(const Particle* in, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].x;
}

extern "C" __global__ void arrays(const float* in, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

// A row filter of 17 words: each read by each thread, or once into shared memory; and columns
// before rows of threads.

extern "C" __global__ void filter_global(const float* in, float* out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float sum = 0;
    for (int k = -8; k <= 8; k++) {
        const int at = x + k;
        if (at >= 0 && at < n) sum += in[y * n + at];
    }
    out[y * n + x] = sum;
}

extern "C" __global__ void filter_shared(const float* in, float* out, int n) {
    __shared__ float s[256 + 16];
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y, first = blockIdx.x * 256 - 8;
    for (int i = threadIdx.x; i < 272; i += 256) {
        const int at = first + i;
        s[i] = at >= 0 && at < n ? in[y * n + at] : 0;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k <= 16; k++) sum += s[threadIdx.x + k];
    out[y * n + x] = sum;
}

extern "C" __global__ void filter_columns(const float* in, float* out, int n) {
    const int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y;
    float sum = 0;
    for (int k = -8; k <= 8; k++) {
        const int at = x + k;
        if (at >= 0 && at < n) sum += in[y * n + at];
    }
    out[y * n + x] = sum;
}

// The softmax of rows: a thread, a warp for each.

extern "C" __global__ void softmax_thread(const float* in, float* out, int n) {
    const float* row = in + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    float* to = out + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    float most = -1e30f, sum = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, row[i]);
    for (int i = 0; i < n; i++) sum += expf(row[i] - most);
    for (int i = 0; i < n; i++) to[i] = expf(row[i] - most) / sum;
}

extern "C" __global__ void softmax_warp(const float* in, float* out, int n) {
    const int number = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const float* row = in + number * n;
    float most = -1e30f, sum = 0;
    for (int i = lane; i < n; i += 32) most = fmaxf(most, row[i]);
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    for (int i = lane; i < n; i += 32) sum += expf(row[i] - most);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    for (int i = lane; i < n; i += 32) out[number * n + i] = expf(row[i] - most) / sum;
}

// Remainders: by a mask, by a division of 32 bits, of 64 bits.

template <typename Word, bool Masked>
__global__ void remainders(const unsigned* in, unsigned* out, Word by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Word x = in[i];
    for (int k = 0; k < 64; k++) x = 5 * (Masked ? x & (by - 1) : x % by) + (x >> 3) + k;
    out[i] = (unsigned)x;
}
