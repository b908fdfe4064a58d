// Epsilon-greedy with a constant epsilon, and greedy play: explore at the same rate at every step, or never.
#pragma once
#include <optional>

#include "rules/choice.hpp"

namespace armlet {

// Learns from every step; between explored steps the best estimate plays.
struct ConstantRate {
    using State = Statistics;
    static constexpr const char* works_on = "Statistics";

    std::optional<double> rate;  // none: greedy play, which has no such thing, so its choices do not tell one

    void refresh(Statistics& all, Word) const { all.refresh(); }
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const;
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }

    // Of one of the best arms, or of another.
    double chance(std::size_t n_eligible, std::size_t n_best, bool is_best) const;
};

// One step from the estimates alone; `scratch` holds estimates.width values.
Choice decide(const Estimates& estimates, const ConstantRate& rule, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch);

// The same when the best arm is known, and known to be the only one.
Choice decide_known(const ConstantRate& rule, Word t, const Coins& coins, Arms eligible, std::uint32_t best);

}  // namespace armlet
