// Variants of a kernel: without memory accesses and without arithmetic, for `nqbench bottleneck`.
//
// A kernel that includes this file and writes its accesses and its arithmetic with the macros below
// can be built three times, by -DNQBENCH_VARIANT:
//   0  full         as if the macros were not there
//   1  math_only    loads are replaced by values made from indices; what would be stored is compared
//                   with a word that the compiler cannot know, and stored only if it matches (never)
//   2  memory_only  the arithmetic is left out: what was loaded is added up, and the sum is stored
// The method is that of Brodtkorb et al., section 6.5.
#pragma once

#ifndef NQBENCH_VARIANT
#define NQBENCH_VARIANT 0
#endif

namespace variant {
constexpr bool full = NQBENCH_VARIANT == 0;
constexpr bool math_only = NQBENCH_VARIANT == 1;
constexpr bool memory_only = NQBENCH_VARIANT == 2;
}  // namespace variant

#if NQBENCH_VARIANT
// Zero, but the host could write to it: the compiler has to assume that it did. A constant is read
// as a kernel argument is, so that no variant needs another signature than the full kernel.
__constant__ unsigned nqbench_never = 0;
#else
constexpr unsigned nqbench_never = 0;
#endif

namespace variant {

// Values instead of loaded ones. They differ from index to index: a constant would let the compiler
// compute the arithmetic beforehand, or once for all passes of a loop. One logic operation each at
// most, about what the address of the load has cost.
template <class T> __device__ __forceinline__ T stand_in(unsigned long long index) { return T(index); }
template <> __device__ __forceinline__ float stand_in<float>(unsigned long long index) {
    return __uint_as_float(0x3f800000u | (unsigned(index) & 0x7fffffu));  // from 1 to 2
}
template <> __device__ __forceinline__ float2 stand_in<float2>(unsigned long long index) {
    return make_float2(stand_in<float>(index), stand_in<float>(~index));
}
template <> __device__ __forceinline__ int2 stand_in<int2>(unsigned long long index) {
    return make_int2(int(index), int(~index));
}
template <> __device__ __forceinline__ uint4 stand_in<uint4>(unsigned long long index) {
    const unsigned i = unsigned(index);
    return make_uint4(i, ~i, i ^ 0x55u, i ^ 0xaau);
}

__device__ __forceinline__ unsigned bits(unsigned value) { return value; }
__device__ __forceinline__ unsigned bits(int value) { return unsigned(value); }
__device__ __forceinline__ unsigned bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned bits(unsigned long long value) {
    return unsigned(value) ^ unsigned(value >> 32);
}
__device__ __forceinline__ unsigned bits(long long value) {
    return bits(static_cast<unsigned long long>(value));
}
__device__ __forceinline__ unsigned bits(float2 v) { return bits(v.x) ^ bits(v.y); }
__device__ __forceinline__ unsigned bits(int2 v) { return bits(v.x) ^ bits(v.y); }
__device__ __forceinline__ unsigned bits(uint4 v) { return (v.x ^ v.y) ^ (v.z ^ v.w); }

// What was read at an index, if nothing was: of no order that a compiler could see through.
__device__ __forceinline__ int scattered(unsigned index) { return int(index * 2654435761u); }

// Never true, but the compiler cannot know it, and needs the value to find out.
template <class V> __device__ __forceinline__ bool unforeseen(V value) {
    return (bits(value) & nqbench_never) != 0;
}

// Whether to store. The condition needs the value, so that its arithmetic can neither be dropped nor
// moved to where it would never be executed.
template <class V> __device__ __forceinline__ bool wanted(V value) {
    return !math_only || unforeseen(value);
}

template <class T, class V> __device__ __forceinline__ void store(T& target, V value) {
    if (wanted(value)) target = value;
}

// Without arithmetic there still is the access: the same atomic at the same address.
template <class T, class V> __device__ __forceinline__ void atomic_add(T* target, V value) {
    if (wanted(value)) atomicAdd(target, T(value));
}

}  // namespace variant

// LOAD(place, stand_in)    reads `place`; math_only: the second, which must not be a constant
// STORE(target, value)     writes a value; math_only: if it matches what no value matches
// ARITHMETIC(result, sum)  the first; memory_only: the second, in which all that was loaded is added
#if NQBENCH_VARIANT == 1
#define LOAD(place, stand_in) (stand_in)
#else
#define LOAD(place, stand_in) (place)
#endif
#if NQBENCH_VARIANT == 2
#define ARITHMETIC(result, sum) (sum)
#else
#define ARITHMETIC(result, sum) (result)
#endif
#define STORE(target, value) variant::store(target, value)
