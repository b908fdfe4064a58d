#include "simulate/pace.hpp"

#include <cmath>
#include <numeric>

namespace armlet {

Pace::When Pace::when(const Rule& rule, const Model& model) {
    if (const auto schedule = schedule_of(rule, model)) return *schedule;
    if (const auto exploring = exploring_of(rule, model)) return *exploring;
    return {};
}

Pace::Pace(const Rule& rule, const Model& model)
    : rule_(rule), model_(model), every_(model.sums().n_arms()), when_(when(rule, model)) {
    std::iota(every_.begin(), every_.end(), 0u);
}

bool Pace::learns_always() const {
    const auto* schedule = std::get_if<Schedule>(&when_);
    return learns(false) && !(schedule && std::isinf(schedule->p));  // which never exploits
}

double Pace::rate(Word t) const {
    if (const auto* schedule = std::get_if<Schedule>(&when_)) return schedule->rate(t);
    return exploring_rate(std::get<Exploring>(when_), t, every_);
}

bool Pace::takes_turns(Word t) const {
    const auto* schedule = std::get_if<Schedule>(&when_);
    return schedule && schedule->round_robin && schedule->warming_up(t);
}

std::uint32_t Pace::explored_arm(Word t, Word bits) const {
    if (takes_turns(t)) return every_[t % every_.size()];
    if (std::holds_alternative<Schedule>(when_)) return every_[below(bits, every_.size())];
    return armlet::explored_arm(std::get<Exploring>(when_), t, fraction(bits), every_);
}

std::uint32_t Pace::explored_arm(Word t, double share) const {
    if (takes_turns(t)) return every_[t % every_.size()];
    if (std::holds_alternative<Schedule>(when_))
        return every_[static_cast<std::size_t>(share * static_cast<double>(every_.size()))];
    return armlet::explored_arm(std::get<Exploring>(when_), t, share, every_);
}

bool Pace::learn(const Row& row) {
    armlet::learn(rule_, model_, row);
    const auto* before = std::get_if<Schedule>(&when_);
    if (!before) return when_ = when(rule_, model_), true;
    const Schedule now = *schedule_of(rule_, model_);
    const bool changed = *before != now;
    when_ = now;
    return changed;
}

}  // namespace armlet
