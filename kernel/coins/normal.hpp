// Standard normal numbers, and the probability that each of several independent normals is the largest.
#pragma once
#include <cstddef>
#include <span>

#include "coins/philox.hpp"

namespace armlet {

// The inverse of the normal distribution function on (0, 1), to about 1e-15 (Wichura 1988, AS 241).
double normal_quantile(double u);

// z[0..n): standard normals that are functions of (pick, tie) and their place alone. Four share a block of Philox.
void draw_normals(Word pick, Word tie, std::span<double> z);

// out[i] = P(X_i is the largest) for independent X_i ~ N(means[i], deviations[i]^2); they sum to 1. A deviation of 0
// is a constant; constants that tie share. Right to about 1e-10. Throws std::domain_error where a number is not finite.
void win_probabilities(std::span<const double> means, std::span<const double> deviations, std::span<double> out);

}  // namespace armlet
