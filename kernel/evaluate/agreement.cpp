#include "evaluate/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear/wide.hpp"

namespace armlet {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr std::size_t dials_at_once = 4;
// Below this float64 could itself lose products to underflow, so that its ties are not those of exact arithmetic.
constexpr double least_scale = 0x1p-400;
constexpr std::size_t most_features = 100'000;

// A power of two that takes the largest of the values to between 1/2 and 1; 0 if all are 0.
double scale_of(const double* values, std::size_t n) {
    double largest = 0.0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(values[i]));
    if (largest == 0.0) return 0.0;
    int exponent;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, -exponent);
}

bool is_small(double scale) { return scale == 0.0 || scale > 1.0 / least_scale; }

// One outcome of a policy, theta (K, d), times a scale, in panels; returns the length of the longest.
double pack(const double* theta, std::size_t n_arms, std::size_t d, double scale, float* panels) {
    double longest = 0.0;
    for (std::size_t a = 0; a < n_arms; ++a) {
        double square = 0.0;
        float* out = panels + a / panel * panel * d + a % panel;
        for (std::size_t j = 0; j < d; ++j) {
            const double value = theta[a * d + j] * scale;
            out[panel * j] = static_cast<float>(value);
            square += value * value;
        }
        longest = std::max(longest, square);
    }
    return std::sqrt(longest);
}

// Times |x| and the sum over outcomes of |w| |theta|: what the lead of one arm over another, a difference of weighted
// scores, is off by at most in float32. A score is off by gamma |x| |theta| with d + 2 roundings (Higham 2002, section
// 3.1): one of x, one of theta, d of products and sums. The difference adds one, its weights one and the sum over
// outcomes m; the other eight cover the rounding of float64, of |x| and of the comparison, and the factor 1.03 the
// divisor of gamma and the sum of squares. What falls below float32's smallest numbers is 2^-100 of this.
double relative_error(std::size_t d, std::size_t n_outcomes) {
    if (d >= most_features) return infinite;
    return 2.0 * static_cast<double>(d + n_outcomes + 10) * 0x1p-24 * 1.03;
}

template <std::size_t Width>
ARMLET_INLINE typename Wide<Width>::Floats size_of(typename Wide<Width>::Floats v) {
    return (typename Wide<Width>::Floats)((typename Wide<Width>::Ints)v & 0x7fffffff);
}

struct PackedPolicies {
    const float* panels;
    const float* bounds;
    std::size_t count, arms_in_panels, dim;
};

template <std::size_t Width>
ARMLET_INLINE void settle_policies_body(const PackedPolicies& policies, const RowGroup& rows, std::uint32_t* agree,
                                        std::uint32_t* open) {
    using Floats = typename Wide<Width>::Floats;
    using Ints = typename Wide<Width>::Ints;
    const Floats lowest = Floats{} - infinite;
    for (std::size_t at = 0; at < row_group; at += 2 * Width) {
        const Ints arms[2] = {load_wide<Ints>(rows.arms + at), load_wide<Ints>(rows.arms + at + Width)};
        const Floats length[2] = {load_wide<Floats>(rows.length + at), load_wide<Floats>(rows.length + at + Width)};
        Ints agreed[2] = {}, opened[2] = {};
        for (std::size_t p = 0; p < policies.count; ++p) {
            const float* theta = policies.panels + p * policies.arms_in_panels * policies.dim;
            Floats own[2] = {lowest, lowest}, other[2] = {lowest, lowest};
            for (std::size_t first = 0; first < policies.arms_in_panels; first += panel) {
                Floats sum[panel][2];
                for (std::size_t a = 0; a < panel; ++a)
                    for (std::size_t v = 0; v < 2; ++v)
                        sum[a][v] = load_wide<Floats>(rows.barred + (first + a) * row_group + at + v * Width);
                score_panel<Width>(theta + first * policies.dim, rows.x + at, policies.dim, row_group, sum);
                for (std::size_t a = 0; a < panel; ++a)
                    for (std::size_t v = 0; v < 2; ++v) {
                        const auto arm = static_cast<std::int32_t>(first + a);
                        const Floats rest = arms[v] == arm ? lowest : sum[a][v];
                        own[v] = arms[v] == arm ? sum[a][v] : own[v];
                        other[v] = rest > other[v] ? rest : other[v];
                    }
            }
            const Ints bit = Ints{} + static_cast<std::int32_t>(1U << p);
            for (std::size_t v = 0; v < 2; ++v) {
                const Floats lead = own[v] - other[v], fake = policies.bounds[p] * length[v];
                agreed[v] |= lead > fake ? bit : Ints{};
                opened[v] |= size_of<Width>(lead) > fake ? Ints{} : bit;  // open where it is no number, too
            }
        }
        for (std::size_t v = 0; v < 2; ++v) {
            store_wide(agree + at + v * Width, agreed[v]);
            store_wide(open + at + v * Width, arms[v] >= 0 ? opened[v] : Ints{});
        }
    }
}

