#include "evaluate/evaluate.hpp"

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"

namespace armlet {

namespace {

std::size_t columns_of(nb::handle matrix, const char* name) {
    if (!is_plain(matrix, NPY_DOUBLE, 2)) fail(PyExc_TypeError, std::string(name) + " must be a float64 matrix");
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(matrix.ptr()), 1));
}

RewardModel read_model(nb::handle theta, nb::handle inverse) {
    const std::size_t size = columns_of(theta, "theta"), n_arms = count_rows(theta, "theta", size);
    if (size < 2 || n_arms == 0)
        fail(PyExc_ValueError, "theta must have a row for each arm and a column beside the first");
    return {doubles(theta, "theta", {n_arms, size}), doubles(inverse, "inverse", {n_arms, size, size}), n_arms,
            size - 1};
}

const std::int64_t* read_arms(nb::handle arms, const char* name, std::size_t n, std::size_t n_arms) {
    const std::int64_t* who = integers(arms, name, n);
    bool known = true;
    for (std::size_t i = 0; i < n; ++i) known &= who[i] >= 0 && who[i] < static_cast<std::int64_t>(n_arms);
    if (!known) fail(PyExc_ValueError, std::string(name) + " holds a number that is none of an arm");
    return who;
}

Array<double> predict_played_rows(nb::handle theta, nb::handle inverse, nb::handle X, nb::handle arms,
                                  nb::handle rewards, nb::handle learned) {
    const RewardModel model = read_model(theta, inverse);
    const std::size_t n = count_rows(X, "X", model.dim);
    const double *x = doubles(X, "X", {n, model.dim}), *r = doubles(rewards, "rewards", {n});
    const std::int64_t* who = read_arms(arms, "arms", n, model.n_arms);
    const bool* has = booleans(learned, "learned", n);
    std::vector<double> out(n);
    {
        nb::gil_scoped_release release;
        predict_played(model, x, who, r, has, n, out.data());
    }
    return to_numpy(std::move(out), {n});
}

Array<double> predict_target_rows(nb::handle theta, nb::handle inverse, nb::handle X, nb::handle target) {
    const RewardModel model = read_model(theta, inverse);
    const std::size_t n = count_rows(X, "X", model.dim);
    const double* x = doubles(X, "X", {n, model.dim});
    std::vector<double> out(n);
    if (is_plain(target, NPY_INT64, 1)) {
        const std::int64_t* chosen = read_arms(target, "target", n, model.n_arms);
        nb::gil_scoped_release release;
        predict_chosen(model, x, chosen, n, out.data());
    } else {
        const double* law = doubles(target, "target", {n, model.n_arms});
        nb::gil_scoped_release release;
        predict_law(model, x, law, n, out.data());
    }
    return to_numpy(std::move(out), {n});
}

Array<double> features_of_rows(nb::handle pi, nb::handle direct, nb::handle rewards, nb::handle chance,
                               nb::handle given, nb::handle explored, nb::handle model, nb::handle h, double most,
                               double shrink) {
    const std::size_t n = row_length(pi);
    const EvaluatedRows rows{
        doubles(pi, "pi", {n}),         doubles(direct, "direct", {n}), doubles(rewards, "rewards", {n}),
        doubles(chance, "chance", {n}), doubles(given, "given", {n}),   doubles(explored, "explored", {n}),
        doubles(model, "model", {n}),   doubles(h, "h", {n}),           n};
    std::vector<double> out(n * n_features);
    {
        nb::gil_scoped_release release;
        row_features(rows, most, shrink, out.data());
    }
    return to_numpy(std::move(out), {n, n_features});
}

Array<double> gram_of_rows(nb::handle F, nb::handle G) {
    const std::size_t n = count_rows(F, "F", n_features);
    const double *f = doubles(F, "F", {n, n_features}), *g = doubles(G, "G", {n, n_features});
    std::vector<double> out(n_features * n_features);
    {
        nb::gil_scoped_release release;
        gram(f, g, n, out.data());
    }
    return to_numpy(std::move(out), {n_features, n_features});
}

}  // namespace

void bind_evaluate(nb::module_& m) {
    m.def("predict_played", &predict_played_rows, nb::arg("theta"), nb::arg("inverse"), nb::arg("X"), nb::arg("arms"),
          nb::arg("rewards"), nb::arg("learned"),
          "(n,): what a reward model says of the arms played, without a row's own reward where it has learned that.");
    m.def("predict_target", &predict_target_rows, nb::arg("theta"), nb::arg("inverse"), nb::arg("X"), nb::arg("target"),
          "(n,): what a reward model says of the arms that a target plays, or of its probabilities (n, K).");
    m.def("row_features", &features_of_rows, nb::arg("pi"), nb::arg("direct"), nb::arg("rewards"), nb::arg("chance"),
          nb::arg("given"), nb::arg("explored"), nb::arg("model"), nb::arg("h"), nb::arg("most"), nb::arg("shrink"),
          "(n, 13): what each row adds to estimates of a target's value.");
    m.def("gram", &gram_of_rows, nb::arg("F"), nb::arg("G"), "(13, 13): F' G, summed over rows in their order.");
}

}  // namespace armlet
