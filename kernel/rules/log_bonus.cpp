#include "rules/log_bonus.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "linear/elementary.hpp"
#include "rules/best_first.hpp"
#include "rules/under_way.hpp"

namespace armlet {

namespace {

// A little more than log(v), v >= 1, from its bits: log2(1 + f) <= f + 0.0861 for 0 <= f < 1.
double log_above(double v) {
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(v) - std::bit_cast<std::uint64_t>(1.0));
    return std::min(v - 1.0, 0.6931471806 * (static_cast<double>(bits) * 0x1p-52 + 0.0861));
}

constexpr std::size_t worth_asking = 64;  // values, below which a width is sooner finished than given up

constexpr double none = -std::numeric_limits<double>::infinity();

// The arm that leads regardless of its width, or the number of arms: its estimate is above all other bounds.
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

// What is added to the estimates of a step, exactly or from above.
class Bonus {
  public:
    // `shrink` is null where nothing is under way.
    Bonus(const LogBonus& rule, const LazyStatistics& all, Word t, const double* means, const double* shrink)
        : width_scale_(rule.width_scale), means_(means), shrink_(shrink), sigma_(all.deviations()) {
        const double ways = static_cast<double>(all.n_active()) * static_cast<double>(all.units().rank());
        even_ = static_cast<double>(t) / ways;
    }

    double score(std::uint32_t arm, double width) const {
        if (shrink_) width *= shrink_[arm];
        const double log = elementary::log(1.0 + even_ * (width * width));
        return means_[arm] + width_scale_ * sigma_[arm] * width * std::sqrt(2.0 * log);
    }
    // No lower than the score of any width up to this one.
    double bound(std::uint32_t arm, double widest) const {
        if (!(widest < beyond_any)) return std::numeric_limits<double>::infinity();
        if (shrink_) widest *= shrink_[arm];
        const double log = log_above(1.0 + even_ * (widest * widest));
        return means_[arm] + (1.0 + 1e-9) * width_scale_ * sigma_[arm] * widest * std::sqrt(2.0 * log);
    }

  private:
    double width_scale_;
    const double *means_, *shrink_;
    std::span<const double> sigma_;
    double even_;  // of the rows, that each value of each arm would have
};

// The highest of the scores, where these are bounds so far.
void settle_bonuses(const LazyStatistics& all, const double* z, Arms eligible, const Bonus& bonus, double* scores) {
    settle_scores(
        all, z, eligible, scores, [&](std::uint32_t arm) { return scores[arm]; },
        [&](std::uint32_t) { return all.view_size() >= worth_asking; },
        [&](std::uint32_t arm, double width) { return bonus.score(arm, width); }, 1);
}

// The arms among these that may have a score as high as the best; the others' become minus infinity.
void keep_rivals(std::vector<std::uint32_t>& arms, double best, double* scores) {
    std::erase_if(arms, [=](std::uint32_t arm) {
        const bool is_out = scores[arm] < best;
        if (is_out) scores[arm] = none;
        return is_out;
    });
}

// The same: the width of the arm with the highest bound first, then closer bounds of those that may be as high as it.
void settle_coarsely(const LazyStatistics& all, const double* z, const Step& step, const Bonus& bonus, double* scores) {
    thread_local std::vector<std::uint32_t> rivals;
    const std::uint32_t leader = best_arm(scores, step.eligible).first;
    double width, *widest = step.scratch(2, all.width());
    all.widths({&leader, 1}, z, &width);
    const double best = bonus.score(leader, width);
    rivals.assign(step.eligible.begin(), step.eligible.end());
    std::erase(rivals, leader);
    keep_rivals(rivals, best, scores);
    all.width_bounds(rivals, z, widest);
    for (const auto arm : rivals) scores[arm] = std::min(scores[arm], bonus.bound(arm, widest[arm]));
    keep_rivals(rivals, best, scores);
    settle_bonuses(all, z, rivals, bonus, scores);
    scores[leader] = best;
}

}  // namespace

// The mixing function of SplitMix64.
bool is_optimistic(Word t, double share) {
    Word bits = t * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return fraction(bits ^ (bits >> 31)) < share;
}

const double* LogBonus::upper_bounds(const LazyStatistics& all, const Step& step) const {
    double *means = step.scratch(0, all.width()), *scores = step.scratch(1, all.width());
    const double* z = view(all, step);
    const Extent extent = extent_of(all, z);
    all.estimates().scores(z, means);
    const double* shrink = count_to_come(
        all, step.eligible, 0.0, [&](std::uint32_t arm) { return all.deviations()[arm]; }, means,
        step.scratch(3, all.width()));
    const Bonus bonus(*this, all, step.t, means, shrink);
    for (const auto arm : step.eligible) scores[arm] = bonus.bound(arm, all.widest(arm, extent));
    if (const std::size_t leader = sure_leader(means, scores, step.eligible, all.n_arms()); leader < all.n_arms()) {
        for (const auto arm : step.eligible) scores[arm] = arm == leader ? means[arm] : none;
        return scores;
    }
    if (all.keeps_coarse())
        settle_coarsely(all, z, step, bonus, scores);
    else
        settle_bonuses(all, z, step.eligible, bonus, scores);
    return scores;
}

const double* LogBonus::scores(const LazyStatistics& all, const Step& step) const {
    if (is_optimistic(step.t, share)) return upper_bounds(all, step);
    double* out = step.scratch(1, all.width());
    all.estimates().scores(view(all, step), out);
    if (all.under_way().any()) skip_silent(all, step.eligible, out);
    return out;
}

Choice LogBonus::choose(const LazyStatistics& all, const Step& step, const Coins& coins) const {
    return decide(scores(all, step), exploring(all), step.t, coins, step.eligible);
}

void LogBonus::probabilities(const LazyStatistics& all, const Step& step, std::span<double> out) const {
    armlet::probabilities(scores(all, step), exploring(all), step.t, step.eligible, out);
}

}  // namespace armlet
