// Units that keep their arm: what every decision of a unit meets for as long as an epoch lasts. A unit is a session, a
// user, a machine: whatever should not be answered now this way, now that.
#pragma once
#include <optional>

#include "bindings/engine/python_policy.hpp"
#include "coins/siphash.hpp"
#include "rules/rules.hpp"

namespace armlet {

// What a caller said of a unit; neither name nor number if he said nothing.
struct UnitGiven {
    nb::object name;  // a str
    std::optional<Word> epoch;

    bool is_any() const { return name.is_valid(); }
};
// TypeError or ValueError if they are none; an epoch needs a unit.
UnitGiven unit_given(nb::handle unit, nb::handle epoch);
// One of each row of a batch, all in this epoch if it is not None; None for rows without one. Empty for None.
std::vector<UnitGiven> units_given(nb::handle units, nb::handle epoch);
// The key of its coins.
Seed seed_of(Seed own, const nb::object& name);

// What a decision is made from: the state of its own step, or that of a unit's epoch.
struct Basis {
    const Model& model;
    const std::optional<PythonPolicy>& python_policy;
    Word step;
    Coins coins;
    double price;  // of a budget
};

// A state as the first decision of a unit in an epoch found it, the step of that decision, and the price of a budget.
struct Epoch {
    Epoch(Word number, Word step, double price, nb::object state, const nb::object& policy,
          const std::optional<Rule>& rule, std::size_t dim);

    Word number, step;
    double price;
    nb::object state;
    Model model;
    std::optional<PythonPolicy> python_policy;

    Basis basis(Seed unit) const { return {model, python_policy, step, toss(unit, number), price}; }
    int traverse(visitproc visit, void* arg) const;
};

// The epochs of a bandit. They go forward only.
class Epochs {
  public:
    // The number of the one that a unit's decision at this step is in, or ValueError.
    Word number_at(Word step, const UnitGiven& unit) const;
    bool is_under_way(Word number) const { return current && current->number == number; }

    std::optional<Word> length;    // in steps, if the clock counts epochs; else callers name them
    std::optional<Epoch> current;  // since the first decision of a unit in it
};

}  // namespace armlet
