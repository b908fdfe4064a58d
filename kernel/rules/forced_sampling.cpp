#include "rules/forced_sampling.hpp"

namespace armlet {

std::optional<std::uint32_t> ForcedSampling::turn(Word t, std::size_t n_arms) const {
    const Word round = n_arms * q;
    for (Word start = 0; start < t; start = 2 * start + round)  // (2^n - 1) K q
        if (t - start <= round) return static_cast<std::uint32_t>((t - start - 1) / q);
    return std::nullopt;
}

void kept_scores(const ForcedSampling& rule, const Statistics& forced, const Statistics& all, const double* x,
                 Arms eligible, double* scratch, double* scores) {
    forced.estimates().scores(x, scratch);
    all.estimates().scores(x, scores);
    const double bar = best_arm(scratch, eligible).score - rule.h / 2.0;
    for (const auto arm : eligible)
        if (!(scratch[arm] >= bar)) scores[arm] = -std::numeric_limits<double>::infinity();
}

}  // namespace armlet