ARMLET_CHOOSE(settle_policies,
              (const PackedPolicies& policies, const RowGroup& rows, std::uint32_t* agree, std::uint32_t* open),
              (policies, rows, agree, open), settle_policies_body<4>, settle_policies_body<8>, settle_policies_body<16>)

struct PackedDials {
    const float* panels;
    const float* weights;
    float bound;
    std::size_t n_dials, n_outcomes, n_arms, arms_in_panels, dim;
};

// scores (m, K in panels, 2 Width): by how much each arm is ahead of the one that was played, outcome by outcome; and
// behind them, (K, 2 Width), minus infinity for that arm and for those that may not be played.
template <std::size_t Width>
ARMLET_INLINE void find_leads(const PackedDials& policy, const RowGroup& rows, std::size_t at, float* scores) {
    using Floats = typename Wide<Width>::Floats;
    using Ints = typename Wide<Width>::Ints;
    const Ints arms[2] = {load_wide<Ints>(rows.arms + at), load_wide<Ints>(rows.arms + at + Width)};
    for (std::size_t o = 0; o < policy.n_outcomes; ++o) {
        float* out = scores + o * policy.arms_in_panels * 2 * Width;
        Floats own[2] = {};
        for (std::size_t first = 0; first < policy.arms_in_panels; first += panel) {
            Floats sum[panel][2] = {};
            score_panel<Width>(policy.panels + (o * policy.arms_in_panels + first) * policy.dim, rows.x + at,
                               policy.dim, row_group, sum);
            for (std::size_t a = 0; a < panel; ++a)
                for (std::size_t v = 0; v < 2; ++v) {
                    own[v] = arms[v] == static_cast<std::int32_t>(first + a) ? sum[a][v] : own[v];
                    store_wide(out + (first + a) * 2 * Width + v * Width, sum[a][v]);
                }
        }
        for (std::size_t a = 0; a < policy.n_arms; ++a)
            for (std::size_t v = 0; v < 2; ++v) {
                float* score = out + a * 2 * Width + v * Width;
                store_wide(score, load_wide<Floats>(score) - own[v]);
            }
    }
    float* barred = scores + policy.n_outcomes * policy.arms_in_panels * 2 * Width;
    for (std::size_t a = 0; a < policy.n_arms; ++a)
        for (std::size_t v = 0; v < 2; ++v) {
            const Floats rest = load_wide<Floats>(rows.barred + a * row_group + at + v * Width);
            store_wide(barred + a * 2 * Width + v * Width,
                       arms[v] == static_cast<std::int32_t>(a) ? Floats{} - infinite : rest);
        }
}

// lead[k]: by how much the best of the others is ahead under each of four dials.
template <std::size_t Width>
ARMLET_INLINE void best_leads(const PackedDials& policy, const float* weights, const float* scores,
                              typename Wide<Width>::Floats (&lead)[dials_at_once][2]) {
    using Floats = typename Wide<Width>::Floats;
    const float* barred = scores + policy.n_outcomes * policy.arms_in_panels * 2 * Width;
    for (auto& one : lead) one[0] = one[1] = Floats{} - infinite;
    for (std::size_t a = 0; a < policy.n_arms; ++a) {
        Floats sum[dials_at_once][2];
        for (auto& one : sum)
            for (std::size_t v = 0; v < 2; ++v) one[v] = load_wide<Floats>(barred + a * 2 * Width + v * Width);
        for (std::size_t o = 0; o < policy.n_outcomes; ++o) {
            const float* score = scores + (o * policy.arms_in_panels + a) * 2 * Width;
            const Floats low = load_wide<Floats>(score), high = load_wide<Floats>(score + Width);
            for (std::size_t k = 0; k < dials_at_once; ++k) {
                sum[k][0] += weights[o * dials_at_once + k] * low;
                sum[k][1] += weights[o * dials_at_once + k] * high;
            }
        }
        for (std::size_t k = 0; k < dials_at_once; ++k)
            for (std::size_t v = 0; v < 2; ++v) lead[k][v] = sum[k][v] > lead[k][v] ? sum[k][v] : lead[k][v];
    }
}

