// Host code around kernels, as in a file written for nvcc.
#include <cstdio>
#include <vector>
#include <no_such_header.h>
#include <cooperative_groups.h>
#include "cuda_fp16.h"
#include <math_constants.h>

#define CHECK(call) do { if (call) exit(1); } while (0)
#define BOTH __host__ __device__

__constant__ float weights[4];
static __device__ int offset[2] = {7, 8};
__device__ unsigned counter;
std::vector<int> results;

struct Point {
    float x, y;
    BOTH Point(float a, float b) : x(a), y(b) {}
    float sum() const { return x + y; }
};

int usage(const char* text) {
    printf("%s { %c\n", text, '}');  // braces in text: {
    return INT_MAX;
}

namespace inner {
BOTH inline float twice(float a) { return 2 * a; }
static void host_only(std::vector<int>& v) { v.push_back(1); }
}  // namespace inner

__global__ void weigh(float* out, uint n) {
    uint i = threadIdx.x;
    if (i < n) out[i] = inner::twice(weights[i % 4]) + offset[i % 2] + Point(M_PI, i).sum();
}

extern "C" __global__ void count(unsigned* out) { out[threadIdx.x] = atomicAdd(&counter, 1u); }

template <class Group>
__device__ void rotate_in(Group group, int* values) {
    unsigned i = group.thread_rank(), n = group.size();
    for (int step = 0; step < 3; step++) {
        int next = values[(i + 1) % n];
        group.sync();
        values[i] = next + 1;
        group.sync();
    }
}

__global__ void rotate(int* values) { rotate_in(cooperative_groups::this_grid(), values); }

__global__ void rotate_in_tiles(int* values) {
    namespace cg = cooperative_groups;
    __shared__ cg::block_tile_memory<128> memory;
    cg::thread_block block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    rotate_in(tile, values + 64 * (blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()));
}

int main(int argc, char** argv) {
    float* out;
    CHECK(cudaMalloc((void**)&out, 128));
    weigh<<<1, 32>>>(out, 32);
    return usage("done");
}
