// How Python names a rule and what it works on.
#pragma once
#include <nanobind/nanobind.h>

#include "rules/rules.hpp"

namespace armlet {

void bind_rules(nanobind::module_& m);
void bind_layers(nanobind::module_& m);
void bind_tuned(nanobind::module_& m);

// The rule behind a Schedule, Optimism, Thompson, ForcedSampling, OptimisticGreedy or AutoSchedule.
Rule read_rule(nanobind::handle rule);
// The statistics inside a Statistics, Layers or Tuned object, if the rule can work on them.
Model read_model(const Rule& rule, nanobind::handle state);
// A copy of a Statistics, Layers or Tuned object, another Python object.
nanobind::object copy_state(nanobind::handle state);

}  // namespace armlet
