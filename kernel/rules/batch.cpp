#include "rules/batch.hpp"

#include <algorithm>
#include <cmath>

#include "linear/wide.hpp"

namespace armlet {

namespace {

constexpr std::size_t most_arms = 1 << 20;

typedef float Four __attribute__((vector_size(4 * sizeof(float))));
typedef double FourDoubles __attribute__((vector_size(4 * sizeof(double))));

ARMLET_INLINE Four load_rounded(const double* p) {
    FourDoubles v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Four);
}

#if defined(__clang__)
#define ARMLET_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef std::int32_t FourInts __attribute__((vector_size(4 * sizeof(float))));
#define ARMLET_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, FourInts{__VA_ARGS__})
#endif

// Four values of four rows, the values of a feature side by side `apart` from those of the next.
ARMLET_INLINE void turn_square(const double* X, std::size_t d, std::size_t apart, float* out) {
    const Four a = load_rounded(X), b = load_rounded(X + d), c = load_rounded(X + 2 * d), e = load_rounded(X + 3 * d);
    const Four ab = ARMLET_SHUFFLE(a, b, 0, 4, 1, 5), ce = ARMLET_SHUFFLE(c, e, 0, 4, 1, 5);
    const Four AB = ARMLET_SHUFFLE(a, b, 2, 6, 3, 7), CE = ARMLET_SHUFFLE(c, e, 2, 6, 3, 7);
    const Four turned[] = {ARMLET_SHUFFLE(ab, ce, 0, 1, 4, 5), ARMLET_SHUFFLE(ab, ce, 2, 3, 6, 7),
                           ARMLET_SHUFFLE(AB, CE, 0, 1, 4, 5), ARMLET_SHUFFLE(AB, CE, 2, 3, 6, 7)};
    for (std::size_t j = 0; j < 4; ++j) std::memcpy(out + j * apart, &turned[j], sizeof(Four));
}

// out (d, group): the rows in float32, those after the last as zeros.
template <std::size_t Group>
ARMLET_INLINE void turn_rows(const double* X, std::size_t rows, std::size_t d, float* out) {
    const std::size_t whole = rows / 4 * 4, features = d / 4 * 4;
    if (rows < Group) std::fill(out, out + d * Group, 0.0f);
    for (std::size_t r = 0; r < whole; r += 4) {
        for (std::size_t j = 0; j < features; j += 4) turn_square(X + r * d + j, d, Group, out + j * Group + r);
        for (std::size_t j = features; j < d; ++j)
            for (std::size_t i = r; i < r + 4; ++i) out[j * Group + i] = static_cast<float>(X[i * d + j]);
    }
    for (std::size_t r = whole; r < rows; ++r)
        for (std::size_t j = 0; j < d; ++j) out[j * Group + r] = static_cast<float>(X[r * d + j]);
}

struct Batch {
    const float* panels;
    std::size_t dim;
    float bound;  // times x' x: the square of a lead that float32 cannot fake
    Arms eligible;
};

// The best arms of as many rows as two registers hold, x (d, 2 Width).
template <std::size_t Width>
ARMLET_INLINE void settle_group(const Batch& batch, const float* x, std::uint32_t* out) {
    using Floats = typename Wide<Width>::Floats;
    using Ints = typename Wide<Width>::Ints;
    const Floats lowest = Floats{} - INFINITY;
    Floats top[2] = {lowest, lowest}, second[2] = {lowest, lowest}, square[2] = {};
    Ints best[2] = {};
    for (std::size_t first = 0; first < batch.eligible.size(); first += panel) {
        const float* theta = batch.panels + first * batch.dim;
        Floats sum[panel][2] = {};
        score_panel<Width>(theta, x, batch.dim, 2 * Width, sum);
        for (std::size_t a = 0; a < std::min(panel, batch.eligible.size() - first); ++a)
            for (std::size_t v = 0; v < 2; ++v) {
                const Floats score = sum[a][v], lesser = score < top[v] ? score : top[v];
                second[v] = lesser > second[v] ? lesser : second[v];
                best[v] = score > top[v] ? Ints{} + static_cast<std::int32_t>(first + a) : best[v];
                top[v] = score > top[v] ? score : top[v];
            }
    }
    for (std::size_t j = 0; j < batch.dim; ++j)
        for (std::size_t v = 0; v < 2; ++v) {
            const Floats value = load_wide<Floats>(x + 2 * Width * j + v * Width);
            square[v] += value * value;
        }
    for (std::size_t v = 0; v < 2; ++v) {
        const Floats lead = top[v] - second[v];
        // within these squares float32 neither overflows nor goes subnormal; what is no number is not within
        const Ints sure = (lead * lead > batch.bound * square[v]) & (square[v] >= 1e-12f) & (square[v] <= 1e12f);
        best[v] = sure ? best[v] : Ints{} - 1;
        std::memcpy(out + v * Width, &best[v], sizeof best[v]);
    }
}

template <std::size_t Width>
ARMLET_INLINE void settle_body(const Batch& batch, const double* X, std::size_t rows, float* x, std::uint32_t* best) {
    constexpr std::size_t group = 2 * Width;
    for (std::size_t i = 0; i < rows; i += group) {
        const std::size_t there = std::min(group, rows - i);
        std::uint32_t found[group];
        turn_rows<group>(X + i * batch.dim, there, batch.dim, x);
        settle_group<Width>(batch, x, found);
        for (std::size_t r = 0; r < there; ++r)
            best[i + r] = found[r] == undecided ? undecided : batch.eligible[found[r]];
    }
}

#define ARMLET_SETTLE(NAME) \
    void NAME(const Batch& batch, const double* X, std::size_t rows, float* x, std::uint32_t* best)

#if defined(__x86_64__)
ARMLET_SETTLE(settle_base) { settle_body<4>(batch, X, rows, x, best); }
ARMLET_AVX2 ARMLET_SETTLE(settle_avx2) { settle_body<8>(batch, X, rows, x, best); }
ARMLET_AVX512 ARMLET_SETTLE(settle_avx512) { settle_body<16>(batch, X, rows, x, best); }
ARMLET_SETTLE(settle) {
    if (level == Level::avx512) return settle_avx512(batch, X, rows, x, best);
    if (level == Level::avx2) return settle_avx2(batch, X, rows, x, best);
    settle_base(batch, X, rows, x, best);
}
#else
ARMLET_SETTLE(settle) { settle_body<4>(batch, X, rows, x, best); }
#endif

constexpr std::size_t largest_group = 32;

}  // namespace

