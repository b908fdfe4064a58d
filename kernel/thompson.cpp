#include "thompson.hpp"

#include <cmath>

namespace armlet {

double Thompson::spread(std::size_t dim, Word t) const {
    if (!theory) return scale;
    const double log_odds = std::log(static_cast<double>(t) / delta);
    return noise_scale * std::sqrt(9.0 * static_cast<double>(dim) * log_odds) * scale;
}

void deviations(const Thompson& rule, const Statistics& statistics, Word t, const double* x, Arms eligible,
                double* deviations) {
    const double v = rule.spread(statistics.dim(), t);
    for (const auto arm : eligible) deviations[arm] = v * statistics.width_at(arm, x);
}

}  // namespace armlet
