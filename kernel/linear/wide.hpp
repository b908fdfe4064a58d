// Registers full of float32, each value of another row, so that nothing is ever compared or added across.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "linear/simd.hpp"

namespace armlet {

template <std::size_t Width>
struct Wide {
    typedef float Floats __attribute__((vector_size(Width * sizeof(float))));
    typedef std::int32_t Ints __attribute__((vector_size(Width * sizeof(float))));
};

template <typename V>
ARMLET_INLINE V load_wide(const void* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <typename V>
ARMLET_INLINE void store_wide(void* p, V v) {
    std::memcpy(p, &v, sizeof v);
}

constexpr std::size_t panel = 4;  // arms that are scored at once: enough sums to hide the latency of each

// sum[a] += x' theta_a of as many rows as two registers hold: theta is a panel (d, 4), and x (d, apart).
template <std::size_t Width>
ARMLET_INLINE void score_panel(const float* theta, const float* x, std::size_t d, std::size_t apart,
                               typename Wide<Width>::Floats (&sum)[panel][2]) {
    using Floats = typename Wide<Width>::Floats;
    for (std::size_t j = 0; j < d; ++j) {
        const Floats low = load_wide<Floats>(x + apart * j), high = load_wide<Floats>(x + apart * j + Width);
        for (std::size_t a = 0; a < panel; ++a) {
            sum[a][0] += theta[panel * j + a] * low;
            sum[a][1] += theta[panel * j + a] * high;
        }
    }
}

}  // namespace armlet
