// What a rule looks at and learns into: a state of its kind, and the sums in it.
#pragma once
#include <concepts>
#include <variant>
#include <vector>

#include "state/auto_tuned_statistics.hpp"
#include "state/layered_statistics.hpp"
#include "state/lazy_statistics.hpp"

namespace armlet {

class Model {
  public:
    Model() = default;  // of a policy in Python that keeps something other than sums
    template <typename State>
    explicit Model(State& state) : state_(&state) {
        if constexpr (std::derived_from<State, LayeredStatistics>)
            for (Statistics& layer : state) sums_.push_back(&layer);
        else
            sums_.push_back(&state);
    }

    template <typename State>
    bool is() const {
        return std::holds_alternative<State*>(state_);
    }
    template <typename State>
    State& as() const {
        return *std::get<State*>(state_);
    }

    bool has_sums() const { return !sums_.empty(); }
    // Every set of sums: before that of all rows the one of forced rows, or of the rows that estimates are from.
    const std::vector<Statistics*>& sums() const { return sums_; }
    // Of all rows that the rule learns from; only if it has sums.
    Statistics& all() const { return *sums_.back(); }

    // Whether a row can be taken back: what was last solved for depends on the order in which rows came.
    bool can_forget() const { return !is<FrozenStatistics>(); }

  private:
    std::variant<std::monostate, Statistics*, LayeredStatistics*, FrozenStatistics*, AutoTunedStatistics*,
                 LazyStatistics*>
        state_;
    std::vector<Statistics*> sums_;
};

}  // namespace armlet
