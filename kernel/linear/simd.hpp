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

#define ARMLET_INLINE inline __attribute__((always_inline))

// What a register holds: two values anywhere, four with AVX2, eight with AVX-512.
typedef double Double2 __attribute__((vector_size(2 * sizeof(double))));
typedef double Double4 __attribute__((vector_size(4 * sizeof(double))));
typedef double Double8 __attribute__((vector_size(8 * sizeof(double))));

// Two of them side by side, as if they were one: GCC keeps a vector that is wider than the registers in memory, and
// then every operation goes there and back.
template <typename Half>
struct Two {
    Half low, high;

    static constexpr std::size_t half = sizeof(Half) / sizeof(double);
    ARMLET_INLINE double operator[](std::size_t i) const { return i < half ? low[i] : high[i - half]; }

    friend ARMLET_INLINE Two operator+(Two a, Two b) { return {a.low + b.low, a.high + b.high}; }
    friend ARMLET_INLINE Two operator-(Two a, Two b) { return {a.low - b.low, a.high - b.high}; }
    friend ARMLET_INLINE Two operator*(Two a, Two b) { return {a.low * b.low, a.high * b.high}; }
    friend ARMLET_INLINE Two operator*(double a, Two b) { return {a * b.low, a * b.high}; }
    friend ARMLET_INLINE Two operator*(Two a, double b) { return {a.low * b, a.high * b}; }
    friend ARMLET_INLINE Two operator+(Two a, double b) { return {a.low + b, a.high + b}; }
    friend ARMLET_INLINE Two operator/(Two a, double b) { return {a.low / b, a.high / b}; }
    ARMLET_INLINE Two& operator+=(Two b) { return *this = *this + b; }
    ARMLET_INLINE Two& operator-=(Two b) { return *this = *this - b; }
    ARMLET_INLINE Two& operator*=(double b) { return *this = *this * b; }
};

// Eight lanes on each kind of processor.
using VecBase = Two<Two<Double2>>;
using VecAvx2 = Two<Double4>;
using VecAvx512 = Double8;

// From and to anywhere; each register by itself, or GCC copies bytes.
template <typename Vec>
struct Memory {
    typedef Vec Anywhere __attribute__((aligned(sizeof(double)), may_alias));
    static ARMLET_INLINE Vec load(const double* p) { return *reinterpret_cast<const Anywhere*>(p); }
    static ARMLET_INLINE void store(double* p, Vec v) { *reinterpret_cast<Anywhere*>(p) = v; }
};

template <typename Half>
struct Memory<Two<Half>> {
    static ARMLET_INLINE Two<Half> load(const double* p) {
        return {Memory<Half>::load(p), Memory<Half>::load(p + Two<Half>::half)};
    }
    static ARMLET_INLINE void store(double* p, Two<Half> v) {
        Memory<Half>::store(p, v.low), Memory<Half>::store(p + Two<Half>::half, v.high);
    }
};

template <typename Vec>
ARMLET_INLINE Vec load(const double* p) {
    return Memory<Vec>::load(p);
}

template <typename Vec>
ARMLET_INLINE void store(double* p, Vec v) {
    Memory<Vec>::store(p, v);
}

template <typename Vec>
ARMLET_INLINE Vec at_most_one(Vec v) {
    return v < 1.0 ? v : Vec{} + 1.0;
}

template <typename Half>
ARMLET_INLINE Two<Half> at_most_one(Two<Half> v) {
    return {at_most_one(v.low), at_most_one(v.high)};
}

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

// Defines NAME(PARAMS) as a run-time choice between three compilations: of BASE, AVX2 and AVX512, each always inline.
#define ARMLET_CHOOSE(NAME, PARAMS, ARGS, BASE, AVX2, AVX512)       \
    static void NAME##_base PARAMS { BASE ARGS; }                   \
    ARMLET_AVX2 static void NAME##_avx2 PARAMS { AVX2 ARGS; }       \
    ARMLET_AVX512 static void NAME##_avx512 PARAMS { AVX512 ARGS; } \
    void NAME PARAMS {                                              \
        if (level == Level::avx512) return NAME##_avx512 ARGS;      \
        if (level == Level::avx2) return NAME##_avx2 ARGS;          \
        NAME##_base ARGS;                                           \
    }
#else
inline const Level best_level = Level::base;
inline Level level = best_level;

#define ARMLET_CHOOSE(NAME, PARAMS, ARGS, BASE, AVX2, AVX512) \
    void NAME PARAMS { BASE ARGS; }
#endif

// Of NAME##_body; and of NAME##_body<Vec>, with eight lanes as each kind of processor holds them.
#define ARMLET_DISPATCH(NAME, PARAMS, ARGS) ARMLET_CHOOSE(NAME, PARAMS, ARGS, NAME##_body, NAME##_body, NAME##_body)
#define ARMLET_DISPATCH_LANES(NAME, PARAMS, ARGS) \
    ARMLET_CHOOSE(NAME, PARAMS, ARGS, NAME##_body<VecBase>, NAME##_body<VecAvx2>, NAME##_body<VecAvx512>)

}  // namespace armlet
