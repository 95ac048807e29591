// Best-improvement local search on the swap neighbourhood of the Euclidean travelling salesman
// problem.
#include "indexed.cuh"
#include "tiled.cuh"
