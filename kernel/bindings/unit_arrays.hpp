// Units as numpy arrays.
#pragma once
#include <span>

#include "bindings/arrays.hpp"
#include "state/units.hpp"

namespace armlet {

// (1 + 3 D,): the rows until means are taken again; the origin l, o; the means r0, m; the deviations of r and x.
Array<double> units_array(const Units& units);
// The same from an array, which is refused if no rows can have led to it, or to the sums next to it.
std::span<const double> read_units(const Units& units, nb::handle given, std::span<const double> records);
void check_units(const Units& units, std::span<const double> values);
void check_renewed(const Units& units, std::span<const double> records);
// (n, D): rows as they are looked at.
Array<double> standard(const Units& units, nb::handle X);

}  // namespace armlet
