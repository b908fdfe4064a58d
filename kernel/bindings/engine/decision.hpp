// What `decide` answers and `learn` takes back: small, immutable to its holder, mindful of what was learned from it.
#pragma once
#include <cmath>

#include "bindings/outcomes/named_numbers.hpp"
#include "coins/philox.hpp"
#include "rules/choice.hpp"

namespace armlet {

constexpr Word last_step = (Word{1} << 63) - 1;  // clocks are signed in files and tables

// What it is called: "12-00ff00ff00ff00ff".
std::string decision_id(Word t, Word mark);

// What few decisions have.
struct Extras {
    nb::object unit;                    // a str, or null if it is of none
    Word epoch = 0;                     // of the unit
    NamedNumbers weights, outcomes;     // that were given; that have come, where there are several
    std::vector<double> probabilities;  // of every arm, or empty if nobody asked
    double billed = NAN;                // what counts as its cost in a budget, if that is not the cost that was learned
};

// A Python object in one piece of memory, context included: one is made for every step.
struct Decision {
    PyVarObject ob_base;  // with as many items as the context has values
    Word t, mark;
    PyObject* arm;       // the label
    PyObject* eligible;  // a tuple of the labels that could be played, or null for all that were active
    Extras* extras;      // its own, or null if it has none
    Word table;          // names the table of labels in which the arm has its index
    Word life;           // of the arm, when its reward was learned; 0 if that was elsewhere
    Word features;       // names those of its context; 0 if it was read from a record
    Seed stream;         // whose coins it was made with, if that is known
    bool has_stream;
    std::uint32_t index;
    std::int32_t tag;  // the policy's own
    bool explored, optimistic, marginal, learned;
    bool expired;  // without a reward, nobody waits for one any more: it was expired, or learned and forgotten
    Choice::Greedy greedy;
    double propensity;
    double exploration_propensity, exploration_rate, min_exploration_probability;  // NaN if the policy has none
    double reward, weight;                                                         // what was learned
    double x[1];  // as it was given, before any scaling

    Extras& extra() { return *(extras ? extras : extras = new Extras); }
    bool has_unit() const { return extras && extras->unit.is_valid(); }
    bool has_weights() const { return extras && extras->weights.is_any(); }
    bool has_outcomes() const { return extras && extras->outcomes.is_any(); }
    double billed() const { return extras ? extras->billed : NAN; }
    bool has_probabilities() const { return extras && !extras->probabilities.empty(); }
    std::size_t dim() const { return static_cast<std::size_t>(ob_base.ob_size); }
    std::string id() const { return decision_id(t, mark); }
    // "turn", "coin" or "choice": what a later estimate may make of its propensity.
    const char* design() const;
};

// What `design` says of a step.
const char* design_of(const Choice& choice);

// A pending decision about a context of `dim` values, yet to be filled in.
nb::object new_decision(std::size_t dim);
inline Decision& decision_of(const nb::object& made) { return *reinterpret_cast<Decision*>(made.ptr()); }
// What a caller passed as a decision, or TypeError.
Decision& as_decision(nb::handle given);
// Fills in which step it is of, by whose coins, and what features it has.
void stamp(Decision& decision, Word t, Word mark, Seed stream, Word features);
// Fills in which unit it is of, and the epoch that this met.
void name_unit(Decision& decision, nb::object unit, Word epoch);
// Fills in which arm is played and why. `eligible` is a tuple of labels, or null.
void settle(Decision& decision, const Choice& choice, nb::object label, Word table, const nb::object& eligible);

// ---- as plain values: record.cpp

nb::dict to_dict(const Decision& decision);
nb::object context_of(const Decision& decision);
nb::object probabilities_of(const Decision& decision);
nb::object greedy_of(const Decision& decision);
nb::object unit_of(const Decision& decision);
nb::object epoch_of(const Decision& decision);
nb::tuple fields_of(const Decision& decision);  // what `restore` takes
inline nb::object known(double value) { return std::isnan(value) ? nb::none() : nb::object(nb::float_(value)); }
nb::object reward_of(const Decision& decision);  // a number, or a dict of the outcomes that have come
nb::object weights_of(const Decision& decision);
void bind_record(nb::module_& m);

void bind_decision(nb::module_& m);

}  // namespace armlet
