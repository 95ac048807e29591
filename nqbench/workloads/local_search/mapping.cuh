// From the number k of a move to the positions x < y that it swaps. With m = n - 1, row r (x = r +
// 1) of the triangle has m - 1 - r moves and begins at k = r m - r (r + 1) / 2.
#pragma once

enum class Mapping { quadratic, rearranged, rectangle };

struct Positions {
    unsigned x, y;
};

// Also false for what a wrong row gives: then y lies beyond the tour or not above x.
__device__ __forceinline__ bool valid(Positions p, unsigned n) {
    return p.x >= 1 && p.x < p.y && p.y < n;
}

template <Mapping M> struct Index;

// What both formulas with a root share: the row comes from single precision, the rest is exact.
struct Triangle {
    unsigned m;
    float b;  // of the quadratic r^2 - b r + 2 k = 0 with b = 2 m - 1
    __device__ explicit Triangle(unsigned n) : m(n - 1), b(float(2 * (n - 1) - 1)) {}
    __device__ float root(unsigned k) const {
        return __fsqrt_rn(__fsub_rn(__fmul_rn(b, b), __fmul_rn(8.0f, float(k))));
    }
    __device__ Positions in_row(int row, unsigned k) const {
        const unsigned r = unsigned(row);
        return {r + 1, k - (r * m - r * (r + 1) / 2) + r + 2};
    }
};

template <> struct Index<Mapping::quadratic> : Triangle {  // versions 1 to 6
    using Triangle::Triangle;
    __device__ Positions operator()(unsigned k) const {
        return in_row(int(__fmul_rn(__fsub_rn(b, root(k)), 0.5f)), k);
    }
};

template <> struct Index<Mapping::rearranged>
    : Triangle {  // version 7: no difference of near values
    using Triangle::Triangle;
    __device__ Positions operator()(unsigned k) const {
        return in_row(int(__fdiv_rn(__fmul_rn(4.0f, float(k)), __fadd_rn(b, root(k)))), k);
    }
};

// Version 8: row r of the triangle and the reversed row of the remaining length fill one row of a
// rectangle. Its order is not the lexicographic one.
template <> struct Index<Mapping::rectangle> {
    unsigned m, width;
    __device__ explicit Index(unsigned n) : m(n - 1), width((n - 1) | 1) { width -= m & 1 ? 0 : 2; }
    __device__ Positions operator()(unsigned k) const {
        const unsigned row = k / width, column = k % width, length = m - 1 - row;
        if (column < length) return {row + 1, row + 2 + column};
        return {m - (width - length), m - (column - length)};
    }
};
