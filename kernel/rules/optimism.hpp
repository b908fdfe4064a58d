// Optimism: play the arm whose upper confidence bound x' theta_a + c_a sqrt(x' V_a^-1 x) is the highest.
#pragma once
#include "rules/epsilon_greedy.hpp"

namespace armlet {

struct Optimism {
    enum class Radius { constant, per_arm, joint };
    Radius radius = Radius::constant;
    double scale = 1.0;        // c_a itself if constant, else what the radius of the theory is multiplied by
    double noise_scale = 0.0;  // R
    double bound = 0.0;        // S
    double delta = 1.0;

    // R sqrt(2 log(det(V)^(1/2) det(lam I)^(-1/2) odds)) + sqrt(lam) S, scaled; the odds are K / delta for one of K
    // arms.
    double theory(double log_determinant, double log_start, double log_odds, double lam) const;
};

// scores[a] = the upper bound of each eligible arm that can have the highest, minus infinity for the rest.
// `statistics` keep factors and are fresh; `means` is room for as many numbers as `statistics.width()`.
void upper_bounds(const Optimism& rule, const Statistics& statistics, const double* x, Arms eligible, double* means,
                  double* scores);

}  // namespace armlet
