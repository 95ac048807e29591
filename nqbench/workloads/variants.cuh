// How a kernel reads, computes and writes, as a template argument: complete, without its memory
// accesses, or without its arithmetic, for `nqbench bottleneck`.
//
//   Full        plain loads, stores and arithmetic: the kernel as if this file were not there
//   MathOnly    loads are replaced by values made from indices; what would be stored is compared
//               with a word that the compiler cannot know, and stored only if it matches (never)
//   MemoryOnly  the arithmetic is left out: what was loaded is added up, and the sum is stored
// The method is that of Brodtkorb et al., section 6.5.
#pragma once

// Zero, but the host could write to it: the compiler has to assume that it did. A constant is read
// as a kernel argument is, so that no variant needs another signature than the full kernel.
__constant__ unsigned nqbench_never = 0;

// Values instead of loaded ones. They differ from index to index: a constant would let the compiler
// compute the arithmetic beforehand, or once for all passes of a loop. A few operations each at
// most, about what the address of the load has cost.
template <class T> __device__ __forceinline__ T stand_in(unsigned long long index) {
    return T(index);
}
template <> __device__ __forceinline__ int stand_in<int>(unsigned long long index) {
    return int(unsigned(index) * 2654435761u);  // of no order that a compiler could see through
}
template <> __device__ __forceinline__ float stand_in<float>(unsigned long long index) {
    return __uint_as_float(0x3f800000u | (unsigned(index) & 0x7fffffu));  // from 1 to 2
}
template <> __device__ __forceinline__ float2 stand_in<float2>(unsigned long long index) {
    return make_float2(stand_in<float>(index), stand_in<float>(~index));
}
template <> __device__ __forceinline__ int2 stand_in<int2>(unsigned long long index) {
    return make_int2(int(index), int(~index));
}
template <> __device__ __forceinline__ int4 stand_in<int4>(unsigned long long index) {
    return make_int4(stand_in<int>(index), int(index), stand_in<int>(~index), int(~index));
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
__device__ __forceinline__ unsigned bits(float2 v) { return bits(v.x) ^ bits(v.y); }
__device__ __forceinline__ unsigned bits(uint4 v) { return (v.x ^ v.y) ^ (v.z ^ v.w); }

// Never true, but the compiler cannot know it, and needs the value to find out.
template <class V> __device__ __forceinline__ bool unforeseen(V value) {
    return (bits(value) & nqbench_never) != 0;
}

enum class Variant { full, math_only, memory_only };

template <Variant V> struct Access {
    static constexpr bool kFull = V == Variant::full;
    static constexpr bool kMathOnly = V == Variant::math_only;
    static constexpr bool kMemoryOnly = V == Variant::memory_only;

    // array[index]. `instead` takes the place of the loaded value, and must not be a constant.
    template <class Array, class I, class T>
    __device__ __forceinline__ static T load(const Array& array, I index, T instead) {
        if constexpr (kMathOnly) return instead;
        else return array[index];
    }
    template <class T, class I>
    __device__ __forceinline__ static T load(const T* array, I index) {
        return load(array, index, stand_in<T>(index));
    }

    // What is computed from loaded values; `sum` is something that needs all of them.
    template <class T>
    __device__ __forceinline__ static T result(T computed, T sum) {
        return kMemoryOnly ? sum : computed;
    }
    // Whether to do what is hardly ever done, and therefore by no variant.
    template <class T>
    __device__ __forceinline__ static bool seldom(bool computed, T sum) {
        if constexpr (kFull) return computed;
        else return unforeseen(result(T(computed), sum));
    }

    // The condition needs the value, so that its arithmetic can neither be dropped nor moved to
    // where it would never be executed.
    template <class T, class V>
    __device__ __forceinline__ static void store(T& target, V value) {
        if (!kMathOnly || unforeseen(value)) target = value;
    }
    // Without arithmetic there still is the access: the same atomic at the same address.
    template <class T, class V>
    __device__ __forceinline__ static void atomic_add(T* target, V value) {
        if (!kMathOnly || unforeseen(value)) atomicAdd(target, T(value));
    }
};

using Full = Access<Variant::full>;
using MathOnly = Access<Variant::math_only>;
using MemoryOnly = Access<Variant::memory_only>;
