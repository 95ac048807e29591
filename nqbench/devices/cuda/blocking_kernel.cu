// Blocks a stream until the CPU has queued all that is to follow: two events and a kernel.
// It ends by itself after limit_ns, so that nothing that the CPU may have to wait for can block it
// for ever. flags[0]: set by the CPU to continue; flags[1]: set here if the time limit came first.

__device__ unsigned long long now_ns() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void block_stream(volatile unsigned int* flags, unsigned long long limit_ns) {
    const unsigned long long start = now_ns();
    while (flags[0] == 0) {
        if (now_ns() - start > limit_ns) {
            flags[1] = 1;
            __threadfence_system();
            return;
        }
    }
}
