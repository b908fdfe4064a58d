// A p that sets itself in free units, and each arm's share of it: looks at what explored rows say, now and then, and
// explores as much, and those arms, as is predicted to cost the least regret. The evidence clock plays it.
#pragma once
#include <algorithm>
#include <span>

#include "rules/auto/outlook.hpp"
#include "rules/evidence.hpp"
#include "state/auto_tuned_statistics.hpp"

namespace armlet {

struct AutoEvidence {
    using State = AutoTunedStatistics;
    static constexpr const char* works_on = "AutoTunedStatistics statistics in free units";
    static bool fits(const AutoTunedStatistics& tuned) { return tuned.units().is_free(); }

    Lookout how;
    double start;  // p is at least this many times the number of arms
    double cap, floor;

    double p(const AutoTunedStatistics& tuned) const {
        return std::max(tuned.tuner.raised(), start * static_cast<double>(tuned.n_active()));
    }
    // Only after refresh(); it looks into the statistics.
    Exploring in_force(const AutoTunedStatistics& tuned) const {
        return {tuned.weights(), 0.0, cap, floor, tuned.quotas()};
    }

    void refresh(AutoTunedStatistics& tuned, Word) const {
        tuned.refresh();
        refresh_exploration_weights(tuned);
    }
    void refresh_exploration_weights(AutoTunedStatistics& tuned) const;
    Choice choose(const AutoTunedStatistics& tuned, const Step& step, const Coins& coins) const {
        return choose_by(in_force(tuned), tuned, step, coins);
    }
    void probabilities(const AutoTunedStatistics& tuned, const Step& step, std::span<double> out) const {
        probabilities_by(in_force(tuned), tuned, step, out);
    }
    bool learns(bool explored) const { return explored; }
    void learn(AutoTunedStatistics& tuned, const Row& row) const {
        learn_row(tuned, row);
        look_if_due(tuned, row.x, row.weight, row.t);
    }
    void correct(AutoTunedStatistics& tuned, const Row& row, double before) const { correct_row(tuned, row, before); }

    // An explored row of step t was added to the sums, or, with a negative weight, taken back. Looks if enough rows
    // came since the last time; returns whether it did. A row that comes late is looked at as of its own step, when no
    // more rows than those that have come could be known: what is still to come is not taken for granted.
    bool look_if_due(AutoTunedStatistics& tuned, const double* x, double weight, Word t) const;
};

}  // namespace armlet
