// The acceleration of every body by all others: x, y, z and the mass of each are one float4.
//
// Threads   threads per block, and bodies of a tile
// Bodies    bodies per thread, whose sums stay in registers

__device__ void attract(float3& sum, float4 body, float4 other) {
    const float dx = other.x - body.x, dy = other.y - body.y, dz = other.z - body.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-2f);  // softened
    const float pull = other.w * inverse * inverse * inverse;
    sum.x += pull * dx;
    sum.y += pull * dy;
    sum.z += pull * dz;
}

template <bool Shared, int Threads, int Bodies>
__device__ void accelerate(const float4* bodies, float4* result, int n) {
    __shared__ float4 tile[Shared ? Threads : 1];
    const int first = blockIdx.x * Threads * Bodies + threadIdx.x;
    float4 own[Bodies];
    float3 sum[Bodies];
    for (int b = 0; b < Bodies; ++b) {
        own[b] = bodies[min(first + b * Threads, n - 1)];
        sum[b] = make_float3(0, 0, 0);
    }
    for (int start = 0; start < n; start += Threads) {
        const int count = min(Threads, n - start);
        if (Shared) {
            if (threadIdx.x < count) tile[threadIdx.x] = bodies[start + threadIdx.x];
            __syncthreads();
        }
        for (int i = 0; i < count; ++i) {
            const float4 other = Shared ? tile[i] : bodies[start + i];
            for (int b = 0; b < Bodies; ++b) attract(sum[b], own[b], other);
        }
        if (Shared) __syncthreads();
    }
    for (int b = 0; b < Bodies; ++b)
        if (const int at = first + b * Threads; at < n)
            result[at] = make_float4(sum[b].x, sum[b].y, sum[b].z, 0);
}

template <int Threads, int Bodies>
__global__ void nbody_global(const float4* bodies, float4* result, int n) {
    accelerate<false, Threads, Bodies>(bodies, result, n);
}

template <int Threads, int Bodies>
__global__ void nbody_shared(const float4* bodies, float4* result, int n) {
    accelerate<true, Threads, Bodies>(bodies, result, n);
}
