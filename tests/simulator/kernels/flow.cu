// Control flow: what the counters of divergence must see.

// Warps hand a value around the block, one barrier per step.
__global__ void ring(const int* in, int* out, int steps) {
  extern __shared__ int cell[];
  const int t = threadIdx.x, n = blockDim.x;
  cell[t] = in[blockIdx.x * n + t];
  for (int i = 0; i < steps; i++) {
    __syncthreads();
    const int next = cell[(t + 1) % n];
    __syncthreads();
    cell[t] = next;
  }
  out[blockIdx.x * n + t] = cell[t] + 1000 * __syncthreads_count(cell[t] > 5) +
                            100000 * __syncthreads_or(t == 99) +
                            1000000 * __syncthreads_and(n > 3);
}

__global__ void early_exit(int* out) {
  __shared__ int box[64];
  const int t = threadIdx.x;
  if (t % 3 == 0) return;
  box[t] = t;
  __syncthreads();
  out[t] = box[t % 3 == 1 ? t + 1 : t - 1];
}

// Generic pointers: the compiler cannot know the space of `p`.
__global__ void generic(int* out, int which) {
  __shared__ int box[32];
  int own[8];
  const int t = threadIdx.x;
  box[t] = 100 + t;
  for (int i = 0; i < 8; i++) own[i] = 10 * i + t;
  __syncwarp();
  int* p = (t % 3 == 0) ? box + t : (t % 3 == 1) ? own + (which & 7) : out + t;
  *p += 1000;
  __syncwarp();
  out[32 + t] = *p + own[(which + 1) & 7];
}

__global__ void axes(int* out) {
  const int at = ((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x +
                 threadIdx.x;
  out[at] = threadIdx.x + 10 * threadIdx.y + 100 * blockIdx.x + 1000 * blockIdx.y;
}

__device__ int table[5] = {3, 1, 4, 1, 5};
__constant__ float scale[2] = {0.5f, 2.0f};
__device__ unsigned counter;

__global__ void module_variables(int* out) {
  const int t = threadIdx.x;
  out[t] = table[t % 5] + (int)(scale[t % 2] * 8) + 100 * (int)(atomicAdd(&counter, 2u) / 2);
}
