// Contextual epsilon-greedy by evidence: an arm is explored the more the fewer rows its sums hold, regardless of x.
#pragma once
#include <algorithm>

#include "rules/choice.hpp"

namespace armlet {

// When a step explores and which arm it takes then, as things stand.
struct Exploring {
    std::span<const double> exploration_weights;  // (K,): min(1, exp(1 - n_a / q))
    double q;                                     // rows for each arm that are always explored
    double cap;                                   // explores at most so often by evidence
    double floor;                                 // and so often whatever is known, all eligible arms alike
    // (K,): a q for each arm, if they differ.
    std::span<const double> quotas = {};

    // No arm of q rows has a smaller weight.
    static double least(double q, Word t) { return std::min(1.0, q / static_cast<double>(t)); }
};

// One step with fresh estimates.
Choice choose_by(const Exploring& exploring, const Statistics& all, const Step& step, const Coins& coins);
void probabilities_by(const Exploring& exploring, const Statistics& all, const Step& step, std::span<double> out);

// Explore with probability min(cap, S), S the sum of w_a = max(min(1, q / t), want_a) over the eligible arms, and then
// arm a with w_a / S; in between the best estimate plays.
struct Evidence {
    using State = Statistics;
    static constexpr const char* works_on = "Statistics";

    double p;  // q times the number of active arms
    double cap, floor;
    bool learn_always;  // from every step, or from explored steps only

    double q(const Statistics& all) const { return p / static_cast<double>(all.n_active()); }
    // Only after refresh(); it looks into the statistics.
    Exploring in_force(const Statistics& all) const { return {all.exploration_weights(), q(all), cap, floor}; }

    void refresh(Statistics& all, Word) const {
        all.refresh();
        refresh_exploration_weights(all);
    }
    void refresh_exploration_weights(Statistics& all) const { all.refresh_exploration_weights(q(all)); }
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const {
        return choose_by(in_force(all), all, step, coins);
    }
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
        probabilities_by(in_force(all), all, step, out);
    }
    bool learns(bool explored) const { return explored || learn_always; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }
};

// The probability that step t explores, and the arm that it takes then, by a number on [0, 1).
double exploring_rate(const Exploring& exploring, Word t, Arms eligible);
std::uint32_t explored_arm(const Exploring& exploring, Word t, double share, Arms eligible);

// One step, from the scores.
Choice decide(const double* scores, const Exploring& exploring, Word t, const Coins& coins, Arms eligible);

// The same from the estimates; `scratch` holds estimates.width values.
Choice decide(const Estimates& estimates, const Exploring& exploring, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch);

// The same when the best arm is known, and known to be the only one.
Choice decide_known(const Exploring& exploring, Word t, const Coins& coins, Arms eligible, std::uint32_t best);

// The probability of each eligible arm at step t, from the scores; `out` holds a zero for every arm.
void probabilities(const double* scores, const Exploring& exploring, Word t, Arms eligible, std::span<double> out);

}  // namespace armlet
