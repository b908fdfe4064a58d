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

std::span<const double> read_units(const Units& units, nb::handle given) {
    const std::size_t n = units.n_values();
    const double* values = doubles(given, "units", {n});
    check_units(units, {values, n});
    return {values, n};
}

// What x - o - m is must not overflow, and neither must it when it is divided by a deviation.
void check_units(const Units& units, std::span<const double> values) {
    const auto spread = values.subspan(1 + 2 * units.size());
    for (const double value : values)
        if (!(std::fabs(value) <= 2.0 * largest_value)) fail(PyExc_ValueError, "the units are not those of any rows");
    for (const double one : spread)
        if (one != 0.0 && !(one >= 1e-61)) fail(PyExc_ValueError, "the units are not those of any rows");
    if (values[0] < 0.0) fail(PyExc_ValueError, "the units are not those of any rows");
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
