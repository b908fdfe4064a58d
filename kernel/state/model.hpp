// What a rule looks at and learns into: a state of its kind, and the sums in it.
#pragma once
#include <variant>

#include "state/auto_tuned_statistics.hpp"
#include "state/lazy_statistics.hpp"

namespace armlet {

class Model {
  public:
    Model() = default;  // of a policy in Python that keeps something other than sums
    template <typename State>
    explicit Model(State& state) : state_(&state), sums_(&state) {}

    template <typename State>
    bool is() const {
        return std::holds_alternative<State*>(state_);
    }
    template <typename State>
    State& as() const {
        return *std::get<State*>(state_);
    }

    bool has_sums() const { return sums_ != nullptr; }
    // Only if it has sums.
    Statistics& sums() const { return *sums_; }

  private:
    std::variant<std::monostate, Statistics*, AutoTunedStatistics*, LazyStatistics*> state_;
    Statistics* sums_ = nullptr;
};

}  // namespace armlet
