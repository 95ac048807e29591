// The paper's schemes that compare pairs of queens (sections 2.5 to 2.7).
#include "board.cuh"

// Fine-grained 1 (Algorithm 8): one thread per pair, listed by the host.
__global__ void fine1(const int* __restrict__ board, const int2* __restrict__ pairs,
                      long long count, Total* conflicts) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= count) return;
    const int2 pair = pairs[thread];
    if (conflict(board[pair.x], board[pair.y], pair.y - pair.x)) atomicAdd(conflicts, 1ull);
}

// Fine-grained 2 (Algorithm 9): the thread's number, less n-1, n-2, ..., tells its pair.
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
    if (conflict(board[i], board[j], j - i)) atomicAdd(conflicts, 1ull);
}

enum class Atomics { per_conflict, per_thread, per_warp };

// Coarse-grained (Algorithm 10): one thread per queen. The paper adds every conflict by itself.
template <Atomics Add>
__global__ void coarse(const int* __restrict__ board, int n, Total* conflicts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Total found = 0;
    if (i < n) {
        const int own = board[i];
        for (int j = i + 1; j < n; ++j) {
            if (!conflict(own, board[j], j - i)) continue;
            if constexpr (Add == Atomics::per_conflict)
                atomicAdd(conflicts, 1ull);
            else
                ++found;
        }
    }
    if constexpr (Add == Atomics::per_thread)
        if (found) atomicAdd(conflicts, found);
    if constexpr (Add == Atomics::per_warp) {
        const Total sum = warp_sum(found);
        if (threadIdx.x % 32 == 0 && sum) atomicAdd(conflicts, sum);
    }
}
