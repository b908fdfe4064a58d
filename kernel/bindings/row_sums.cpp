#include "state/row_sums.hpp"

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "linear/linear.hpp"

namespace armlet {

namespace {

struct Matrix {
    Grid grid;
    std::size_t rows, columns;
};

// A float64 matrix, or a list of float64 columns.
Matrix read_matrix(nb::handle X, std::size_t rows) {
    if (nb::isinstance<nb::list>(X)) {
        std::vector<const double*> columns;
        for (nb::handle column : nb::cast<nb::list>(X)) columns.push_back(doubles(column, "a column of X", {rows}));
        if (columns.empty()) fail(PyExc_ValueError, "X has no columns; give at least one");
        const std::size_t n = columns.size();
        return {{nullptr, std::move(columns)}, rows, n};
    }
    if (!is_plain(X, NPY_DOUBLE, 2) || PyArray_DIM(reinterpret_cast<PyArrayObject*>(X.ptr()), 1) == 0)
        fail(PyExc_TypeError, "X must be a C-contiguous float64 matrix, or a list of float64 columns");
    const auto columns = static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(X.ptr()), 1));
    return {{doubles(X, "X", {rows, columns}), {}}, rows, columns};
}

bool are_small(const double* values, std::size_t n) { return all_within(values, n, largest_value); }

void check_rows(const Matrix& X, const std::int64_t* arms, const double* rewards, const double* weights,
                std::size_t n_arms) {
    const std::size_t n = X.rows;
    bool small = !X.grid.rows || are_small(X.grid.rows, n * X.columns);
    for (const double* column : X.grid.columns) small = small && are_small(column, n);
    if (!small) fail(PyExc_ValueError, "X holds a value that is not a finite number");
    if (!are_small(rewards, n)) fail(PyExc_ValueError, "rewards holds a value that is not a finite number");
    bool positive = !weights || are_small(weights, n), known = true;
    for (std::size_t i = 0; weights && i < n; ++i) positive &= weights[i] >= least_weight;
    if (!positive) fail(PyExc_ValueError, "weights holds a value that is not a positive number, at least 1e-40");
    for (std::size_t i = 0; i < n; ++i) known &= arms[i] < static_cast<std::int64_t>(n_arms);
    if (!known) fail(PyExc_ValueError, "arms holds a number beyond the records");
}

void add_rows(nb::handle records, nb::handle X, nb::handle arms, nb::handle rewards, nb::handle weights,
              nb::handle origin) {
    const Matrix x = read_matrix(X, row_length(rewards));
    const std::size_t n = x.rows, d = x.columns, size = origin.is_none() ? d : d + 1;
    const double* from = origin.is_none() ? nullptr : doubles(origin, "origin", {size});
    const std::size_t n_arms = count_rows(records, "records", 3 + size + packed_size(size));
    const auto* array = reinterpret_cast<PyArrayObject*>(records.ptr());
    if (!PyArray_ISWRITEABLE(array)) fail(PyExc_ValueError, "records cannot be written to; give a copy");
    const std::int64_t* who = integers(arms, "arms", n);
    const double *r = doubles(rewards, "rewards", {n}),
                 *w = weights.is_none() ? nullptr : doubles(weights, "weights", {n});
    check_rows(x, who, r, w, n_arms);
    nb::gil_scoped_release release;
    if (n_arms > 0) RowSums(static_cast<double*>(PyArray_DATA(array)), n_arms, d, from).add(x.grid, who, r, w, n);
}

// Whether the squares of all rewards and values that were added sum up to so little that each of them is small.
bool are_small(const std::vector<double>& records, std::size_t n_arms, std::size_t size) {
    const std::size_t length = 3 + size + packed_size(size);
    constexpr double most = largest_value * largest_value;
    bool small = true;
    for (std::size_t arm = 0; arm < n_arms; ++arm) {
        const double* record = records.data() + arm * length;
        small &= record[2] <= most;  // false for NaN
        const double* diagonal = record + 3 + size;
        for (std::size_t k = 0; k < size; diagonal += size - k, ++k) small &= *diagonal <= most;
    }
    return small;
}

Array<double> sum_rows(nb::handle X, nb::handle arms, nb::handle rewards, std::size_t n_arms) {
    const Matrix x = read_matrix(X, row_length(rewards));
    const std::size_t n = x.rows, size = x.columns + 1, length = 3 + size + packed_size(size);
    const std::int64_t* who = integers(arms, "arms", n);
    const double* r = doubles(rewards, "rewards", {n});
    std::int64_t least = 0, most = -1;
    for (std::size_t i = 0; i < n; ++i) least = std::min(least, who[i]), most = std::max(most, who[i]);
    if (most >= static_cast<std::int64_t>(n_arms)) fail(PyExc_ValueError, "arms holds a number beyond the records");
    std::vector<double> records(n_arms * length);
    if (n_arms > 0) {
        nb::gil_scoped_release release;
        const std::vector<double> origin(size);
        RowSums(records.data(), n_arms, x.columns, origin.data()).add(x.grid, who, r, nullptr, n);
    }
    if (least < 0 || !are_small(records, n_arms, size)) check_rows(x, who, r, nullptr, n_arms);
    return to_numpy(std::move(records), {n_arms, length});
}

}  // namespace

void bind_row_sums(nb::module_& m) {
    m.def("add_rows", &add_rows, nb::arg("records"), nb::arg("X"), nb::arg("arms"), nb::arg("rewards"),
          nb::arg("weights").none() = nb::none(), nb::arg("origin").none() = nb::none(),
          "Adds rows to the records of their arms in place, without the interpreter lock; not those of negative arms.");
    m.def(
        "sum_rows", &sum_rows, nb::arg("X"), nb::arg("arms"), nb::arg("rewards"), nb::arg("n_arms"),
        "(n_arms, ...): the records of y = (1, x), without the interpreter lock; rows of negative arms are left out.");
}

}  // namespace armlet