// A float32 score is off by at most gamma |x| |theta|, gamma = (d + 2) u / (1 - (d + 2) u) with u = 2^-24, whatever the
// order of the sum (Higham 2002, section 3.1): one rounding of x, one of theta, d of products and sums. A lead of twice
// that is a lead in exact arithmetic. The six units more cover float64's own rounding and that of the comparison; the
// factor 1.03 gamma's divisor and the sum of squares, which is off by one part in 160 at most for so few features.
BatchArgmax::BatchArgmax(const Estimates& estimates, Arms eligible) : dim_(estimates.dim), eligible_(eligible) {
    panels_.resize(dim_ * padded(eligible.size(), panel));
    for (std::size_t c = 0; c < eligible.size(); ++c) {
        double square = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) {
            const double value = estimates.theta[j * estimates.width + eligible[c]];
            panels_[c / panel * panel * dim_ + j * panel + c % panel] = static_cast<float>(value);
            square += value * value;
        }
        longest_ = std::max(longest_, std::sqrt(square));
    }
    margin_ = 2.0 * static_cast<double>(dim_ + 8) * 0x1p-24 * 1.03 * longest_;
    usable_ = eligible.size() <= most_arms && dim_ < 100'000 && longest_ >= 1e-6 && longest_ <= 1e6;
}

void BatchArgmax::operator()(const double* X, std::size_t rows, std::uint32_t* best) const {
    if (!usable_) return void(std::fill(best, best + rows, undecided));
    std::vector<float> turned(largest_group * dim_);
    settle({panels_.data(), dim_, static_cast<float>(margin_ * margin_), eligible_}, X, rows, turned.data(), best);
}

}  // namespace armlet
