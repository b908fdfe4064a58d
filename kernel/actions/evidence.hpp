// Which ridges, and which weight of items' intercepts, the rows make likely.
//
// Each unknown is taken given the others, as the posterior mean of its logarithm over a grid: ridges about the root of
// the number of slopes, kappa about 10; as that centre where a likelihood is not finite. With sigma profiled out, and
// v, the variance of all rewards, as one row more, the marginal likelihood has the logarithm, for the sums that items
// have left,
//     -1/2 [log det(A~ + Lambda) - log det Lambda + sum_i log((n_i + kappa) / kappa) + n log(S~ - b~'theta + v)].
#pragma once
#include <cstddef>
#include <vector>

namespace armlet {

class PairSums;
struct PairSystem;

constexpr double first_kappa = 10.0;
constexpr std::size_t n_ridge_groups = 3;

// The centre of the prior of a ridge on so many slopes.
double first_ridge(std::size_t slopes);

// The diagonal of Lambda: one ridge each for x, z and their products.
std::vector<double> ridge_diagonal(const PairSums& sums, const double* ridges);

// Sets the ridges, and the kappa of the sums, as functions of the sums alone.
void weigh_evidence(PairSums& sums, double* ridges);

}  // namespace armlet
