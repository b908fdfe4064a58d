#include "rules/thompson.hpp"

#include <cmath>

#include "rules/best_first.hpp"

namespace armlet {

double Thompson::spread(std::size_t dim, Word t) const {
    if (!theory) return scale;
    const double log_odds = std::log(static_cast<double>(t) / delta);
    return noise_scale * std::sqrt(9.0 * static_cast<double>(dim) * log_odds) * scale;
}

void deviations(const Thompson& rule, const Statistics& statistics, Word t, const double* x, Arms eligible,
                double* deviations) {
    const double v = rule.spread(statistics.dim(), t);
    thread_local std::vector<double> widths;
    widths.resize(eligible.size());
    statistics.widths(eligible, x, widths.data());
    for (std::size_t i = 0; i < eligible.size(); ++i) deviations[eligible[i]] = v * widths[i];
}

void samples(const Thompson& rule, const Statistics& statistics, Word t, const double* x, Arms eligible,
             const double* means, const double* z, double* scores) {
    const double v = rule.spread(statistics.dim(), t), length = safe_norm(x, statistics.dim());
    settle_scores(
        statistics, x, eligible, scores,
        [&](std::uint32_t arm) {
            if (z[arm] <= 0.0) return means[arm];
            const double widest = length * statistics.reach(arm);
            return std::isfinite(widest) ? means[arm] + v * widest * z[arm] : widest;
        },
        [&](std::uint32_t arm) { return z[arm] > 0.0; },
        [&](std::uint32_t arm, double width) { return means[arm] + v * width * z[arm]; });
}

}  // namespace armlet
