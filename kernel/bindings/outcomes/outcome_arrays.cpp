#include "bindings/outcomes/outcome_arrays.hpp"

#include <cmath>

#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"

namespace armlet {

namespace {

void open_outcomes(Statistics& s, std::size_t n) {
    if (n < 1 || n > 64) fail(PyExc_ValueError, "n is " + std::to_string(n) + "; give 1 to 64 outcomes");
    if (!s.is_empty() || s.n_outcomes() > 0)
        fail(PyExc_ValueError, "there are rows already, or outcomes; open them in new statistics");
    s.open_outcomes(n);
}

std::span<const double> weights_of(const Statistics& s, nb::handle weights) {
    if (s.n_outcomes() == 0) fail(PyExc_ValueError, "there are no outcomes to weigh; open_outcomes comes first");
    return {doubles(weights, "weights", {s.n_outcomes()}), s.n_outcomes()};
}

std::span<const double> offsets_of(const Statistics& s, nb::handle offsets) {
    if (offsets.is_none()) return {};
    return {doubles(offsets, "offsets", {s.n_arms()}), s.n_arms()};
}

// (n, K, D): estimates of views of contexts, outcome by outcome.
Array<double> outcome_estimates(Statistics& s) {
    s.refresh();
    const std::size_t n = s.n_outcomes(), n_arms = s.n_arms(), size = s.view_size();
    const std::vector<double> values = s.solved_outcomes();
    std::vector<double> out(n * n_arms * size);
    for (std::size_t arm = 0; arm < n_arms; ++arm)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < size; ++i)
                out[(j * n_arms + arm) * size + i] = values[arm * s.outcomes_solved_size() + j * size + i];
    return to_numpy(std::move(out), {n, n_arms, size});
}

Array<double> bases(const Statistics& s) {
    std::vector<double> out(s.n_outcomes());
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = s.outcomes().base(j);
    const std::size_t n = out.size();
    return to_numpy(std::move(out), {n});
}

}  // namespace

void write_outcomes(Statistics& s, nb::dict arrays) {
    if (s.n_outcomes() == 0) return;
    const auto records = s.outcome_records();
    arrays["outcomes"] =
        to_numpy(std::vector<double>(records.begin(), records.end()), {s.n_arms(), s.outcomes().record_size()});
    arrays["outcome_units"] = to_numpy(s.outcomes().values(), {2 * s.n_outcomes()});
}

OutcomeArrays read_outcomes(const Statistics& s, nb::dict arrays) {
    if (s.n_outcomes() == 0) return {};
    const std::size_t n_arms = s.n_arms(), size = s.outcomes().record_size(), n = 2 * s.n_outcomes();
    const OutcomeArrays out{{doubles(arrays["outcomes"], "outcomes", {n_arms, size}), n_arms * size},
                            {doubles(arrays["outcome_units"], "outcome_units", {n}), n}};
    for (const auto values : {out.records, out.units})
        for (const double value : values)
            if (!(std::fabs(value) <= largest_sum)) fail(PyExc_ValueError, "the sums are not those of any outcomes");
    return out;
}

void bind_outcomes(nb::class_<Statistics>& statistics) {
    statistics
        .def("open_outcomes", &open_outcomes, nb::arg("n"),
             "From now on every row has n outcomes next to its reward, which is their sum by weights that stay.")
        .def_prop_ro("n_outcomes", &Statistics::n_outcomes, "How many outcomes a row has; 0 if it has a reward alone.")
        .def(
            "set_weights",
            [](Statistics& s, nb::handle weights, nb::handle offsets) {
                const auto usual = weights_of(s, weights), added = offsets_of(s, offsets);
                s.set_usual_weights(usual, added);
            },
            nb::arg("weights"), nb::arg("offsets") = nb::none(),
            "Says by which weights estimates and noise are, and what is added to each arm in free units.")
        .def(
            "reweigh", [](Statistics& s, nb::handle weights) { s.reweigh(weights_of(s, weights)); }, nb::arg("weights"),
            "Makes the reward of every row the sum of its outcomes by these weights.")
        .def("outcome_estimates", &outcome_estimates, "(n, K, D): theta_hat of z, outcome by outcome.")
        .def_prop_ro("outcome_bases", &bases, owned,
                     "(n,): what the estimates of each outcome leave out, since all arms share it; 0 as given.");
}

}  // namespace armlet
