#include "simulate/greedy.hpp"

#include <numeric>

namespace armlet {

Greedy::Greedy(const World& world, Statistics& statistics)
    : world_(world),
      statistics_(statistics),
      losses_(world.losses()),
      scores_(world.means.size()),
      known_(world.n_contexts),
      arms_(world.n_arms),
      has_changed_(world.n_arms, 1),
      best_(world.n_contexts) {
    std::iota(arms_.begin(), arms_.end(), 0u);
    changed_ = arms_;
}

void Greedy::look_again_at(std::size_t arm) {
    if (has_changed_[arm]) return;  // a long warm-up learns much and looks at nothing
    has_changed_[arm] = 1;
    changed_.push_back(static_cast<std::uint32_t>(arm));
}

std::vector<std::uint32_t> Greedy::tied(std::size_t i) const {
    std::vector<std::uint32_t> out;
    for (const auto arm : arms_)
        if (ties(i, arm)) out.push_back(arm);
    return out;
}

void Greedy::look_again() {
    statistics_.refresh();
    for (const auto arm : changed_) rescore(arm), has_changed_[arm] = 0;
    changed_.clear();
    costly_.clear();
    for (std::size_t i = 0; i < best_.size(); ++i) {
        best_[i] = best_arm(row(i), arms_);
        known_[i] = loss(i, best_[i].first);
        if (best_[i].count > 1 || known_[i] != 0.0) costly_.push_back(static_cast<std::uint32_t>(i));
    }
    foresight_ = foresee();
}

Foresight Greedy::foresee() const {
    auto out = Foresight::nothing_lost;
    for (const auto i : costly_) {
        if (known_[i] != 0.0) out = Foresight::by_context;
        for (const auto arm : arms_)
            if (ties(i, arm) && loss(i, arm) != known_[i]) return Foresight::none;
    }
    return out;
}

// x' theta of one arm in every context, summed in the order in which decisions sum it.
void Greedy::rescore(std::uint32_t arm) {
    const Estimates estimates = statistics_.estimates();
    for (std::size_t i = 0; i < best_.size(); ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < world_.dim; ++j)
            sum += world_.context(i)[j] * estimates.theta[j * estimates.width + arm];
        scores_[i * arms_.size() + arm] = sum;
    }
}

}  // namespace armlet
