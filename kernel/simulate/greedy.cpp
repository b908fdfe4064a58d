#include "simulate/greedy.hpp"

#include <numeric>
#include <utility>

namespace armlet {

Greedy::Greedy(const Environment& environment, Statistics& statistics)
    : environment_(environment),
      statistics_(statistics),
      losses_(environment.losses()),
      scores_(environment.means.size()),
      known_(environment.n_contexts),
      arms_(environment.n_arms),
      has_changed_(environment.n_arms, 1),
      best_(environment.n_contexts) {
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
    if (statistics_.units().is_free()) look_in_new_units();
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

// Once means and deviations were taken again, every context is seen otherwise, and every arm's estimate is another.
void Greedy::look_in_new_units() {
    if (std::exchange(renewals_, statistics_.renewals()) == statistics_.renewals() && !views_.empty()) return;
    const std::size_t size = statistics_.view_size();
    views_.resize(environment_.n_contexts * size);
    for (std::size_t i = 0; i < environment_.n_contexts; ++i)
        statistics_.view(environment_.context(i), views_.data() + i * size);
    for (const auto arm : arms_) look_again_at(arm);
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
    const bool is_free = statistics_.units().is_free();
    for (std::size_t i = 0; i < best_.size(); ++i) {
        const double* x = is_free ? views_.data() + i * estimates.dim : environment_.context(i);
        double sum = 0.0;
        for (std::size_t j = 0; j < estimates.dim; ++j) sum += x[j] * estimates.theta[j * estimates.width + arm];
        scores_[i * arms_.size() + arm] = sum;
    }
}

}  // namespace armlet
