// Vectors of half the lanes, for sums that are to stay in registers.
#pragma once
#include "linear/simd.hpp"

namespace armlet {

// What AVX2 has. Eight of them leave registers for the rest.
constexpr std::size_t half = lanes / 2;
typedef double Half __attribute__((vector_size(half * sizeof(double))));

ARMLET_INLINE Half load_half(const double* p) {
    Half v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

ARMLET_INLINE void store_half(double* p, Half v) { std::memcpy(p, &v, sizeof v); }

}  // namespace armlet
