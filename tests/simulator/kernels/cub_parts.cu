#include <cub/cub.cuh>
#include <cub/device/device_reduce.cuh>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
__global__ void k(int* out) {
  typedef cub::BlockReduce<int, 32> Whole;
  typedef cub::WarpScan<int> Scan;
  __shared__ Whole::TempStorage a;
  __shared__ Scan::TempStorage b;
  int sum = Whole(a).Sum(threadIdx.x), before;
  Scan(b).ExclusiveSum(1, before);
  out[threadIdx.x] = threadIdx.x ? before : sum;
}
int main() { thrust::device_vector<int> v; thrust::sort(v.begin(), v.end()); }