template <std::size_t Width>
ARMLET_INLINE void settle_dials_body(const PackedDials& policy, const RowGroup& rows, float* scores,
                                     std::uint32_t* agree, std::uint32_t* open) {
    using Floats = typename Wide<Width>::Floats;
    using Ints = typename Wide<Width>::Ints;
    for (std::size_t at = 0; at < row_group; at += 2 * Width) {
        find_leads<Width>(policy, rows, at, scores);
        Floats nearest[2] = {Floats{} + infinite, Floats{} + infinite};
        for (std::size_t word = 0; word * word_bits < policy.n_dials; ++word) {
            const std::size_t begin = word * word_bits, end = std::min(begin + word_bits, policy.n_dials);
            Ints agreed[2] = {};
            for (std::size_t k = begin; k < end; k += dials_at_once) {
                Floats lead[dials_at_once][2];
                best_leads<Width>(policy, policy.weights + k * policy.n_outcomes, scores, lead);
                for (std::size_t i = 0; i < dials_at_once; ++i)
                    for (std::size_t v = 0; v < 2; ++v) {
                        const Floats distance = size_of<Width>(lead[i][v]);
                        nearest[v] = distance < nearest[v] ? distance : nearest[v];
                        // the sign: a lead of 0 is left open, whichever zero it is
                        agreed[v] |= (Ints)lead[i][v] >> 31 & static_cast<std::int32_t>(1U << (k + i - begin));
                    }
            }
            const auto there = static_cast<std::int32_t>(end - begin == word_bits ? ~0U : (1U << (end - begin)) - 1);
            for (std::size_t v = 0; v < 2; ++v) {
                const Ints arms = load_wide<Ints>(rows.arms + at + v * Width);
                store_wide(agree + word * row_group + at + v * Width, arms >= 0 ? agreed[v] & there : Ints{});
            }
        }
        for (std::size_t v = 0; v < 2; ++v) {
            const Floats fake = policy.bound * load_wide<Floats>(rows.length + at + v * Width);
            const Ints arms = load_wide<Ints>(rows.arms + at + v * Width);
            const Ints opened = nearest[v] > fake ? Ints{} : Ints{} + 1;
            store_wide(open + at + v * Width, arms >= 0 ? opened : Ints{});
        }
    }
}

ARMLET_CHOOSE(settle_dials,
              (const PackedDials& policy, const RowGroup& rows, float* scores, std::uint32_t* agree,
               std::uint32_t* open),
              (policy, rows, scores, agree, open), settle_dials_body<4>, settle_dials_body<8>, settle_dials_body<16>)

}  // namespace

GroupedRows::GroupedRows(const LoggedRows& rows)
    : dim_(rows.dim),
      arms_in_panels_(padded(rows.n_arms, panel)),
      n_groups_((rows.n + row_group - 1) / row_group),
      x_(n_groups_ * row_group * dim_),
      barred_(n_groups_ * row_group * arms_in_panels_),
      length_(n_groups_ * row_group),
      arms_(n_groups_ * row_group, -1) {
    const std::size_t k = rows.n_arms;
    std::fill_n(barred_.data(), n_groups_ * row_group * arms_in_panels_, -infinite);
    for (std::size_t i = 0; i < rows.n; ++i) {
        const std::size_t group = i / row_group, r = i % row_group;
        const double* x = rows.X + i * dim_;
        const double scale = scale_of(x, dim_);
        double square = 0.0;
        float* turned = x_.data() + group * row_group * dim_ + r;
        for (std::size_t j = 0; j < dim_; ++j) {
            const double value = x[j] * scale;
            turned[j * row_group] = static_cast<float>(value);
            square += value * value;
        }
        length_.data()[i] = is_small(scale) ? infinite : static_cast<float>(std::sqrt(square));
        const bool* may = rows.eligible + i * k;
        float* barred = barred_.data() + group * row_group * arms_in_panels_ + r;
        for (std::size_t a = 0; a < k; ++a) barred[a * row_group] = may[a] ? 0.0f : -infinite;
        if (may[rows.arms[i]]) arms_[i] = static_cast<std::int32_t>(rows.arms[i]);
    }
}

