// What the kernels of the fitness workload share. A board lists the row of each column's queen.
#pragma once

using Total = unsigned long long;  // conflicts: up to n(n-1)/2, beyond 32 bits from n = 92,683 on

// Whether queens in rows a and b, `distance` columns apart, are on a common diagonal.
__device__ inline bool conflict(int a, int b, int distance) { return abs(a - b) == distance; }
