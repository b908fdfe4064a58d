#include "bindings/epochs/epoch.hpp"

#include "bindings/binding.hpp"
#include "bindings/engine/decision.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/rule_binding.hpp"

namespace armlet {

namespace {

constexpr Py_ssize_t longest = 256;  // characters, as of all names that are stored

Word read_epoch(nb::handle epoch) {
    nb::object number = nb::steal(PyBool_Check(epoch.ptr()) ? nullptr : PyNumber_Index(epoch.ptr()));
    PyErr_Clear();
    const Word out = number.is_valid() ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
    const bool is_far = PyErr_Occurred() != nullptr || out > last_step;
    PyErr_Clear();
    if (!number.is_valid()) fail(PyExc_TypeError, "epoch is " + quoted(epoch) + "; give a whole number from 0");
    if (is_far) fail(PyExc_ValueError, "epoch is " + quoted(epoch) + "; give a whole number from 0 to 2^63 - 1");
    return out;
}

nb::object read_unit(nb::handle unit) {
    if (!PyUnicode_Check(unit.ptr()))
        fail(PyExc_TypeError, "unit is " + quoted(unit) + "; give the name of a unit, such as 'session-17'");
    const Py_ssize_t size = PyUnicode_GET_LENGTH(unit.ptr());
    if (size < 1 || size > longest)
        fail(PyExc_ValueError,
             "unit is " + quoted(unit) + "; give text of 1 to " + std::to_string(longest) + " characters");
    nb::object name = nb::steal(PyUnicode_FromObject(unit.ptr()));  // a str proper
    if (!name.is_valid()) throw nb::python_error();
    if (!PyUnicode_AsUTF8(name.ptr())) {
        PyErr_Clear();
        fail(PyExc_ValueError, "unit is " + quoted(unit) + "; give text that can be written as UTF-8");
    }
    return name;
}

}  // namespace

UnitGiven unit_given(nb::handle unit, nb::handle epoch) {
    if (unit.is_none() && epoch.is_none()) return {};
    if (unit.is_none())
        fail(PyExc_ValueError, "epoch is " + quoted(epoch) + " but there is no unit; give unit too, or leave it out");
    return {read_unit(unit), epoch.is_none() ? std::nullopt : std::optional(read_epoch(epoch))};
}

std::vector<UnitGiven> units_given(nb::handle units, nb::handle epoch) {
    std::vector<UnitGiven> out;
    if (units.is_none()) return unit_given(units, epoch), out;
    for (nb::handle unit : units) out.push_back(unit.is_none() ? UnitGiven{} : unit_given(unit, epoch));
    return out;
}

Seed seed_of(Seed own, const nb::object& name) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (!text) throw nb::python_error();
    return unit_seed(own, {text, static_cast<std::size_t>(size)});
}

Epoch::Epoch(Word number, Word step, double price, nb::object state, const nb::object& policy,
             const std::optional<Rule>& rule, std::size_t dim)
    : number(number), step(step), price(price), state(state), model(rule ? read_model(*rule, state) : model_in(state)) {
    if (!rule) python_policy.emplace(policy, state, dim);
}

int Epoch::traverse(visitproc visit, void* arg) const {
    Py_VISIT(state.ptr());
    return python_policy ? python_policy->traverse(visit, arg) : 0;
}

Word Epochs::number_at(Word step, const UnitGiven& unit) const {
    if (!length && !unit.epoch)
        fail(PyExc_ValueError, "unit is " + quoted(unit.name) +
                                   " but nothing says which epoch it is; make the bandit with epoch=1000, in "
                                   "decisions, or name it: decide(x, unit=..., epoch=...)");
    const Word number = length ? (step - 1) / *length : *unit.epoch;
    if (unit.epoch && *unit.epoch != number)
        fail(PyExc_ValueError, "epoch is " + std::to_string(*unit.epoch) + " but step " + std::to_string(step) +
                                   " is in epoch " + std::to_string(number) + ", of " + std::to_string(*length) +
                                   " decisions; leave epoch out");
    if (current && number < current->number)
        fail(PyExc_ValueError, "epoch is " + std::to_string(number) + " but epoch " + std::to_string(current->number) +
                                   " has begun, and they go forward only; give that or a later one");
    return number;
}

}  // namespace armlet
