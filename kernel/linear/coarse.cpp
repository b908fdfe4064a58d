#include "linear/coarse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "linear/linear.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();
constexpr std::size_t together = 4;             // arms: while one waits for its corner, the others have work
constexpr std::size_t pairs = lanes / 2;        // of columns in a tile
constexpr std::size_t in_tile = lanes * pairs;  // numbers
constexpr double most = 32766.0;                // of 16 bits

typedef float Float4 __attribute__((vector_size(4 * sizeof(float))));
typedef float Float8 __attribute__((vector_size(8 * sizeof(float))));
typedef std::int32_t Int4 __attribute__((vector_size(4 * sizeof(float))));
typedef std::int32_t Int8 __attribute__((vector_size(8 * sizeof(float))));

// L^-1 x of one arm, under way, all in float32.
struct Rough {
    const std::uint32_t* at;
    const float* inverse;
    float unit;
    float* y;
};

// What a register holds, on each kind of processor.
template <typename Vec>
struct Registers {
    static constexpr bool is_base = std::is_same_v<Vec, VecBase>;
    using Floats = std::conditional_t<is_base, Float4, Float8>;
    using Ints = std::conditional_t<is_base, Int4, Int8>;
    static constexpr std::size_t width = sizeof(Floats) / sizeof(float);
    typedef Floats FloatsAnywhere __attribute__((aligned(sizeof(float)), may_alias));
    typedef Ints IntsAnywhere __attribute__((aligned(sizeof(float)), may_alias));

    static ARMLET_INLINE Floats load(const float* p) { return *reinterpret_cast<const FloatsAnywhere*>(p); }
    static ARMLET_INLINE void store(float* p, Floats v) { *reinterpret_cast<FloatsAnywhere*>(p) = v; }
    static ARMLET_INLINE Ints words(const std::uint32_t* p) { return *reinterpret_cast<const IntsAnywhere*>(p); }
    static ARMLET_INLINE Floats low(Ints words) { return __builtin_convertvector(words << 16, Floats); }
    static ARMLET_INLINE Floats high(Ints words) { return __builtin_convertvector(words & -65536, Floats); }
};

// y = L^-1 y of one corner on the diagonal.
template <typename Vec>
ARMLET_INLINE void rough_corner(const Rough& arm, float* y) {
    using R = Registers<Vec>;
    constexpr std::size_t parts = lanes / R::width;
    typename R::Floats left[parts];
    for (std::size_t p = 0; p < parts; ++p) left[p] = R::load(y + p * R::width);
#pragma GCC unroll 8
    for (std::size_t c = 0; c < lanes; ++c) {
        const float solved = left[c / R::width][c % R::width] * arm.inverse[c] * arm.unit;
#pragma GCC unroll 2
        for (std::size_t p = 0; p < parts; ++p) {
            const auto words = R::words(arm.at + c / 2 * lanes + p * R::width);
            left[p] -= solved * (c % 2 ? R::high(words) : R::low(words));
        }
    }
    for (std::size_t p = 0; p < parts; ++p) R::store(y + p * R::width, left[p] * R::load(arm.inverse + p * R::width));
}

// Rows below a corner lose the products of its eight columns.
template <typename Vec>
ARMLET_INLINE void rough_sweep(Rough& arm, const float* solved, float* y, std::size_t rows) {
    using R = Registers<Vec>;
    float v[lanes];
    for (std::size_t c = 0; c < lanes; ++c) v[c] = solved[c] * arm.unit;
    const std::uint32_t* tile = arm.at + in_tile;
    for (std::size_t i = 0; i < rows; i += lanes, tile += in_tile)
        for (std::size_t p = 0; p < lanes; p += R::width) {
            auto left = R::load(y + i + p);
#pragma GCC unroll 4
            for (std::size_t c = 0; c < pairs; ++c) {
                const auto words = R::words(tile + c * lanes + p);
                left -= v[2 * c] * R::low(words);
                left -= v[2 * c + 1] * R::high(words);
            }
            R::store(y + i + p, left);
        }
    arm.at = tile;
    arm.inverse += lanes;
}

template <typename Vec>
ARMLET_INLINE void rough_squares_body(Rough* arms, std::size_t n_arms, std::size_t rows, double* squares) {
    using R = Registers<Vec>;
    for (std::size_t j = 0; j < rows; j += lanes) {
        for (std::size_t i = 0; i < n_arms; ++i) rough_corner<Vec>(arms[i], arms[i].y + j);
        for (std::size_t i = 0; i < n_arms; ++i)
            rough_sweep<Vec>(arms[i], arms[i].y + j, arms[i].y + j + lanes, rows - j - lanes);
    }
    for (std::size_t i = 0; i < n_arms; ++i) {
        typename R::Floats sum = {};
        for (std::size_t j = 0; j < rows; j += R::width) sum += R::load(arms[i].y + j) * R::load(arms[i].y + j);
        squares[i] = 0.0;
        for (std::size_t c = 0; c < R::width; ++c) squares[i] += static_cast<double>(sum[c]);
    }
}

// squares[i] = |L^-1 y|^2 of each arm, y gone; rows in whole vectors.
ARMLET_DISPATCH_LANES(rough_squares, (Rough * arms, std::size_t n_arms, std::size_t rows, double* squares),
                      (arms, n_arms, rows, squares))

// The largest entry by size, and the sum of squares of all.
ARMLET_INLINE void survey_body(const double* values, std::size_t n, double& largest, double& squares) {
    double high[lanes] = {}, sums[lanes] = {};
    for (std::size_t i = 0; i < n; i += lanes)
        for (std::size_t c = 0; c < lanes; ++c) {
            const double size = std::fabs(values[i + c]);
            high[c] = size > high[c] ? size : high[c];
            sums[c] += size * size;
        }
    largest = squares = 0.0;
    for (std::size_t c = 0; c < lanes; ++c) largest = std::max(largest, high[c]), squares += sums[c];
}

