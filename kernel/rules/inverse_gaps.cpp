#include "rules/inverse_gaps.hpp"

#include <cmath>

namespace armlet {

namespace {

constexpr double steepest = 1e40;  // of gamma over the noise: beyond it only the best arms are played

// out[a] = 1 / (K + gamma gap) of the arms below the best; the rest is shared by the best.
void weigh_gaps(const double* scores, Arms eligible, double gamma, double* out) {
    const Best best = best_arm(scores, eligible);
    const auto n = static_cast<double>(eligible.size());
    double others = 0.0;
    for (const auto arm : eligible)
        if (scores[arm] != best.score) others += out[arm] = 1.0 / (n + gamma * (best.score - scores[arm]));
    const double share = (1.0 - others) / static_cast<double>(best.count);
    for (const auto arm : eligible)
        if (scores[arm] == best.score) out[arm] = share;
}

// The first arm at which the running sum of chances passes the coin's share of the whole.
std::uint32_t drawn_arm(const double* chances, Arms eligible, double coin) {
    double whole = 0.0, running = 0.0;
    for (const auto arm : eligible) whole += chances[arm];
    std::uint32_t last = eligible.front();
    for (const auto arm : eligible) {
        if ((running += chances[arm]) > coin * whole) return arm;
        if (chances[arm] > 0.0) last = arm;
    }
    return last;  // the product may round to the whole
}

}  // namespace

void InverseGaps::probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
    double* scores = step.scratch(0, all.width());
    all.estimates().scores(view(all, step), scores);
    const double steepness = grows ? gamma * std::sqrt(static_cast<double>(step.t)) : gamma;
    if (!by_noise) return weigh_gaps(scores, step.eligible, steepness, out.data());
    const double noise = all.typical_noise();
    if (steepness > 0.0 && steepness / steepest >= noise) return share_among_best(scores, step.eligible, out);
    weigh_gaps(scores, step.eligible, steepness > 0.0 ? steepness / noise : 0.0, out.data());
}

Choice InverseGaps::choose(const Statistics& all, const Step& step, const Coins& coins) const {
    double* chances = step.scratch(1, all.n_arms());
    for (const auto arm : step.eligible) chances[arm] = 0.0;
    probabilities(all, step, {chances, all.n_arms()});
    const auto arm = drawn_arm(chances, step.eligible, coins.coin);
    return {arm, chances[arm], true};
}

}  // namespace armlet
