#pragma once
#define NQBENCH_INTEGERS(kind, bits) \
  typedef signed kind int##bits##_t; \
  typedef signed kind int_least##bits##_t; \
  typedef signed kind int_fast##bits##_t; \
  typedef unsigned kind uint##bits##_t; \
  typedef unsigned kind uint_least##bits##_t; \
  typedef unsigned kind uint_fast##bits##_t;
NQBENCH_INTEGERS(char, 8)
NQBENCH_INTEGERS(short, 16)
NQBENCH_INTEGERS(int, 32)
NQBENCH_INTEGERS(long long, 64)
#undef NQBENCH_INTEGERS
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef long long intmax_t;
typedef unsigned long long uintmax_t;
#define INT8_MAX 127
#define INT8_MIN (-INT8_MAX - 1)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-INT16_MAX - 1)
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615ull
#define SIZE_MAX UINT64_MAX
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
