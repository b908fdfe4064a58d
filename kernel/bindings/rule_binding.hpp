// How Python names a rule and what it works on.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "rules/rules.hpp"

namespace armlet {

void bind_rules(nanobind::module_& m);
void bind_units(nanobind::module_& m);
void bind_auto_tuned_statistics(nanobind::module_& m);
void bind_lazy_statistics(nanobind::module_& m);
NoiseRule parse_noise(const std::string& noise);

// "Schedule | Optimism | ...", for signatures; once they are bound.
std::string rule_types();
// Those that simulations may jump with.
std::string clock_rule_types();
// The rule behind an object of one of these types.
Rule read_rule(nanobind::handle rule);
// The sums inside a state, if it is one that the rule can work on.
Model read_model(const Rule& rule, nanobind::handle state);
// A copy of a state that the rule can work on, another Python object.
nanobind::object copy_state(const Rule& rule, nanobind::handle state);

}  // namespace armlet