ARMLET_DISPATCH(survey, (const double* values, std::size_t n, double& largest, double& squares),
                (values, n, largest, squares))

// Two columns of eight values to one of numbers, for all of some tiles.
ARMLET_INLINE void round_tiles_body(const double* values, std::size_t n, double per_unit, std::uint32_t* out) {
    // adding it leaves the nearest whole number in the last bits
    constexpr double magic = 0x1.8p52;
    for (std::size_t i = 0; i < n; i += 2 * lanes, out += lanes)
        for (std::size_t c = 0; c < lanes; ++c) {
            const auto low = static_cast<std::int32_t>(values[i + c] * per_unit + magic - magic);
            const auto high = static_cast<std::int32_t>(values[i + lanes + c] * per_unit + magic - magic);
            out[c] = static_cast<std::uint32_t>(high) << 16 | (static_cast<std::uint32_t>(low) & 0xffffU);
        }
}

ARMLET_DISPATCH(round_tiles, (const double* values, std::size_t n, double per_unit, std::uint32_t* out),
                (values, n, per_unit, out))

}  // namespace

void CoarseFactors::open(std::size_t n_arms, std::size_t d) {
    const std::size_t blocks = padded(d - lead(d)) / lanes;
    d_ = d, n_ = d - lead(d), words_ = in_tile * blocks * (blocks + 1) / 2;
    tiles_.assign(n_arms * words_, 0);
    inverses_.assign(n_arms * padded(n_), 0.0F);
    units_.assign(n_arms, 0.0F);
    slacks_.assign(n_arms, unknown);
}

void CoarseFactors::drop(std::size_t arm) { slacks_[arm] = unknown; }

void CoarseFactors::copy(std::size_t from, std::size_t arm) {
    const std::size_t rows = padded(n_);
    std::copy_n(tiles_.data() + from * words_, words_, tiles_.data() + arm * words_);
    std::copy_n(inverses_.data() + from * rows, rows, inverses_.data() + arm * rows);
    units_[arm] = units_[from], slacks_[arm] = slacks_[from];
}

// What is solved is (L + E) y~ = x exactly, for an E of the rounding to 16 bits, at most half a unit in each entry
// below the diagonal, and of that of float32, at most gamma |L_ik| (Higham 2002, theorem 8.5; four roundings more are
// of x, 1 / L_kk and units). So L^-1 x = y~ + L^-1 E y~ is no longer than (1 + residual_bound |E|) |y~|.
void CoarseFactors::take(std::size_t arm, const double* kept, double residual_bound) {
    const std::size_t rows = padded(n_), n_values = 2 * words_;
    const double *inverse = kept + n_values, n = static_cast<double>(n_);
    double largest, squares;
    drop(arm);
    survey(kept, n_values, largest, squares);
    const double unit = std::max(largest, 1e-12) / most, gamma = 1.01 * (n + 8.0) * 0x1p-24;
    for (std::size_t k = 0; k < n_; ++k) squares += 1.0 / (inverse[k] * inverse[k]);
    // where float32 neither overflows nor goes subnormal; false for NaN
    if (!(squares < 1e12 && residual_bound < 1e6)) return;
    round_tiles(kept, n_values, 1.0 / unit, tiles_.data() + arm * words_);
    for (std::size_t k = 0; k < rows; ++k) inverses_[arm * rows + k] = static_cast<float>(inverse[k]);
    units_[arm] = static_cast<float>(unit * 0x1p-16);
    const double error = 0.5 * unit * std::sqrt(0.5 * n * n) + gamma * std::sqrt(squares);
    const double slack = (1.0 + 1e-6) * (1.0 + gamma) * (1.0 + residual_bound * error);
    if (slack < 2.0) slacks_[arm] = slack;  // or it is of no use
}

void CoarseFactors::bounds(std::span<const std::uint32_t> arms, const double* kept, const double* x,
                           double* out) const {
    const std::size_t rows = padded(n_), leads = lead(d_);
    thread_local std::vector<float> room;
    room.resize(together * rows);
    Rough some[together];
    std::uint32_t which[together];
    double firsts[together], squares[together];
    std::size_t size = 0;
    const auto finish = [&] {
        rough_squares(some, size, rows, squares);
        for (std::size_t i = 0; i < size; ++i) {
            const double slack = slacks_[which[i]], first = firsts[i];
            const bool in_range = squares[i] >= 1e-12 && squares[i] <= 1e24;
            out[which[i]] = in_range ? (1.0 + 1e-9) * std::sqrt(first * first + slack * slack * squares[i]) : unknown;
        }
        size = 0;
    };
    for (const auto arm : arms) {
        out[arm] = unknown;
        if (!(slacks_[arm] < unknown)) continue;
        const double* column = kept + arm * factor_size(d_) + factor_size(n_);
        const double first = leads ? x[0] * column[n_] : 0.0;
        float* y = room.data() + size * rows;
        for (std::size_t j = 0; j < n_; ++j) y[j] = static_cast<float>(leads ? x[j + 1] - first * column[j] : x[j]);
        std::fill(y + n_, y + rows, 0.0F);
        some[size] = {tiles_.data() + arm * words_, inverses_.data() + arm * rows, units_[arm], y};
        which[size] = arm, firsts[size] = first;
        if (++size == together) finish();
    }
    if (size > 0) finish();
}

std::size_t CoarseFactors::bytes() const {
    return tiles_.capacity() * sizeof(std::uint32_t) + (inverses_.capacity() + units_.capacity()) * sizeof(float) +
           slacks_.capacity() * sizeof(double);
}

}  // namespace armlet
