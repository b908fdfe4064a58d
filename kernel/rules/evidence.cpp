#include "rules/evidence.hpp"

#include "rules/under_way.hpp"

namespace armlet {

namespace {

// What the best arm of a step that does not explore has the highest of.
const double* greedy_scores(const Statistics& all, const Step& step) {
    double* scores = step.scratch(0, all.width());
    all.estimates().scores(view(all, step), scores);
    if (all.under_way().any()) skip_silent(all, step.eligible, scores);
    return scores;
}

}  // namespace

double exploring_rate(const Exploring& exploring, Word t, Arms eligible) { return Law(exploring, t, eligible).rate(); }

std::uint32_t explored_arm(const Exploring& exploring, Word t, double share, Arms eligible) {
    return Law(exploring, t, eligible).at(share);
}

Choice decide(const double* scores, const Exploring& exploring, Word t, const Coins& coins, Arms eligible) {
    const Law law(exploring, t, eligible);
    const Best best = best_arm(scores, eligible);
    const bool explores = coins.coin < law.rate();
    const auto arm = explores ? law.drawn(coins.pick) : tied_arm(scores, eligible, best, coins.tie);
    return law.choice(arm, explores, best.count, scores[arm] == best.score);
}

Choice decide(const Estimates& estimates, const Exploring& exploring, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch) {
    estimates.scores(x, scratch);
    return decide(scratch, exploring, t, coins, eligible);
}

Choice decide_known(const Exploring& exploring, Word t, const Coins& coins, Arms eligible, std::uint32_t best) {
    const Law law(exploring, t, eligible);
    const bool explores = coins.coin < law.rate();
    const auto arm = explores ? law.drawn(coins.pick) : best;
    return law.choice(arm, explores, 1, arm == best);
}

void probabilities(const double* scores, const Exploring& exploring, Word t, Arms eligible, std::span<double> out) {
    const Law law(exploring, t, eligible);
    const Best best = best_arm(scores, eligible);
    for (const auto arm : eligible) out[arm] = law.propensity(arm, best.count, scores[arm] == best.score);
}

Choice choose_by(const Exploring& exploring, const Statistics& all, const Step& step, const Coins& coins) {
    return decide(greedy_scores(all, step), exploring, step.t, coins, step.eligible);
}

void probabilities_by(const Exploring& exploring, const Statistics& all, const Step& step, std::span<double> out) {
    probabilities(greedy_scores(all, step), exploring, step.t, step.eligible, out);
}

}  // namespace armlet
