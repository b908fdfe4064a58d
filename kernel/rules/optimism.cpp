#include "rules/optimism.hpp"

#include <algorithm>
#include <cmath>

#include "linear/elementary.hpp"
#include "rules/best_first.hpp"
#include "rules/under_way.hpp"

namespace armlet {

double Optimism::theory(double log_determinant, double log_start, double log_odds, double lam) const {
    const double gained = std::max(log_determinant - log_start + 2.0 * log_odds, 0.0);
    return (noise_scale * std::sqrt(gained) + std::sqrt(lam) * bound) * scale;
}

namespace {

// c_a of any arm.
class Radii {
  public:
    Radii(const Optimism& rule, const Statistics& statistics) : rule_(rule), lam_(statistics.ridge().value) {
        if (rule.radius == Optimism::Radius::constant) {
            constant_ = rule.by_noise ? rule.scale * statistics.typical_noise() : rule.scale;
            return;
        }
        const auto n_arms = static_cast<double>(statistics.n_arms());
        log_determinants_ = statistics.log_determinants();
        log_start_ = static_cast<double>(statistics.dim()) * elementary::log(lam_);  // a constant is penalised by 1
        log_odds_ = elementary::log(n_arms / rule.delta);
        if (rule.radius == Optimism::Radius::per_arm) return;
        double sum = 0.0;
        for (const double one : log_determinants_) sum += one;
        joint_ = rule.theory(sum, n_arms * log_start_, elementary::log(1.0 / rule.delta), lam_);
    }

    double operator()(std::size_t arm) const {
        if (rule_.radius == Optimism::Radius::constant) return constant_;
        if (rule_.radius == Optimism::Radius::joint) return joint_;
        return rule_.theory(log_determinants_[arm], log_start_, log_odds_, lam_);
    }

  private:
    const Optimism& rule_;
    double lam_, log_start_ = 0.0, log_odds_ = 0.0, joint_ = 0.0, constant_ = 0.0;
    std::span<const double> log_determinants_;
};

}  // namespace

const double* Optimism::upper_bounds(const Statistics& all, const Step& step) const {
    double *means = step.scratch(0, all.width()), *scores = step.scratch(1, all.width());
    const Radii radius(*this, all);
    const double* z = view(all, step);
    const Extent extent = extent_of(all, z);
    all.estimates().scores(z, means);
    const double* shrink = count_to_come(all, step.eligible, means, step.scratch(3, all.n_arms()));
    const auto bound = [&](std::uint32_t arm, double width) {
        if (shrink) width *= shrink[arm];
        return means[arm] + radius(arm) * width;
    };
    if (all.has_weighted_widths()) {  // which nothing bounds
        double* widths = step.scratch(2, all.n_arms());
        all.widths(step.eligible, z, widths);
        for (std::size_t i = 0; i < step.eligible.size(); ++i)
            scores[step.eligible[i]] = bound(step.eligible[i], widths[i]);
        return scores;
    }
    settle_scores(
        all, z, step.eligible, scores,
        [&](std::uint32_t arm) {
            const double widest = all.widest(arm, extent);
            return std::isfinite(widest) ? bound(arm, widest) : widest;
        },
        [](std::uint32_t) { return true; }, bound);
    return scores;
}

Choice Optimism::choose(const Statistics& all, const Step& step, const Coins& coins) const {
    return play_best(upper_bounds(all, step), step.eligible, coins);
}

void Optimism::probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
    share_among_best(upper_bounds(all, step), step.eligible, out);
}

}  // namespace armlet
