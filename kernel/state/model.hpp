// What a rule looks at and learns into: a state of its kind, and the sums in it.
#pragma once
#include <variant>

#include "state/layers.hpp"
#include "state/paced.hpp"
#include "state/tuned.hpp"

namespace armlet {

struct Model {
    Statistics* all;               // of all rows that the rule learns from
    Statistics* forced = nullptr;  // of forced rows alone, for forced sampling
    Statistics* solved = nullptr;  // of the rows that estimates are from, for rules that solve rarely
    Tuner* tuner = nullptr;        // for a p that sets itself
    std::variant<std::monostate, Statistics*, Layers*, Snapshots*, Tuned*, Paced*> state = {};

    template <typename State>
    State& as() const {
        return *std::get<State*>(state);
    }
};

inline Model model_of(Statistics& statistics) { return {.all = &statistics, .state = &statistics}; }
// Layer 0 has the forced rows, layer 1 all of them.
inline Model model_of(Layers& layers) { return {.all = &layers[1], .forced = &layers[0], .state = &layers}; }
inline Model model_of(Snapshots& rows) { return {.all = &rows.all(), .solved = &rows.solved(), .state = &rows}; }
inline Model model_of(Tuned& tuned) { return {.all = &tuned, .tuner = &tuned.tuner, .state = &tuned}; }
inline Model model_of(Paced& paced) { return {.all = &paced, .state = &paced}; }

}  // namespace armlet
