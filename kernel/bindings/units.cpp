#include "state/units.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"
#include "bindings/unit_arrays.hpp"

namespace armlet {

Units parse_units(const std::string& units, std::size_t dim, nb::handle origin) {
    if (units == "as given") {
        if (!origin.is_none()) fail(PyExc_ValueError, "units are 'as given', which have no origin; leave it out");
        return {Units::Kind::as_given, dim};
    }
    if (units != "free") fail(PyExc_ValueError, "units is '" + units + "'; choose 'free' or 'as given'");
    if (origin.is_none()) return {Units::Kind::free, dim};
    const double* values = doubles(origin, "origin", {dim + 1});
    for (std::size_t j = 0; j <= dim; ++j)
        if (!(std::fabs(values[j]) <= largest_value))
            fail(PyExc_ValueError, "origin holds " + text(values[j]) + "; give finite numbers of at most " +
                                       text(largest_value) + " in size");
    return {Units::Kind::free, dim, {values, dim + 1}};
}

std::span<const double> read_units(const Units& units, nb::handle given, std::span<const double> records) {
    const std::size_t n = units.n_values();
    const double* values = doubles(given, "units", {n});
    check_units(units, {values, n});
    check_renewed(units, records);
    return {values, n};
}

namespace {

void check_sizes(std::span<const double> values, double most) {
    for (const double value : values)
        if (!(std::fabs(value) <= most)) fail(PyExc_ValueError, "the units are not those of any rows");
}

}  // namespace

// What x - o - m is must not overflow, and neither must it when it is divided by a deviation.
void check_units(const Units& units, std::span<const double> values) {
    const auto spread = values.subspan(1 + 2 * units.size());
    check_sizes(values.subspan(1, units.size()), 1.01 * largest_value);  // rounded to eight bits
    check_sizes(values.subspan(1 + units.size()), 4.04 * largest_value);
    for (const double one : spread)
        if (one != 0.0 && !(one >= 1e-61)) fail(PyExc_ValueError, "the units are not those of any rows");
    if (!(values[0] >= 0.0 && values[0] <= largest_sum)) fail(PyExc_ValueError, "the units are not those of any rows");
}

// What is taken of the sums when the next row is learned must be units too, whichever arms' it is. Values about an
// origin are at most twice as large as values; means and deviations of several arms are at most twice those of one.
void check_renewed(const Units& units, std::span<const double> records) {
    Sums arm(1, units.size());
    Units own = units;
    for (; !records.empty(); records = records.subspan(arm.record_size())) {
        arm.restore(records.first(arm.record_size()));
        if (!(arm.n(0) > 0.0)) check_sizes(arm.records(), 0.0);  // of no rows nothing is left
        own.renew(arm);
        const std::vector<double> values = own.values();
        check_sizes(std::span(values).subspan(1), 2.02 * largest_value);
    }
}

Array<double> units_array(const Units& units) { return to_numpy(units.values(), {units.n_values()}); }

Array<double> standard(const Units& units, nb::handle X) {
    const std::size_t rows = count_rows(X, "X", units.dim()), dim = units.dim(), size = units.size();
    const double* x = doubles(X, "X", {rows, dim});
    std::vector<double> out(rows * size);
    for (std::size_t i = 0; i < rows; ++i) {
        double* to = out.data() + i * size;
        if (const double* seen = units.view(x + i * dim, to); seen != to) std::copy_n(seen, size, to);
    }
    return to_numpy(std::move(out), {rows, size});
}

void bind_units(nb::module_& m) {
    nb::class_<Units>(m, "Units", "The units of a state at one moment: what its estimates are of.")
        .def_prop_ro("base", &Units::base, "What scores leave out, since all arms share it: l + r0.")
        .def("standard", &standard, nb::arg("X"), "(n, D): rows of z = (1, (x - o - m) / s).");
}

}  // namespace armlet
