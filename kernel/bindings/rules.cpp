#include "rule_binding.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "binding.hpp"
#include "coins/normal.hpp"

namespace armlet {

namespace {

template <typename T>
bool try_rule(nb::handle given, Rule& out) {
    if (!nb::isinstance<T>(given)) return false;
    out = nb::cast<T>(given);
    return true;
}

}  // namespace

Rule read_rule(nb::handle given) {
    Rule rule;
    if (!try_rule<Schedule>(given, rule) && !try_rule<Optimism>(given, rule) && !try_rule<Thompson>(given, rule) &&
        !try_rule<ForcedSampling>(given, rule) && !try_rule<OptimisticGreedy>(given, rule) &&
        !try_rule<AutoSchedule>(given, rule))
        fail(PyExc_TypeError,
             "rule must be a Schedule, Optimism, Thompson, ForcedSampling, OptimisticGreedy or AutoSchedule; got "
             "a " +
                 text(given.type().attr("__name__")));
    return rule;
}

namespace {

template <typename T>
T& read_layers(nb::handle state, const char* wanted) {
    if (!nb::isinstance<T>(state) || nb::cast<T&>(state).size() != 2) fail(PyExc_TypeError, wanted);
    auto& layers = nb::cast<T&>(state);
    if (layers[0].n_arms() != layers[1].n_arms())
        fail(PyExc_ValueError, "the layers have different arms; add and remove arms of the Layers, not of a layer");
    return layers;
}

void check_widths(const Statistics& statistics) {
    if (statistics.ridge().kind != Ridge::Kind::constant)
        fail(PyExc_ValueError, "widths need a constant ridge; make the statistics with ridge='constant'");
}

}  // namespace

Model read_model(const Rule& rule, nb::handle state) {
    if (std::holds_alternative<ForcedSampling>(rule))
        return model_of(
            read_layers<Layers>(state, "forced sampling works on Layers of two: forced rows, and all rows"));
    if (std::holds_alternative<OptimisticGreedy>(rule)) {
        auto& layers = read_layers<Snapshots>(state, "this rule works on Snapshots: rows solved for, and all rows");
        check_widths(layers[0]);
        return model_of(layers);
    }
    if (std::holds_alternative<AutoSchedule>(rule)) {
        if (!nb::isinstance<Tuned>(state))
            fail(PyExc_TypeError,
                 "an AutoSchedule works on Tuned statistics; got a " + text(state.type().attr("__name__")));
        return model_of(nb::cast<Tuned&>(state));
    }
    if (!nb::isinstance<Statistics>(state))
        fail(PyExc_TypeError, "this rule works on Statistics; got a " + text(state.type().attr("__name__")));
    auto& statistics = nb::cast<Statistics&>(state);
    if (!std::holds_alternative<Schedule>(rule)) check_widths(statistics);
    return model_of(statistics);
}

nb::object copy_state(nb::handle state) { return state.attr("copy")(); }

namespace {

void check_positive(const char* name, double value) {
    if (!(value > 0.0 && value <= largest_value))
        fail(PyExc_ValueError, std::string(name) + " is " + text(value) + "; it must be a positive number");
}

void check_not_negative(const char* name, double value) {
    if (!(value >= 0.0 && value <= largest_value))
        fail(PyExc_ValueError, std::string(name) + " is " + text(value) + "; it must be a number of at least 0");
}

void check_delta(double delta) {
    if (!(delta > 0.0 && delta < 1.0))
        fail(PyExc_ValueError, "delta is " + text(delta) + "; it must lie between 0 and 1");
}

Optimism constant_optimism(double alpha) {
    check_not_negative("alpha", alpha);
    return {Optimism::Radius::constant, alpha};
}

Optimism oful(const std::string& radius, double noise_scale, double bound, double delta, double scale) {
    check_not_negative("noise_scale", noise_scale), check_not_negative("bound", bound);
    check_delta(delta), check_not_negative("scale", scale);
    if (radius != "per-arm" && radius != "joint")
        fail(PyExc_ValueError, "radius is '" + radius + "'; choose 'per-arm' or 'joint'");
    return {radius == "joint" ? Optimism::Radius::joint : Optimism::Radius::per_arm, scale, noise_scale, bound, delta};
}

Thompson constant_thompson(double v) {
    check_not_negative("v", v);
    return {false, v};
}

Thompson theory_thompson(double noise_scale, double delta, double scale) {
    check_not_negative("noise_scale", noise_scale), check_delta(delta), check_not_negative("scale", scale);
    return {true, scale, noise_scale, delta};
}

ForcedSampling forced_sampling(Word q, double h) {
    if (q < 1 || q > UINT32_MAX)
        fail(PyExc_ValueError,
             "q is " + std::to_string(q) + "; it must lie between 1 and " + std::to_string(UINT32_MAX));
    check_positive("h", h);
    return {q, h};
}

OptimisticGreedy optimistic_greedy(double p, double width_scale, double growth) {
    check_not_negative("p", p), check_not_negative("width_scale", width_scale), check_positive("growth", growth);
    return {p, width_scale, growth};
}

Array<double> normals(Word pick, Word tie, std::size_t n) {
    std::vector<double> out(n);
    draw_normals(pick, tie, out);
    return to_numpy(std::move(out), {n});
}

Array<double> chances(nb::handle means, nb::handle deviations) {
    const std::size_t n = nb::len(means);
    if (n == 0) fail(PyExc_ValueError, "means is empty; give at least one");
    const double *m = doubles(means, "means", {n}), *s = doubles(deviations, "deviations", {n});
    for (std::size_t i = 0; i < n; ++i)
        if (!std::isfinite(m[i]) || !(s[i] >= 0.0) || !std::isfinite(s[i]))
            fail(PyExc_ValueError, "means must be finite, and deviations finite and at least 0");
    std::vector<double> out(n);
    win_probabilities({m, n}, {s, n}, out);
    return to_numpy(std::move(out), {n});
}

}  // namespace

void bind_rules(nb::module_& m) {
    nb::class_<Optimism>(m, "Optimism", "Play the highest upper confidence bound, ties broken by the coins.")
        .def_static("constant", &constant_optimism, nb::arg("alpha"), "LinUCB: the same multiple of every width.")
        .def_static("oful", &oful, nb::arg("radius"), nb::kw_only(), nb::arg("noise_scale"), nb::arg("bound"),
                    nb::arg("delta"), nb::arg("scale") = 1.0, "OFUL: the radius of its theorem, 'per-arm' or 'joint'.");
    nb::class_<Thompson>(m, "Thompson", "Play the highest sample of the posterior.")
        .def_static("constant", &constant_thompson, nb::arg("v"), "The same v at every step.")
        .def_static("theory", &theory_thompson, nb::kw_only(), nb::arg("noise_scale"), nb::arg("delta"),
                    nb::arg("scale") = 1.0, "v = R sqrt(9 d log(t / delta)), scaled.");
    nb::class_<ForcedSampling>(m, "ForcedSampling", "Each arm at its own steps; in between the best that is left.")
        .def(
            "__init__",
            [](ForcedSampling* self, Word q, double h) { new (self) ForcedSampling(forced_sampling(q, h)); },
            nb::kw_only(), nb::arg("q"), nb::arg("h"));
    nb::class_<OptimisticGreedy>(m, "OptimisticGreedy",
                                 "Explore with probability p / t, else play the highest bound of rare solves.")
        .def(
            "__init__",
            [](OptimisticGreedy* self, double p, double width_scale, double growth) {
                new (self) OptimisticGreedy(optimistic_greedy(p, width_scale, growth));
            },
            nb::kw_only(), nb::arg("p"), nb::arg("width_scale"), nb::arg("growth"));
    m.def("normals", &normals, nb::arg("pick"), nb::arg("tie"), nb::arg("n"),
          "(n,): the standard normals that Thompson sampling draws with these coins.");
    m.def("win_probabilities", &chances, nb::arg("means"), nb::arg("deviations"),
          "(n,): the probability that each of n independent normals is the largest.");
}

}  // namespace armlet
