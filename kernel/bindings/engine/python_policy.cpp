#include "bindings/engine/python_policy.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>

#include "bindings/handed_over.hpp"

namespace armlet {

namespace {

constexpr double rounding = 1e-9;  // by which sums of probabilities may miss 1

Array<double> copy_row(const double* x, std::size_t d) { return to_numpy(std::vector<double>(x, x + d), {d}); }

Array<bool> mask_of(Arms eligible, std::size_t n_arms) {
    std::vector<std::uint8_t> mask(n_arms);
    for (const auto arm : eligible) mask[arm] = 1;
    return to_numpy<bool>(std::move(mask), {n_arms});
}

bool is_eligible(Arms eligible, std::int64_t arm) {
    return arm >= 0 && arm <= UINT32_MAX &&
           std::binary_search(eligible.begin(), eligible.end(), static_cast<std::uint32_t>(arm));
}

// Whole numbers and floats of any kind, numpy's included; nothing if it is none.
std::optional<std::int64_t> as_integer(nb::handle value) {
    nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    const long long out = number.is_valid() ? PyLong_AsLongLong(number.ptr()) : -1;
    if (!PyErr_Occurred()) return out;
    PyErr_Clear();
    return std::nullopt;
}

std::optional<double> as_double(nb::handle value) {
    const double out = PyFloat_AsDouble(value.ptr());
    if (!PyErr_Occurred()) return out;
    PyErr_Clear();
    return std::nullopt;
}

}  // namespace

PythonPolicy::PythonPolicy(nb::object policy, nb::object state, std::size_t dim)
    : policy_(policy), state_(state), dim_(dim) {
    coins_type_ = nb::borrow(handed_over(Part::coins)), interaction_type_ = nb::borrow(handed_over(Part::interaction));
}

void PythonPolicy::refuse(const char* method, Word step, const std::string& what) const {
    fail("PolicyError",
         text(policy_.type().attr("__name__")) + "." + method + " at step " + std::to_string(step) + " " + what);
}

Choice PythonPolicy::decide(Word step, const double* x, const Coins& coins, Arms eligible, std::size_t n_arms) const {
    nb::object tossed = coins_type_(coins.coin, coins.pick, coins.tie, coins.mark);
    nb::object answer = policy_.attr("decide")(state_, step, copy_row(x, dim_), tossed, mask_of(eligible, n_arms));
    return read_choice(step, answer, eligible, n_arms);
}

Choice PythonPolicy::read_choice(Word step, const nb::object& answer, Arms eligible, std::size_t n_arms) const {
    const Py_ssize_t n = PyTuple_Check(answer.ptr()) ? PyTuple_GET_SIZE(answer.ptr()) : 0;
    if (n < 3 || n > 9) refuse("decide", step, "gave " + quoted(answer) + "; give a Choice(arm, propensity, explored)");
    const auto arm = as_integer(answer[0]);
    if (!arm || !is_eligible(eligible, *arm))
        refuse("decide", step,
               "chose arm " + quoted(answer[0]) + " of " + std::to_string(n_arms) + " arms; choose one of " +
                   quoted(nb::cast(mask_of(eligible, n_arms)).attr("nonzero")()[0].attr("tolist")()) +
                   ", the eligible ones");
    const auto propensity = as_double(answer[1]);
    if (!propensity || !(*propensity > 0.0 && *propensity <= 1.0 + rounding))
        refuse("decide", step, "gave the propensity " + quoted(answer[1]) + "; it must be above 0 and at most 1");
    const int explored = PyObject_IsTrue(nb::object(answer[2]).ptr());
    if (explored < 0) throw nb::python_error();
    const auto tag = n >= 4 ? as_integer(answer[3]) : 0;
    if (!tag || *tag < INT32_MIN || *tag > INT32_MAX)
        refuse("decide", step, "gave the tag " + quoted(answer[3]) + "; it must be a whole number of 32 bits");
    Choice choice{static_cast<std::uint32_t>(*arm), std::min(*propensity, 1.0), explored == 1,
                  static_cast<std::int32_t>(*tag)};
    read_exploring(step, answer, choice);
    return choice;
}

// What else the policy says of exploring, if it does.
void PythonPolicy::read_exploring(Word step, const nb::object& answer, Choice& choice) const {
    const Py_ssize_t n = PyTuple_GET_SIZE(answer.ptr());
    const auto chance = [&](Py_ssize_t i, double least, const char* what) {
        nb::object said = i < n ? nb::object(answer[i]) : nb::none();
        if (said.is_none()) return std::numeric_limits<double>::quiet_NaN();
        const auto value = as_double(said);
        if (!value || !(*value >= least && *value <= 1.0 + rounding))
            refuse("decide", step,
                   "gave " + quoted(said) + " as the probability " + what + "; it must be " +
                       (least > 0.0 ? "above 0 and" : "at least 0 and") + " at most 1, or None");
        return std::min(*value, 1.0);
    };
    choice.exploration_propensity =
        chance(4, std::numeric_limits<double>::denorm_min(), "of the arm given that the step explores");
    choice.exploration_rate = chance(5, 0.0, "that the step explores");
    choice.min_exploration_probability = chance(6, 0.0, "of the least likely arm given that the step explores");
    const auto is_true = [](nb::object said) {
        const int found = PyObject_IsTrue(said.ptr());
        if (found < 0) throw nb::python_error();
        return found == 1;
    };
    choice.optimistic = n > 8 && is_true(answer[8]);
    if (choice.optimistic && choice.explored)
        refuse("decide", step, "gave explored and optimistic as True; a step is one of them at most");
    if (n > 7 && !nb::object(answer[7]).is_none())
        choice.greedy = is_true(answer[7]) ? Choice::Greedy::yes : Choice::Greedy::no;
}

void PythonPolicy::probabilities(Word step, const double* x, Arms eligible, std::size_t n_arms, double* out) const {
    nb::object row = policy_.attr("probabilities")(state_, step, copy_row(x, dim_), mask_of(eligible, n_arms));
    if (!is_plain(row, NPY_DOUBLE, 1) ||
        static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(row.ptr()), 0)) != n_arms)
        refuse("probabilities", step,
               "gave " + quoted(row) + "; give a float64 array with one number for each of the " +
                   std::to_string(n_arms) + " arms");
    std::copy_n(doubles(row, "probabilities", {n_arms}), n_arms, out);
    double sum = 0.0;
    for (std::size_t arm = 0; arm < n_arms; ++arm) {
        const bool allowed = is_eligible(eligible, static_cast<std::int64_t>(arm));
        if (!(out[arm] >= 0.0) || !std::isfinite(out[arm]) || (!allowed && out[arm] != 0.0))
            refuse("probabilities", step,
                   "gave " + text(out[arm]) + " to arm " + std::to_string(arm) +
                       (allowed ? "; give a probability" : ", which is not eligible; give it 0"));
        sum += out[arm];
    }
    if (std::fabs(sum - 1.0) > rounding) refuse("probabilities", step, "gave probabilities that sum to " + text(sum));
}

