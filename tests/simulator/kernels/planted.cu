// Kernels with one mistake each, and their right twins. A line that is wrong says "bad:" and the kind
// of mistake, and "no ... after" or before it if just a fence is missing; of two that race, one does so.
// Every kernel runs with 2 blocks of 96 threads; `out` are 192 zeros, `raw` 192 words nobody wrote to.
#define K extern "C" __global__ void
#define T threadIdx.x
#define ZERO static_cast<int>(blockIdx.y)  // which the compiler does not know

K global_beyond(int* out, int*) { out[blockIdx.x * 96 + T + 8] = 1; }  // bad: out of bounds
K global_before(int* out, int*) {
    if (blockIdx.x == 0) out[96 + T] = out[static_cast<int>(T) - 4];  // bad: out of bounds
}
K null_pointer(int* out, int*) {
    int* nowhere = reinterpret_cast<int*>(static_cast<size_t>(ZERO));
    if (T == 3) *nowhere = 1;  // bad: out of bounds
}
K shared_beyond(int* out, int*) {
    __shared__ int s[96];
    s[T + ZERO] = T;
    if (T == 95) s[T + ZERO + 1] = T;  // bad: out of bounds
    out[blockIdx.x * 96 + T] = s[T + ZERO];
}
K local_beyond(int* out, int*) {
    int a[4];
    for (int i = 0; i < 4; ++i) a[(i + ZERO) & 3] = i;
    out[blockIdx.x * 96 + T] = a[ZERO + 4 + (T & 1)];  // bad: out of bounds
}
K global_misaligned(int* out, int*) {
    char* bytes = reinterpret_cast<char*>(out) + 1;
    if (T == 7) *reinterpret_cast<int*>(bytes + 4 * T) = 1;  // bad: misaligned
}
K shared_misaligned(int* out, int*) {
    __shared__ __align__(8) int s[96];
    s[T] = T;
    if (T == 5) *reinterpret_cast<long long*>(&s[T + ZERO]) = 1;  // bad: misaligned
    out[blockIdx.x * 96 + T] = s[T];
}
K global_unwritten(int* out, int* raw) {
    out[blockIdx.x * 96 + T] = raw[T];  // bad: uninitialised
}
K global_unwritten_byte(int* out, int* raw) {
    char* bytes = reinterpret_cast<char*>(raw);
    if (T % 2 == 0) bytes[96 * blockIdx.x + T] = 1;
    out[blockIdx.x * 96 + T] = bytes[96 * blockIdx.x + T];  // bad: uninitialised
}
K global_written(int* out, int* raw) {
    raw[blockIdx.x * 96 + T] = 0x7FF7A5A5;
    out[blockIdx.x * 96 + T] = raw[blockIdx.x * 96 + T];
}
K shared_unwritten(int* out, int*) {
    __shared__ int s[96];
    if (T != 40) s[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = s[95 - T];  // bad: uninitialised
}
K local_unwritten(int* out, int*) {
    int a[8];
    for (int i = 0; i < 6; ++i) a[(i + ZERO) & 7] = i;
    out[blockIdx.x * 96 + T] = a[(ZERO + T) & 7];  // bad: uninitialised
}

K read_after_write(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    out[blockIdx.x * 96 + T] = s[95 - T];  // bad: race
}
K read_after_write_right(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = s[95 - T];
}
K write_after_read(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncthreads();
    int v = s[95 - T];
    s[T] = v + 100;  // bad: race
    out[blockIdx.x * 96 + T] = v;
}
K write_write(int* out, int*) {
    __shared__ int s[48];
    s[T / 2] = T;  // bad: race
    __syncthreads();
    out[blockIdx.x * 96 + T] = s[T / 2];
}
K same_value(int* out, int*) {
    __shared__ int some;
    if (T == 0) some = 0;
    __syncthreads();
    if (T % 3 == 0) some = 1;
    __syncthreads();
    out[blockIdx.x * 96 + T] = some;
}
K in_a_warp(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    out[blockIdx.x * 96 + T] = s[T ^ 1];  // bad: race
}
K in_a_warp_right(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncwarp();
    int v = s[T ^ 1];
    __syncwarp();
    s[T] = v;
    out[blockIdx.x * 96 + T] = s[T];
}
K in_step(int* out, int*) {
    volatile int* v = out + 96 * blockIdx.x;
    v[T] = T;
    __syncthreads();
    if (T < 32) {
        v[T] += v[T + 32];
        v[T] += v[T + 16];  // bad: race
        v[T] += v[T + 8];  // bad: race
    }
}
K half_a_warp(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    if (T % 32 < 16) __syncwarp(0xffff);
    out[blockIdx.x * 96 + T] = s[T ^ 16];  // bad: race
}
K vote_after_read(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncwarp();
    unsigned odd = __ballot_sync(~0u, s[T ^ 1] & 1);
    s[T] = odd;
    out[blockIdx.x * 96 + T] = s[T];
}
K sums(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncthreads();
    for (int half = 48; half >= 3; half /= 2)
        if (T < half) s[T] += s[T + half];  // bad: race
    if (T == 0) out[blockIdx.x] = s[0];
}
K sums_right(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    for (int half = 48; half >= 3; half /= 2) {
        __syncthreads();
        if (T < half) s[T] += s[T + half];
    }
    if (T == 0) out[blockIdx.x] = s[0];
}
K tiles(int* out, int*) {
    __shared__ int tile[96];
    int sum = 0;
    for (int step = 0; step < 3; ++step) {
        tile[T] = step + T;  // bad: race
        __syncthreads();
        sum += tile[95 - T];
    }
    out[blockIdx.x * 96 + T] = sum;
}
K reset(int* out, int*) {
    __shared__ int count;
    if (T == 0) count = 0;
    atomicAdd(&count, 1);  // bad: race
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K neighbours(int* out, int*) {
    __shared__ char s[96];
    s[T] = T;
    out[blockIdx.x * 96 + T] = s[T];
}
K hand_over(int* out, int*) {  // 32 threads fill what 64 read, at a barrier of its own
    __shared__ int s[32];
    if (T < 32) {
        s[T] = T;
        asm volatile("bar.arrive 1, 96;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 96;" ::: "memory");
        out[blockIdx.x * 96 + T] = s[T % 32];
    }
}
K hand_over_in_turn(int* out, int*) {  // the same, at a barrier that a register names
    __shared__ int s[32];
    for (int turn = blockIdx.x; turn < 4; ++turn) {
        if (T < 32) {
            s[T] = T * turn;
            asm volatile("bar.arrive %0, 96;" ::"r"(turn) : "memory");
        } else {
            asm volatile("bar.sync %0, 96;" ::"r"(turn) : "memory");
            out[blockIdx.x * 96 + T] += s[T % 32];
        }
        asm volatile("barrier.sync %0;" ::"r"(turn + 4) : "memory");
    }
}
K written_too_early(int* out, int*) {  // without the barrier that ends a turn
    __shared__ int s[32];
    for (int turn = blockIdx.x; turn < 4; ++turn) {
        if (T < 32) {
            s[T] = T * turn;  // bad: race
            asm volatile("bar.arrive %0, 96;" ::"r"(turn) : "memory");
        } else {
            asm volatile("bar.sync %0, 96;" ::"r"(turn) : "memory");
            out[blockIdx.x * 96 + T] += s[T % 32];
        }
    }
}

__device__ int seen(int* flag) {
    int value;
    asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
K told_by_a_flag(int* out, int*) {  // by 32 threads that only read it
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        __syncwarp();
        if (T == 0) {
            __threadfence_block();
            atomicExch(&flag, 1);
        }
    } else if (T < 64) {
        while (!seen(&flag)) {}
        out[blockIdx.x * 96 + T] = s[T - 32];
    }
}
K told_by_a_flag_without_a_fence(int* out, int*) {
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;  // bad: race, no __threadfence_block() after
        __syncwarp();
        if (T == 0) atomicExch(&flag, 1);
    } else if (T < 64) {
        while (!seen(&flag)) {}
        out[blockIdx.x * 96 + T] = s[T - 32];  // bad: race
    }
}
K asked_by_every_lane(int* out, int*) {
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        __syncwarp();
        if (T == 0) {
            __threadfence_block();
            atomicExch(&flag, 1);
        }
    } else {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence_block();
        out[blockIdx.x * 96 + T] = s[T % 32];
    }
}
K asked_by_every_lane_without_a_fence(int* out, int*) {
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;  // bad: race, no __threadfence_block() after
        __syncwarp();
        if (T == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence_block();
        out[blockIdx.x * 96 + T] = s[T % 32];  // bad: race
    }
}
K both_read_a_flag(int* out, int*) {
    __shared__ int flag, s;
    if (T == 0) flag = 0;
    __syncthreads();
    if (T == 0) {
        s = 5 + ZERO;  // bad: race
        out[96 * blockIdx.x] = seen(&flag);
    } else if (T == 64) {
        out[96 * blockIdx.x + 1] = seen(&flag);
        out[96 * blockIdx.x + 2] = s;  // bad: race
    }
}
struct Record {
    int n;
    char text[13];
    long long last;
};
K copied_record(int* out, int*) {  // with 7 bytes that are nothing
    Record a[3];
    for (int i = 0; i < 3; ++i) {
        a[(i + ZERO) % 3].n = T + i;
        for (int j = 0; j < 13; ++j) a[(i + ZERO) % 3].text[j] = j;
        a[(i + ZERO) % 3].last = T;
    }
    a[ZERO] = a[T % 3];
    Record b = a[(T + ZERO) % 2];
    out[blockIdx.x * 96 + T] = b.n + b.text[(T + ZERO) % 13] + b.last;
}
K copied_unwritten(int* out, int*) {
    Record a[2];
    a[ZERO].n = T;
    a[ZERO].last = T;
    a[ZERO + 1] = a[ZERO];
    out[blockIdx.x * 96 + T] = a[ZERO + 1].n + a[ZERO + 1].text[(T + ZERO) % 13];  // bad: uninitialised
}

