// The parts of the module, and what they share.
#pragma once
#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "coins/philox.hpp"
#include "state/statistics.hpp"

namespace armlet {

void bind_statistics(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_loops(nanobind::module_& m);
void bind_simulations(nanobind::module_& m);
void bind_row_sums(nanobind::module_& m);
void bind_evaluate(nanobind::module_& m);
void bind_race(nanobind::module_& m);
void bind_subset_search(nanobind::module_& m);
void bind_json(nanobind::module_& m);
void bind_lines(nanobind::module_& m);
void bind_events(nanobind::module_& m);
void bind_playing(nanobind::module_& m);
void bind_writing(nanobind::module_& m);
void bind_actions(nanobind::module_& m);
void bind_action_tables(nanobind::module_& m);

Ridge parse_ridge(const std::string& kind, double value);
// 'free' or 'as given', about the origin l, o_1, ..., o_d that is given or None.
Units parse_units(const std::string& units, std::size_t dim, nanobind::handle origin);
// None, a half-life in steps, or a timedelta where decisions tell their time.
Discount parse_discount(nanobind::handle half_life);
// The clock of sums that fade, (1,); refused if it is none.
Array<std::int64_t> clock_array(const Statistics& statistics);
Discount::Tick read_clock(nanobind::handle clock);
// Refuses n numbers that are no records of `size` numbers each.
void check_records(const double* values, std::size_t n, std::size_t size);
// Refuses what `merge_statistics` could not add.
void check_mergeable(Statistics& statistics, Statistics& other, const std::vector<std::size_t>& into);
// Adds the other's arm i to arm into[i].
void merge_statistics(Statistics& statistics, Statistics& other, const std::vector<std::size_t>& into);
// Takes the earlier one's arm i away from arm into[i]; MergeError where that has fewer rows.
void subtract_statistics(Statistics& statistics, Statistics& earlier, const std::vector<std::size_t>& into);
// (K,): decisions under way of every arm.
Array<std::int64_t> under_way_array(const Statistics& statistics);
// Refuses what are no counts of `n_arms` arms.
std::span<const std::int64_t> read_under_way(nanobind::handle counts, std::size_t n_arms);
Seed parse_seed(nanobind::handle seed);
// It as a Python int.
nanobind::object to_python(Seed seed);

}  // namespace armlet
