// The parts of the module, and what they share.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "philox.hpp"
#include "statistics.hpp"

namespace armlet {

void bind_statistics(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_loops(nanobind::module_& m);

Ridge parse_ridge(const std::string& kind, double value);
Seed parse_seed(nanobind::handle seed);

}  // namespace armlet
