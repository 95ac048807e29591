#include <assert.h>
#include <stdio.h>

// No function here is inlined, so that every one is called.
struct Triple { float a[3]; int n; };
typedef int (*Step)(int);

__device__ __noinline__ Triple triple(float x) {
    Triple t;
    t.a[0] = x; t.a[1] = 2 * x; t.a[2] = 1; t.n = 3;
    return t;
}
__device__ __noinline__ float dot(Triple t, float k) {
    float sum = 0;
    for (int i = 0; i < t.n; i++) sum += t.a[i] * k;
    return sum;
}
__device__ __noinline__ int inc(int x) { return x + 1; }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ short narrow(signed char x) { return x - 1; }
__device__ Step steps[2] = {inc, twice};
__device__ int chosen = 7;
__device__ int* place = &chosen;

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern __device__ Step turns[2];  // functions that call one another through pointers
__device__ __noinline__ int even_turn(int n) { return n < 1 ? 100 : turns[n & 1](n - 1) + 1; }
__device__ __noinline__ int odd_turn(int n) { return n < 1 ? 7 : turns[n & 1](n - 1) * 2; }
__device__ Step turns[2] = {even_turn, odd_turn};

__global__ void structs(float* out) { out[threadIdx.x] = dot(triple(threadIdx.x), 2.f); }
__global__ void pointers(int* out) { out[threadIdx.x] = steps[threadIdx.x & 1](threadIdx.x) + *place; }
__global__ void some_lanes(int* out) { if (threadIdx.x % 3 == 1) out[threadIdx.x] = inc(threadIdx.x); }
__global__ void narrows(int* out) { out[threadIdx.x] = narrow(threadIdx.x * 8); }
__global__ void numbers(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }
__global__ void taking_turns(int* out) { out[threadIdx.x] = turns[threadIdx.x & 1](threadIdx.x % 8); }
__global__ void bad_pointer(int* out) {
    Step step = (Step)(unsigned long long)out[0];
    out[threadIdx.x] = step(threadIdx.x) + steps[0](1);
}
__global__ void asserts(int* out) { assert(out[threadIdx.x] < 20); out[threadIdx.x] = 1; }
__global__ void prints(int* out) {
    if (threadIdx.x % 16 == 5)
        printf("%d %5.2f|%s|%c%%%lld %08x\n", threadIdx.x, threadIdx.x * 0.5, "text", 'x', -1ll << 40, 255);
    if (threadIdx.x == 7) printf("plain\n");
    out[threadIdx.x] = 1;
}
__global__ void doubles(double* out) {
    double x = out[threadIdx.x];
    out[threadIdx.x] = sin(x) + cos(x) * pow(fabs(x), 1.7) + exp(-fabs(x)) + log(fabs(x)) + tan(x) + atan2(x, 3.0);
}
__global__ void warp_size(int* out) { out[threadIdx.x] = warpSize; }
__device__ __noinline__ int* allocates(int n) { return (int*)malloc(n); }
__global__ void mallocs(int* out) { *allocates(out[0]) = 1; }
