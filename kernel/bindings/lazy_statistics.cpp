#include "state/lazy_statistics.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/outcomes/outcome_arrays.hpp"
#include "bindings/rule_binding.hpp"
#include "bindings/unit_arrays.hpp"

namespace armlet {

namespace {

void create(LazyStatistics* self, std::size_t n_arms, std::size_t dim, std::optional<double> ridge,
            const std::string& units, nb::handle origin, nb::handle half_life) {
    if (n_arms == 0 || dim == 0) fail(PyExc_ValueError, "n_arms and dim must be at least 1");
    new (self) LazyStatistics(n_arms, parse_units(units, dim, origin), parse_ridge("constant", ridge.value_or(1.0)),
                              !ridge.has_value(), parse_discount(half_life));
}

nb::dict arrays(LazyStatistics& paced) {
    paced.refresh();
    const auto records = paced.records();
    const std::size_t n_arms = paced.n_arms();
    nb::dict out;
    out["records"] = to_numpy(std::vector<double>(records.begin(), records.end()), {n_arms, paced.record_size()});
    if (paced.units().is_free()) out["units"] = units_array(paced.units());
    const bool fades = paced.discount().is_on();  // then what was solved follows from the sums
    if (fades)
        out["clock"] = clock_array(paced);
    else
        out["solved"] = to_numpy(paced.solved_values(), {n_arms, paced.solved_size()});
    write_outcomes(paced, out);
    if (paced.n_outcomes() > 0 && !fades)
        out["outcomes_solved"] = to_numpy(paced.solved_outcomes(), {n_arms, paced.outcomes_solved_size()});
    out["under_way"] = under_way_array(paced);
    if (paced.finds_ridge()) {
        const auto ridge = paced.found_ridge();
        out["ridge"] = to_numpy(std::vector<double>(ridge.begin(), ridge.end()), {ridge.size()});
    }
    return out;
}

void check_solved(std::span<const double> values, std::size_t size) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_fact = i % size < Solved::n_facts, may_be_negative = i % size >= Solved::n_facts - 1;
        if (!(std::fabs(values[i]) <= (is_fact ? largest_sum : beyond_any)) || (!may_be_negative && values[i] < 0.0))
            fail(PyExc_ValueError, "the state was solved for numbers beyond what rows lead to");
    }
}

std::span<const double> read_solved(const LazyStatistics& paced, nb::handle given) {
    const std::size_t n_arms = paced.n_arms(), size = paced.solved_size();
    const std::span out(doubles(given, "solved", {n_arms, size}), n_arms * size);
    check_solved(out, size);
    return out;
}

std::span<const double> read_solved_outcomes(const LazyStatistics& paced, nb::dict arrays) {
    if (paced.n_outcomes() == 0 || paced.discount().is_on()) return {};
    const std::size_t n_arms = paced.n_arms(), size = paced.outcomes_solved_size();
    const std::span out(doubles(arrays["outcomes_solved"], "outcomes_solved", {n_arms, size}), n_arms * size);
    for (const double value : out)
        if (!(std::fabs(value) <= largest_sum))
            fail(PyExc_ValueError, "the state was solved for numbers beyond what rows lead to");
    return out;
}

void check_ridge(const double* ridge) {
    if (!(ridge[0] >= 1.0 && ridge[0] <= 1.001e6 && ridge[1] >= 0.0 && ridge[1] <= largest_sum))
        fail(PyExc_ValueError, "the ridge is " + text(ridge[0]) + " for " + text(ridge[1]) + " rows, which is none");
}

