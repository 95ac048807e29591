#include <cuda_fp16.h>
struct Pair {
    int a, b;
};
enum Kind { one, two };
namespace ns {
template <class T> struct Box {
    T value;
};
}  // namespace ns
typedef unsigned int word;
template <class T, int N> __global__ void cpp(const T* __restrict__ a, T* b, T x, int n,
                                              const unsigned char* raw, bool* flags, void* any,
                                              Pair p, Kind k, float4* quads, __half* halves,
                                              unsigned long long where, ns::Box<T> box,
                                              float* const* many, unsigned* words) {
    b[N] = a[n];
}
extern "C" __global__ void c(  // a comment, with (parts)
    const float* a, unsigned n, double x[], /* long l, */ word w, size_t s) {
    x[n] = a[w + s];
}
#ifdef WIDE
extern "C" __global__ void __launch_bounds__(32) cases(double* a) { a[0] = 0; }
#else
extern "C" __global__ void __launch_bounds__(32) cases(float* a) { a[0] = 0; }
#endif
