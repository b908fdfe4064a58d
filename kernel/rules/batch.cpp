#include "rules/batch.hpp"

#include <algorithm>
#include <cmath>

#include "linear/simd.hpp"

namespace armlet {

namespace {

constexpr std::size_t wide = 16;  // float32 values in one vector
typedef float Floats __attribute__((vector_size(wide * sizeof(float))));
typedef std::int32_t Ints __attribute__((vector_size(wide * sizeof(float))));

constexpr std::size_t block_rows = 32;  // rows whose scores stay in the first-level cache
constexpr std::size_t most_columns = 1024;
// Matches are summed as one_match + column, so that a sum below two_matches stands for one of them.
constexpr std::int32_t one_match = 1 << 20;
constexpr std::int32_t two_matches = 2 * one_match;

ARMLET_INLINE Floats load_floats(const float* p) {
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <typename Vec>
ARMLET_INLINE double squared_norm(const double* x, std::size_t d) {
    Vec sum = {};
    std::size_t j = 0;
    for (; j + lanes <= d; j += lanes) {
        const Vec v = load<Vec>(x + j);
        sum += v * v;
    }
    double total = 0.0;
    for (std::size_t l = 0; l < lanes; ++l) total += sum[l];
    for (; j < d; ++j) total += x[j] * x[j];
    return total;
}

// Scores of Rows contexts against one panel of Blocks x 16 arms, all sums in registers.
template <std::size_t Rows, std::size_t Blocks>
ARMLET_INLINE void score_tile(const float* panel, const float* x, std::size_t d, std::size_t columns, float* out) {
    Floats sum[Rows][Blocks] = {};
    for (std::size_t j = 0; j < d; ++j) {
        Floats t[Blocks];
        for (std::size_t b = 0; b < Blocks; ++b) t[b] = load_floats(panel + (j * Blocks + b) * wide);
        for (std::size_t r = 0; r < Rows; ++r)
            for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] += x[r * d + j] * t[b];
    }
    for (std::size_t r = 0; r < Rows; ++r)
        for (std::size_t b = 0; b < Blocks; ++b) std::memcpy(out + r * columns + b * wide, &sum[r][b], sizeof(Floats));
}

#if defined(__clang__)
#define ARMLET_SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define ARMLET_SHUFFLE(v, ...) __builtin_shuffle(v, Ints{__VA_ARGS__})
#endif
#define ARMLET_ROTATED(v, by)                                                                                         \
    ARMLET_SHUFFLE(v, (by), (1 + by) % 16, (2 + by) % 16, (3 + by) % 16, (4 + by) % 16, (5 + by) % 16, (6 + by) % 16, \
                   (7 + by) % 16, (8 + by) % 16, (9 + by) % 16, (10 + by) % 16, (11 + by) % 16, (12 + by) % 16,       \
                   (13 + by) % 16, (14 + by) % 16, (15 + by) % 16)

ARMLET_INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }

ARMLET_INLINE float largest(const float* scores, std::size_t columns) {
    Floats top = load_floats(scores);
    for (std::size_t c = wide; c < columns; c += wide) top = larger(load_floats(scores + c), top);
    top = larger(top, ARMLET_ROTATED(top, 8));
    top = larger(top, ARMLET_ROTATED(top, 4));
    top = larger(top, ARMLET_ROTATED(top, 2));
    return larger(top, ARMLET_ROTATED(top, 1))[0];
}

// The column of the only score above `bar`, or a negative number if there are more (or none, for NaN).
ARMLET_INLINE std::int32_t only_match(const float* scores, std::size_t columns, float bar) {
    constexpr Ints first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Ints sum = {}, column = first + one_match;
    for (std::size_t c = 0; c < columns; c += wide) {
        sum += (load_floats(scores + c) >= bar) & column;
        column += static_cast<std::int32_t>(wide);
    }
    sum += ARMLET_ROTATED(sum, 8);
    sum += ARMLET_ROTATED(sum, 4);
    sum += ARMLET_ROTATED(sum, 2);
    sum += ARMLET_ROTATED(sum, 1);
    return sum[0] < two_matches ? sum[0] - one_match : -1;
}

struct Batch {
    const float* panels;
    std::size_t dim, columns;
    double margin;
    Arms eligible;
};

// A block of rows; `x` and `scores` are scratch for block_rows of them.
template <std::size_t Rows, std::size_t Blocks>
ARMLET_INLINE void settle_block(const Batch& batch, const double* X, std::size_t rows, float* x, float* scores,
                                std::uint32_t* best) {
    const std::size_t d = batch.dim, columns = batch.columns;
    for (std::size_t i = 0; i < rows * d; ++i) x[i] = static_cast<float>(X[i]);
    for (std::size_t c = 0; c < columns; c += Blocks * wide)
        for (std::size_t r = 0; r < rows; r += Rows)
            score_tile<Rows, Blocks>(batch.panels + c * d, x + r * d, d, columns, scores + r * columns + c);
    for (std::size_t r = 0; r < rows; ++r) {
        float* row = scores + r * columns;
        std::fill(row + batch.eligible.size(), row + columns, -INFINITY);
        const double square = squared_norm<VecBase>(X + r * d, d);
        const float bar = largest(row, columns) - static_cast<float>(batch.margin * std::sqrt(square));
        const std::int32_t match = only_match(row, columns, bar);
        const bool in_range = square >= 1e-12 && square <= 1e12;  // where float32 neither overflows nor goes subnormal
        best[r] = match >= 0 && in_range ? batch.eligible[static_cast<std::size_t>(match)] : undecided;
    }
}

template <std::size_t Rows, std::size_t Blocks>
ARMLET_INLINE void settle_body(const Batch& batch, const double* X, std::size_t rows, float* x, float* scores,
                               std::uint32_t* best) {
    for (std::size_t i = 0; i < rows; i += block_rows)
        settle_block<Rows, Blocks>(batch, X + i * batch.dim, std::min(block_rows, rows - i), x, scores, best + i);
}

#define ARMLET_SETTLE(NAME) \
    void NAME(const Batch& batch, const double* X, std::size_t rows, float* x, float* scores, std::uint32_t* best)

// As many sums at once as there are registers for.
#if defined(__x86_64__)
ARMLET_SETTLE(settle_base) { settle_body<2, 2>(batch, X, rows, x, scores, best); }
ARMLET_AVX2 ARMLET_SETTLE(settle_avx2) { settle_body<2, 2>(batch, X, rows, x, scores, best); }
ARMLET_AVX512 ARMLET_SETTLE(settle_avx512) { settle_body<8, 2>(batch, X, rows, x, scores, best); }
ARMLET_SETTLE(settle) {
    if (level == Level::avx512) return settle_avx512(batch, X, rows, x, scores, best);
    if (level == Level::avx2) return settle_avx2(batch, X, rows, x, scores, best);
    settle_base(batch, X, rows, x, scores, best);
}
#else
ARMLET_SETTLE(settle) { settle_body<2, 2>(batch, X, rows, x, scores, best); }
#endif

constexpr std::size_t panel_columns = 2 * wide;

}  // namespace

