// Contextual epsilon-greedy: one decision of Algorithm 1.
#pragma once
#include "rules/choice.hpp"

namespace armlet {

// When to explore, and which steps to learn from; in between the best estimate plays.
struct Schedule {
    using State = Statistics;
    static constexpr const char* works_on = "Statistics";

    double p;           // explore step t with probability p / t; infinite: always
    bool round_robin;   // the first ceil(p) steps: arm t mod K, or uniform
    bool learn_always;  // from every step, or (Algorithm 1) from explored steps only
    // No arm has a row, and only explored steps are learned: all arms tie regardless of x, so every step explores.
    bool blank = false;

    bool warming_up(Word t) const { return static_cast<double>(t) - 1.0 < p; }  // t <= ceil(p)
    double rate(Word t) const { return blank || warming_up(t) ? 1.0 : p / static_cast<double>(t); }
    Schedule in_force(const Statistics& all) const {
        return {p, round_robin, learn_always, !learn_always && all.is_empty()};
    }

    void refresh(Statistics& all, Word t) const {
        if (!warming_up(t)) all.refresh();
    }
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const;
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const;
    bool learns(bool explored) const { return explored || learn_always; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }

    bool operator==(const Schedule&) const = default;
};

// One step of Algorithm 1. The estimates are not looked at while `schedule.warming_up(t)`.
// `scratch` holds estimates.width values.
Choice decide(const Estimates& estimates, const Schedule& schedule, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch);

// The same with the scores at hand, whatever they are; they are not looked at while `schedule.warming_up(t)`.
Choice decide(const double* scores, const Schedule& schedule, Word t, const Coins& coins, Arms eligible);

// The same when the best arm is known, and known to be the only one.
Choice decide_known(const Schedule& schedule, Word t, const Coins& coins, Arms eligible, std::uint32_t best);

// The probability of each eligible arm at step t, from the scores; `out` holds a zero for every arm.
void probabilities(const double* scores, const Schedule& schedule, Word t, Arms eligible, std::span<double> out);

}  // namespace armlet
