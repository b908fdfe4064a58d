// Inverse gap weighting, SquareCB: an arm that looks worse than the best by a gap has 1 / (K + gamma gap).
#pragma once
#include "rules/choice.hpp"

namespace armlet {

struct InverseGaps {
    using State = Statistics;  // with factors, if by noise
    static constexpr const char* works_on = "Statistics";

    double gamma;
    bool grows;     // with the root of t
    bool by_noise;  // gaps count in deviations of rewards about the estimates

    void refresh(Statistics& all, Word) const {
        if (by_noise) all.keep_factors();
        all.refresh();
        all.refresh_noise();
    }
    // Every step explores.
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const;
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }
};

}  // namespace armlet
