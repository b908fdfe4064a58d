// Forced sampling: each arm has its own steps, rarer and rarer; in between the best estimate plays, among the arms that
// the forced rows alone do not rule out.
#pragma once
#include <optional>

#include "rules/choice.hpp"
#include "state/layered_statistics.hpp"

namespace armlet {

struct ForcedSampling {
    using State = LayeredStatistics;
    static constexpr const char* works_on = "LayeredStatistics of two: forced rows, and all rows";
    static bool fits(const LayeredStatistics& layers) { return layers.size() == 2; }

    Word q;    // forced steps of each arm in a round
    double h;  // arms further than h / 2 behind the best, by forced rows, are ruled out

    void refresh(LayeredStatistics& layers, Word) const {
        layers[1].refresh();
        layers[0].refresh();
    }
    Choice choose(const LayeredStatistics& layers, const Step& step, const Coins& coins) const;
    void probabilities(const LayeredStatistics& layers, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(LayeredStatistics& layers, const Row& row) const {
        learn_row(layers[1], row);
        if (row.explored) learn_row(layers[0], row);
    }
    void correct(LayeredStatistics& layers, const Row& row, double before) const {
        correct_row(layers[1], row, before);
        if (row.explored) correct_row(layers[0], row, before);
    }

    // The arm whose turn step t is: arm i at (2^n - 1) K q + j for j in (q i, q (i + 1)], n = 0, 1, 2, ...
    std::optional<std::uint32_t> turn(Word t, std::size_t n_arms) const;
    // The arm that a step is forced to play, if it may be played; otherwise the step is like any other.
    std::optional<std::uint32_t> forced_arm(const LayeredStatistics& layers, const Step& step) const;
    // The estimate from all rows, for the eligible arms that the forced rows keep; minus infinity for the rest.
    const double* kept_scores(const LayeredStatistics& layers, const Step& step) const;
};

}  // namespace armlet
