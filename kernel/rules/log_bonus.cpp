#include "rules/log_bonus.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "linear/elementary.hpp"
#include "rules/best_first.hpp"

namespace armlet {

namespace {

// A little more than log(v), v >= 1, from its bits: log2(1 + f) <= f + 0.0861 for 0 <= f < 1.
double log_above(double v) {
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(v) - std::bit_cast<std::uint64_t>(1.0));
    return std::min(v - 1.0, 0.6931471806 * (static_cast<double>(bits) * 0x1p-52 + 0.0861));
}

constexpr std::size_t worth_asking = 64;  // values, below which a width is sooner finished than given up

constexpr double none = -std::numeric_limits<double>::infinity();

// The arm that leads whatever its width is, or the number of arms: its estimate is above all other bounds.
std::size_t sure_leader(const double* means, const double* bounds, Arms eligible, std::size_t n_arms) {
    double first = none, second = none;  // of the bounds
    std::size_t leader = n_arms;
    for (const auto arm : eligible) {
        if (bounds[arm] > first)
            second = first, first = bounds[arm], leader = arm;
        else
            second = std::max(second, bounds[arm]);
    }
    return leader < n_arms && means[leader] > second ? leader : n_arms;
}

}  // namespace

// The mixing function of SplitMix64.
bool is_optimistic(Word t, double share) {
    Word bits = t * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return fraction(bits ^ (bits >> 31)) < share;
}

const double* LogBonus::upper_bounds(const Paced& all, const Step& step) const {
    double *means = step.scratch(0, all.width()), *scores = step.scratch(1, all.width());
    const double* z = view(all, step);
    const Extent extent = extent_of(all, z);
    const double ways = static_cast<double>(all.n_active()) * static_cast<double>(all.units().rank());
    const double even = static_cast<double>(step.t) / ways;  // of the rows, that each value of each arm would have
    const auto sigma = all.deviations();
    all.estimates().scores(z, means);
    const auto bound = [&](std::uint32_t arm) {
        const double widest = all.widest(arm, extent);
        if (!(widest < beyond_any)) return std::numeric_limits<double>::infinity();
        const double log = log_above(1.0 + even * (widest * widest));
        return means[arm] + (1.0 + 1e-9) * width_scale * sigma[arm] * widest * std::sqrt(2.0 * log);
    };
    for (const auto arm : step.eligible) scores[arm] = bound(arm);
    if (const std::size_t leader = sure_leader(means, scores, step.eligible, all.n_arms()); leader < all.n_arms()) {
        for (const auto arm : step.eligible) scores[arm] = arm == leader ? means[arm] : none;
        return scores;
    }
    settle_scores(
        all, z, step.eligible, scores, [&](std::uint32_t arm) { return scores[arm]; },
        [&](std::uint32_t) { return all.view_size() >= worth_asking; },
        [&](std::uint32_t arm, double width) {
            const double log = elementary::log(1.0 + even * (width * width));
            return means[arm] + width_scale * sigma[arm] * width * std::sqrt(2.0 * log);
        },
        1);
    return scores;
}

const double* LogBonus::scores(const Paced& all, const Step& step) const {
    if (is_optimistic(step.t, share)) return upper_bounds(all, step);
    double* out = step.scratch(1, all.width());
    all.estimates().scores(view(all, step), out);
    return out;
}

Choice LogBonus::choose(const Paced& all, const Step& step, const Coins& coins) const {
    return decide(scores(all, step), exploring(all), step.t, coins, step.eligible);
}

void LogBonus::probabilities(const Paced& all, const Step& step, std::span<double> out) const {
    armlet::probabilities(scores(all, step), exploring(all), step.t, step.eligible, out);
}

}  // namespace armlet
