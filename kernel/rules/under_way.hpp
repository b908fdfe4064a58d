// Decisions under way as rows to come: n_a rows of arm a have come back, m_a of its decisions wait for their reward.
// O(K) where anything is under way; where nothing is, one look.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "rules/choice.hpp"

namespace armlet {

// Rows that an arm without any may owe before that counts. Rules whose bounds do not grow with time never come back to
// an arm that they have given up, and of five rows to come none comes by chance once in exp(5) = 148 times.
constexpr double patience = 5.0;

// Whether an arm was played and nothing has come back yet: it has no estimate.
inline bool is_silent(const Statistics& all, std::uint32_t arm) {
    return all.under_way()[arm] > 0.0 && !(all.count(arm) > 0.0);
}

// The highest estimate of the arms that have rows; minus infinity if none has.
inline double best_known(const Statistics& all, Arms eligible, const double* means) {
    double best = -std::numeric_limits<double>::infinity();
    for (const auto arm : eligible)
        if (all.count(arm) > 0.0) best = std::max(best, means[arm]);
    return best;
}

// A silent arm does not compete with arms that have an estimate.
inline void skip_silent(const Statistics& all, Arms eligible, double* scores) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    if (!all.any_empty() || best_known(all, eligible, scores) == none) return;
    for (const auto arm : eligible)
        if (is_silent(all, arm)) scores[arm] = none;
}

// out[a] = e_a = rho (n_a + m_a) - n_a, or 0 if that is less: what is still to come of an arm if its decisions come
// back as often as those of all arms have, rho = N / (N + M); before anything has come back, all of it. Of a silent arm
// `spared` less.
inline const double* expected_rows(const Statistics& all, Arms eligible, double spared, double* out) {
    double rows = 0.0, waits = 0.0;
    for (std::size_t arm = 0; arm < all.n_arms(); ++arm) rows += all.count(arm), waits += all.under_way()[arm];
    const double rho = rows > 0.0 ? rows / (rows + waits) : 1.0;
    for (const auto arm : eligible) {
        const double n = all.count(arm);
        const double owed = rho * (n + all.under_way()[arm]) - n;
        out[arm] = std::max(n > 0.0 ? owed : owed - spared, 0.0);
    }
    return out;
}

// A silent arm is taken for no better than the best that is known here, and what is still to come of it for one reward
// that was deviation(arm) lower.
template <typename Deviation>
void lower_silent(const Statistics& all, Arms eligible, const double* expected, Deviation&& deviation, double* means) {
    if (!all.any_empty()) return;
    const double best = best_known(all, eligible, means);
    const bool is_any_known = best > -std::numeric_limits<double>::infinity();
    for (const auto arm : eligible) {
        if (!is_silent(all, arm)) continue;
        const double start = is_any_known ? std::min(means[arm], best) : means[arm];
        means[arm] = start - deviation(arm) * (expected[arm] / (expected[arm] + 1.0));
    }
}

// out[a] = sqrt((n_a + 1) / (n_a + 1 + e_a)): how much narrower widths will be once e_a more rows have come back, if
// they are like those that there are.
inline const double* shrinkage(const Statistics& all, Arms eligible, const double* expected, double* out) {
    for (const auto arm : eligible) {
        const double rows = all.count(arm) + 1.0;
        out[arm] = std::sqrt(rows / (rows + expected[arm]));
    }
    return out;
}

// What widths are multiplied by, in this room, with the estimates of silent arms lowered; null where nothing is under
// way.
template <typename Deviation>
const double* count_to_come(const Statistics& all, Arms eligible, double spared, Deviation&& deviation, double* means,
                            double* room) {
    if (!all.under_way().any()) return nullptr;
    const double* expected = expected_rows(all, eligible, spared, room);
    lower_silent(all, eligible, expected, deviation, means);
    return shrinkage(all, eligible, expected, room);
}
// The same with patience, and one deviation for all arms; with factors kept and fresh.
inline const double* count_to_come(const Statistics& all, Arms eligible, double* means, double* room) {
    return count_to_come(all, eligible, patience, [&](std::uint32_t) { return all.typical_noise(); }, means, room);
}

}  // namespace armlet
