#include "state/exploration_weights.hpp"

#include <algorithm>
#include <numeric>

#include "linear/elementary.hpp"

namespace armlet {

double exploration_weight(double n, double q) {
    const double u = 1.0 - n / q;
    return u >= 0.0 ? 1.0 : std::min(1.0, elementary::exp(u));
}

void ExplorationWeights::mark_all(std::size_t n_arms) {
    values_.resize(n_arms);
    is_stale_.assign(n_arms, 1);
    stale_.resize(n_arms);
    std::iota(stale_.begin(), stale_.end(), 0u);
}

}  // namespace armlet
