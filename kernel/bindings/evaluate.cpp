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

Array<double> predict_target_rows(nb::handle theta, nb::handle inverse, nb::handle X, nb::handle target,
                                  nb::handle arms, nb::handle played) {
    const RewardModel model = read_model(theta, inverse);
    const std::size_t n = count_rows(X, "X", model.dim);
    const double* x = doubles(X, "X", {n, model.dim});
    const PlayedRows rows{read_arms(arms, "arms", n, model.n_arms), doubles(played, "played", {n}), n};
    std::vector<double> out(n);
    if (is_plain(target, NPY_INT64, 1)) {
        const std::int64_t* chosen = read_arms(target, "target", n, model.n_arms);
        nb::gil_scoped_release release;
        predict_chosen(model, x, chosen, rows, out.data());
    } else {
        const double* law = doubles(target, "target", {n, model.n_arms});
        nb::gil_scoped_release release;
        predict_law(model, x, law, rows, out.data());
    }
    return to_numpy(std::move(out), {n});
}

// A row of theta (K, d) for each arm, and which of them may be played.
nb::tuple value_greedy_rows(nb::handle estimates, nb::handle eligible, nb::handle theta, nb::handle inverse,
                            nb::handle X, nb::handle arms, nb::handle rewards, nb::handle learned) {
    const RewardModel model = read_model(theta, inverse);
    const std::size_t n = count_rows(X, "X", model.dim);
    const ValuedRows rows{doubles(X, "X", {n, model.dim}), read_arms(arms, "arms", n, model.n_arms),
                          doubles(rewards, "rewards", {n}), booleans(learned, "learned", n), n};
    const std::vector<double> slopes =
        by_feature(doubles(estimates, "estimates", {model.n_arms, model.dim}), model.n_arms, model.dim);
    const bool* may = booleans(eligible, "eligible", model.n_arms);
    std::vector<double> direct(n), played(n);
    std::vector<std::uint32_t> playable;
    std::vector<std::int64_t> best(n);
    for (std::size_t a = 0; a < model.n_arms; ++a)
        if (may[a]) playable.push_back(static_cast<std::uint32_t>(a));
    if (playable.empty()) fail(PyExc_ValueError, "eligible has no arm; there must be at least one");
    {
        nb::gil_scoped_release release;
        value_greedy({slopes.data(), model.dim, padded(model.n_arms)}, playable, model, rows,
                     {best.data(), direct.data(), played.data()});
    }
    return nb::make_tuple(to_numpy<std::int64_t>(std::move(best), {n}), to_numpy(std::move(direct), {n}),
                          to_numpy(std::move(played), {n}));
}

EvaluatedRows read_rows(nb::handle pi, nb::handle direct, nb::handle rewards, nb::handle chance, nb::handle given,
                        nb::handle explored, nb::handle model, nb::handle h) {
    const std::size_t n = row_length(pi);
    return {doubles(pi, "pi", {n}),         doubles(direct, "direct", {n}), doubles(rewards, "rewards", {n}),
            doubles(chance, "chance", {n}), doubles(given, "given", {n}),   doubles(explored, "explored", {n}),
            doubles(model, "model", {n}),   doubles(h, "h", {n}),           n};
}

Array<double> features_of_rows(nb::handle pi, nb::handle direct, nb::handle rewards, nb::handle chance,
                               nb::handle given, nb::handle explored, nb::handle model, nb::handle h, double most,
                               double shrink) {
    const EvaluatedRows rows = read_rows(pi, direct, rewards, chance, given, explored, model, h);
    std::vector<double> out(rows.n * n_features);
    {
        nb::gil_scoped_release release;
        row_features(rows, most, shrink, out.data());
    }
    return to_numpy(std::move(out), {rows.n, n_features});
}

nb::tuple sums_of_features(nb::handle pi, nb::handle direct, nb::handle rewards, nb::handle chance, nb::handle given,
                           nb::handle explored, nb::handle model, nb::handle h, double most, double shrink) {
    const EvaluatedRows rows = read_rows(pi, direct, rewards, chance, given, explored, model, h);
    std::vector<double> sums(n_columns * n_columns);
    double largest = 0.0;
    {
        nb::gil_scoped_release release;
        sum_features(rows, most, shrink, sums.data(), &largest);
    }
    return nb::make_tuple(to_numpy(std::move(sums), {n_columns, n_columns}), largest);
}

Array<double> moments_of_rows(nb::handle X, nb::handle origin) {
    const std::size_t d = row_length(origin), n = count_rows(X, "X", d);
    const double *x = doubles(X, "X", {n, d}), *from = doubles(origin, "origin", {d});
    std::vector<double> out(2 * d);
    {
        nb::gil_scoped_release release;
        sum_moments(x, n, d, from, out.data());
    }
    return to_numpy(std::move(out), {2, d});
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
          nb::arg("arms"), nb::arg("played"),
          "(n,): what a reward model says of the arms that a target plays, or of its probabilities (n, K); of the arms "
          "that were played, what `predict_played` says.");
    m.def(
        "value_greedy", &value_greedy_rows, nb::arg("estimates"), nb::arg("eligible"), nb::arg("theta"),
        nb::arg("inverse"), nb::arg("X"), nb::arg("arms"), nb::arg("rewards"), nb::arg("learned"),
        nb::sig("def value_greedy(estimates: object, eligible: object, theta: object, inverse: object, X: object, "
                "arms: object, rewards: object, learned: object) -> tuple[NDArray[numpy.int64], "
                "NDArray[numpy.float64], NDArray[numpy.float64]]"),
        "(n,) each: the arm that is best by x' estimates, -1 where rounding could decide; what a reward model says of "
        "it, and of what was played, as `predict_played` does; and the same where that arm was played, 0 elsewhere.");
    m.def("row_features", &features_of_rows, nb::arg("pi"), nb::arg("direct"), nb::arg("rewards"), nb::arg("chance"),
          nb::arg("given"), nb::arg("explored"), nb::arg("model"), nb::arg("h"), nb::arg("most"), nb::arg("shrink"),
          "(n, 13): what each row adds to estimates of a target's value.");
    m.def(
        "sum_features", &sums_of_features, nb::arg("pi"), nb::arg("direct"), nb::arg("rewards"), nb::arg("chance"),
        nb::arg("given"), nb::arg("explored"), nb::arg("model"), nb::arg("h"), nb::arg("most"), nb::arg("shrink"),
        nb::sig("def sum_features(pi: object, direct: object, rewards: object, chance: object, given: object, "
                "explored: object, model: object, h: object, most: float, shrink: float) -> "
                "tuple[NDArray[numpy.float64], float]"),
        "(16, 16): products of the features and the reward, summed over rows in their order; and the largest weight.");
    m.def("sum_moments", &moments_of_rows, nb::arg("X"), nb::arg("origin"),
          "(2, d): sums of x - origin and of its squares, over rows in their order.");
    m.def("gram", &gram_of_rows, nb::arg("F"), nb::arg("G"), "(13, 13): F' G, summed over rows in their order.");
}

}  // namespace armlet
