// Forced sampling: each arm has its own steps, rarer and rarer; in between the best estimate plays, among the arms that
// the forced rows alone do not rule out.
#pragma once
#include <optional>

#include "rules/epsilon_greedy.hpp"

namespace armlet {

struct ForcedSampling {
    Word q;    // forced steps of each arm in a round
    double h;  // arms further than h / 2 behind the best, by forced rows, are ruled out

    // The arm whose turn step t is: arm i at (2^n - 1) K q + j for j in (q i, q (i + 1)], n = 0, 1, 2, ...
    std::optional<std::uint32_t> turn(Word t, std::size_t n_arms) const;
};

// scores[a] = the estimate from all rows, for the eligible arms that the forced rows keep; minus infinity for the rest.
// Both statistics must be fresh; `scratch` holds as many numbers as `scores`.
void kept_scores(const ForcedSampling& rule, const Statistics& forced, const Statistics& all, const double* x,
                 Arms eligible, double* scratch, double* scores);

}  // namespace armlet
