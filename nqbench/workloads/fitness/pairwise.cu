// The paper's schemes that compare pairs of queens (sections 2.5 to 2.7).
#include "../variants.cuh"
#include "../warp.cuh"
#include "board.cuh"

// A pair of queens as a thread of its own compares them. Hardly any pair of a board conflicts.
template <class Access>
__device__ inline void compare(const int* __restrict__ board, int i, int j, Total* conflicts) {
    const int a = Access::load(board, i), b = Access::load(board, j);
    if (Access::seldom(conflict(a, b, j - i), a + b)) atomicAdd(conflicts, 1ull);
}

// Fine-grained 1 (Algorithm 8): one thread per pair, listed by the host.
template <class Access>
__global__ void fine1(const int* __restrict__ board, const int2* __restrict__ pairs,
                      long long count, Total* conflicts) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= count) return;
    const int2 pair = Access::load(pairs, thread);
    compare<Access>(board, pair.x, pair.y, conflicts);
}

// Fine-grained 2 (Algorithm 9): the thread's number, less n-1, n-2, ..., gives its pair.
template <class Access>
__global__ void fine2(const int* __restrict__ board, int n, long long count, Total* conflicts) {
    long long rest = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (rest >= count) return;
    long long row = n - 1;
    int i = 0;
    for (; rest - row >= 0; ++i) {
        rest -= row;
        --row;
    }
    const int j = (int)rest + 1 + i;
    compare<Access>(board, i, j, conflicts);
}

enum class Atomics { per_conflict, per_thread, per_warp };

// Coarse-grained (Algorithm 10): one thread per queen. The paper adds every conflict by itself.
// In a variant a thread adds once: on a random board it finds about one conflict.
template <class Access, Atomics Add>
__global__ void coarse(const int* __restrict__ board, int n, Total* conflicts) {
    constexpr bool kAtOnce = Add == Atomics::per_conflict && Access::kFull;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Total found = 0;
    if (i < n) {
        const int own = Access::load(board, i);
        if constexpr (Access::kMemoryOnly) found = own;
        for (int j = i + 1; j < n; ++j) {
            const int other = Access::load(board, j);
            if constexpr (Access::kMemoryOnly) {
                found += other;
                continue;
            }
            if (!conflict(own, other, j - i)) continue;
            if constexpr (kAtOnce) atomicAdd(conflicts, 1ull);
            else ++found;
        }
    }
    if constexpr (!kAtOnce && Add != Atomics::per_warp)
        if (found) Access::atomic_add(conflicts, found);
    if constexpr (Add == Atomics::per_warp) {
        const Total sum = warp_sum(found);
        if (threadIdx.x % kWarp == 0 && sum) Access::atomic_add(conflicts, sum);
    }
}
