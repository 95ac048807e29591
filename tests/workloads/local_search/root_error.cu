// Largest relative error of the approximate root of `tiled.cuh`, of every `stride`-th normal
// number.
extern "C" __global__ void root_error(unsigned stride, unsigned long long* worst) {
    const unsigned step = gridDim.x * blockDim.x * stride;
    double most = 0.0;
    for (unsigned bits = 0x00800000u + (blockIdx.x * blockDim.x + threadIdx.x) * stride;
         bits < 0x7f800000u; bits += step) {
        const float square = __uint_as_float(bits);
        float root;
        asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
        const double exact = sqrt(double(square));
        most = fmax(most, fabs(double(root) - exact) / exact);
    }
    atomicMax(worst, (unsigned long long)__double_as_longlong(most));
}
