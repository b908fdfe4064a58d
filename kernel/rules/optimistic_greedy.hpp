// The exploration of Algorithm 1, by steps or by evidence, and in between an upper confidence bound from all rows, of
// estimates that are solved again only once an arm has learned enough, with widths that are worked out only for arms in
// the lead.
#pragma once
#include "rules/evidence.hpp"
#include "rules/schedule.hpp"
#include "state/layered_statistics.hpp"

namespace armlet {

struct OptimisticGreedy {
    using State = FrozenStatistics;  // with variances of what was solved for
    static constexpr const char* works_on = "FrozenStatistics: rows solved for, and all rows";
    static constexpr bool needs_widths = true;

    double p;            // explore step t with probability p / t; 0: p is the number of arms
    double width_scale;  // widths are multiplied by this and by the estimated deviation of the noise
    double growth;       // an arm is solved again when its n has grown by this share
    bool by_evidence;    // explores by the rows of all steps that arms have, instead of by the clock
    double floor;        // by evidence: explores so often whatever is known

    void refresh(FrozenStatistics& rows, Word t) const {
        rows.all().buffer_rows();
        rows.solved().keep_variances();
        if (by_evidence) rows.all().refresh_exploration_weights(q(rows));
        if (!takes_turns(rows, t)) rows.solved().refresh();
    }
    Choice choose(const FrozenStatistics& rows, const Step& step, const Coins& coins) const;
    void probabilities(const FrozenStatistics& rows, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(FrozenStatistics& rows, const Row& row) const {
        learn_row(rows.all(), row);
        const bool is_new = rows.solved().leaves(row.x, row.weight);
        if (is_new || is_due(rows, row.arm)) rows.solved().follow(row.arm, rows.all());
        if (is_new) rows.solved().renew();
    }
    void correct(FrozenStatistics& rows, const Row& row, double before) const { correct_row(rows.all(), row, before); }

    bool takes_turns(const FrozenStatistics& rows, Word t) const {
        return !by_evidence && schedule(rows.n_arms()).warming_up(t);
    }
    double q(const FrozenStatistics& rows) const {
        return p > 0.0 ? p / static_cast<double>(rows.all().n_active()) : 1.0;
    }
    Exploring exploring(const FrozenStatistics& rows) const {
        return {rows.all().exploration_weights(), q(rows), 1.0, floor};
    }
    Schedule schedule(std::size_t n_arms) const { return {p > 0.0 ? p : static_cast<double>(n_arms), true, true}; }
    // Whether the arm has enough more rows than those that its estimate is from.
    bool is_due(const FrozenStatistics& rows, std::size_t arm) const {
        return rows.all().count(arm) >= (1.0 + growth) * rows.solved().count(arm);
    }
    // The estimate at x plus a multiple of its width, of each eligible arm: the rough width sqrt(sum_j x_j^2
    // (V_a^-1)_jj), and the width itself for the arms that come into the lead, unless rough ones fit the arm's own
    // rows. While arms take turns nothing is worked out, for nothing is looked at.
    const double* leading_bounds(const FrozenStatistics& rows, const Step& step) const;
};

}  // namespace armlet
