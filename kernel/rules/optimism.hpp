// Optimism: play the arm whose upper confidence bound x' theta_a + c_a sqrt(x' V_a^-1 x) is the highest.
#pragma once
#include "rules/choice.hpp"

namespace armlet {

// Where a state counts decisions under way, widths shrink by what is still to come of an arm, and the estimate of an
// arm of which nothing has come back is lowered (rules/under_way.hpp). Where rows fade and widths are of weighted rows,
// it is D-LinUCB (Russac, Vernade and Cappe 2019).
struct Optimism {
    using State = Statistics;  // with factors
    static constexpr const char* works_on = "Statistics";
    static constexpr bool needs_widths = true;

    enum class Radius { constant, per_arm, joint };
    Radius radius = Radius::constant;
    double scale = 1.0;        // c_a itself if constant, else what the radius of the theory is multiplied by
    double noise_scale = 0.0;  // R
    double bound = 0.0;        // S
    double delta = 1.0;
    bool by_noise = false;  // a constant radius is times the deviation of rewards about the estimates

    void refresh(Statistics& all, Word) const {
        all.keep_factors();
        all.refresh();
        all.refresh_noise();
    }
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const;
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }

    // R sqrt(2 log(det(V)^(1/2) det(lam I)^(-1/2) odds)) + sqrt(lam) S, scaled; the odds are K / delta for one of K
    // arms.
    double theory(double log_determinant, double log_start, double log_odds, double lam) const;
    // The upper bound of each eligible arm that can have the highest, minus infinity for the rest.
    const double* upper_bounds(const Statistics& all, const Step& step) const;
};

}  // namespace armlet
