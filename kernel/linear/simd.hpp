// Vectors of a fixed width that the compiler maps to whatever the processor has, chosen once at run time.
//
// Every float64 result is the same on every processor: lanes never mix, sums keep their order, and products are never
// fused into sums (-ffp-contract=off). Wider registers only do more of the same at once.
#pragma once
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
// The registers that the operating system saves, as bits: 1 and 2 are those of AVX, 5 to 7 of AVX-512.
inline unsigned saved_registers() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// By the processor's own word: __builtin_cpu_supports needs a symbol of the compiler's library that zig's has not.
inline Level detect() {
    constexpr unsigned avx_saved = 0x6, avx512_saved = 0xe6;
    constexpr unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return Level::base;
    const unsigned saved = saved_registers();
    if ((saved & avx_saved) != avx_saved || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return Level::base;
    if ((saved & avx512_saved) == avx512_saved && (b & avx512) == avx512) return Level::avx512;
    return b & bit_AVX2 ? Level::avx2 : Level::base;
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
