// A p that sets itself (Section 4.2): looks at what explored rows say, now and then, and explores as much as is
// predicted to cost the least regret up to a horizon.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "rules/schedule.hpp"
#include "state/auto_tuned_statistics.hpp"

namespace armlet {

// Algorithm 1 without a p.
struct AutoSchedule {
    using State = AutoTunedStatistics;
    static constexpr const char* works_on = "AutoTunedStatistics statistics";

    double horizon;    // steps that are going to be played
    double caution;    // what predicted losses of exploiting are multiplied by
    double start;      // p is at least this many times the number of arms
    double most;       // and at most this share of the horizon
    bool round_robin;  // while every step explores: arm t mod K, or uniform

    double p(const AutoTunedStatistics& tuned) const {
        return std::max(tuned.tuner.raised(), start * static_cast<double>(tuned.n_arms()));
    }
    Schedule schedule(const AutoTunedStatistics& tuned) const { return {p(tuned), round_robin, false}; }
    Schedule in_force(const AutoTunedStatistics& tuned) const { return schedule(tuned).in_force(tuned); }

    void refresh(AutoTunedStatistics& tuned, Word t) const { schedule(tuned).refresh(tuned, t); }
    Choice choose(const AutoTunedStatistics& tuned, const Step& step, const Coins& coins) const {
        return schedule(tuned).choose(tuned, step, coins);
    }
    void probabilities(const AutoTunedStatistics& tuned, const Step& step, std::span<double> out) const {
        schedule(tuned).probabilities(tuned, step, out);
    }
    bool learns(bool explored) const { return explored; }
    void learn(AutoTunedStatistics& tuned, const Row& row) const {
        learn_row(tuned, row);
        look_if_due(tuned, row.x, row.weight, row.t);
    }
    void correct(AutoTunedStatistics& tuned, const Row& row, double before) const { correct_row(tuned, row, before); }

    // An explored row of step t was added to the sums, or, with a negative weight, taken back. Looks if enough rows
    // came since the last time; returns whether p has changed.
    bool look_if_due(AutoTunedStatistics& tuned, const double* x, double weight, Word t) const;
};

// What explored rows say about exploring.
struct Prospect {
    double noise;                // standard deviation of a reward
    double gap;                  // what a random arm loses a step
    std::vector<double> losses;  // what exploiting loses a step, with 1, 1.5, 1.5^2, ... times as many rows
    double p;                    // the best for the rest of the horizon; 0 if there is nothing to say
};

// What to expect of exploring after n rows at step t, judged on a sample of contexts (m, dim).
Prospect look(const AutoSchedule& rule, Statistics& sums, std::span<const double> sample, double t);

}  // namespace armlet