K some_at_a_barrier(int* out, int*) {
    if (T < 64) __syncthreads();  // bad: divergent barrier
    out[blockIdx.x * 96 + T] = T;
}
K turns_at_a_barrier(int* out, int*) {
    for (int i = 0; i < 1 + static_cast<int>(T / 32); ++i) {
        out[blockIdx.x * 96 + T] += i;
        __syncthreads();  // bad: divergent barrier
    }
    __syncthreads();  // bad: divergent barrier
    out[blockIdx.x * 96 + T] += 1;
}
K warps_at_two_barriers(int* out, int*) {  // equally often: right on every GPU, but not by the rules
    __shared__ int box[64];
    if (T < 64) {
        box[T] = T;
        __syncthreads();  // bad: divergent barrier
    } else {
        __syncthreads();  // bad: divergent barrier
        out[blockIdx.x * 96 + T] = box[T - 64] + box[T - 32];
    }
}
K two_barriers(int* out, int*) {
    if (T % 2) {
        out[blockIdx.x * 96 + T] = 1;
        __syncthreads();  // bad: divergent barrier
    } else {
        __syncthreads();  // bad: divergent barrier
        out[blockIdx.x * 96 + T] = 2;
    }
}
K too_many_wanted(int* out, int*) {
    asm volatile("bar.sync 1, 128;" ::: "memory");  // bad: divergent barrier
    out[blockIdx.x * 96 + T] = 1;
}
K early_exit(int* out, int*) {
    if (T >= 70) return;
    __syncthreads();
    out[blockIdx.x * 96 + T] = T;
}

K increments(int* out, int*) { out[0] = out[0] + 1; }  // bad: lost update
K counts(int* out, int*) { ++out[T % 7]; }  // bad: lost update
K last_one(int* out, int*) { out[T] = blockIdx.x + 1; }  // bad: lost update
K store_and_add(int* out, int*) {
    if (T == 0) out[0] = blockIdx.x + 5;
    atomicAdd(out, 1);  // bad: lost update
}
K all_set(int* out, int*) { out[T % 7] = 1; }
K adds(int* out, int*) { atomicAdd(&out[T % 7], 1); }
K locked(int* out, int*) {
    if (T) return;
    while (atomicCAS(&out[0], 0, 1)) {}
    __threadfence();
    out[1] = out[1] + 1;
    __threadfence();
    atomicExch(&out[0], 0);
}
K last_block(int* out, int* raw) {
    __shared__ int last;
    raw[blockIdx.x * 96 + T] = T;
    __threadfence();
    __syncthreads();
    if (T == 0) last = atomicAdd(&out[0], 1) == 1;
    __syncthreads();
    if (!last) return;
    out[1 + T] = raw[T] + raw[96 + T];
}
K last_block_writes(int* out, int*) {
    unsigned ticket = 0;
    out[1 + (T + blockIdx.x) % 96] = T;  // bad: lost update
    __threadfence();
    __syncthreads();
    if (T == 0) ticket = atomicAdd(&out[0], 1);
    if (T >= 32 || __shfl_sync(~0u, ticket, 0) != 1) return;
    out[1 + T] = -1;
}
K last_block_without_a_fence(int* out, int* raw) {
    __shared__ int last;
    raw[blockIdx.x * 96 + T] = T;  // bad: race, no __threadfence() after
    __syncthreads();
    if (T == 0) last = atomicAdd(&out[0], 1) == 1;
    __syncthreads();
    if (last) out[1 + T] = raw[T] + raw[96 + T];  // bad: race
}
K last_block_released(int* out, int* raw) {  // by the thread that counts
    __shared__ int last;
    raw[blockIdx.x * 96 + T] = T;
    __syncthreads();
    __threadfence();
    if (T == 0) last = atomicAdd(&out[0], 1) == 1;
    __syncthreads();
    if (last) out[1 + T] = raw[T] + raw[96 + T];
}

