// Random numbers of a chain: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), by counter.
//
// Number t of the stream `key` is mix(key + t * golden): no state, so that any lane makes any
// number. nqbench/workloads/fitness/annealing/cooling.py says the same for the CPU.
#pragma once

constexpr unsigned long long kGolden = 0x9E3779B97F4A7C15ull;
constexpr unsigned long long kShuffle = 0xD1B54A32D192ED03ull;

__device__ __forceinline__ unsigned long long mix(unsigned long long word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

__device__ __forceinline__ unsigned long long draw(unsigned long long key,
                                                   unsigned long long number) {
    return mix(key + number * kGolden);
}

__device__ __forceinline__ unsigned long long chain_key(unsigned long long seed_key,
                                                        unsigned chain) {
    return mix(seed_key + chain * kGolden);
}

__device__ __forceinline__ unsigned long long shuffle_key(unsigned long long key) {
    return mix(key ^ kShuffle);
}

__device__ __forceinline__ unsigned high(unsigned long long word) {
    return static_cast<unsigned>(word >> 32);
}

__device__ __forceinline__ unsigned low(unsigned long long word) {
    return static_cast<unsigned>(word);
}

// A 32-bit random number scaled to 0 .. bound - 1.
__device__ __forceinline__ unsigned below(unsigned word, unsigned bound) {
    return __umulhi(word, bound);
}
