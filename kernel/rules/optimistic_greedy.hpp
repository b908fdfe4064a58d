// Algorithm 1's exploration, and in between an upper confidence bound from all rows, of estimates that are solved anew
// only once an arm has learned enough, with widths that are worked out only for arms in the lead.
#pragma once
#include "rules/epsilon_greedy.hpp"

namespace armlet {

// Rough widths fit if, squared, they are less than this many times too large.
constexpr double fits_below = 1.5;

struct OptimisticGreedy {
    double p;            // explore step t with probability p / t; 0: p is the number of arms
    double width_scale;  // widths are multiplied by this and by the estimated deviation of the noise
    double growth;       // an arm is solved anew when its n has grown by this share

    Schedule schedule(std::size_t n_arms) const { return {p > 0.0 ? p : static_cast<double>(n_arms), true, true}; }
};

// scores[a] = the estimate at x plus a multiple of its width, of each eligible arm: the rough width sqrt(sum_j x_j^2
// (V_a^-1)_jj), and the width itself for the arms that come into the lead, unless rough ones fit the arm's own rows.
// `solved` keeps variances and is fresh; `means`, `squares` and `seen` are room for as many numbers as
// `solved.width()`, the dimension, and the arms.
void leading_bounds(const OptimisticGreedy& rule, const Statistics& solved, const double* x, Arms eligible,
                    double* means, double* squares, double* seen, double* scores);

// Whether the arm has enough more rows than those that its estimate is from.
bool is_due(const OptimisticGreedy& rule, const Statistics& solved, const Statistics& all, std::size_t arm);

}  // namespace armlet
