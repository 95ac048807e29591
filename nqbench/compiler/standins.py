"""Stand-ins for headers of the C and C++ libraries, which NVRTC has not.

Sources written for nvcc include them for their host code. A stand-in declares only what device code
uses of its header: types, limits, constants. A header of the same name in an include folder wins.
"""

from __future__ import annotations

from typing import Final

_INTEGERS: Final = "".join(
    f"typedef {sign} {kind} {name}{bits}_t;\n"
    f"typedef {sign} {kind} {name}_least{bits}_t;\n"
    f"typedef {sign} {kind} {name}_fast{bits}_t;\n"
    for bits, kind in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for sign, name in (("signed", "int"), ("unsigned", "uint"))
)
_STDINT: Final = (
    _INTEGERS
    + "typedef long long intptr_t;\ntypedef unsigned long long uintptr_t;\n"
    + "typedef long long intmax_t;\ntypedef unsigned long long uintmax_t;\n"
    + "".join(
        f"#define INT{bits}_MAX {2 ** (bits - 1) - 1}{end}\n"
        f"#define INT{bits}_MIN (-INT{bits}_MAX - 1)\n"
        f"#define UINT{bits}_MAX {2**bits - 1}{'u' if bits > 16 else ''}{end}\n"
        for bits, end in ((8, ""), (16, ""), (32, ""), (64, "ll"))
    )
    + "#define SIZE_MAX UINT64_MAX\n"
    + "".join(f"#define {u}INT64_C(x) x##{u.lower()}ll\n" for u in ("", "U"))
)
_LIMITS: Final = """
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#define RAND_MAX INT_MAX
"""
_FLOAT: Final = """
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH: Final = """
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define MAXFLOAT 3.402823466e+38f
"""
_STDLIB: Final = """
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef unsigned char u_char;
typedef long ssize_t;
typedef long long time_t;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
"""
_TRAITS: Final = """
namespace std {
template <class T, T v> struct integral_constant { static constexpr T value = v; };
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <bool b, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool b, class T, class U> struct conditional { typedef T type; };
template <class T, class U> struct conditional<false, T, U> { typedef U type; };
template <class T, class U> constexpr bool is_same_v = is_same<T, U>::value;
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool b, class T, class U> using conditional_t = typename conditional<b, T, U>::type;
}
"""
_FUNCTIONS: Final = (
    *("abs", "fabs", "sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "tanh", "floor", "ceil", "round", "trunc", "rint"),
    *("pow", "atan2", "fmod", "hypot", "fmin", "fmax", "fma", "isnan", "isinf", "isfinite"),
    *("size_t", "ptrdiff_t"),
)
_INTEGER_LIMITS: Final = (
    ("char", "CHAR"), ("short", "SHRT"), ("int", "INT"), ("long", "LONG"), ("long long", "LLONG"),
)  # fmt: skip
_LIMITED: Final = (
    *((kind, f"{stem}_MAX", f"{stem}_MIN", f"{stem}_MIN", "0") for kind, stem in _INTEGER_LIMITS),
    *((f"unsigned {kind}", f"U{stem}_MAX", "0", "0", "0") for kind, stem in _INTEGER_LIMITS),
    ("float", "FLT_MAX", "FLT_MIN", "-FLT_MAX", "FLT_EPSILON"),
    ("double", "DBL_MAX", "DBL_MIN", "-DBL_MAX", "DBL_EPSILON"),
)
_STD: Final = (
    '#include "limits.h"\n#include "float.h"\n#include "math.h"\nnamespace std {\n'
    + "".join(f"using ::{name};\n" for name in _FUNCTIONS)
    + """
template <class T>
__device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T>
__device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> __device__ inline void swap(T& a, T& b) { T c = a; a = b; b = c; }
template <class T> struct numeric_limits;
"""
    + "".join(
        f"template <> struct numeric_limits<{kind}> {{\n"
        f"  __device__ static constexpr {kind} max() {{ return {high}; }}\n"
        f"  __device__ static constexpr {kind} min() {{ return {low}; }}\n"
        f"  __device__ static constexpr {kind} lowest() {{ return {lowest}; }}\n"
        f"  __device__ static constexpr {kind} epsilon() {{ return {epsilon}; }}\n}};\n"
        for kind, high, low, lowest, epsilon in _LIMITED
    )
    + "}\n"
)
_ARCHS: Final = (*range(50, 54), *(60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89), *range(90, 130))
_TARGET: Final = (
    "".join(
        f"#if __CUDA_ARCH__ >= {10 * arch}\n#define NV_PROVIDES_SM_{arch} 1\n#else\n"
        f"#define NV_PROVIDES_SM_{arch} 0\n#endif\n"
        for arch in _ARCHS
    )
    + """
#define NV_IS_HOST 0
#define NV_IS_DEVICE 1
#define NV_ANY_TARGET 1
#define NV_NO_TARGET 0
#define NV_PASTE_(a, b) a##b
#define NV_PASTE(a, b) NV_PASTE_(a, b)
#define NV_EXPAND(...) __VA_ARGS__
#define NV_CHOOSE_1(t, f) NV_EXPAND t
#define NV_CHOOSE_0(t, f) NV_EXPAND f
#define NV_IF_ELSE_TARGET(condition, t, f) NV_PASTE(NV_CHOOSE_, condition)(t, f)
#define NV_IF_TARGET(condition, t, ...) NV_PASTE(NV_CHOOSE_, condition)(t, (__VA_ARGS__))
"""
)
_HOST: Final = "".join(
    f'#include "{name}"\n' for name in ("stdlib.h", "stdint.h", "cmath", "type_traits")
)
"""What every source compiled by nvcc sees without asking for it."""
_NOTHING: Final = (
    *("stdio.h", "assert.h", "string.h", "memory.h", "malloc.h", "stdbool.h", "time.h", "errno.h"),
    *("ctype.h", "unistd.h", "sys/time.h", "complex.h", "signal.h", "cstdio", "cassert"),
    *("cstring", "ctime", "cerrno", "cctype", "iostream", "iomanip", "fstream", "sstream"),
    *("ostream", "string", "vector", "list", "map", "set", "array", "memory", "chrono", "random"),
    *("thread", "mutex", "atomic", "exception", "numeric", "stdexcept", "queue", "stack"),
    *("deque", "unordered_map", "iterator", "tuple"),
)
"""Headers of which device code uses nothing, or that NVRTC needs no declarations of."""

STANDINS: Final[dict[str, str]] = {
    name: "#pragma once\n" + text
    for text, names in (
        (_STDINT, ("stdint.h",)),
        (_LIMITS, ("limits.h",)),
        (_FLOAT, ("float.h",)),
        (_MATH, ("math.h",)),
        (_STDLIB, ("stdlib.h",)),
        (_STD, ("cmath",)),
        (_TRAITS, ("type_traits",)),
        (_TARGET, ("nv/target",)),
        (_HOST, ("nqbench/host.h",)),
        ('#include "stdint.h"\n', ("cstdint", "inttypes.h", "cinttypes")),
        ('#include "limits.h"\n', ("climits",)),
        ('#include "float.h"\n', ("cfloat",)),
        ('#include "stdlib.h"\n', ("cstdlib", "cstddef", "stddef.h", "sys/types.h")),
        ('#include "cmath"\n', ("limits", "algorithm", "utility", "functional")),
        ("", _NOTHING),
    )
    for name in names
}
"""Text of each stand-in by the name that sources include."""
