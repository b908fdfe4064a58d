#include "subsets/subset_search.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"

namespace armlet {

namespace {

constexpr double most_subsets = 65536.0;

constexpr double most_rows = 1e200;  // weights of up to largest_value add up, as sums of rows do

void check_values(const double* values, std::size_t n, const char* name) {
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::fabs(values[i]) <= largest_value))
            fail(PyExc_ValueError, std::string(name) + " holds " + text(values[i]) +
                                       "; give finite numbers of at most " + text(largest_value) + " in size");
}

Past read_past(nb::handle rows, nb::handle counts, std::size_t dim) {
    const std::size_t size = count_rows(rows, "rows", dim);
    if (size == 0) fail(PyExc_ValueError, "rows is empty: there is no subset to choose; give at least one row");
    const double *values = doubles(rows, "rows", {size, dim}), *n = doubles(counts, "counts", {size});
    check_values(values, size * dim, "rows");
    for (std::size_t i = 0; i < size; ++i)
        if (!(n[i] >= 1.0 && n[i] <= most_rows) || n[i] != std::floor(n[i]))
            fail(PyExc_ValueError, "counts[" + std::to_string(i) + "] is " + text(n[i]) +
                                       "; it must be a whole number from 1 to " + text(most_rows));
    return {values, n, size, dim};
}

const double* read_x(nb::handle x, std::size_t dim) {
    const double* values = doubles(x, "x", {dim});
    check_values(values, dim, "x");
    return values;
}

Subset search(const std::string& how, const Past& past, const double* x) {
    if (how == "relaxed") return search_relaxed(past, x);
    if (how == "counts") return search_counts(past, x);
    if (how != "exact") fail(PyExc_ValueError, "how is '" + how + "'; choose 'exact', 'relaxed' or 'counts'");
    if (count_subsets(past) > most_subsets)
        fail(PyExc_ValueError, "rows has " + std::to_string(past.size) +
                                   " rows and more than 65536 subsets, too many to try them all; use search='relaxed', "
                                   "or keep at most 16 rows");
    return search_exactly(past, x);
}

auto search_subset(const std::string& how, nb::handle x, nb::handle rows, nb::handle counts) {
    const std::size_t dim = nb::len(x);
    const double* values = read_x(x, dim);
    const Past past = read_past(rows, counts, dim);
    Subset found = search(how, past, values);
    const std::size_t size = past.size;
    return std::tuple(to_numpy(std::move(found.weights), {size}), found.value, found.exact, found.tried);
}

auto estimate_subset(nb::handle rows, nb::handle counts, nb::handle sums, nb::handle weights, std::size_t dim) {
    const Past past = read_past(rows, counts, dim);
    const double* w = doubles(weights, "weights", {past.size});
    return to_numpy(estimate(past, doubles(sums, "sums", {past.size}), {w, w + past.size}), {dim});
}

}  // namespace

void bind_subset_search(nb::module_& m) {
    m.def(
        "search_subset", &search_subset, nb::arg("how"), nb::arg("x"), nb::arg("rows"), nb::arg("counts"),
        nb::sig("def search_subset(how: str, x: NDArray[numpy.float64], rows: NDArray[numpy.float64], counts: "
                "NDArray[numpy.float64]) -> tuple[NDArray[numpy.float64], float, bool, int]"),
        "Return the weights, f, whether it is proved to be the minimum, and how many subsets were tried where that is "
        "counted.");
    m.def("estimate_subset", &estimate_subset, nb::arg("rows"), nb::arg("counts"), nb::arg("sums"), nb::arg("weights"),
          nb::arg("dim"),
          nb::sig("def estimate_subset(rows: NDArray[numpy.float64], counts: NDArray[numpy.float64], sums: "
                  "NDArray[numpy.float64], weights: NDArray[numpy.float64], dim: int) -> NDArray[numpy.float64]"),
          "Return theta_hat of a subset: the solution of (sqrt(n) I + A) theta = b.");
}

}  // namespace armlet