K in_place(int* out, int*) {
    int i = blockIdx.x * 96 + T, v = out[(i + 1) % 192];  // bad: race
    out[i] = v + i + 1;
}
K in_place_right(int* out, int*) {  // each block for itself
    int v = out[blockIdx.x * 96 + (T + 1) % 96];
    __syncthreads();
    out[blockIdx.x * 96 + T] = v + T + 1;
}
K in_place_without_a_barrier(int* out, int*) {
    int v = out[blockIdx.x * 96 + (T + 1) % 96];  // bad: race
    out[blockIdx.x * 96 + T] = v + T + 1;
}
K between_blocks(int* out, int* raw) {
    if (blockIdx.x == 0) raw[T] = T + 1;
    if (blockIdx.x == 1) out[T] = raw[95 - T];  // bad: race
}
K from_the_block_itself(int* out, int* raw) {
    raw[blockIdx.x * 96 + T] = T + 1;
    __syncthreads();
    out[blockIdx.x * 96 + T] = raw[blockIdx.x * 96 + 95 - T];
}
K counted_and_read(int* out, int*) {
    atomicAdd(&out[0], 1);
    if (T == 5 && out[0] > 7) out[1 + blockIdx.x] = 1;  // bad: race
}
K counted_and_asked(int* out, int*) {
    atomicAdd(&out[0], 1);
    if (T == 5 && atomicAdd(&out[0], 0) > 7) out[1 + blockIdx.x] = 1;
}
K read_only_together(int* out, int*) {
    int sum = 0;
    for (int i = 0; i < 96; ++i) sum += out[96 + i];
    if (blockIdx.x == 0) out[T] = sum;
}
K flag(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;
        __threadfence();
        atomicExch(&out[0], 1);
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        __threadfence();
        out[2] = out[1];
    }
}
K flag_without_a_fence(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;  // bad: race, no __threadfence() after
        atomicExch(&out[0], 1);
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        __threadfence();
        out[2] = out[1];  // bad: race
    }
}
K flag_fenced_in_its_block(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;  // bad: race, no __threadfence() after
        __threadfence_block();
        atomicExch(&out[0], 1);
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        out[2] = out[1];  // bad: race
    }
}
K flag_before_the_data(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        __threadfence();
        atomicExch(&out[0], 1);
        out[1] = 5 + ZERO;  // bad: race
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        __threadfence();
        out[2] = out[1];  // bad: race
    }
}
K volatile_flag(int* out, int*) {
    volatile int* flag = out;
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[2] = out[1];
    }
}
K released_flag(int* out, int*) {
    if (T) return;
    int seen = 0;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;
        asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(out) : "memory");
    } else {
        while (!seen) asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(out) : "memory");
        out[2] = out[1];
    }
}
K flag_read_without_a_fence(int* out, int*) {
    volatile int* flag = out;
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        out[2] = out[1];  // bad: race, no __threadfence() before
    }
}
K locked_without_a_fence(int* out, int*) {  // after the lock; the fence before it is too early
    if (T) return;
    __threadfence();
    while (atomicCAS(&out[0], 0, 1)) {}
    out[1] = out[1] + 1;  // bad: race, no __threadfence() before
    __threadfence();
    atomicExch(&out[0], 0);
}
K taken_by_a_lane_without_a_fence(int* out, int* raw) {  // for its warp
    if (blockIdx.x == 0) {
        raw[T] = T;
        __threadfence();
        __syncthreads();
        if (T == 0) atomicExch(&out[0], 1);
    } else {
        if (T % 32 == 0) {
            while (atomicAdd(&out[0], 0) == 0) {}
        }
        __syncwarp();
        out[96 + T] = raw[T];  // bad: race, no __threadfence() before
    }
}
K taken_by_a_lane(int* out, int* raw) {
    if (blockIdx.x == 0) {
        raw[T] = T;
        __threadfence();
        __syncthreads();
        if (T == 0) atomicExch(&out[0], 1);
    } else {
        if (T % 32 == 0) {
            while (atomicAdd(&out[0], 0) == 0) {}
            __threadfence();
        }
        __syncwarp();
        out[96 + T] = raw[T];
    }
}
K asked_again_after_the_fence(int* out, int* raw) {
    volatile int* flag = out;
    if (blockIdx.x == 0 && T == 0) {
        raw[0] = 5 + ZERO;
        __threadfence();
        *flag = 1;
    } else if (blockIdx.x == 1 && T == 0) {
        while (*flag == 0) {}
        __threadfence();
        while (*flag == 0) {}
        out[2] = raw[0];
    }
}
K all_arrive(int* out, int* raw) {  // a barrier of the grid, by one thread of each block
    volatile int* arrived = out;
    raw[blockIdx.x * 96 + T] = T;
    __syncthreads();
    if (T == 0) {
        __threadfence();
        atomicAdd(&out[0], 1);
        while (*arrived != 2) {}
    }
    __syncthreads();
    out[1 + T] = raw[95 - T] + raw[191 - T];
}
K lock_acquired(int* out, int*) {
    if (T) return;
    int taken = 1;
    while (taken)
        asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "l"(out) : "memory");
    out[1] = out[1] + 1;
    asm volatile("st.release.gpu.global.b32 [%0], 0;" ::"l"(out) : "memory");
}
K lock_acquired_in_its_block(int* out, int*) {
    if (T) return;
    int taken = 1;
    while (taken)
        asm volatile("atom.acquire.cta.global.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "l"(out) : "memory");
    out[1] = out[1] + 1;  // bad: race, no __threadfence() before
    asm volatile("st.release.gpu.global.b32 [%0], 0;" ::"l"(out) : "memory");
}
K flag_for_a_warp(int* out, int*) {  // of the same block
    int* mine = out + 96 * blockIdx.x;
    if (T == 0) {
        mine[1] = 5 + ZERO;
        __threadfence_block();
        atomicExch(&mine[0], 1);
    } else if (T == 32) {
        while (atomicAdd(&mine[0], 0) == 0) {}
        __threadfence_block();
        mine[2] = mine[1];
    }
}

__device__ void copy(int* to, const int* from) {
    unsigned at = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
K copied(int* out, int*) {
    __shared__ int s[96];
    copy(&s[T], &out[T]);
    COMMIT;
    WAIT(0);
    __syncthreads();
    out[96 + 95 - T] = s[95 - T] + 1;
}
K copied_without_waiting(int* out, int*) {
    __shared__ int s[96];
    copy(&s[T], &out[T]);  // bad: unfinished copy
    __syncthreads();
    out[96 + 95 - T] = s[95 - T] + 1;  // bad: unfinished copy
}
K waited_after_the_barrier(int* out, int*) {
    __shared__ int s[96];
    copy(&s[T], &out[T]);  // bad: unfinished copy
    __syncthreads();
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[96 + 95 - T] = s[95 - T] + 1;  // bad: unfinished copy
}
K waited_for_ones_own(int* out, int*) {
    __shared__ int s[96];
    copy(&s[T], &out[T]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[96 + T] = s[T] + 1;
}
K two_groups(int* out, int*) {
    __shared__ int s[192];
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
        copy(&s[96 * i + T], &out[T]);
        COMMIT;
    }
    WAIT(1);
    __syncthreads();
    sum += s[95 - T];
    WAIT(0);
    __syncthreads();
    out[96 + T] = sum + s[96 + 95 - T] + 1;
}
K the_group_before(int* out, int*) {
    __shared__ int s[192];
    for (int i = 0; i < 2; ++i) {
        copy(&s[96 * i + T], &out[T]);  // bad: unfinished copy
        COMMIT;
    }
    WAIT(1);
    __syncthreads();
    out[96 + T] = s[96 + 95 - T] + 1;  // bad: unfinished copy
}
K written_over_a_copy(int* out, int*) {
    __shared__ int s[96];
    copy(&s[T], &out[T]);
    s[T] = 1;  // bad: unfinished copy
    COMMIT;
    WAIT(0);
    out[96 + T] = s[T] + 1;
}

K next_array(int* out, int*) {
    __shared__ int a[96], b[96];
    a[T] = b[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = a[T + ZERO + 1] + b[T];  // bad: out of bounds
}
K array_before(int* out, int* raw) {
    __shared__ int a[96], b[96];
    const int zero = static_cast<int>(reinterpret_cast<size_t>(raw)) & 3;  // from an argument
    a[T] = b[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = a[T] + b[T + zero - 1];  // bad: out of bounds
}
K two_arrays(int* out, int*) {
    __shared__ int a[96], b[96];
    a[T] = b[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = a[95 - T + ZERO] + b[(T + 1) % 96];
}
K either_array(int* out, int*) {
    __shared__ int a[96], b[96];
    int* mine = T % 2 ? a : b;
    mine[T] = T;
    out[blockIdx.x * 96 + T] = mine[T + ZERO];
}
K parts_of_an_array(int* out, int*) {
    extern __shared__ int dynamic[];
    __shared__ int a[4][96];
    for (int i = 0; i < 4; ++i) a[i][T] = i;
    int* row = &a[ZERO + 1][0];
    out[blockIdx.x * 96 + T] = row[T] + row[static_cast<int>(T) - 96] + row[T + 96 * (1 + ZERO)];
}

K next_local_array(int* out, int*) {
    int a[4], b[4];
    for (int i = 0; i < 4; ++i) {
        a[(i + ZERO) & 3] = i;
        b[(i + ZERO) & 3] = T;
    }
    out[blockIdx.x * 96 + T] = a[ZERO + (T & 7)] + b[ZERO + (T & 3)];  // bad: out of bounds
}
__device__ __noinline__ int before(const int* place, int n) { return place[-n]; }
K local_array_before(int* out, int*) {
    int a[4], b[4];
    for (int i = 0; i < 4; ++i) {
        a[(i + ZERO) & 3] = i;
        b[(i + ZERO) & 3] = T;
    }
    b[ZERO + static_cast<int>(T & 1) - 1] = 7;  // bad: out of bounds
    out[blockIdx.x * 96 + T] = before(a + 1, T & 1) + before(b + 3, T & 3);
}
K two_local_arrays(int* out, int*) {
    int a[4], b[4];
    for (int i = 0; i < 4; ++i) {
        a[(i + ZERO) & 3] = i;
        b[(i + ZERO) & 3] = T;
    }
    const int* mine = T % 2 ? a : b;
    const int* end = b + 4;
    int sum = mine[ZERO + (T & 3)] + before(a + 3, T & 3) + before(b + 2, T & 1);
    for (const int* at = b + ZERO; at != end; ++at) sum += *at;
    out[blockIdx.x * 96 + T] = sum;
}
K parts_of_local_arrays(int* out, int*) {
    Record a[2];
    int b[3][4];
    for (int i = 0; i < 12; ++i) {
        a[(i + ZERO) & 1].text[(i + ZERO) % 13] = i;
        b[(i + ZERO) / 4][(i + ZERO) & 3] = i;
    }
    a[ZERO].n = a[ZERO + 1].n = T;
    const int* row = b[1];
    int sum = a[T & 1].n + a[1].text[ZERO + 1 + 2 * (T % 6)];
    out[blockIdx.x * 96 + T] = sum + row[ZERO + static_cast<int>(T % 12) - 4];
}

K left_before_writing(int* out, int*) {
    __shared__ int s[96];
    if (T >= 70) return;
    s[T] = T;
    __syncthreads();
    out[blockIdx.x * 96 + T] = s[(T + 40) % 96];  // bad: uninitialised
}
K left_after_writing(int* out, int*) {
    __shared__ int s[96];
    s[T] = T;
    __syncthreads();
    if (T >= 70) return;
    out[blockIdx.x * 96 + T] = s[(T + 40) % 96];
}

K never_told(int* out, int*) {
    while (atomicAdd(&out[0], 0) == 0) {}  // bad: endless
}
K two_locks(int* out, int*) {
    if (T) return;
    int mine = blockIdx.x, other = 1 - mine;
    while (atomicCAS(&out[mine], 0, 1)) {}
    while (atomicAdd(&out[other], 0) == 0) {}
    while (atomicCAS(&out[other], 0, 1)) {}  // bad: endless
    atomicExch(&out[other], 0);
    atomicExch(&out[mine], 0);
}
K counts_for_ever(int* out, int*) {
    for (unsigned i = 0; atomicAdd(&out[0], 0) != i * i + 2; ++i) {}  // bad: endless
}
K waits_in_steps(int* out, int*) {  // longer each time
    for (int n = 1; atomicAdd(&out[0], 0) == 0; n = 2 * n % 1000003)
        for (int i = 0; i < (n & 15); ++i) asm volatile("nanosleep.u32 1;");  // bad: endless
}
K counts_long(int* out, int*) {  // in registers alone
    unsigned x = T + 1;
    for (int i = 0; i < 3000; ++i) x = x % 2 ? 3 * x + 1 : x / 2;
    out[blockIdx.x * 96 + T] = x;
}
K one_lock(int* out, int*) {
    if (T) return;
    while (atomicCAS(&out[0], 0, 1)) {}
    atomicAdd(&out[1], 1);
    atomicExch(&out[0], 0);
}
K waits_for_its_turn(int* out, int*) {
    if (T) return;
    while (atomicAdd(&out[0], 0) != blockIdx.x) {}
    atomicAdd(&out[0], 1);
}
K members_elsewhere(int* out, int*) {
    if (T % 32 < 16) {
        out[blockIdx.x * 96 + T] = __shfl_sync(~0u, T, 1);
    } else {
        out[blockIdx.x * 96 + T] = __ballot_sync(~0u, 1);  // bad: deadlock
    }
}
K members_of_each(int* out, int*) {
    if (T % 32 < 16) {
        out[blockIdx.x * 96 + T] = __shfl_sync(0xffffu, T, 1);
    } else {
        out[blockIdx.x * 96 + T] = __ballot_sync(0xffff0000u, 1);
    }
}
K ballot_of_strangers(int* out, int*) {
    out[blockIdx.x * 96 + T] = __shfl_sync(0xffffu, T, 1);  // bad: fault
}
K from_a_lane_that_is_not_there(int* out, int*) {
    if (T % 32 < 20) out[blockIdx.x * 96 + T] = __shfl_down_sync(0xfffffu, T, 1);  // bad: fault
}
K from_lanes_that_are_there(int* out, int*) {
    if (T % 32 < 20) out[blockIdx.x * 96 + T] = __shfl_down_sync(0xfffffu, T, 1, 4);
}
K divided_by_zero(int* out, int*) { out[T] = 7 / (static_cast<int>(T) - 40 + ZERO); }  // bad: fault
K divided(int* out, int*) { atomicAdd(&out[T], 7 / (static_cast<int>(T) + 40 + ZERO)); }
K aligned_pairs(int* out, int*) {
    if (blockIdx.x == 0) *reinterpret_cast<long long*>(&out[2 * T]) = T;
}
K all_written(int* out, int* raw) {
    int own[4] = {1, 2, 3, static_cast<int>(T)};
    raw[blockIdx.x * 96 + T] = own[(T + ZERO) & 3];
    out[blockIdx.x * 96 + T] = raw[blockIdx.x * 96 + T] + own[ZERO];
}
K tiles_right(int* out, int*) {
    __shared__ int tile[96];
    int sum = 0;
    for (int step = 0; step < 3; ++step) {
        tile[T] = step + T;
        __syncthreads();
        sum += tile[95 - T];
        __syncthreads();
    }
    out[blockIdx.x * 96 + T] = sum;
}
K reset_right(int* out, int*) {
    __shared__ int count;
    if (T == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K all_at_a_barrier(int* out, int*) {
    for (int i = 0; i < 3; ++i) {
        if (T < 64) out[blockIdx.x * 96 + T] += i;
        __syncthreads();
    }
    if (blockIdx.x == 0) __syncthreads();
}
#define BAR_IF(p) "{ .reg .pred p; setp.ne.u32 p, %0, 0; @p bar.sync 1, 64; }" ::"r"(int(p))
K lanes_skip_by_predicate(int* out, int*) {
    asm volatile(BAR_IF(T % 2 == 0) : "memory");  // bad: divergent barrier
    __syncthreads();
    out[blockIdx.x * 96 + T] = 1;
}
K warps_by_predicate(int* out, int*) {
    __shared__ int s[64];
    if (T < 64) s[T] = T;
    asm volatile(BAR_IF(T < 64) : "memory");
    if (T < 64) out[blockIdx.x * 96 + T] = s[63 - T];
}
K part_of_a_warp(int* out, int*) {
    __shared__ int s[48];
    if (T >= 48) return;
    s[T] = T;
    asm volatile("bar.sync 1, 64;" ::: "memory");  // which counts whole warps
    out[blockIdx.x * 96 + T] = s[47 - T];
}
K swapped_by_a_guess(int* out, int*) {
    int old = out[0], seen;
    do {
        seen = old;
        old = atomicCAS(&out[0], seen, seen + 1);
    } while (old != seen);
}
K swapped_by_what_is_elsewhere(int* out, int*) {
    int seen = out[1];  // bad: race
    atomicCAS(&out[0], seen, seen + 1);
    atomicAdd(&out[1], 1);
}
K labels_in_two_scopes(int* out, int*) {
    int n = T % 3, m = 2;
    for (int* count : {&n, &m})
        asm volatile("{ .reg .pred p; AGAIN: setp.le.s32 p, %0, 0; @p bra DONE; sub.s32 %0, %0, 1;"
                     " bra AGAIN; DONE: }"
                     : "+r"(*count));
    out[blockIdx.x * 96 + T] = n + m;
}
#define GIVE(number) \
    __threadfence(); \
    atomicAdd(&out[number], 1)
#define TAKE(number)                             \
    while (atomicAdd(&out[number], 0) == 0) {} \
    __threadfence()
K passed_on(int* out, int* raw) {  // from a warp by the other block to another warp
    if (blockIdx.x == 0 && T == 0) {
        raw[0] = 1;
        GIVE(0);
    } else if (blockIdx.x == 1 && T == 0) {
        TAKE(0);
        GIVE(1);
    } else if (blockIdx.x == 0 && T == 64) {
        TAKE(1);
        out[2] = raw[0];
    }
}
K passed_on_without_a_fence(int* out, int* raw) {
    if (blockIdx.x == 0 && T == 0) {
        raw[0] = 1;
        GIVE(0);
    } else if (blockIdx.x == 1 && T == 0) {
        while (atomicAdd(&out[0], 0) == 0) {}
        atomicAdd(&out[1], 1);
    } else if (blockIdx.x == 0 && T == 64) {
        TAKE(1);
        out[2] = raw[0];  // bad: race
    }
}
K passed_on_but_not_seen(int* out, int* raw) {
    if (blockIdx.x == 0 && T == 0) {
        raw[0] = 1;
        GIVE(0);
    } else if (blockIdx.x == 1 && T == 0) {
        TAKE(0);
        GIVE(1);
    } else if (blockIdx.x == 0 && T == 64) {
        while (atomicAdd(&out[1], 0) == 0) {}
        out[2] = raw[0];  // bad: race, no __threadfence() before
    }
}

#define RELAXED(to, place) \
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(to) : "l"(place) : "memory")
K last_block_of_volatiles(int* out, int* raw) {  // the sum of the CUDA C++ Programming Guide
    __shared__ int last;
    volatile int* sums = raw;
    if (T == 0) {
        sums[blockIdx.x] = 5 + blockIdx.x;
        __threadfence();
        last = atomicAdd(&out[0], 1) == 1;
    }
    __syncthreads();
    if (last && T < 2) out[1 + T] = sums[T];
}
K last_block_of_volatiles_without_a_fence(int* out, int* raw) {
    __shared__ int last;
    volatile int* sums = raw;
    if (T == 0) {
        sums[blockIdx.x] = 5 + blockIdx.x;  // bad: race, no __threadfence() after
        last = atomicAdd(&out[0], 1) == 1;
    }
    __syncthreads();
    if (last && T < 2) out[1 + T] = sums[T];  // bad: race
}
K volatile_data(int* out, int*) {
    volatile int *flag = out, *data = out + 1;
    if (T) return;
    if (blockIdx.x == 0) {
        *data = 5 + ZERO;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[2] = *data;
    }
}
K volatile_data_without_a_fence(int* out, int*) {
    volatile int *flag = out, *data = out + 1;
    if (T) return;
    if (blockIdx.x == 0) {
        *data = 5 + ZERO;  // bad: race, no __threadfence() after
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[2] = *data;  // bad: race
    }
}
K volatile_data_read_without_a_fence(int* out, int*) {
    volatile int *flag = out, *data = out + 1;
    if (T) return;
    if (blockIdx.x == 0) {
        *data = 5 + ZERO;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        out[2] = *data;  // bad: race, no __threadfence() before
    }
}
K relaxed_read_without_a_fence(int* out, int*) {
    if (T) return;
    int seen = 0, data;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;
        asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(out) : "memory");
    } else {
        while (!seen) RELAXED(seen, out);
        RELAXED(data, out + 1);  // bad: race, no __threadfence() before
        out[2] = data;
    }
}
K relaxed_read_after_an_acquire(int* out, int*) {
    if (T) return;
    int seen = 0, data;
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.global.b32 [%0], 5;" ::"l"(out + 1) : "memory");
        asm volatile("st.release.gpu.global.b32 [%0], 1;" ::"l"(out) : "memory");
    } else {
        while (!seen) asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(out) : "memory");
        RELAXED(data, out + 1);
        out[2] = data;
    }
}
K asked_for_data_without_a_fence(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        out[1] = 5 + ZERO;  // bad: race, no __threadfence() after
        atomicExch(&out[0], 1);
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        __threadfence();
        out[2] = atomicAdd(&out[1], 0);  // bad: race
    }
}
K exchanged_data_without_a_fence(int* out, int*) {
    if (T) return;
    if (blockIdx.x == 0) {
        atomicExch(&out[1], 5 + ZERO);  // bad: race, no __threadfence() after
        atomicExch(&out[0], 1);
    } else {
        while (atomicAdd(&out[0], 0) == 0) {}
        __threadfence();
        out[2] = atomicAdd(&out[1], 0);  // bad: race
    }
}
K locked_volatile(int* out, int*) {
    volatile int* count = out + 1;
    if (T) return;
    while (atomicCAS(&out[0], 0, 1)) {}
    __threadfence();
    *count = *count + 1;
    __threadfence();
    atomicExch(&out[0], 0);
}
K locked_volatile_without_a_fence(int* out, int*) {
    volatile int* count = out + 1;
    if (T) return;
    while (atomicCAS(&out[0], 0, 1)) {}
    *count = *count + 1;  // bad: race, no __threadfence() after
    atomicExch(&out[0], 0);
}
// Decoupled look-back over 12 parts: a part's sum, then 1; its prefix, then 2.
#define LOOK_BACK(give, take)                                              \
    volatile int *state = out, *sums = raw, *prefixes = raw + 12;          \
    if (T % 16) return;                                                    \
    int part = (blockIdx.x * 96 + T) / 16, before = 0;                     \
    sums[part] = part + 1;                                                 \
    give;                                                                  \
    state[part] = 1;                                                       \
    for (int at = part - 1; at >= 0; --at) {                               \
        int seen;                                                          \
        while ((seen = state[at]) == 0) {}                                 \
        take;                                                              \
        before += seen == 2 ? prefixes[at] : sums[at];                     \
        if (seen == 2) break;                                              \
    }                                                                      \
    prefixes[part] = before + part + 1;                                    \
    give;                                                                  \
    state[part] = 2;                                                       \
    out[96 + part] = before
K look_back(int* out, int* raw) { LOOK_BACK(__threadfence(), __threadfence()); }
K look_back_without_a_fence(int* out, int* raw) { LOOK_BACK(, __threadfence()); }  // bad: race, no __threadfence() after
K look_back_read_without_a_fence(int* out, int* raw) { LOOK_BACK(__threadfence(), ); }  // bad: race, no __threadfence() before
K look_back_in_one_word(int* out, int*) {  // state and sum together: no fence is needed
    volatile int* parts = out;
    if (T % 16) return;
    int part = (blockIdx.x * 96 + T) / 16, before = 0;
    parts[part] = 1 << 30 | part;
    for (int at = part - 1; at >= 0; --at) {
        int seen;
        while ((seen = parts[at]) == 0) {}
        before += seen & ~(3 << 30);
        if (seen < 0) break;
    }
    parts[part] = 2 << 30 | (before + part);
}
K found_by_another(int* out, int*) {  // a hint may come late
    volatile int *found = out + 1, *where = out + 2;
    for (int job; (job = atomicAdd(&out[0], 1)) < 500;) {
        if (*found) continue;
        if (job % 97 == 96) {
            *where = job;
            *found = 1;
        }
    }
}
K best_of_all(int* out, int*) {
    volatile int* best = out + 1;
    for (int job; (job = atomicAdd(&out[0], 1)) < 500;) {
        int value = job * 37 % 101;
        if (value > *best) atomicMax(&out[1], value);
    }
    if (atomicAdd(&out[2], 1) == 191) out[3] = 1;
}
K two_flags(int* out, int*) {
    volatile int* flags = out;
    if (T) return;
    if (blockIdx.x == 0) {
        flags[0] = 1;
        flags[1] = 1;
    } else {
        while (flags[1] == 0) {}
        while (flags[0] == 0) {}
    }
}
K compacted(int* out, int* raw) {
    volatile int* seen = raw;
    seen[blockIdx.x * 96 + T] = T;
    int value = seen[(blockIdx.x * 96 + T) / 32 * 32];
    if (value % 3 == 0) out[1 + atomicAdd(&out[0], 1)] = value;
}
K sets_joined(int* out, int*) {  // union-find, whose paths are shortened by relaxed stores
    volatile int* parent = out;
    int mine = blockIdx.x * 96 + T;
    for (int other = mine + 1; other < 192; other += 64) {
        int a = mine, b = other;
        while (true) {
            while (parent[a]) a = parent[a] - 1;
            while (parent[b]) b = parent[b] - 1;
            if (a == b) break;
            if (a < b) {
                int t = a;
                a = b;
                b = t;
            }
            if (atomicCAS(&out[a], 0, b + 1) == 0) break;
        }
        if (b < mine) parent[mine] = b + 1;
    }
}

// Between warps of a block: __threadfence_block() reaches far enough, but has to be there.
#define FENCE __threadfence_block()
K flag_for_a_warp_without_a_fence(int* out, int*) {
    int* mine = out + 96 * blockIdx.x;
    if (T == 0) {
        mine[1] = 5 + ZERO;  // bad: race, no __threadfence_block() after
        atomicExch(&mine[0], 1);
    } else if (T == 32) {
        while (atomicAdd(&mine[0], 0) == 0) {}
        FENCE;
        mine[2] = mine[1];  // bad: race
    }
}
K flag_for_a_warp_read_without_a_fence(int* out, int*) {
    volatile int* flag = out + 96 * blockIdx.x;
    int* mine = out + 96 * blockIdx.x;
    if (T == 0) {
        mine[1] = 5 + ZERO;  // bad: race
        FENCE;
        *flag = 1;
    } else if (T == 32) {
        while (*flag == 0) {}
        mine[2] = mine[1];  // bad: race, no __threadfence_block() before
    }
}
K relaxed_in_its_block(int* out, int*) {
    int *mine = out + 96 * blockIdx.x, seen = 0;
    if (T == 0) {
        mine[1] = 5 + ZERO;
        asm volatile("fence.acq_rel.cta; st.relaxed.cta.b32 [%0], 1;" ::"l"(mine) : "memory");
    } else if (T == 32) {
        while (!seen) asm volatile("ld.relaxed.cta.b32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
        __threadfence();
        mine[2] = mine[1];
    }
}
K relaxed_in_its_block_without_a_fence(int* out, int*) {
    int* mine = out + 96 * blockIdx.x;
    if (T == 0) {
        mine[1] = 5 + ZERO;  // bad: race, no __threadfence_block() after
        asm volatile("st.relaxed.cta.b32 [%0], 1;" ::"l"(mine) : "memory");
    } else if (T == 32) {
        while (!seen(mine)) {}
        mine[2] = mine[1];  // bad: race
    }
}
K released_in_its_block(int* out, int*) {
    __shared__ int flag, s;
    if (T == 0) flag = 0;
    __syncthreads();
    if (T == 0) {
        s = 5 + ZERO;
        asm volatile("st.release.cta.b32 [%0], 1;" ::"l"(&flag) : "memory");
    } else if (T == 32) {
        while (!seen(&flag)) {}
        out[96 * blockIdx.x] = s;
    }
}
K volatile_flag_in_its_block(int* out, int*) {
    __shared__ volatile int flag;
    __shared__ int s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        __syncwarp();
        FENCE;
        if (T == 0) flag = 1;
    } else {
        while (flag == 0) {}
        FENCE;
        out[blockIdx.x * 96 + T] = s[T % 32];
    }
}
K volatile_flag_in_its_block_without_a_fence(int* out, int*) {
    __shared__ volatile int flag;
    __shared__ int s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;  // bad: race, no __threadfence_block() after
        __syncwarp();
        if (T == 0) flag = 1;
    } else {
        while (flag == 0) {}
        FENCE;
        out[blockIdx.x * 96 + T] = s[T % 32];  // bad: race
    }
}
K volatile_flag_in_its_block_read_without_a_fence(int* out, int*) {
    __shared__ volatile int flag;
    __shared__ int s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;  // bad: race
        __syncwarp();
        FENCE;
        if (T == 0) flag = 1;
    } else {
        while (flag == 0) {}
        out[blockIdx.x * 96 + T] = s[T % 32];  // bad: race, no __threadfence_block() before
    }
}
K locked_in_its_block(int* out, int*) {
    __shared__ int lock, count;
    if (T == 0) lock = count = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1)) {}
        FENCE;
        count = count + 1;
        FENCE;
        atomicExch(&lock, 0);
    }
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K locked_in_its_block_without_a_fence(int* out, int*) {  // after the lock
    __shared__ int lock, count;
    if (T == 0) lock = count = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1)) {}
        count = count + 1;  // bad: race, no __threadfence_block() before
        FENCE;
        atomicExch(&lock, 0);
    }
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K given_back_without_a_fence(int* out, int*) {
    __shared__ int lock, count;
    if (T == 0) lock = count = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1)) {}
        FENCE;
        count = count + 1;  // bad: race, no __threadfence_block() after
        atomicExch(&lock, 0);
    }
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K last_warp(int* out, int*) {
    __shared__ int sums[3], arrived;
    if (T == 0) arrived = 0;
    __syncthreads();
    if (T % 32) return;
    sums[T / 32] = T;
    FENCE;
    if (atomicAdd(&arrived, 1) != 2) return;
    FENCE;
    out[blockIdx.x] = sums[0] + sums[1] + sums[2];
}
K last_warp_without_a_fence(int* out, int*) {
    __shared__ int sums[3], arrived;
    if (T == 0) arrived = 0;
    __syncthreads();
    if (T % 32) return;
    sums[T / 32] = T;  // bad: race, no __threadfence_block() after
    if (atomicAdd(&arrived, 1) != 2) return;
    FENCE;
    out[blockIdx.x] = sums[0] + sums[1] + sums[2];  // bad: race
}
K last_warp_reads_without_a_fence(int* out, int*) {
    __shared__ int sums[3], arrived;
    if (T == 0) arrived = 0;
    __syncthreads();
    if (T % 32) return;
    sums[T / 32] = T;  // bad: race
    FENCE;
    if (atomicAdd(&arrived, 1) != 2) return;
    out[blockIdx.x] = sums[0] + sums[1] + sums[2];  // bad: race, no __threadfence_block() before
}
K flag_after_a_barrier(int* out, int*) {  // of the two warps that write
    __shared__ int flag, s[64];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 64) {
        s[T] = T;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        FENCE;
        if (T == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) {}
        FENCE;
        out[blockIdx.x * 96 + T] = s[T - 64] + s[T - 32];
    }
}
K flag_after_a_barrier_without_a_fence(int* out, int*) {
    __shared__ int flag, s[64];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 64) {
        s[T] = T;  // bad: race, no __threadfence_block() after
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (T == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) {}
        FENCE;
        out[blockIdx.x * 96 + T] = s[T - 64] + s[T - 32];  // bad: race
    }
}
K flag_read_before_a_barrier(int* out, int*) {  // by one of the two warps that read
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        FENCE;
        __syncwarp();
        if (T == 0) atomicExch(&flag, 1);
    } else {
        if (T == 32) {
            while (atomicAdd(&flag, 0) == 0) {}
            FENCE;
        }
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[blockIdx.x * 96 + T] = s[T % 32];
    }
}
K read_by_a_lane_without_a_fence(int* out, int*) {  // for its warp
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;  // bad: race
        __syncwarp();
        FENCE;
        if (T == 0) atomicExch(&flag, 1);
    } else {
        if (T % 32 == 0) {
            while (atomicAdd(&flag, 0) == 0) {}
        }
        __syncwarp();
        out[blockIdx.x * 96 + T] = s[T % 32];  // bad: race, no __threadfence_block() before
    }
}
K read_by_a_lane(int* out, int*) {
    __shared__ int flag, s[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        __syncwarp();
        FENCE;
        if (T == 0) atomicExch(&flag, 1);
    } else {
        if (T % 32 == 0) {
            while (atomicAdd(&flag, 0) == 0) {}
            FENCE;
        }
        __syncwarp();
        out[blockIdx.x * 96 + T] = s[T % 32];
    }
}
#define TURNS(give)                                     \
    __shared__ int full, s;                             \
    if (T == 0) full = 0;                               \
    __syncthreads();                                    \
    for (int turn = 0; turn < 3 && T % 64 == 0; ++turn) \
        if (T == 0) {                                   \
            while (atomicAdd(&full, 0) == 1) {}         \
            FENCE;                                      \
            s = turn + ZERO;                            \
            FENCE;                                      \
            atomicExch(&full, 1);                       \
        } else {                                        \
            while (atomicAdd(&full, 0) == 0) {}         \
            FENCE;                                      \
            out[96 * blockIdx.x + turn] = s;            \
            give;                                       \
            atomicExch(&full, 0);                       \
        }
