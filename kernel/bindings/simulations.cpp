#include <nanobind/stl/string.h>
#include <numpy/random/distributions.h>

#include <cmath>
#include <numeric>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"
#include "simulate/pace.hpp"
#include "simulate/simulate.hpp"

namespace armlet {

namespace {

// numpy's own generators and distributions.
class NumpySampler final : public Sampler {
  public:
    explicit NumpySampler(nb::handle generator) {
        if (!nb::hasattr(generator, "bit_generator"))
            fail(PyExc_TypeError, "generator must be a numpy.random.Generator; got a " + name_of_type(generator));
        nb::object capsule = generator.attr("bit_generator").attr("capsule");
        bits_ = static_cast<bitgen_t*>(PyCapsule_GetPointer(capsule.ptr(), "BitGenerator"));
        if (!bits_) throw nb::python_error();
    }

    double uniform() override { return bits_->next_double(bits_->state); }

    void multinomial(std::int64_t n, std::span<const double> chances, std::span<std::int64_t> counts) override {
        std::fill(counts.begin(), counts.end(), 0);
        random_multinomial(bits_, n, counts.data(), const_cast<double*>(chances.data()),
                           static_cast<npy_intp>(chances.size()), &binomial_);
    }

  private:
    bitgen_t* bits_;
    binomial_t binomial_{};
};

Noise parse_noise(const std::string& kind) {
    if (kind == "none") return Noise::none;
    if (kind == "proportional") return Noise::proportional;
    if (kind == "gaussian") return Noise::gaussian;
    if (kind == "bernoulli") return Noise::bernoulli;
    fail(PyExc_ValueError, "noise is '" + kind + "'; choose 'none', 'proportional', 'gaussian' or 'bernoulli'");
}

void check_values(const char* name, std::span<const double> values, double low, double high) {
    for (const double value : values)
        if (!(value >= low && value <= high))
            fail(PyExc_ValueError, std::string(name) + " of the table hold " + text(value) +
                                       "; they must be numbers from " + text(low) + " to " + text(high));
}

// Anything that looks like a FiniteEnvironment is taken for one, so nothing is known of it.
void check_environment(const Environment& environment) {
    if (environment.n_contexts == 0) fail(PyExc_ValueError, "the table has no contexts; give at least one");
    const bool is_binary = environment.noise == Noise::bernoulli;
    check_values("contexts", environment.contexts, -largest_value, largest_value);
    check_values("means", environment.means, is_binary ? 0.0 : -largest_value, is_binary ? 1.0 : largest_value);
    check_values("chances", environment.chances, 0.0, 1.0 + 1e-8);
    const double sum = std::accumulate(environment.chances.begin(), environment.chances.end(), 0.0);
    if (!(std::fabs(sum - 1.0) <= 1e-8))  // FiniteEnvironment wants 1e-9, and adds in another order
        fail(PyExc_ValueError, "chances of the table add up to " + text(sum) + "; they must sum to 1");
    check_values("scale", {&environment.scale, 1}, -largest_value, largest_value);
}

// An environment, and the arrays that it looks into: the table may have made them for this one look.
struct Table {
    nb::object contexts, chances, means;
    Environment environment;
};

double read_scale(nb::handle scale) {
    double out;
    if (!nb::try_cast(scale, out))
        fail(PyExc_TypeError, "scale of the table is " + quoted(scale) + "; it must be a number");
    return out;
}

Table read_table(nb::handle given, const Statistics& statistics) {
    nb::object contexts = given.attr("contexts"), chances = given.attr("chances"), means = given.attr("means");
    const std::size_t dim = statistics.dim(), n_arms = statistics.n_arms(), m = nb::len(contexts);
    const Environment environment{{doubles(contexts, "contexts", {m, dim}), m * dim},
                                  {doubles(chances, "chances", {m}), m},
                                  {doubles(means, "means", {m, n_arms}), m * n_arms},
                                  parse_noise(text(given.attr("noise"))),
                                  read_scale(given.attr("scale")),
                                  m,
                                  n_arms,
                                  dim};
    check_environment(environment);
    return {contexts, chances, means, environment};
}

Run read_run(Word horizon, nb::handle checkpoints) {
    if (horizon > INT64_MAX)
        fail(PyExc_ValueError, "horizon is " + std::to_string(horizon) + "; it must be at most 2^63 - 1");
    const std::size_t n = nb::len(checkpoints);
    const std::int64_t* steps = integers(checkpoints, "checkpoints", n);
    for (std::size_t i = 0; i < n; ++i)
        if (steps[i] < 1 || static_cast<Word>(steps[i]) > horizon || (i > 0 && steps[i] <= steps[i - 1]))
            fail(PyExc_ValueError, "checkpoints must ascend from 1 to the horizon");
    return {horizon, {steps, n}};
}

nb::tuple give(Curve&& curve, nb::object state) {
    const std::size_t n = curve.regret.size();
    return nb::make_tuple(to_numpy(std::move(curve.regret), {n}), to_numpy(std::move(curve.exploring), {n}),
                          to_numpy(std::move(curve.explored), {n}), state);
}

nb::tuple steps(nb::handle table, nb::handle start, nb::handle given, Word horizon, nb::handle checkpoints,
                nb::handle environment_seed, nb::handle policy_seed) {
    const Rule rule = read_rule(given);
    nb::object state = copy_state(rule, start);
    const Model model = read_model(rule, state);
    const Table read = read_table(table, model.sums());
    const Run run = read_run(horizon, checkpoints);
    const Seed of_environment = parse_seed(environment_seed), of_policy = parse_seed(policy_seed);
    Curve curve;
    {
        nb::gil_scoped_release release;
        curve = simulate_steps(read.environment, model, rule, run, of_environment, of_policy);
    }
    return give(std::move(curve), state);
}

nb::tuple events(nb::handle table, nb::handle start, nb::handle given, Word horizon, nb::handle checkpoints,
                 nb::handle generator) {
    const Rule rule = read_rule(given);
    nb::object state = copy_state(rule, start);
    const Model model = read_model(rule, state);
    if (!Pace::exists(rule, model) || Pace(rule, model).learns_always())
        fail(PyExc_ValueError, "the policy learns from every step, so nothing can be jumped over; use simulate_steps");
    const Table read = read_table(table, model.sums());
    const Run run = read_run(horizon, checkpoints);
    NumpySampler sampler(generator);
    Curve curve;
    {
        nb::gil_scoped_release release;
        curve = simulate_events(read.environment, model, rule, run, sampler);
    }
    return give(std::move(curve), state);
}

#define ARMLET_CURVE "-> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], "

}  // namespace

void bind_simulations(nb::module_& m) {
    const std::string in_steps = "def simulate_steps(table: object, start: typing.Any, rule: " + rule_types() +
                                 ", horizon: int, checkpoints: object, environment_seed: int, policy_seed: "
                                 "int) " ARMLET_CURVE "typing.Any]";
    const std::string in_jumps = "def simulate_events(table: object, start: typing.Any, rule: " + clock_rule_types() +
                                 ", horizon: int, checkpoints: object, generator: numpy.random.Generator) " ARMLET_CURVE
                                 "typing.Any]";
    m.def("simulate_steps", &steps, nb::arg("table"), nb::arg("start"), nb::arg("rule"), nb::arg("horizon"),
          nb::arg("checkpoints"), nb::arg("environment_seed"), nb::arg("policy_seed"), nb::sig(in_steps.c_str()),
          "A rule in an environment that is a table, every step drawn.");
    m.def("simulate_events", &events, nb::arg("table"), nb::arg("start"), nb::arg("rule"), nb::arg("horizon"),
          nb::arg("checkpoints"), nb::arg("generator"), nb::sig(in_jumps.c_str()),
          "The law of Algorithm 1, in jumps from one exploration to the next.");
}

}  // namespace armlet
