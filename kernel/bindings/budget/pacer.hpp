// A pacer as numbers that Python keeps.
#pragma once
#include "bindings/arrays.hpp"
#include "budget/pacer.hpp"

namespace armlet {

// Refuses what are no values of a pacer.
std::span<const double> read_pacer_values(nb::handle values);
Array<double> pacer_array(const Pacer& pacer);
void bind_pacer(nb::module_& m);

}  // namespace armlet
