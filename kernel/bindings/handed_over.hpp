// What the module needs of Armlet's Python side. armlet.kernel hands it over once, when it imports the module, so
// that nothing here knows where in the package anything lies.
#pragma once
#include <nanobind/nanobind.h>

namespace armlet {

enum class Part {
    errors,             // has an attribute for each error, by its name
    read_reward,        // a finite float from any number, or what is wrong with it
    read_weight,        // also a positive one
    coins,              // the type that policies in Python are given
    interaction,        // the type that they learn from
    snapshot,           // the type of a bandit's state at one moment
    arrow_table,        // a batch of decisions as an Arrow table
    unpickle_decision,  // a decision from its fields; pickle finds it by its name
};

// RuntimeError if it was not handed over.
nanobind::handle handed_over(Part part);

void bind_register(nanobind::module_& m);

}  // namespace armlet
