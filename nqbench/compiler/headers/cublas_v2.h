#pragma once
// What the headers of cuBLAS bring for kernels: number types. Its functions are for the host.
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>