// A float32 score is off by at most gamma |x| |theta|, gamma = (d + 2) u / (1 - (d + 2) u) with u = 2^-24, whatever the
// order of the sum (Higham 2002, section 3.1): one rounding of x, one of theta, d of products and sums. A lead of twice
// that is a lead in exact arithmetic. The six units more cover float64's own rounding and that of the bar itself.
BatchArgmax::BatchArgmax(const Estimates& estimates, Arms eligible)
    : dim_(estimates.dim), columns_(padded(eligible.size(), panel_columns)), eligible_(eligible) {
    double longest = 0.0;
    panels_.resize(dim_ * columns_);
    for (std::size_t c = 0; c < eligible.size(); ++c) {
        double square = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) {
            const double value = estimates.theta[j * estimates.width + eligible[c]];
            const std::size_t panel = c / panel_columns * panel_columns;
            panels_[panel * dim_ + j * panel_columns + c % panel_columns] = static_cast<float>(value);
            square += value * value;
        }
        longest = std::max(longest, std::sqrt(square));
    }
    margin_ = 2.0 * static_cast<double>(dim_ + 8) * 0x1p-24 * 1.01 * longest;
    usable_ = columns_ <= most_columns && dim_ < 100'000 && longest >= 1e-6 && longest <= 1e6;
}

void BatchArgmax::operator()(const double* X, std::size_t rows, std::uint32_t* best) const {
    if (!usable_) return void(std::fill(best, best + rows, undecided));
    std::vector<float> scratch(block_rows * (dim_ + columns_));
    settle({panels_.data(), dim_, columns_, margin_, eligible_}, X, rows, scratch.data(),
           scratch.data() + block_rows * dim_, best);
}

}  // namespace armlet
