// `fast_step` and `plain_step` side by side, from the same states.
#include "unrolled.cuh"

constexpr int kThreads = 32, kSteps = 5, kEntries = 2 * kSteps + 1;

struct State {
    Node node;
    uint4 stack[kEntries];
    unsigned distance, returned, unused[2];
};

struct Outcome {
    Node node;
    uint4 stack[kEntries];
    unsigned top, found, solutions[kSteps], unused;
};

// Both begin with half of the stack filled, so that it can shrink and grow by a node a step.
template <Config C> __global__ void steps(const State* states, unsigned one, Outcome* fast,
                                          Outcome* plain) {
    const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
    const State& state = states[thread];
    Family<C> family;
    family.load(Family<C>::entry(state.distance));

    Outcome expected{state.node, {}, kSteps, 0, {}, 0};
    for (int i = 0; i < kEntries; ++i) expected.stack[i] = state.stack[i];
    for (int k = 0; k < kSteps; ++k)
        plain_step<C>(expected.node, family, state.returned, expected.stack, expected.top,
                      expected.solutions, expected.found);
    plain[thread] = expected;

    __shared__ uint4 stacks[kThreads][kEntries];
    __shared__ unsigned solutions[kThreads][kSteps];
    uint4* const stack = stacks[threadIdx.x];
    unsigned* const own = solutions[threadIdx.x];
    for (int i = 0; i < kEntries; ++i) stack[i] = state.stack[i];
    for (int k = 0; k < kSteps; ++k) own[k] = 0;
    const unsigned bottom = static_cast<unsigned>(__cvta_generic_to_shared(stack));
    const unsigned first = static_cast<unsigned>(__cvta_generic_to_shared(own));
    Node node = state.node;
    unsigned top = bottom + kSteps * sizeof(uint4), newest = first;
    for (int k = 0; k < kSteps; ++k)
        fast_step<C, sizeof(uint4), sizeof(unsigned)>(node, family, state.returned, top, newest,
                                                      one, 2 * one, 0u - one);
    Outcome& seen = fast[thread];
    seen.node = node;
    seen.top = (top - bottom) / sizeof(uint4);
    seen.found = (newest - first) / sizeof(unsigned);
    for (int i = 0; i < kEntries; ++i) seen.stack[i] = stack[i];
    for (int k = 0; k < kSteps; ++k) seen.solutions[k] = own[k];
}
