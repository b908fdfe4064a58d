// Vectors of a fixed width that the compiler maps to whatever the processor has, chosen once at run time.
//
// Every float64 result is the same on every processor: lanes never mix, sums keep their order, and products are never
// fused into sums (-ffp-contract=off). Wider registers only do more of the same at once.
#pragma once
#include <cstddef>
#include <cstring>

namespace armlet {

constexpr std::size_t lanes = 8;  // float64 values in one vector
typedef double Vec __attribute__((vector_size(lanes * sizeof(double))));

#define ARMLET_INLINE inline __attribute__((always_inline))

ARMLET_INLINE Vec load(const double* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

ARMLET_INLINE void store(double* p, Vec v) { std::memcpy(p, &v, sizeof v); }

constexpr std::size_t padded(std::size_t n, std::size_t width = lanes) { return (n + width - 1) / width * width; }

enum class Level { base, avx2, avx512 };

#if defined(__x86_64__)
inline Level detect() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return Level::avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? Level::avx2 : Level::base;
}

inline const Level best_level = detect();
inline Level level = best_level;  // tests lower it, to show that the bits stay

#define ARMLET_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define ARMLET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#else
#define ARMLET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#endif

// Defines NAME(PARAMS) as a run-time choice between three compilations of the always-inline NAME##_body.
#define ARMLET_DISPATCH(NAME, PARAMS, ARGS)                              \
    static void NAME##_base PARAMS { NAME##_body ARGS; }                 \
    ARMLET_AVX2 static void NAME##_avx2 PARAMS { NAME##_body ARGS; }     \
    ARMLET_AVX512 static void NAME##_avx512 PARAMS { NAME##_body ARGS; } \
    void NAME PARAMS {                                                   \
        if (level == Level::avx512) return NAME##_avx512 ARGS;           \
        if (level == Level::avx2) return NAME##_avx2 ARGS;               \
        NAME##_base ARGS;                                                \
    }
#else
inline const Level best_level = Level::base;
inline Level level = best_level;

#define ARMLET_DISPATCH(NAME, PARAMS, ARGS) \
    void NAME PARAMS { NAME##_body ARGS; }
#endif

}  // namespace armlet
