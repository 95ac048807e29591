// Kernels with one mistake each. What stops them stands before the wrong line, as regular expressions.

// stops: block 0, thread 24 reads 4 bytes of .*, right beyond the end of buffer 'in' of 128 bytes; block
// stops: \(0, 0, 0\), thread \(24, 0, 0\), warp 0, lane 24; ld.global
__global__ void beyond(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 8]; }

// stops: lane 1;
__global__ void far_away(int* out) { out[threadIdx.x * 100000ll] = 1; }

// stops: 16 bytes before buffer 'out'.*lane 0;
__global__ void before(int* out) { out[(int)threadIdx.x - 4] = 1; }

// stops: at address 0x0, through a null pointer;.*lane 0;
__global__ void null_pointer(int* out, long long address) { *(int*)address = out[0]; }

// stops: is not a multiple of 4, byte 37 of buffer 'out' of 256 bytes.*lane 9;
__global__ void misaligned(char* out) { *(int*)(out + 4 * threadIdx.x + (threadIdx.x == 9)) = 1; }

__global__ void shared_forgotten(int* out) {
  extern __shared__ int box_of_any_size[];
  // stops: address 0x0, the block has 0 bytes; what is `extern __shared__` needs `shared:`
  box_of_any_size[threadIdx.x] = 1;
  out[threadIdx.x] = box_of_any_size[31 - threadIdx.x];
}

__global__ void shared_beyond(int* out) {
  __shared__ int box[32];
  box[threadIdx.x] = 1;
  __syncthreads();
  // stops: 4 bytes of shared memory at address 0x80, the block has 128 bytes.*lane 29;
  out[threadIdx.x] = box[threadIdx.x + out[0]];
}

__global__ void unwritten(int* out) {
  __shared__ int box[64];
  box[2 * threadIdx.x] = threadIdx.x;
  __syncthreads();
  // stops: reads box\[1\], which nothing has written .a barrier .*lane 0;
  out[threadIdx.x] = box[threadIdx.x + 1];
}

__global__ void unwritten_byte(unsigned char* out) {
  __shared__ unsigned char box[64];
  if (threadIdx.x != 5) box[threadIdx.x] = threadIdx.x;
  __syncthreads();
  // stops: box\[5\], which nothing has written.*lane 26;
  out[threadIdx.x] = box[31 - threadIdx.x];
}

__global__ void unwritten_atomic(int* out) {
  __shared__ int box[2];
  if (threadIdx.x == 0) box[0] = 0;
  __syncthreads();
  // stops: updates box\[1\], which nothing has written
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

// stops: integer division by zero.*lane 17;
__global__ void divide(int* out) { out[threadIdx.x] = 7 / (out[threadIdx.x] - 3); }

__global__ void half_barrier(int* out) {
  if (threadIdx.x < 32) {
    // stops: deadlock: block \(0, 0, 0\) waits at barrier 1.*bar.sync
    asm volatile("bar.sync 1, 64;");
  }
  asm volatile("bar.sync 0;");
  out[threadIdx.x] = 1;
}

__global__ void lanes_at_barriers(int* out) {
  // stops: a barrier's number must be from 0 to 15, the same in each lane of a warp \(here 2\)
  asm volatile("bar.sync %0, 64;" ::"r"(threadIdx.x < 7 ? 1 : 2));
  out[threadIdx.x] = 1;
}

__global__ void no_such_barrier(int* out) {
  // stops: a barrier's number must be from 0 to 15, the same .* \(here 20\)
  asm volatile("bar.arrive %0, 64;" ::"r"(blockDim.x - 12));
  out[threadIdx.x] = 1;
}

__global__ void split_barrier(int* out) {
  if (threadIdx.x < 16) {
    // stops: the lanes of a warp do not wait at the same bar.sync
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
    // stops: deadlock: lanes 0xffff0000 of block \(0, 0, 0\), warp 0 wait at vote.sync.ballot
    out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
  }
}

__global__ void not_a_member(int* out) {
  // stops: not in the member mask.*lane 16;
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, threadIdx.x, 1);
}

__global__ void inactive_source(int* out) {
  // stops: does not take part \(source lane 20\).*lane 19;
  if (threadIdx.x < 20) out[threadIdx.x] = __shfl_down_sync(0x000fffffu, threadIdx.x, 1);
}

__global__ void endless(volatile int* out) {
  while (out[0] == 0) {
  }
}

__global__ void unknown(int* out) { asm volatile("setmaxnreg.inc.sync.aligned.u32 64;"); }

__global__ void traps(int* out) {
  // stops: trap.*lane 3;
  if (out[threadIdx.x] == 0 && threadIdx.x == 3) __trap();
}

__global__ void textured(float* out, cudaTextureObject_t t) {
  out[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}

__global__ void skips(int* out) {
  // stops: some threads went past a barrier .* \(block \(0, 0, 0\), warp 2, lanes 0xffffffff\), bar.sync at
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
    // stops: some threads went past a barrier .* \(block \(0, 0, 0\), warp 2, lanes 0xffffffff\), bar.sync at
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
    // stops: some threads went past a barrier .* \(block \(0, 0, 0\), warp 2, lanes 0xffffffff\), bar.sync at
    if (i + (threadIdx.x < 64) > 0) __syncthreads();
    out[threadIdx.x] += i;
  }
}

__global__ void clustered(int* out) { asm volatile("barrier.cluster.arrive;"); }
