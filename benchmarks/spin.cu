// A kernel whose length is chosen: one thread waits until the GPU's own clock has moved on by `ns`.
__global__ void spin(unsigned long long ns, unsigned long long* launches) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < ns);
    *launches += 1;
}