void restore_arrays(LazyStatistics& paced, nb::dict arrays) {
    const std::size_t n_arms = paced.n_arms(), size = paced.record_size();
    const bool fades = paced.discount().is_on();
    const std::span records(doubles(arrays["records"], "records", {n_arms, size}), n_arms * size);
    const auto solved = fades ? std::span<const double>() : read_solved(paced, arrays["solved"]);
    check_records(records.data(), n_arms * size, size);
    const auto under_way = read_under_way(arrays["under_way"], n_arms);
    const double* ridge = paced.finds_ridge() ? doubles(arrays["ridge"], "ridge", {std::size_t{2}}) : nullptr;
    if (ridge) check_ridge(ridge);
    std::span<const double> units;
    if (paced.units().is_free()) units = read_units(paced.units(), arrays["units"], records);
    const OutcomeArrays outcomes = read_outcomes(paced, arrays);
    const auto outcomes_solved = read_solved_outcomes(paced, arrays);
    if (fades) paced.restore_clock(read_clock(arrays["clock"]));
    paced.restore_outcome_records(outcomes.records);
    paced.restore(records);
    paced.restore_units(units);
    paced.restore_outcome_units(outcomes.units);
    if (ridge) paced.restore_ridge(ridge[0], ridge[1]);
    if (!fades) paced.restore_solved(solved);
    if (paced.n_outcomes() > 0 && !fades) paced.restore_solved_outcomes(outcomes_solved);
    paced.restore_under_way(under_way);
}

void look_at_fits(LazyStatistics& paced) {
    paced.use_usual_weights();
    paced.refresh();
    paced.refresh_fits();
}

Array<double> fits(LazyStatistics& paced) {
    look_at_fits(paced);
    return to_numpy(paced.fits(), {paced.n_arms(), std::size_t{3}});
}

double typical_norm(LazyStatistics& paced) {
    look_at_fits(paced);
    return paced.typical_norm();
}

Array<double> deviations(LazyStatistics& paced, const std::string& noise) {
    look_at_fits(paced);
    std::vector<double> out;
    paced.Statistics::deviations(parse_noise(noise), out);
    return to_numpy(std::move(out), {paced.n_arms()});
}

}  // namespace

void bind_lazy_statistics(nb::module_& m) {
    auto paced =
        nb::class_<LazyStatistics, Statistics>(
            m, "LazyStatistics", nb::dynamic_attr(),
            "Sums of rows, of which an arm is solved when it has enough more of them.")
            .def("__init__", &create, nb::arg("n_arms"), nb::arg("dim"), nb::kw_only(), nb::arg("ridge").none(),
                 nb::arg("units") = "as given", nb::arg("origin") = nb::none(), nb::arg("half_life") = nb::none())
            .def_prop_ro(
                "rank", [](const LazyStatistics& paced) { return paced.units().rank(); },
                "How many of the values that an estimate multiplies vary, the constant among them.")
            .def_prop_ro("nbytes", &LazyStatistics::bytes, "Bytes held.")
            .def_prop_ro(
                "solves", [](const LazyStatistics& paced) { return paced.solves(); },
                "How often some arms were solved: by what changes rows, not by what looks at them.")
            .def("fits", &fits, "(K, 3): of the rows that an arm was solved for: n, squared residuals, freedom.")
            .def("deviations", &deviations, nb::arg("noise"),
                 "(K,): what the noise of each arm is taken to be, by 'pool', 'max' or 'shrunk'.")
            .def("typical_norm", &typical_norm,
                 "The root of the mean squared reward over that of the mean squared length of contexts, as solved for.")
            .def_prop_ro(
                "ridge", [](LazyStatistics& paced) { return paced.found_ridge()[0]; },
                "On slopes, in the units that estimates are of: given, or what the sums make likely.")
            .def("arrays", &arrays, nb::sig("def arrays(self) -> dict[str, NDArray[numpy.generic]]"),
                 "All that must be kept, by name.")
            .def("restore_arrays", &restore_arrays, nb::arg("arrays"),
                 nb::sig("def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None"),
                 "Takes back what `arrays` gave, if these are sums of rows.")
            .def("copy", [](const LazyStatistics& state) {
                LazyStatistics out(state);
                out.release();  // in the middle of a batch, of which the copy has no part
                return out;
            });
    // what depends on the order of rows, so that merging cannot just add it up: merged arms are solved again
    paced.attr("not_summed") = nb::make_tuple("solved", "units", "ridge", "outcome_units", "outcomes_solved", "clock");
}

}  // namespace armlet
