#include "bindings/rule_binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "coins/normal.hpp"
#include "linear/elementary.hpp"

namespace armlet {

namespace {

template <typename R>
std::string name_of() {
    return text(nb::type<R>().attr("__name__"));
}

// As Python knows them.
template <typename... Rs>
std::vector<std::string> names_of(const std::variant<Rs...>*) {
    return {name_of<Rs>()...};
}

template <typename... Rs>
std::vector<std::string> names_by_the_clock(const std::variant<Rs...>*) {
    std::vector<std::string> out;
    (((GoesByTheClock<Rs> || GoesByEvidence<Rs>) ? out.push_back(name_of<Rs>()) : void()), ...);
    return out;
}

// "Schedule, Optimism or Thompson"
std::string join(const std::vector<std::string>& names, const char* between, const char* last) {
    std::string out = names[0];
    for (std::size_t i = 1; i < names.size(); ++i) {
        out += i + 1 < names.size() ? between : last;
        out += names[i];
    }
    return out;
}

constexpr Rule* every_rule = nullptr;  // for its type

template <typename... Rs>
bool read_any(nb::handle given, std::variant<Rs...>& out) {
    return ((nb::isinstance<Rs>(given) && (out = nb::cast<Rs>(given), true)) || ...);
}

template <typename R>
Model read_model_of(nb::handle state) {
    using State = typename R::State;
    bool fits = nb::isinstance<State>(state);
    if constexpr (requires { &R::fits; }) fits = fits && R::fits(nb::cast<State&>(state));
    if (!fits)
        fail(PyExc_TypeError, "this rule works on " + std::string(R::works_on) + "; got a " + name_of_type(state));
    const Model model(nb::cast<State&>(state));
    if (requires { R::needs_widths; } && model.sums().ridge().kind != Ridge::Kind::constant)
        fail(PyExc_ValueError, "widths need a constant ridge; make the statistics with ridge='constant'");
    return model;
}

}  // namespace

std::string rule_types() { return join(names_of(every_rule), " | ", " | "); }
std::string clock_rule_types() { return join(names_by_the_clock(every_rule), " | ", " | "); }

Rule read_rule(nb::handle given) {
    Rule rule;
    if (!read_any(given, rule))
        fail(PyExc_TypeError,
             "rule must be a " + join(names_of(every_rule), ", ", " or ") + "; got a " + name_of_type(given));
    return rule;
}

Model read_model(const Rule& rule, nb::handle state) {
    return std::visit([&]<typename R>(const R&) { return read_model_of<R>(state); }, rule);
}

NoiseRule parse_noise(const std::string& noise) {
    if (noise == "pool") return NoiseRule::pool;
    if (noise == "max") return NoiseRule::max;
    if (noise != "shrunk") fail(PyExc_ValueError, "noise is '" + noise + "'; choose 'pool', 'max' or 'shrunk'");
    return NoiseRule::shrunk;
}

nb::object copy_state(const Rule& rule, nb::handle state) {
    read_model(rule, state);  // which says what is wrong with what has no copy
    return state.attr("copy")();
}

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

Schedule schedule(double p, bool round_robin, bool learn_always) {
    if (!(p >= 0.0))
        fail(PyExc_ValueError,
             "p is " + text(p) + "; it must be a number of at least 0, or infinite to explore always");
    return {p, round_robin, learn_always};
}

Optimism constant_optimism(double alpha, bool by_noise) {
    check_not_negative("alpha", alpha);
    return {.radius = Optimism::Radius::constant, .scale = alpha, .by_noise = by_noise};
}

Optimism oful(const std::string& radius, double noise_scale, double bound, double delta, double scale) {
    check_not_negative("noise_scale", noise_scale), check_not_negative("bound", bound);
    check_delta(delta), check_not_negative("scale", scale);
    if (radius != "per-arm" && radius != "joint")
        fail(PyExc_ValueError, "radius is '" + radius + "'; choose 'per-arm' or 'joint'");
    return {radius == "joint" ? Optimism::Radius::joint : Optimism::Radius::per_arm, scale, noise_scale, bound, delta};
}

Thompson constant_thompson(double v, bool by_noise) {
    check_not_negative("v", v);
    return {.theory = false, .scale = v, .by_noise = by_noise};
}

Thompson theory_thompson(double noise_scale, double delta, double scale) {
    check_not_negative("noise_scale", noise_scale), check_delta(delta), check_not_negative("scale", scale);
    return {true, scale, noise_scale, delta};
}

void check_floor(double floor) {
    if (!(floor >= 0.0 && floor <= 1.0)) fail(PyExc_ValueError, "floor is " + text(floor) + "; it must lie in [0, 1]");
}

void check_share(const char* name, double value) {
    if (!(value > 0.0 && value <= 1.0))
        fail(PyExc_ValueError, std::string(name) + " is " + text(value) + "; it must lie in (0, 1]");
}

AutoSchedule auto_schedule(double horizon, double caution, double start, double most, bool round_robin) {
    if (!(horizon >= 1.0 && horizon <= largest_value))
        fail(PyExc_ValueError, "horizon is " + text(horizon) + "; it must be at least 1, and finite");
    check_positive("caution", caution);
    if (!(start >= 1.0 && start <= largest_value))
        fail(PyExc_ValueError, "start is " + text(start) + "; it must be at least 1");
    check_share("most", most);
    return {horizon, caution, start, most, round_robin};
}

Evidence evidence(double p, double cap, double floor, bool learn_always) {
    check_positive("p", p);
    check_share("cap", cap), check_floor(floor);
    return {p, cap, floor, learn_always};
}

AutoEvidence auto_evidence(std::optional<double> horizon, double caution, double start, double most, double even,
                           double cap, double floor) {
    if (horizon && !(*horizon >= 1.0 && *horizon <= largest_value))
        fail(PyExc_ValueError, "horizon is " + text(*horizon) + "; it must be at least 1, and finite, or None");
    check_positive("caution", caution), check_positive("start", start);
    check_share("most", most), check_share("even", even), check_share("cap", cap);
    check_floor(floor);
    return {{horizon.value_or(0.0), caution, most, even}, start, cap, floor};
}

LogBonus log_bonus(double p, double share, double width_scale, const std::string& noise, double cap, double floor,
                   bool proved, double noise_scale, double theta_norm) {
    check_not_negative("p", p), check_not_negative("width_scale", width_scale);
    check_not_negative("noise_scale", noise_scale), check_not_negative("theta_norm", theta_norm);
    check_share("share", share), check_share("cap", cap), check_floor(floor);
    return {p, share, width_scale, parse_noise(noise), cap, floor, proved, noise_scale, theta_norm};
}

ConstantRate constant_rate(std::optional<double> rate) {
    if (rate && !(*rate >= 0.0 && *rate <= 1.0))
        fail(PyExc_ValueError, "rate is " + text(*rate) + "; it must lie in [0, 1], or be None");
    return {rate};
}

InverseGaps inverse_gaps(double gamma, bool grows, bool by_noise) {
    check_not_negative("gamma", gamma);
    return {gamma, grows, by_noise};
}

// ---- one overload for each rule of the list

template <typename R>
struct Of {};

void bind(nb::module_& m, Of<Schedule>) {
    nb::class_<Schedule>(m, "Schedule", "When a compiled policy explores, and which steps it learns from.")
        .def(nb::new_(&schedule), nb::arg("p"), nb::kw_only(), nb::arg("round_robin"), nb::arg("learn_always"));
}

void bind(nb::module_& m, Of<Optimism>) {
    nb::class_<Optimism>(m, "Optimism", "Play the highest upper confidence bound, ties broken by the coins.")
        .def_static("constant", &constant_optimism, nb::arg("alpha"), nb::kw_only(), nb::arg("by_noise") = false,
                    "LinUCB: the same multiple of every width, or of every width times the noise.")
        .def_static("oful", &oful, nb::arg("radius"), nb::kw_only(), nb::arg("noise_scale"), nb::arg("bound"),
                    nb::arg("delta"), nb::arg("scale") = 1.0, "OFUL: the radius of its theorem, 'per-arm' or 'joint'.");
}

void bind(nb::module_& m, Of<Thompson>) {
    nb::class_<Thompson>(m, "Thompson", "Play the highest sample of the posterior.")
        .def_static("constant", &constant_thompson, nb::arg("v"), nb::kw_only(), nb::arg("by_noise") = false,
                    "The same v at every step, or times the noise.")
        .def_static("theory", &theory_thompson, nb::kw_only(), nb::arg("noise_scale"), nb::arg("delta"),
                    nb::arg("scale") = 1.0, "v = R sqrt(9 d log(t / delta)), scaled.");
}

void bind(nb::module_& m, Of<AutoSchedule>) {
    nb::class_<AutoSchedule>(m, "AutoSchedule", "Algorithm 1 with a p that sets itself for a horizon.")
        .def(nb::new_(&auto_schedule), nb::kw_only(), nb::arg("horizon"), nb::arg("caution"), nb::arg("start"),
             nb::arg("most"), nb::arg("round_robin"));
}

void bind(nb::module_& m, Of<Evidence>) {
    nb::class_<Evidence>(m, "Evidence", "Explore the arms that lack rows, by weight, else play the best estimate.")
        .def(nb::new_(&evidence), nb::kw_only(), nb::arg("p"), nb::arg("cap"), nb::arg("floor"),
             nb::arg("learn_always"));
}

void bind(nb::module_& m, Of<AutoEvidence>) {
    nb::class_<AutoEvidence>(m, "AutoEvidence",
                             "The evidence clock with a p that sets itself, and shares of it by arm.")
        .def(nb::new_(&auto_evidence), nb::kw_only(), nb::arg("horizon").none(), nb::arg("caution"), nb::arg("start"),
             nb::arg("most"), nb::arg("even"), nb::arg("cap") = 1.0, nb::arg("floor") = 0.0);
}

void bind(nb::module_& m, Of<LogBonus>) {
    nb::class_<LogBonus>(m, "LogBonus",
                         "Explore what lacks rows, else play the highest bound on a share of the steps, by the log of "
                         "time, and the best estimate on the others.")
        .def(nb::new_(&log_bonus), nb::kw_only(), nb::arg("p"), nb::arg("share"), nb::arg("width_scale"),
             nb::arg("noise"), nb::arg("cap"), nb::arg("floor"), nb::arg("proved") = false,
             nb::arg("noise_scale") = 0.0, nb::arg("theta_norm") = 0.0);
}

void bind(nb::module_& m, Of<ConstantRate>) {
    nb::class_<ConstantRate>(m, "ConstantRate", "Explore at one rate at every step, else play the best estimate.")
        .def(nb::new_(&constant_rate), nb::arg("rate").none(), "None is greedy play, which has no rate.");
}

void bind(nb::module_& m, Of<InverseGaps>) {
    nb::class_<InverseGaps>(m, "InverseGaps", "Draw an arm, with 1 / (K + gamma gap) for those below the best.")
        .def(nb::new_(&inverse_gaps), nb::kw_only(), nb::arg("gamma"), nb::arg("grows"), nb::arg("by_noise"),
             "gamma itself or, if it grows, times sqrt(t); gaps as they are or over the noise.");
}

template <typename... Rs>
void bind_each(nb::module_& m, const std::variant<Rs...>*) {
    (bind(m, Of<Rs>{}), ...);
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

Array<double> all_exploration_weights(nb::handle n, double q) {
    const std::size_t n_arms = nb::len(n);
    const double* rows = doubles(n, "n", {n_arms});
    check_positive("q", q);
    std::vector<double> out(n_arms);
    for (std::size_t arm = 0; arm < n_arms; ++arm) out[arm] = exploration_weight(rows[arm], q);
    return to_numpy(std::move(out), {n_arms});
}

template <double (*function)(double)>
Array<double> of_each(nb::handle values) {
    const std::size_t n = nb::len(values);
    const double* given = doubles(values, "values", {n});
    std::vector<double> out(n);
    std::transform(given, given + n, out.begin(), function);
    return to_numpy(std::move(out), {n});
}

}  // namespace

void bind_rules(nb::module_& m) {
    bind_each(m, every_rule);
    m.def("exploration_weights", &all_exploration_weights, nb::arg("n"), nb::arg("q"),
          "(K,): min(1, exp(1 - n / q)), as the exploring law has it.");
    m.def("exps", &of_each<elementary::exp>, nb::arg("values"), "(n,): exp of each, the same bits everywhere.");
    m.def("logs", &of_each<elementary::log>, nb::arg("values"), "(n,): log of each, the same bits everywhere.");
    m.def("erfcs", &of_each<elementary::erfc>, nb::arg("values"), "(n,): erfc of each, the same bits everywhere.");
    m.def("normals", &normals, nb::arg("pick"), nb::arg("tie"), nb::arg("n"),
          "(n,): the standard normals that Thompson sampling draws with these coins.");
    m.def("win_probabilities", &chances, nb::arg("means"), nb::arg("deviations"),
          "(n,): the probability that each of n independent normals is the largest.");
}

}  // namespace armlet
