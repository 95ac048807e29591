// Kernels with one mistake each.

__global__ void beyond(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 8]; }

__global__ void far_away(int* out) { out[threadIdx.x * 100000ll] = 1; }

__global__ void before(int* out) { out[(int)threadIdx.x - 4] = 1; }

__global__ void null_pointer(int* out, long long address) { *(int*)address = out[0]; }

__global__ void misaligned(char* out) { *(int*)(out + 4 * threadIdx.x + (threadIdx.x == 9)) = 1; }

__global__ void shared_forgotten(int* out) {
  extern __shared__ int box_of_any_size[];
  box_of_any_size[threadIdx.x] = 1;
  out[threadIdx.x] = box_of_any_size[31 - threadIdx.x];
}

__global__ void shared_beyond(int* out) {
  __shared__ int box[32];
  box[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x + out[0]];
}

__global__ void unwritten(int* out) {
  __shared__ int box[64];
  box[2 * threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x + 1];
}

__global__ void unwritten_byte(unsigned char* out) {
  __shared__ unsigned char box[64];
  if (threadIdx.x != 5) box[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = box[31 - threadIdx.x];
}

__global__ void unwritten_atomic(int* out) {
  __shared__ int box[2];
  if (threadIdx.x == 0) box[0] = 0;
  __syncthreads();
  atomicAdd(&box[threadIdx.x == 7], 1);
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x & 1];
}

// Every stored word looks like memory that was never written, and is not.
__global__ void looks_unwritten(unsigned* out, unsigned pattern) {
  __shared__ unsigned box[64];
  box[threadIdx.x] = pattern;
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x ^ 3];
}

__global__ void divide(int* out) { out[threadIdx.x] = 7 / (out[threadIdx.x] - 3); }

__global__ void half_barrier(int* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");
  }
  asm volatile("bar.sync 0;");
  out[threadIdx.x] = 1;
}

__global__ void split_barrier(int* out) {
  if (threadIdx.x < 16) {
    asm volatile("bar.sync 0;");
    out[0] = 1;
  } else {
    asm volatile("bar.sync 0;");
    out[1] = 1;
  }
}

__global__ void missing_members(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 1);
  } else {
    out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
  }
}

__global__ void not_a_member(int* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, threadIdx.x, 1);
}

__global__ void inactive_source(int* out) {
  if (threadIdx.x < 20) out[threadIdx.x] = __shfl_down_sync(0x000fffffu, threadIdx.x, 1);
}

__global__ void endless(volatile int* out) {
  while (out[0] == 0) {
  }
}

__global__ void unknown(int* out) { asm volatile("setmaxnreg.inc.sync.aligned.u32 64;"); }

__global__ void traps(int* out) {
  if (out[threadIdx.x] == 0 && threadIdx.x == 3) __trap();
}

__global__ void textured(float* out, cudaTextureObject_t t) {
  out[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}

__global__ void sums(float* out) { out[threadIdx.x] += 1; }
__global__ void counts(int* out) { atomicAdd(&out[threadIdx.x], 1); }
__global__ void moves(double* out) { out[threadIdx.x] = out[31 - threadIdx.x] * 2; }
__global__ void writes_first(volatile int* out) {
  out[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = out[threadIdx.x] + 1;
}

__global__ void skips(int* out) {
  if (threadIdx.x < 64) __syncthreads();
  out[threadIdx.x] = threadIdx.x;
}

__global__ void skips_once(int* out) {  // all threads skip it together, then none does
  for (int i = 0; i < 3; i++) {
    if (i > 0) __syncthreads();
    out[threadIdx.x] += i;
  }
}

__global__ void meets_elsewhere(int* out) {  // as often as the others, at another barrier
  __shared__ int box[64];
  for (int i = 0; i < 3; i++) {
    if (threadIdx.x < 64) {
      box[threadIdx.x] = i;
      __syncthreads();
    } else {
      __syncthreads();
      out[threadIdx.x] += box[threadIdx.x - 64];
    }
    __syncthreads();
  }
}

__global__ void meets_less_often(int* out) {
  if (threadIdx.x < 64) {
    out[threadIdx.x] += 1;
    __syncthreads();
  }
  out[threadIdx.x] += 1;
  __syncthreads();
}

__global__ void copies_unwritten(int* out) {  // the last word of the next tile, which none needs
  __shared__ int box[33];
  __shared__ volatile int rest[33];
  box[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int next = box[threadIdx.x];
  for (int i = 0; i < 2; i++) {
    out[threadIdx.x] += next;
    next = box[threadIdx.x + i];
  }
  rest[threadIdx.x] = next;
}

__global__ void decides_by_unwritten(int* out, int what) {
  __shared__ int box[33];
  box[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int next = box[threadIdx.x + 1];
  if (what == 0 && next > 0) out[threadIdx.x & 1] = 1;
  if (what == 1 && threadIdx.x == 31) out[next & 1] = 7;
  if (what == 2) out[0] = next;
}

__global__ void leaves_early(int* out) {
  if (threadIdx.x >= 70) return;
  __syncthreads();
  out[threadIdx.x] = 3;
}

__global__ void skips_a_turn(int* out) {
  for (int i = 0; i < 3; i++) {
    if (i + (threadIdx.x < 64) > 0) __syncthreads();
    out[threadIdx.x] += i;
  }
}
