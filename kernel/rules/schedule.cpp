#include "rules/schedule.hpp"

namespace armlet {

namespace {

Choice warm_up(const Schedule& schedule, Word t, const Coins& coins, Arms eligible) {
    if (schedule.round_robin) return forced_choice(eligible[t % eligible.size()], eligible.size());
    const double share = 1.0 / static_cast<double>(eligible.size());
    return {.arm = eligible[below(coins.pick, eligible.size())],
            .propensity = share,
            .explored = true,
            .exploration_propensity = share,
            .exploration_rate = 1.0,
            .min_exploration_probability = share};
}

double propensity(double rate, std::size_t n_eligible, std::size_t n_best, bool is_best) {
    const double explored = rate / static_cast<double>(n_eligible);
    return is_best ? explored + (1.0 - rate) / static_cast<double>(n_best) : explored;
}

// The answer of a step that tossed a coin.
Choice tossed(double rate, std::uint32_t arm, bool explored, std::size_t n_eligible, std::size_t n_best, bool is_best) {
    const double share = 1.0 / static_cast<double>(n_eligible);
    return {.arm = arm,
            .propensity = propensity(rate, n_eligible, n_best, is_best),
            .explored = explored,
            .exploration_propensity = share,
            .exploration_rate = rate,
            .min_exploration_probability = share,
            .greedy = greedy_at(rate, is_best)};
}

}  // namespace

Choice decide(const Estimates& estimates, const Schedule& schedule, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch) {
    if (!schedule.warming_up(t)) estimates.scores(x, scratch);
    return decide(scratch, schedule, t, coins, eligible);
}

Choice decide(const double* scores, const Schedule& schedule, Word t, const Coins& coins, Arms eligible) {
    if (schedule.warming_up(t)) return warm_up(schedule, t, coins, eligible);
    const double rate = schedule.rate(t);
    const Best best = best_arm(scores, eligible);
    const bool explored = coins.coin < rate;
    const auto arm =
        explored ? eligible[below(coins.pick, eligible.size())] : tied_arm(scores, eligible, best, coins.tie);
    return tossed(rate, arm, explored, eligible.size(), best.count, scores[arm] == best.score);
}

Choice decide_known(const Schedule& schedule, Word t, const Coins& coins, Arms eligible, std::uint32_t best) {
    if (schedule.warming_up(t)) return warm_up(schedule, t, coins, eligible);
    const double rate = schedule.rate(t);
    const bool explored = coins.coin < rate;
    const auto arm = explored ? eligible[below(coins.pick, eligible.size())] : best;
    return tossed(rate, arm, explored, eligible.size(), 1, arm == best);
}

void probabilities(const double* scores, const Schedule& schedule, Word t, Arms eligible, std::span<double> out) {
    if (schedule.warming_up(t) && schedule.round_robin) {
        out[eligible[t % eligible.size()]] = 1.0;
        return;
    }
    const double rate = schedule.rate(t);
    const Best best = best_arm(scores, eligible);
    for (const auto arm : eligible) out[arm] = propensity(rate, eligible.size(), best.count, scores[arm] == best.score);
}

Choice Schedule::choose(const Statistics& all, const Step& step, const Coins& coins) const {
    double* scores = step.scratch(0, all.width());
    const double* z = warming_up(step.t) ? step.x : view(all, step);
    return decide(all.estimates(), in_force(all), step.t, z, coins, step.eligible, scores);
}

void Schedule::probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
    double* scores = step.scratch(0, all.width());
    all.estimates().scores(view(all, step), scores);
    armlet::probabilities(scores, in_force(all), step.t, step.eligible, out);
}

}  // namespace armlet
