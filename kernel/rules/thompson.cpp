#include "rules/thompson.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coins/normal.hpp"
#include "linear/elementary.hpp"
#include "rules/best_first.hpp"
#include "rules/under_way.hpp"

namespace armlet {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// deviations[a] = v sqrt(x' V_a^-1 x) of each eligible arm: x' theta for a theta drawn from the posterior is normal
// with mean x' theta_hat_a and this deviation. Widths shrink where decisions are under way.
void find_deviations(const Thompson& rule, const Statistics& all, const Step& step, const double* x,
                     const double* shrink, double* deviations) {
    const double v = rule.v(all, step.t);
    thread_local std::vector<double> widths;
    widths.resize(step.eligible.size());
    all.widths(step.eligible, x, widths.data());
    if (shrink)
        for (std::size_t i = 0; i < widths.size(); ++i) widths[i] *= shrink[step.eligible[i]];
    for (std::size_t i = 0; i < widths.size(); ++i) deviations[step.eligible[i]] = v * widths[i];
}

// scores[a] = the sample means[a] + v sqrt(x' V_a^-1 x) z[a] of each eligible arm that can have the highest, minus
// infinity for the rest. Without deviations at hand, which propensities need of all arms, few widths are worked out.
void draw_samples(const Thompson& rule, const Statistics& all, const Step& step, const double* x, const double* means,
                  const double* shrink, const double* z, double* scores) {
    const double v = rule.v(all, step.t);
    const Extent extent = extent_of(all, x);
    const auto sample = [&](std::uint32_t arm, double width) {
        if (shrink) width *= shrink[arm];
        return means[arm] + v * width * z[arm];
    };
    settle_scores(
        all, x, step.eligible, scores,
        [&](std::uint32_t arm) {
            if (z[arm] <= 0.0) return means[arm];
            const double widest = all.widest(arm, extent);
            return std::isfinite(widest) ? sample(arm, widest) : widest;
        },
        [&](std::uint32_t arm) { return z[arm] > 0.0; }, sample);
}

// P(each eligible arm has the highest sample), by its place among the eligible.
std::span<const double> win_chances(const double* means, const double* deviations, const Step& step) {
    const std::size_t n = step.eligible.size();
    double *packed = step.scratch(2, 3 * n), *chances = packed + 2 * n;
    for (std::size_t i = 0; i < n; ++i)
        packed[i] = means[step.eligible[i]], packed[n + i] = deviations[step.eligible[i]];
    win_probabilities({packed, n}, {packed + n, n}, {chances, n});
    return {chances, n};
}

double propensity_of(std::uint32_t arm, std::span<const double> chances, Arms eligible) {
    const auto place = std::lower_bound(eligible.begin(), eligible.end(), arm) - eligible.begin();
    return chances[static_cast<std::size_t>(place)];
}

}  // namespace

double Thompson::v(const Statistics& all, Word t) const {
    if (!theory) return by_noise ? scale * all.typical_noise() : scale;
    const double log_odds = elementary::log(static_cast<double>(t) / delta);
    return noise_scale * std::sqrt(9.0 * static_cast<double>(all.dim()) * log_odds) * scale;
}

Choice Thompson::choose(const Statistics& all, const Step& step, const Coins& coins) const {
    const std::size_t n_arms = all.n_arms();
    double *means = step.scratch(0, all.width()), *scores = step.scratch(1, n_arms), *z = step.scratch(3, n_arms);
    const double* x = view(all, step);
    all.estimates().scores(x, means);
    const double* shrink = count_to_come(all, step.eligible, means, step.scratch(5, all.n_arms()));
    draw_normals(coins.pick, coins.tie, {z, n_arms});
    if (step.wanted == Propensities::skipped && !all.has_weighted_widths()) {
        draw_samples(*this, all, step, x, means, shrink, z, scores);
        Choice choice = play_best(scores, step.eligible, coins);
        choice.propensity = unknown;
        return choice;
    }
    double* deviations = scores;
    find_deviations(*this, all, step, x, shrink, deviations);
    for (const auto arm : step.eligible) z[arm] = means[arm] + deviations[arm] * z[arm];
    Choice choice = play_best(z, step.eligible, coins);
    if (step.wanted == Propensities::skipped) return choice.propensity = unknown, choice;
    choice.propensity = propensity_of(choice.arm, win_chances(means, deviations, step), step.eligible);
    return choice;
}

void Thompson::probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
    double *means = step.scratch(0, all.width()), *deviations = step.scratch(1, all.n_arms());
    const double* x = view(all, step);
    all.estimates().scores(x, means);
    const double* shrink = count_to_come(all, step.eligible, means, step.scratch(5, all.n_arms()));
    find_deviations(*this, all, step, x, shrink, deviations);
    const auto chances = win_chances(means, deviations, step);
    for (std::size_t i = 0; i < chances.size(); ++i) out[step.eligible[i]] = chances[i];
}

}  // namespace armlet
