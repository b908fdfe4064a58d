// Finding the highest of many scores when each has a cheap upper bound: most need not be worked out.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/widths.hpp"
#include "rules/choice.hpp"

namespace armlet {

// How large the view x of a context is; infinite where squares may have vanished.
inline Extent extent_of(const Statistics& statistics, const double* x) {
    const std::size_t first = statistics.units().is_free() ? 1 : 0;
    double square = 0.0;
    for (std::size_t j = first; j < statistics.view_size(); ++j) square += x[j] * x[j];
    return {first ? std::fabs(x[0]) : 0.0,
            square >= 1e-200 ? std::sqrt(square) : std::numeric_limits<double>::infinity()};
}

// scores[a] = score(a, its width at x) for the eligible arms that can be the best, minus infinity for the rest. Each
// has bound(a) at least as high, and score(a, w) rises with w or the arm is not `rising`. The highest bounds are looked
// at first, and no more once all that are left are below the best; a width is given up as soon as the score that it can
// still lead to is below the best. Before there is a best, `at_first` are looked at together: one, if its bounds are
// close. So the best arms and their scores are those of the plain loop, to the last bit.
template <typename Bound, typename Rising, typename Score>
void settle_scores(const Statistics& statistics, const double* x, Arms eligible, double* scores, Bound&& bound,
                   Rising&& rising, Score&& score, std::size_t at_first = Substitutions::most) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    thread_local std::vector<std::uint32_t> order;
    order.assign(eligible.begin(), eligible.end());
    for (const auto arm : eligible) scores[arm] = bound(arm);
    const auto lower = [scores](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b]; };
    std::make_heap(order.begin(), order.end(), lower);
    Substitutions under_way(statistics.view_size());
    std::uint32_t arms[Substitutions::most];  // that are under way
    double best = none;
    while (true) {
        const std::size_t room = best == none ? at_first : Substitutions::most;
        while (under_way.size() < room && !order.empty() && !(scores[order.front()] < best)) {
            std::pop_heap(order.begin(), order.end(), lower);
            arms[under_way.size()] = order.back();
            under_way.start(statistics.factor(order.back()), x);
            order.pop_back();
        }
        if (under_way.size() == 0) break;
        under_way.advance();
        for (std::size_t i = under_way.size(); i-- > 0;) {
            const auto arm = arms[i];
            if (under_way.is_done(i))
                best = std::max(best, scores[arm] = score(arm, under_way.width(i)));
            else if (!under_way.is_nearly_done(i) && rising(arm) &&
                     score(arm, under_way.bound(i, statistics.residual_bound(arm))) < best)
                scores[arm] = none;
            else
                continue;
            under_way.drop(i);
            arms[i] = arms[under_way.size()];
        }
    }
    for (const auto arm : order) scores[arm] = none;
}

}  // namespace armlet
