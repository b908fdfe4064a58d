#include "rules/auto/auto_evidence.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "rules/auto/forecast.hpp"
#include "rules/under_way.hpp"

namespace armlet {

namespace {

double active_rows(const Statistics& sums) {
    double n = 0.0;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm)
        if (sums.is_active(arm)) n += sums.count(arm);
    return n;
}

}  // namespace

// Rows count, and what an arm waits for more than the others do. Before anything has come back every step explores: all
// arms tie, and no other step is learned.
void AutoEvidence::refresh_exploration_weights(AutoTunedStatistics& tuned) const {
    tuned.set_quotas(p(tuned), start);
    if (!tuned.under_way().any()) return tuned.set_weights({});
    std::vector<std::uint32_t> every(tuned.n_arms());
    std::iota(every.begin(), every.end(), 0u);
    std::vector<double> expected(tuned.n_arms());
    if (!tuned.is_empty()) expected_rows(tuned, every, 0.0, expected.data());
    tuned.set_weights(expected);
}

bool AutoEvidence::look_if_due(AutoTunedStatistics& tuned, const double* x, double weight, Word t) const {
    Tuner& tuner = tuned.tuner;
    if (weight < 0.0) tuner.drop(x);
    if (!(weight > 0.0)) return false;
    tuner.keep(x);
    const double n = rows_of(tuned), n_arms = static_cast<double>(tuned.n_active());
    if (n < std::max(tuner.next(), start * n_arms)) return false;
    tuner.look_at(std::max(n + 1.0, look_growth * n));
    const double now = std::max(static_cast<double>(t), n);
    const Outlook seen = look(how, tuned, now);
    if (!seen.shares.empty()) tuner.share(seen.shares);
    // half of the way to the next look; all of it as long as there is nothing to lose
    const double rows = active_rows(tuned) + (seen.is_blank ? 1.0 : 0.5) * (tuner.next() - n);
    const double found = std::min(seen.p, soon(seen.p, rows, n_arms, now));
    // what was found for arms that are gone binds nobody
    const bool may_fall = !seen.shares.empty() && std::isfinite(tuned.life(now));
    tuner.raise(may_fall ? found : std::max(p(tuned), found));
    return true;
}

}  // namespace armlet
