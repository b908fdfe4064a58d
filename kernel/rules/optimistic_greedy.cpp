#include "rules/optimistic_greedy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace armlet {

namespace {

// The first arm that shares the lead, whose width is still rough and may matter, or the number of arms. A lead that
// stands even with a width of 0 stands with any.
std::size_t rough_leader(const double* scores, const double* means, const double* seen, Arms eligible,
                         std::size_t none) {
    const Best best = best_arm(scores, eligible);
    if (best.count == 1) {
        if (seen[best.first] != 0.0) return none;
        double next = -std::numeric_limits<double>::infinity();
        for (const auto arm : eligible)
            if (arm != best.first) next = std::max(next, scores[arm]);
        return means[best.first] > next ? none : best.first;
    }
    for (const auto arm : eligible)
        if (scores[arm] == best.score && seen[arm] == 0.0) return arm;
    return none;
}

}  // namespace

void leading_bounds(const OptimisticGreedy& rule, const Statistics& solved, const double* x, Arms eligible,
                    double* means, double* squares, double* seen, double* scores) {
    const double radius = rule.width_scale * solved.noise();
    const std::size_t n_arms = solved.n_arms();
    for (std::size_t j = 0; j < solved.dim(); ++j) squares[j] = x[j] * x[j];
    solved.estimates().scores(x, means);
    solved.rough_squares(squares, scores);
    for (const auto arm : eligible) {
        // a width of 0 is 0: many arms may tie at a context of zeros
        seen[arm] = scores[arm] == 0.0 || solved.inflation(arm) < fits_below;
        scores[arm] = means[arm] + radius * std::sqrt(scores[arm]);
    }
    for (std::size_t arm; (arm = rough_leader(scores, means, seen, eligible, n_arms)) != n_arms;) {
        const auto one = static_cast<std::uint32_t>(arm);
        double width;
        solved.widths({&one, 1}, x, &width);
        scores[arm] = means[arm] + radius * width;
        seen[arm] = 1.0;
    }
}

bool is_due(const OptimisticGreedy& rule, const Statistics& solved, const Statistics& all, std::size_t arm) {
    return all.count(arm) >= (1.0 + rule.growth) * solved.count(arm);
}

}  // namespace armlet