K filled_in_turns(int* out, int*) { TURNS(FENCE) }
K filled_again_without_a_fence(int* out, int*) { TURNS() }  // bad: race, no __threadfence_block() after
#define RELAYED(give, take)                      \
    __shared__ int flags[2], s;                  \
    if (T < 2) flags[T] = 0;                     \
    __syncthreads();                             \
    if (T == 0) {                                \
        s = 5 + ZERO;                            \
        FENCE;                                   \
        atomicExch(&flags[0], 1);                \
    } else if (T == 32) {                        \
        while (atomicAdd(&flags[0], 0) == 0) {}  \
        give;                                    \
        atomicExch(&flags[1], 1);                \
    } else if (T == 64) {                        \
        while (atomicAdd(&flags[1], 0) == 0) {}  \
        take;                                    \
        out[blockIdx.x] = s;                     \
    }
K relayed(int* out, int*) { RELAYED(FENCE, FENCE) }
K relayed_without_a_fence(int* out, int*) { RELAYED(, FENCE) }  // bad: race
K relayed_but_not_seen(int* out, int*) { RELAYED(FENCE, ) }  // bad: race, no __threadfence_block() before
K in_a_letter_box(int* out, int*) {  // the word itself: no fence is needed
    __shared__ int box;
    if (T == 0) box = 0;
    __syncthreads();
    if (T == 0) {
        atomicExch(&box, 5 + ZERO);
    } else if (T == 32) {
        int value;
        while ((value = atomicExch(&box, 0)) == 0) {}
        out[96 * blockIdx.x] = value;
    }
}
K phases(int* out, int*) {  // of an mbarrier
    __shared__ long long bar;
    __shared__ int s[96];
    unsigned at = __cvta_generic_to_shared(&bar);
    if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 96;" ::"r"(at) : "memory");
    __syncthreads();
    s[T] = T;
    long long state;
    int done = 0;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "l"(state)
                     : "memory");
    out[blockIdx.x * 96 + T] = s[95 - T];
}
K flag_before_the_fence(int* out, int*) {
    int* mine = out + 96 * blockIdx.x;
    if (T == 0) {
        mine[1] = 5 + ZERO;  // bad: race, no __threadfence_block() after
        atomicExch(&mine[0], 1);
        FENCE;
    } else if (T == 32) {
        while (atomicAdd(&mine[0], 0) == 0) {}
        FENCE;
        mine[2] = mine[1];  // bad: race
    }
}
K given_back_by_a_store(int* out, int*) {
    __shared__ int lock, count;
    if (T == 0) lock = count = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1)) {}
        FENCE;
        count = count + 1;
        FENCE;
        *const_cast<volatile int*>(&lock) = 0;
    }
    __syncthreads();
    out[blockIdx.x * 96 + T] = count;
}
K queue_of_four(int* out, int*) {  // from a warp to another
    __shared__ int words[4];
    __shared__ volatile int head, tail;
    if (T == 0) head = tail = 0;
    __syncthreads();
    for (int i = 0; i < 12 && T % 64 == 0; ++i)
        if (T == 0) {
            while (head - tail == 4) {}
            FENCE;
            words[i % 4] = i;
            FENCE;
            head = i + 1;
        } else {
            while (head == i) {}
            FENCE;
            out[96 * blockIdx.x + i] = words[i % 4];
            FENCE;
            tail = i + 1;
        }
}
K in_step_beside_a_flag(int* out, int*) {
    __shared__ volatile int flag, v[32];
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        v[T] = T;
        __syncwarp();
        v[T] += v[T ^ 1];  // bad: race
        if (T == 0) flag = 1;
    } else {
        while (flag == 0) {}
    }
    out[blockIdx.x * 96 + T] = flag;
}
