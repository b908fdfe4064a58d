// Sums of several outcomes as numpy arrays.
#pragma once
#include <span>

#include "bindings/arrays.hpp"
#include "state/statistics.hpp"

namespace armlet {

struct OutcomeArrays {
    std::span<const double> records, units;
};

// Adds `outcomes` and `outcome_units`, where there are several.
void write_outcomes(Statistics& s, nb::dict arrays);
// The same from arrays, refused if no rows can have led to them; empty where there are none.
OutcomeArrays read_outcomes(const Statistics& s, nb::dict arrays);
void bind_outcomes(nb::class_<Statistics>& statistics);

}  // namespace armlet
