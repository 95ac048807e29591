// Distances and cost changes. Every operation is rounded by itself (the *_rn intrinsics are never
// fused), so that the CPU and every GPU get the same bits and take the same moves.
#pragma once

__device__ __forceinline__ float distance(float2 a, float2 b) {
    const float dx = __fsub_rn(a.x, b.x), dy = __fsub_rn(a.y, b.y);
    return __fsqrt_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)));
}

// What the two edges at a position cost; `before` and `after` are its neighbours.
__device__ __forceinline__ float removal(float2 before, float2 here, float2 after) {
    return __fadd_rn(distance(before, here), distance(here, after));
}

// Change of the tour's length if positions x < y swap their cities. `city(p)` gives the
// coordinates at a position. The edge between neighbours stays, so they have only two edges each.
template <class City>
__device__ __forceinline__ float cost_change(unsigned x, unsigned y, unsigned n, const City& city) {
    const float2 x_before = city(x - 1), x_here = city(x);
    const float2 y_here = city(y), y_after = city(y + 1 == n ? 0 : y + 1);
    if (y == x + 1) {
        const float added = __fadd_rn(distance(x_before, y_here), distance(x_here, y_after));
        const float taken = __fadd_rn(distance(x_before, x_here), distance(y_here, y_after));
        return __fsub_rn(added, taken);
    }
    const float2 x_after = city(x + 1), y_before = city(y - 1);
    const float added =
        __fadd_rn(removal(x_before, y_here, x_after), removal(y_before, x_here, y_after));
    const float taken =
        __fadd_rn(removal(x_before, x_here, x_after), removal(y_before, y_here, y_after));
    return __fsub_rn(added, taken);
}

// The sum of all coordinates that `cost_change` reads: what is left of it without arithmetic.
template <class City>
__device__ __forceinline__ float coordinates(unsigned x, unsigned y, unsigned n, const City& city) {
    const auto sum = [&](unsigned position) {
        const float2 place = city(position);
        return place.x + place.y;
    };
    const float four = sum(x - 1) + sum(x) + sum(y) + sum(y + 1 == n ? 0 : y + 1);
    return y == x + 1 ? four : four + sum(x + 1) + sum(y - 1);
}
