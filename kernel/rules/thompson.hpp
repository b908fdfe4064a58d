// Thompson sampling: play the arm that is best under thetas drawn from N(theta_a, v^2 V_a^-1), one for each arm.
#pragma once
#include "rules/epsilon_greedy.hpp"

namespace armlet {

struct Thompson {
    bool theory = false;
    double scale = 1.0;        // v itself, or what the v of the theory is multiplied by
    double noise_scale = 0.0;  // R
    double delta = 1.0;

    // v, or R sqrt(9 d log(t / delta)) scaled
    double spread(std::size_t dim, Word t) const;
};

// deviations[a] = v sqrt(x' V_a^-1 x) of each eligible arm: x' theta for a theta drawn from the posterior is normal
// with mean x' theta_hat_a and this deviation. `statistics` keep factors and are fresh.
void deviations(const Thompson& rule, const Statistics& statistics, Word t, const double* x, Arms eligible,
                double* deviations);

// scores[a] = the sample means[a] + v sqrt(x' V_a^-1 x) z[a] of each eligible arm that can have the highest, minus
// infinity for the rest. Without `deviations` at hand, which propensities need of all arms, few widths are worked out.
void samples(const Thompson& rule, const Statistics& statistics, Word t, const double* x, Arms eligible,
             const double* means, const double* z, double* scores);

}  // namespace armlet
