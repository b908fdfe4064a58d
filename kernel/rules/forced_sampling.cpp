#include "rules/forced_sampling.hpp"

#include <algorithm>

namespace armlet {

std::optional<std::uint32_t> ForcedSampling::turn(Word t, std::size_t n_arms) const {
    const Word round = n_arms * q;
    for (Word start = 0; start < t; start = 2 * start + round)  // (2^n - 1) K q
        if (t - start <= round) return static_cast<std::uint32_t>((t - start - 1) / q);
    return std::nullopt;
}

std::optional<std::uint32_t> ForcedSampling::forced_arm(const LayeredStatistics& layers, const Step& step) const {
    const auto arm = turn(step.t, layers.n_arms());
    return arm && std::binary_search(step.eligible.begin(), step.eligible.end(), *arm) ? arm : std::nullopt;
}

const double* ForcedSampling::kept_scores(const LayeredStatistics& layers, const Step& step) const {
    const std::size_t width = layers[1].width();
    double *scores = step.scratch(0, width), *by_forced = step.scratch(1, width);
    layers[0].estimates().scores(view(layers[0], step), by_forced);
    layers[1].estimates().scores(view(layers[1], step), scores);
    const double scale = layers[1].units().is_free() ? layers[1].units().deviation() : 1.0;
    const double bar = best_arm(by_forced, step.eligible).score - h * scale / 2.0;
    for (const auto arm : step.eligible)
        if (!(by_forced[arm] >= bar)) scores[arm] = -std::numeric_limits<double>::infinity();
    return scores;
}

Choice ForcedSampling::choose(const LayeredStatistics& layers, const Step& step, const Coins& coins) const {
    if (const auto arm = forced_arm(layers, step)) return forced_choice(*arm, step.eligible.size());
    return play_best(kept_scores(layers, step), step.eligible, coins);
}

void ForcedSampling::probabilities(const LayeredStatistics& layers, const Step& step, std::span<double> out) const {
    if (const auto arm = forced_arm(layers, step)) return void(out[*arm] = 1.0);
    share_among_best(kept_scores(layers, step), step.eligible, out);
}

}  // namespace armlet