RowGroup GroupedRows::operator[](std::size_t group) const {
    return {.x = x_.data() + group * row_group * dim_,
            .barred = barred_.data() + group * row_group * arms_in_panels_,
            .length = length_.data() + group * row_group,
            .arms = arms_.data() + group * row_group};
}

PolicyBlock::PolicyBlock(const LinearPolicies& policies)
    : count_(policies.count), n_arms_(policies.n_arms), dim_(policies.dim) {
    const std::size_t size = padded(n_arms_, panel) * dim_;
    panels_.resize(count_ * size);
    bounds_.resize(count_);
    for (std::size_t p = 0; p < count_; ++p) {
        const double* theta = policies.theta + p * policies.size();
        const double scale = scale_of(theta, policies.size());
        const double longest = pack(theta, n_arms_, dim_, scale, panels_.data() + p * size);
        bounds_[p] = is_small(scale) ? infinite : static_cast<float>(relative_error(dim_, 1) * longest);
    }
}

void PolicyBlock::settle(const RowGroup& rows, std::uint32_t* agree, std::uint32_t* open) const {
    settle_policies({panels_.data(), bounds_.data(), count_, padded(n_arms_, panel), dim_}, rows, agree, open);
}

DialedPolicy::DialedPolicy(const LinearPolicies& policy, const double* dials, std::size_t n_dials)
    : n_dials_(n_dials),
      n_outcomes_(policy.n_outcomes),
      n_arms_(policy.n_arms),
      dim_(policy.dim),
      panels_(n_outcomes_ * padded(n_arms_, panel) * dim_),
      weights_(padded(n_dials, dials_at_once) * n_outcomes_),
      bound_(static_cast<float>(relative_error(dim_, n_outcomes_))),
      scores_((n_outcomes_ + 1) * padded(n_arms_, panel) * row_group) {
    std::vector<double> scales(n_outcomes_), lengths(n_outcomes_);
    for (std::size_t o = 0; o < n_outcomes_; ++o) {
        const double* theta = policy.theta + o * n_arms_ * dim_;
        scales[o] = scale_of(theta, n_arms_ * dim_);
        lengths[o] = pack(theta, n_arms_, dim_, scales[o], panels_.data() + o * padded(n_arms_, panel) * dim_);
    }
    for (std::size_t k = 0; k < padded(n_dials, dials_at_once); ++k) {
        const double* dial = dials + std::min(k, n_dials - 1) * n_outcomes_;  // the last one fills up
        double size = 0.0;
        for (std::size_t o = 0; o < n_outcomes_; ++o)
            if (scales[o] > 0.0) size += std::fabs(dial[o]) / scales[o] * lengths[o];
        // the sum over outcomes of |w| |theta| is then between 1/2 and 1, and one bound is enough
        const double scale = scale_of(&size, 1);
        if (is_small(scale)) bound_ = infinite;
        for (std::size_t o = 0; o < n_outcomes_; ++o)
            weights_[(k / dials_at_once * n_outcomes_ + o) * dials_at_once + k % dials_at_once] =
                scales[o] > 0.0 ? static_cast<float>(dial[o] / scales[o] * scale) : 0.0f;
    }
}

void DialedPolicy::settle(const RowGroup& rows, std::uint32_t* agree, std::uint32_t* open) {
    settle_dials(
        {panels_.data(), weights_.data(), bound_, n_dials_, n_outcomes_, n_arms_, padded(n_arms_, panel), dim_}, rows,
        scores_.data(), agree, open);
}

}  // namespace armlet
