#include <nanobind/stl/string.h>

#include <algorithm>
#include <numeric>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/engine/decision.hpp"
#include "bindings/epochs/epoch.hpp"
#include "bindings/rule_binding.hpp"
#include "rules/batch.hpp"
#include "simulate/replay.hpp"

namespace armlet {

namespace {

nb::tuple coins(nb::handle seed, Word t) {
    const Coins c = toss(parse_seed(seed), t);
    return nb::make_tuple(c.coin, c.pick, c.tie, c.mark);
}

nb::object seed_of_unit(nb::handle seed, nb::handle unit) {
    return to_python(seed_of(parse_seed(seed), unit_given(unit, nb::none()).name));
}

Propensities parse_propensities(const std::string& wanted) {
    if (wanted == "exact") return Propensities::exact;
    if (wanted != "skipped") fail(PyExc_ValueError, "propensities is '" + wanted + "'; choose 'exact' or 'skipped'");
    return Propensities::skipped;
}

nb::tuple rollout(nb::handle contexts, nb::handle rewards, nb::handle start, nb::handle given, nb::handle seed, Word t,
                  const std::string& propensities) {
    const Rule rule = read_rule(given);
    nb::object state = copy_state(rule, start);
    const Model model = read_model(rule, state);
    const std::size_t dim = model.sums().dim(), n_arms = model.sums().n_arms();
    const std::size_t steps = count_rows(contexts, "contexts", dim);
    if (t > last_step || steps > last_step - t)
        fail(PyExc_ValueError, "t is " + std::to_string(t) + ", which leaves no room for " + std::to_string(steps) +
                                   " steps: the clock ends at 2^63 - 1");
    const double* x = doubles(contexts, "contexts", {steps, dim});
    const double* r = doubles(rewards, "rewards", {steps, n_arms});
    const Seed key = parse_seed(seed);
    const Propensities wanted = parse_propensities(propensities);
    Trace trace;
    {
        nb::gil_scoped_release release;
        trace = run(rule, model, key, t, x, r, steps, wanted);
    }
    return nb::make_tuple(to_numpy<std::int64_t>(std::move(trace.arms), {steps}),
                          to_numpy(std::move(trace.propensities), {steps}),
                          to_numpy<bool>(std::move(trace.explored), {steps}), state);
}

void check_arms(const PlayedRows& played, std::size_t n_arms) {
    for (std::size_t i = 0; i < played.n; ++i) {
        const std::int64_t arm = played.arms[i];
        const bool is_arm = arm >= 0 && static_cast<std::size_t>(arm) < n_arms;
        if (!is_arm || (played.eligible && !played.eligible[i * n_arms + static_cast<std::size_t>(arm)]))
            fail(PyExc_ValueError, "arms[" + std::to_string(i) + "] is " + std::to_string(arm) +
                                       ", which might not be played; there are " + std::to_string(n_arms) + " arms");
    }
}

nb::tuple replay_rows(nb::handle contexts, nb::handle arms, nb::handle rewards, nb::handle eligible, nb::handle start,
                      nb::handle given, nb::handle seed, Word t) {
    const Rule rule = read_rule(given);
    nb::object state = copy_state(rule, start);
    const Model model = read_model(rule, state);
    const std::size_t dim = model.sums().dim(), n_arms = model.sums().n_arms(),
                      n = count_rows(contexts, "contexts", dim);
    if (t > last_step || n > last_step - t)
        fail(PyExc_ValueError, "t is " + std::to_string(t) + "; the clock ends at 2^63 - 1");
    const PlayedRows played{doubles(contexts, "contexts", {n, dim}), integers(arms, "arms", n),
                            doubles(rewards, "rewards", {n}),
                            eligible.is_none() ? nullptr : booleans(eligible, "eligible", n * n_arms), n};
    check_arms(played, n_arms);
    const Seed key = parse_seed(seed);
    Accepted accepted;
    {
        nb::gil_scoped_release release;
        accepted = replay(rule, model, key, t, played);
    }
    const std::size_t steps = accepted.rows.size();
    return nb::make_tuple(to_numpy<std::int64_t>(std::move(accepted.rows), {steps}),
                          to_numpy<bool>(std::move(accepted.explored), {steps}), state);
}

// The best arm of every row where its lead is beyond doubt; elsewhere what settle(estimates, all arms, x) gives.
template <typename Settle>
Array<std::int64_t> best_of_rows(nb::handle X, nb::handle theta, Settle settle) {
    if (Py_TYPE(theta.ptr()) != ndarray_type || nb::cast<std::size_t>(theta.attr("ndim")) != 2)
        fail(PyExc_TypeError, "theta must be a numpy array of shape (n_arms, dim)");
    const std::size_t dim = nb::cast<std::size_t>(theta.attr("shape")[1]);
    const std::size_t n_arms = count_rows(theta, "theta", dim), rows = count_rows(X, "X", dim);
    if (n_arms == 0) fail(PyExc_ValueError, "theta has no rows: there must be at least one arm");
    const double *t = doubles(theta, "theta", {n_arms, dim}), *x = doubles(X, "X", {rows, dim});
    std::vector<std::int64_t> out(rows);
    {
        nb::gil_scoped_release release;
        const std::vector<double> columns = by_feature(t, n_arms, dim);
        std::vector<std::uint32_t> all(n_arms), best(rows);
        std::iota(all.begin(), all.end(), 0u);
        const Estimates estimates{columns.data(), dim, padded(n_arms)};
        BatchArgmax(estimates, all)(x, rows, best.data());
        for (std::size_t i = 0; i < rows; ++i)
            out[i] = best[i] == undecided ? settle(estimates, Arms(all), x + i * dim) : std::int64_t{best[i]};
    }
    return to_numpy<std::int64_t>(std::move(out), {rows});
}

// The best arm of every row in float64, the first of those that tie.
Array<std::int64_t> argmax_rows(nb::handle X, nb::handle theta) {
    std::vector<double> scratch;
    return best_of_rows(X, theta, [&](const Estimates& estimates, Arms all, const double* x) {
        scratch.resize(estimates.width);
        estimates.scores(x, scratch.data());
        return std::int64_t{best_arm(scratch.data(), all).first};
    });
}

// The same where the lead is beyond doubt, -1 elsewhere.
Array<std::int64_t> clear_argmax(nb::handle X, nb::handle theta) {
    return best_of_rows(X, theta, [](const Estimates&, Arms, const double*) { return std::int64_t{-1}; });
}

// Chooses among the compilations for 0 any processor, 1 AVX2, 2 AVX-512; returns the one in use.
const char* level_name() {
    constexpr const char* names[] = {"base", "AVX2", "AVX-512"};
    return names[static_cast<int>(best_level)];
}

int use_level(int wanted) {
    level = static_cast<Level>(std::clamp(wanted, 0, static_cast<int>(best_level)));
    return static_cast<int>(level);
}

}  // namespace

void bind_loops(nb::module_& m) {
    const std::string signature =
        "def rollout(contexts: object, rewards: object, start: typing.Any, rule: " + rule_types() +
        ", seed: int, t: int, propensities: str) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64], "
        "NDArray[numpy.bool], typing.Any]";
    m.def("coins", &coins, nb::arg("seed"), nb::arg("t"),
          nb::sig("def coins(seed: int, t: int) -> tuple[float, int, int, int]"),
          "The coin, pick, tie-break and mark of step t.");
    m.def("unit_seed", &seed_of_unit, nb::arg("seed"), nb::arg("unit"),
          nb::sig("def unit_seed(seed: int, unit: str) -> int"),
          "The seed of a unit's coins: those of epoch e are coins(unit_seed, e).");
    m.def("rollout", &rollout, nb::arg("contexts"), nb::arg("rewards"), nb::arg("start"), nb::arg("rule"),
          nb::arg("seed"), nb::arg("t"), nb::arg("propensities"), nb::sig(signature.c_str()),
          "A rule over given contexts (T, d) and rewards (T, K), without the interpreter lock.");
    const std::string replayed =
        "def replay(contexts: object, arms: object, rewards: object, eligible: object, start: typing.Any, rule: " +
        rule_types() + ", seed: int, t: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.bool], typing.Any]";
    m.def("replay", &replay_rows, nb::arg("contexts"), nb::arg("arms"), nb::arg("rewards"), nb::arg("eligible").none(),
          nb::arg("start"), nb::arg("rule"), nb::arg("seed"), nb::arg("t"), nb::sig(replayed.c_str()),
          "A rule that learns from rows (n, d) which another has played, as far as it would have played them.");
    m.def("level", &level_name, "Which instructions the kernel uses on this processor: base, AVX2 or AVX-512.");
    m.def("_use_level", &use_level, nb::arg("level"), "For tests: run the code of an older processor.");
    m.def("argmax_rows", &argmax_rows, nb::arg("X"), nb::arg("theta"), "(n,): the best arm of every row of X.");
    m.def("clear_argmax", &clear_argmax, nb::arg("X"), nb::arg("theta"),
          "(n,): the best arm of every row of X; -1 where float32 leaves a doubt, or the row holds what is no number.");
}

}  // namespace armlet
