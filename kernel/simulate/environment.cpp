#include "simulate/environment.hpp"

#include <cmath>
#include <numbers>

namespace armlet {

double Environment::reward(std::size_t i, std::size_t arm, double u, double v) const {
    const double mu = mean(i, arm);
    switch (noise) {
        case Noise::proportional:
            return mu * (1.0 + scale * (2.0 * u - 1.0));
        case Noise::gaussian:
            return mu + scale * std::sqrt(-2.0 * std::log1p(-u)) * std::cos(2.0 * std::numbers::pi * v);
        case Noise::bernoulli:
            return u < mu ? 1.0 : 0.0;
        case Noise::none:
            break;
    }
    return mu;
}

std::vector<double> Environment::losses() const {
    std::vector<double> out(means.size());
    for (std::size_t i = 0; i < n_contexts; ++i) {
        const auto row = means.subspan(i * n_arms, n_arms);
        const double top = *std::max_element(row.begin(), row.end());
        for (std::size_t a = 0; a < n_arms; ++a) out[i * n_arms + a] = top - row[a];
    }
    return out;
}

Alias::Alias(std::span<const double> chances) : keep_(chances.size()), other_(chances.size()) {
    const auto n = static_cast<double>(chances.size());
    std::vector<std::size_t> small, large;
    for (std::size_t i = 0; i < chances.size(); ++i) {
        keep_[i] = chances[i] * n, other_[i] = i;
        (keep_[i] < 1.0 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
        const std::size_t poor = small.back(), rich = large.back();
        small.pop_back();
        other_[poor] = rich;
        keep_[rich] -= 1.0 - keep_[poor];
        if (keep_[rich] < 1.0) large.pop_back(), small.push_back(rich);
    }
    for (const auto i : small) keep_[i] = 1.0;  // rounding left them over
    even_ = std::all_of(keep_.begin(), keep_.end(), [](double keep) { return keep >= 1.0; });
}

double noisy_reward(const Environment& environment, Seed seed, Word t, std::size_t i, std::size_t arm) {
    const auto words = philox(seed, {t, 2, arm, 0});
    return environment.reward(i, arm, fraction(words[0]), fraction(words[1]));
}

}  // namespace armlet
