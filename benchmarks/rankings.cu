// Kernels whose order of speed is known: benchmarks/rankings.py has the order and where it is from.

#include <cuda_fp16.h>

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

// From here on: sets that were written down before the model of time saw them.

// Forces of bodies on each body: of structs, of an array of places, of tiles of it.

struct Body {
    float x, y, z, vx, vy, vz;
};

__device__ void attract(float3& force, float x, float y, float z) {
    const float near = rsqrtf(x * x + y * y + z * z + 1e-9f), pull = near * near * near;
    force.x += x * pull, force.y += y * pull, force.z += z * pull;
}

extern "C" __global__ void bodies_structs(const Body* p, float* out, int others) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float3 force = {0, 0, 0};
    for (int j = 0; j < others; j++)
        attract(force, p[j].x - p[i].x, p[j].y - p[i].y, p[j].z - p[i].z);
    out[i] = force.x + force.y + force.z;
}

extern "C" __global__ void bodies_arrays(const float4* p, float* out, int others) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = p[i];
    float3 force = {0, 0, 0};
    for (int j = 0; j < others; j++) {
        const float4 other = p[j];
        attract(force, other.x - own.x, other.y - own.y, other.z - own.z);
    }
    out[i] = force.x + force.y + force.z;
}

template <int Unrolled>
__global__ void bodies_tiles(const float4* p, float* out, int others) {
    __shared__ float3 tile[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = p[i];
    float3 force = {0, 0, 0};
    for (int first = 0; first < others; first += 256) {
        const float4 other = p[first + threadIdx.x];
        tile[threadIdx.x] = {other.x, other.y, other.z};
        __syncthreads();
#pragma unroll Unrolled
        for (int j = 0; j < 256; j++)
            attract(force, tile[j].x - own.x, tile[j].y - own.y, tile[j].z - own.z);
        __syncthreads();
    }
    out[i] = force.x + force.y + force.z;
}

// A sparse matrix with as many words in each row, by a thread for each row: rows one after the
// other, or columns.

template <bool Columns>
__global__ void sparse(const float* words, const int* at, const float* x, float* y, int each) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x, rows = gridDim.x * blockDim.x;
    float sum = 0;
    for (int k = 0; k < each; k++) {
        const int i = Columns ? k * rows + row : row * each + k;
        sum += words[i] * x[at[i]];
    }
    y[row] = sum;
}

// Sums of halves, one, two or eight to a thread; and inner products by atomics.

extern "C" __global__ void halves_1(const __half* a, const __half* b, __half* c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = __hadd(a[i], b[i]);
}

extern "C" __global__ void halves_2(const __half2* a, const __half2* b, __half2* c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = __hadd2(a[i], b[i]);
}

extern "C" __global__ void halves_8(const float4* a, const float4* b, float4* c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 x = a[i];
    const float4 y = b[i];
    for (int k = 0; k < 4; k++) {
        __half2* part = (__half2*)&x + k;
        *part = __hadd2(*part, *((const __half2*)&y + k));
    }
    c[i] = x;
}

extern "C" __global__ void product_half(const __half* a, const __half* b, __half* sum) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sum, __hmul(a[i], b[i]));
}

extern "C" __global__ void product_half2(const __half2* a, const __half2* b, __half2* sum) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sum, __hmul2(a[i], b[i]));
}

// Tokens and their places: a thread for each token, for each channel, for four channels.

extern "C" __global__ void encode_tokens(const int* in, const float* words, const float* places,
                                         float* out, int channels) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    for (int c = 0; c < channels; c++)
        out[token * channels + c] = words[in[token] * channels + c] + places[token * channels + c];
}

template <typename Word>
__global__ void encode(const int* in, const Word* words, const Word* places, Word* out,
                       int channels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, token = i / channels;
    Word x = words[in[token] * channels + i % channels];
    const Word y = places[i];
    for (int k = 0; k < sizeof(Word) / 4; k++) ((float*)&x)[k] += ((const float*)&y)[k];
    out[i] = x;
}

// Rows of mean 0 and variance 1: a thread for each, a warp for each that reads them three times,
// twice.

extern "C" __global__ void normal_thread(const float* in, float* out, int n) {
    const float* row = in + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    float* to = out + (blockIdx.x * blockDim.x + threadIdx.x) * n;
    float mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += row[i];
    mean /= n;
    for (int i = 0; i < n; i++) variance += (row[i] - mean) * (row[i] - mean);
    const float by = rsqrtf(variance / n + 1e-5f);
    for (int i = 0; i < n; i++) to[i] = (row[i] - mean) * by;
}

__device__ float sum_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <bool Once>
__global__ void normal_warp(const float* in, float* out, int n) {
    const int number = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const float* row = in + number * n;
    float sum = 0, squares = 0;
    for (int i = lane; i < n; i += 32) sum += row[i], squares += Once ? row[i] * row[i] : 0;
    const float mean = sum_of_warp(sum) / n;
    if (!Once)
        for (int i = lane; i < n; i += 32) squares += (row[i] - mean) * (row[i] - mean);
    const float variance = sum_of_warp(squares) / n - (Once ? mean * mean : 0);
    const float by = rsqrtf(variance + 1e-5f);
    for (int i = lane; i < n; i += 32) out[number * n + i] = (row[i] - mean) * by;
}

// Sums of 17 neighbours that move along a row or a column, a thread for each.

template <bool Rows>
__global__ void box(const float* in, float* out, int n) {
    const int line = blockIdx.x * blockDim.x + threadIdx.x, step = Rows ? 1 : n;
    const int first = Rows ? line * n : line;
    float sum = 0;
    for (int k = 0; k <= 8; k++) sum += in[first + k * step];
    for (int k = 0; k < n; k++) {
        out[first + k * step] = sum;
        if (k + 9 < n) sum += in[first + (k + 9) * step];
        if (k >= 8) sum -= in[first + (k - 8) * step];
    }
}

// Chains of multiply-adds.

template <typename Real>
__global__ void chains(const float* in, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Real a = in[i], b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < 128; k++) {
        a = a * Real(0.5) + 1, b = b * Real(0.5) + 1;
        c = c * Real(0.5) + 1, d = d * Real(0.5) + 1;
    }
    out[i] = a + b + c + d;
}

// The transpose whose writes lie side by side.

extern "C" __global__ void transpose_gather(const float* a, float* b, int n) {
    const int x = blockIdx.x * EDGE + threadIdx.x, y = blockIdx.y * EDGE + threadIdx.y;
    for (int i = 0; i < EDGE; i += ROWS) b[(y + i) * n + x] = a[x * n + y + i];
}
