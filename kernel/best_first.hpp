// Finding the highest of many scores when each has a cheap upper bound: most need not be worked out.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "epsilon_greedy.hpp"

namespace armlet {

// At least the width of any arm at x divided by its reach; infinite where squares may have vanished.
inline double safe_norm(const double* x, std::size_t d) {
    double square = 0.0;
    for (std::size_t j = 0; j < d; ++j) square += x[j] * x[j];
    return square >= 1e-200 ? std::sqrt(square) : std::numeric_limits<double>::infinity();
}

// scores[a] = score(a, its width at x) for the eligible arms that can be the best, minus infinity for the rest. A score
// does not fall as the width grows, or bound(a) is at least every score. The highest bounds are looked at first, four
// at a time, and no more once all that are left are below the best: the best arms and their scores are those of the
// plain loop, to the last bit.
template <typename Bound, typename Score>
void settle_scores(const Statistics& statistics, const double* x, Arms eligible, double* scores, Bound&& bound,
                   Score&& score) {
    constexpr std::size_t batch = 4;
    thread_local std::vector<std::uint32_t> order;
    order.assign(eligible.begin(), eligible.end());
    for (const auto arm : eligible) scores[arm] = bound(arm);
    const auto lower = [scores](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b]; };
    std::make_heap(order.begin(), order.end(), lower);
    double best = -std::numeric_limits<double>::infinity(), widths[batch];
    while (!order.empty() && !(scores[order.front()] < best)) {
        std::uint32_t next[batch];
        std::size_t n = 0;
        while (n < batch && !order.empty() && !(scores[order.front()] < best)) {
            std::pop_heap(order.begin(), order.end(), lower);
            next[n++] = order.back();
            order.pop_back();
        }
        statistics.widths({next, n}, x, widths);
        for (std::size_t i = 0; i < n; ++i) {
            scores[next[i]] = score(next[i], widths[i]);
            best = std::max(best, scores[next[i]]);
        }
    }
    for (const auto arm : order) scores[arm] = -std::numeric_limits<double>::infinity();
}

}  // namespace armlet
