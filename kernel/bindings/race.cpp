#include "evaluate/race.hpp"

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

std::size_t size_of(nb::handle array, const char* name, int ndim, int axis) {
    if (!is_plain(array, NPY_DOUBLE, ndim))
        fail(PyExc_TypeError, std::string(name) + " must be a float64 array of " + std::to_string(ndim) + " axes");
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(array.ptr()), axis));
}

void check_small(const double* values, std::size_t n, const char* name) {
    bool small = true;
    for (std::size_t i = 0; i < n; ++i) small &= std::fabs(values[i]) <= largest_value;
    if (!small) fail(PyExc_ValueError, std::string(name) + " holds a number that is not finite or beyond 1e40");
}

LinearPolicies read_policies(nb::handle thetas) {
    const std::size_t J = size_of(thetas, "thetas", 4, 0), m = size_of(thetas, "thetas", 4, 1);
    const std::size_t K = size_of(thetas, "thetas", 4, 2), d = size_of(thetas, "thetas", 4, 3);
    if (m == 0 || K == 0 || d == 0) fail(PyExc_ValueError, "thetas must have an outcome, an arm and a feature");
    const double* theta = doubles(thetas, "thetas", {J, m, K, d});
    check_small(theta, J * m * K * d, "thetas");
    return {theta, J, m, K, d};
}

LoggedRows read_logged(nb::handle X, nb::handle eligible, nb::handle arms, const LinearPolicies& policies) {
    const std::size_t n = count_rows(X, "X", policies.dim), K = policies.n_arms;
    const LoggedRows rows{doubles(X, "X", {n, policies.dim}),
                          booleans(eligible, "eligible", n * K),
                          integers(arms, "arms", n),
                          n,
                          policies.dim,
                          K};
    check_small(rows.X, n * policies.dim, "X");
    bool known = true;
    for (std::size_t i = 0; i < n; ++i)
        known &= rows.arms[i] >= 0 && rows.arms[i] < static_cast<std::int64_t>(K) &&
                 rows.eligible[i * K + static_cast<std::size_t>(rows.arms[i])];
    if (!known) fail(PyExc_ValueError, "arms holds a number that is none of an eligible arm");
    return rows;
}

nb::tuple race_rows(nb::handle X, nb::handle eligible, nb::handle arms, nb::handle below, nb::handle above,
                    nb::handle certain, nb::handle thetas, std::size_t before, nb::handle sums) {
    const LinearPolicies policies = read_policies(thetas);
    if (policies.n_outcomes != 1) fail(PyExc_ValueError, "thetas must have one outcome");
    const LoggedRows rows = read_logged(X, eligible, arms, policies);
    const RacedRows raced{doubles(below, "below", {rows.n}), doubles(above, "above", {rows.n}),
                          booleans(certain, "certain", rows.n), before};
    std::vector<double> out = copy(doubles(sums, "sums", {4, policies.count}), 4 * policies.count);
    std::vector<std::uint8_t> known(policies.count, 1);
    {
        nb::gil_scoped_release release;
        race(rows, raced, policies, out.data(), reinterpret_cast<bool*>(known.data()));
    }
    return nb::make_tuple(to_numpy(std::move(out), {4, policies.count}),
                          to_numpy<bool>(std::move(known), {policies.count}));
}

Array<double> sum_agreeing_rows(nb::handle X, nb::handle eligible, nb::handle arms, nb::handle columns,
                                nb::handle thetas, nb::handle dials) {
    const LinearPolicies policies = read_policies(thetas);
    const LoggedRows rows = read_logged(X, eligible, arms, policies);
    const std::size_t q = size_of(columns, "columns", 2, 1), D = count_rows(dials, "dials", policies.n_outcomes);
    const double *given = doubles(columns, "columns", {rows.n, q}),
                 *w = doubles(dials, "dials", {D, policies.n_outcomes});
    check_small(w, D * policies.n_outcomes, "dials");
    if (q == 0 || D == 0) fail(PyExc_ValueError, "there must be a column and a dial");
    const std::size_t width = padded(q);
    std::vector<double> values(rows.n * width), sums(policies.count * D * width), out(policies.count * D * q);
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < rows.n; ++i) std::copy_n(given + i * q, q, values.data() + i * width);
        sum_agreeing(rows, policies, w, D, {values.data(), width}, sums.data());
        for (std::size_t i = 0; i < policies.count * D; ++i)
            std::copy_n(sums.data() + i * width, q, out.data() + i * q);
    }
    return to_numpy(std::move(out), {policies.count, D, q});
}

}  // namespace

void bind_race(nb::module_& m) {
    m.def("race", &race_rows, nb::arg("X"), nb::arg("eligible"), nb::arg("arms"), nb::arg("below"), nb::arg("above"),
          nb::arg("certain"), nb::arg("thetas"), nb::arg("before"), nb::arg("sums"),
          nb::sig("def race(X: object, eligible: object, arms: object, below: object, above: object, certain: object, "
                  "thetas: object, before: int, sums: object) -> tuple[NDArray[numpy.float64], NDArray[numpy.bool_]]"),
          "(4, J): the sums, and what rows add to them: totals and squares of `below` and of `above` where policy j, "
          "of thetas (J, 1, K, d), plays the arm that was played; and (J,): whether it does in all that are certain.");
    m.def("sum_agreeing", &sum_agreeing_rows, nb::arg("X"), nb::arg("eligible"), nb::arg("arms"), nb::arg("columns"),
          nb::arg("thetas"), nb::arg("dials"),
          "(J, D, q): columns (n, q), summed over the rows where policy j of thetas (J, m, K, d) under dial k of "
          "(D, m) plays the arm that was played.");
}

}  // namespace armlet
