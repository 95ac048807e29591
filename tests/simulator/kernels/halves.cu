#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void halves(const __half* a, __half2* pairs, __half2* total, float* out) {
    int i = threadIdx.x;
    __half square = a[i] * a[i];
    __nv_bfloat16 same = __float2bfloat16(__half2float(square));
    out[i] = __bfloat162float(same) < 0 ? 0.f : __half2float(hexp(square));
    pairs[i] = __hfma2(pairs[i], pairs[i], pairs[i]);
    atomicAdd(total, pairs[i]);
}
