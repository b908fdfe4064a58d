#include "rules/optimistic_greedy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace armlet {

namespace {

// Rough widths fit if, squared, they are less than this many times too large.
constexpr double fits_below = 1.5;

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

const double* OptimisticGreedy::leading_bounds(const FrozenStatistics& rows, const Step& step) const {
    const Statistics& solved = rows.solved();
    const std::size_t n_arms = solved.n_arms(), size = solved.view_size(), width = solved.width();
    double* scores = step.scratch(1, width);
    if (takes_turns(rows, step.t)) return scores;
    double *means = step.scratch(0, width), *squares = step.scratch(2, size), *seen = step.scratch(3, width);
    const double radius = width_scale * solved.noise(), *x = view(solved, step);
    for (std::size_t j = 0; j < size; ++j) squares[j] = x[j] * x[j];
    solved.estimates().scores(x, means);
    solved.diagonal_bounds(squares, scores);
    for (const auto arm : step.eligible) {
        // a width of 0 is 0: many arms may tie at a context of zeros
        seen[arm] = scores[arm] == 0.0 || solved.inflation(arm) < fits_below;
        scores[arm] = means[arm] + radius * std::sqrt(scores[arm]);
    }
    for (std::size_t arm; (arm = rough_leader(scores, means, seen, step.eligible, n_arms)) != n_arms;) {
        const auto one = static_cast<std::uint32_t>(arm);
        double exact;
        solved.widths({&one, 1}, x, &exact);
        scores[arm] = means[arm] + radius * exact;
        seen[arm] = 1.0;
    }
    return scores;
}

Choice OptimisticGreedy::choose(const FrozenStatistics& rows, const Step& step, const Coins& coins) const {
    const double* bounds = leading_bounds(rows, step);
    if (by_evidence) return decide(bounds, exploring(rows), step.t, coins, step.eligible);
    return decide(bounds, schedule(rows.n_arms()), step.t, coins, step.eligible);
}

void OptimisticGreedy::probabilities(const FrozenStatistics& rows, const Step& step, std::span<double> out) const {
    const double* bounds = leading_bounds(rows, step);
    if (by_evidence) return armlet::probabilities(bounds, exploring(rows), step.t, step.eligible, out);
    armlet::probabilities(bounds, schedule(rows.n_arms()), step.t, step.eligible, out);
}

}  // namespace armlet
