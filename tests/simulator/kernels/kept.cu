// Loops, branches, barriers and shared memory.

__device__ int step(int i, int j) { return i ^ j; }

extern "C" __global__ void walks(int* out) {
  __shared__ int box[256];
  int sum = 0;
  for (int j = 0; j < out[threadIdx.x] % 7; j++) sum += step(out[threadIdx.x], j);
  box[threadIdx.x ^ 1] = 7;
  __syncthreads();
  if (threadIdx.x % 3 == 0) sum += box[threadIdx.x];
  else sum += box[255 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = sum;
}