void PythonPolicy::check_estimates(const nb::object& theta, std::size_t n_arms) const {
    const auto* array = reinterpret_cast<PyArrayObject*>(theta.ptr());
    if (!is_plain(theta, NPY_DOUBLE, 2) || static_cast<std::size_t>(PyArray_DIM(array, 0)) != n_arms ||
        static_cast<std::size_t>(PyArray_DIM(array, 1)) != dim_)
        fail("PolicyError", text(policy_.type().attr("__name__")) + ".estimates gave " + quoted(theta) +
                                "; give a C-contiguous float64 array of shape (" + std::to_string(n_arms) + ", " +
                                std::to_string(dim_) + ")");
}

void PythonPolicy::update(const Event& event) const {
    nb::object interaction =
        interaction_type_(nb::arg("t") = event.t, nb::arg("x") = copy_row(event.x, dim_), nb::arg("arm") = event.arm,
                          nb::arg("reward") = event.reward, nb::arg("propensity") = event.propensity,
                          nb::arg("explored") = event.explored, nb::arg("weight") = event.weight,
                          nb::arg("replaces") = event.replaces, nb::arg("tag") = event.tag);
    policy_.attr("update")(state_, interaction);
}

int PythonPolicy::traverse(visitproc visit, void* arg) const {
    Py_VISIT(policy_.ptr());
    Py_VISIT(state_.ptr());
    Py_VISIT(coins_type_.ptr());
    Py_VISIT(interaction_type_.ptr());
    return 0;
}

}  // namespace armlet
