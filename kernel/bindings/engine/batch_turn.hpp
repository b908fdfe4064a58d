// The turn of a batch.
#pragma once
#include <optional>

#include "bindings/engine/turns.hpp"

namespace armlet {

// A policy in Python has the bandit to itself, a compiled one shares it between slices.
template <typename Shared>
struct BatchTurn {
    BatchTurn(Turns& turns, bool is_asked, Turns::Whole::Purpose purpose) {
        if (is_asked)
            whole.emplace(turns, purpose);
        else
            shared.emplace(turns);
    }
    std::optional<Turns::Whole> whole;
    std::optional<Shared> shared;
};

}  // namespace armlet
