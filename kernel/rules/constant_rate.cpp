#include "rules/constant_rate.hpp"

#include <algorithm>

namespace armlet {

// In the order of policies/fixed_epsilon.py, which mixes the chances of the best with uniform ones.
double ConstantRate::chance(std::size_t n_eligible, std::size_t n_best, bool is_best) const {
    const double greedy = is_best ? 1.0 / static_cast<double>(n_best) : 0.0;
    if (!rate) return greedy;
    return std::min((1.0 - *rate) * greedy + *rate / static_cast<double>(n_eligible), 1.0);
}

namespace {

Choice told(const ConstantRate& rule, std::uint32_t arm, bool explored, Arms eligible, std::size_t n_best,
            bool is_best) {
    const double chance = rule.chance(eligible.size(), n_best, is_best);
    if (!rule.rate) return {arm, chance, false};
    const double share = 1.0 / static_cast<double>(eligible.size());
    return {.arm = arm,
            .propensity = chance,
            .explored = explored,
            .exploration_propensity = share,
            .exploration_rate = *rule.rate,
            .min_exploration_probability = share,
            .greedy = greedy_at(*rule.rate, is_best)};
}

bool explores(const ConstantRate& rule, const Coins& coins) { return rule.rate && coins.coin < *rule.rate; }

}  // namespace

Choice decide(const Estimates& estimates, const ConstantRate& rule, Word, const double* x, const Coins& coins,
              Arms eligible, double* scratch) {
    estimates.scores(x, scratch);
    const Best best = best_arm(scratch, eligible);
    const bool explored = explores(rule, coins);
    const auto arm =
        explored ? eligible[below(coins.pick, eligible.size())] : tied_arm(scratch, eligible, best, coins.tie);
    return told(rule, arm, explored, eligible, best.count, scratch[arm] == best.score);
}

Choice decide_known(const ConstantRate& rule, Word, const Coins& coins, Arms eligible, std::uint32_t best) {
    const bool explored = explores(rule, coins);
    const auto arm = explored ? eligible[below(coins.pick, eligible.size())] : best;
    return told(rule, arm, explored, eligible, 1, arm == best);
}

Choice ConstantRate::choose(const Statistics& all, const Step& step, const Coins& coins) const {
    double* scores = step.scratch(0, all.width());
    return decide(all.estimates(), *this, step.t, view(all, step), coins, step.eligible, scores);
}

void ConstantRate::probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
    double* scores = step.scratch(0, all.width());
    all.estimates().scores(view(all, step), scores);
    const Best best = best_arm(scores, step.eligible);
    for (const auto arm : step.eligible) out[arm] = chance(step.eligible.size(), best.count, scores[arm] == best.score);
}

}  // namespace armlet
