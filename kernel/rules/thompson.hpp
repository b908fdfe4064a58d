// Thompson sampling: play the arm that is best under thetas drawn from N(theta_a, v^2 V_a^-1), one for each arm.
#pragma once
#include "rules/choice.hpp"

namespace armlet {

// Where a state counts decisions under way, these change means and deviations of what is drawn as they change those of
// Optimism; propensities are of what is drawn.
struct Thompson {
    using State = Statistics;  // with factors
    static constexpr const char* works_on = "Statistics";
    static constexpr bool needs_widths = true;

    bool theory = false;
    double scale = 1.0;        // v itself, or what the v of the theory is multiplied by
    double noise_scale = 0.0;  // R
    double delta = 1.0;
    bool by_noise = false;  // v is times the deviation of rewards about the estimates

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

    // v, or R sqrt(9 d log(t / delta)) scaled
    double v(const Statistics& all, Word t) const;
};

}  // namespace armlet
