#pragma once
// Templates, so that CUDA's own declarations win where a source includes them.
template <int = 0> __device__ inline void cudaGridDependencySynchronize() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
template <int = 0> __device__ inline void cudaTriggerProgrammaticLaunchCompletion() {
  asm volatile("griddepcontrol.launch_dependents;");
}
