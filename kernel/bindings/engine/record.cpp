// A decision as plain values: to a dictionary for a log, and back from one, whatever process made it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "bindings/engine/arm_table.hpp"
#include "bindings/engine/decision.hpp"
#include "bindings/epochs/epoch.hpp"

namespace armlet {

// ---- from a decision

nb::object context_of(const Decision& d) {
    return nb::cast(to_numpy(std::vector<double>(d.x, d.x + d.dim()), {d.dim()}));
}

nb::object probabilities_of(const Decision& d) {
    if (!d.has_probabilities()) return nb::none();
    const auto& all = d.extras->probabilities;
    return nb::cast(to_numpy(std::vector<double>(all), {all.size()}));
}

nb::object greedy_of(const Decision& d) {
    return d.greedy == Choice::Greedy::unknown ? nb::none() : nb::object(nb::bool_(d.greedy == Choice::Greedy::yes));
}

nb::object unit_of(const Decision& d) { return d.has_unit() ? d.extras->unit : nb::none(); }

nb::object epoch_of(const Decision& d) { return d.has_unit() ? nb::object(nb::int_(d.extras->epoch)) : nb::none(); }

nb::object reward_of(const Decision& d) {
    if (d.has_outcomes()) return d.extras->outcomes.to_dict();
    return d.learned ? nb::object(nb::float_(d.reward)) : nb::none();
}

nb::object weights_of(const Decision& d) {
    return d.has_weights() ? nb::object(d.extras->weights.to_dict()) : nb::none();
}

nb::tuple fields_of(const Decision& d) {
    nb::object eligible = d.eligible ? nb::borrow(d.eligible) : nb::none();
    return nb::make_tuple(
        d.id(), nb::handle(d.arm), d.propensity, d.explored, d.dim() == 0 ? nb::none() : context_of(d), reward_of(d),
        d.weight, d.tag, known(d.exploration_propensity), known(d.exploration_rate),
        known(d.min_exploration_probability), greedy_of(d), eligible, probabilities_of(d), d.expired, d.optimistic,
        d.marginal, unit_of(d), epoch_of(d), weights_of(d), d.learned, known(d.billed()));
}

namespace {

enum class Key {
    id,
    t,
    x,
    eligible,
    arm,
    propensity,
    marginal,
    explored,
    optimistic,
    exploration_rate,
    exploration_propensity,
    min_exploration_probability,
    greedy,
    design,
    probabilities,
    tag,
    reward,
    weight,
    weights,
    expired,
    unit,
    epoch,
    learned,
    billed
};
constexpr const char* key_names[] = {"id",
                                     "t",
                                     "x",
                                     "eligible",
                                     "arm",
                                     "propensity",
                                     "marginal",
                                     "explored",
                                     "optimistic",
                                     "exploration_rate",
                                     "exploration_propensity",
                                     "min_exploration_probability",
                                     "greedy",
                                     "design",
                                     "probabilities",
                                     "tag",
                                     "reward",
                                     "weight",
                                     "weights",
                                     "expired",
                                     "unit",
                                     "epoch",
                                     "learned",
                                     "billed"};

// Lives as long as the process.
PyObject* key_text(Key key) {
    static PyObject* texts[std::size(key_names)];
    PyObject*& text = texts[static_cast<std::size_t>(key)];
    if (!text) text = PyUnicode_InternFromString(key_names[static_cast<std::size_t>(key)]);
    if (!text) throw nb::python_error();
    return text;
}

nb::object list_of(const double* values, std::size_t n) {
    nb::object out = nb::steal(PyList_New(static_cast<Py_ssize_t>(n)));
    if (!out.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < n; ++i)
        PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(values[i]));
    return out;
}

}  // namespace

// Outcomes that came apart, and weigh something else than 1 once all have come.
bool has_own_weight(const Decision& d) { return !d.learned && d.has_outcomes() && d.weight != 1.0; }

// One dictionary is made for every step of a log, so that its keys are made once and its values without a detour.
nb::dict to_dict(const Decision& d) {
    nb::dict out;
    const auto put = [&](Key key, PyObject* value) {
        nb::object owned = nb::steal(value);
        if (!value || PyDict_SetItem(out.ptr(), key_text(key), value) != 0) throw nb::python_error();
    };
    const std::string id = d.id();
    put(Key::id, PyUnicode_FromStringAndSize(id.data(), static_cast<Py_ssize_t>(id.size())));
    put(Key::t, PyLong_FromUnsignedLongLong(d.t));
    put(Key::x, d.dim() == 0 ? Py_NewRef(Py_None) : list_of(d.x, d.dim()).release().ptr());
    put(Key::eligible, d.eligible ? PySequence_List(d.eligible) : Py_NewRef(Py_None));
    put(Key::arm, Py_NewRef(d.arm));
    put(Key::propensity, PyFloat_FromDouble(d.propensity));
    if (!d.marginal) put(Key::marginal, Py_NewRef(Py_False));
    put(Key::explored, PyBool_FromLong(d.explored));
    put(Key::optimistic, PyBool_FromLong(d.optimistic));
    put(Key::exploration_rate, known(d.exploration_rate).release().ptr());
    put(Key::exploration_propensity, known(d.exploration_propensity).release().ptr());
    put(Key::min_exploration_probability, known(d.min_exploration_probability).release().ptr());
    put(Key::greedy, greedy_of(d).release().ptr());
    put(Key::design, PyUnicode_FromString(d.design()));
    if (d.has_probabilities())
        put(Key::probabilities,
            list_of(d.extras->probabilities.data(), d.extras->probabilities.size()).release().ptr());
    put(Key::tag, PyLong_FromLong(d.tag));
    if (d.learned || d.has_outcomes()) put(Key::reward, reward_of(d).release().ptr());
    if (d.learned || has_own_weight(d)) put(Key::weight, PyFloat_FromDouble(d.weight));
    if (has_own_weight(d)) put(Key::learned, Py_NewRef(Py_False));
    if (d.has_weights()) put(Key::weights, weights_of(d).release().ptr());
    if (d.expired && !d.learned) put(Key::expired, Py_NewRef(Py_True));
    if (d.has_unit()) put(Key::unit, unit_of(d).release().ptr()), put(Key::epoch, epoch_of(d).release().ptr());
    if (!std::isnan(d.billed())) put(Key::billed, PyFloat_FromDouble(d.billed()));
    return out;
}

// ---- to a decision

namespace {

bool parse(const char* begin, const char* end, int base, Word& out) {
    const auto result = std::from_chars(begin, end, out, base);
    return result.ec == std::errc() && result.ptr == end;
}

// Reads "12-00ff00ff00ff00ff" and writes it again, so that only the one spelling passes.
void parse_id(const std::string& id, Decision& d) {
    const auto dash = std::min(id.find('-'), id.size());
    const char *begin = id.data(), *end = begin + id.size(), *middle = begin + dash;
    const bool read = middle != end && parse(begin, middle, 10, d.t) && parse(middle + 1, end, 16, d.mark);
    if (!read || d.id() != id || d.t == 0 || d.t > last_step)
        fail(PyExc_ValueError, "id is '" + id + "', which no decision has; it looks like '12-00ff00ff00ff00ff'");
}

using Known = std::optional<double>;

// A probability, if it is known, of at least `least`.
double read_chance(const char* name, Known value, const char* least_text, double least) {
    if (value && !(*value >= least && *value <= 1.0))
        fail(PyExc_ValueError, std::string(name) + " is " + text(*value) + "; it must be at least " + least_text +
                                   " and at most 1, or None where it is not known");
    return value.value_or(NAN);
}

// Half of a surrogate pair can be written nowhere.
void check_utf8(nb::handle value, const char* argument) {
    if (!PyUnicode_Check(value.ptr()) || PyUnicode_AsUTF8(value.ptr())) return;
    PyErr_Clear();
    fail(PyExc_ValueError,
         std::string(argument) + " has " + quoted(value) + "; give text that can be written as UTF-8");
}

nb::object read_eligible(nb::handle eligible) {
    const auto keys = keys_of(eligible);
    if (!keys) return {};
    nb::list out;
    for (const auto& key : *keys) check_utf8(key, "eligible"), out.append(key);
    return nb::steal(PySequence_Tuple(out.ptr()));
}

// A record is what was written: floats and ints, not truths or numbers of numpy.
bool read_recorded(nb::handle given, std::size_t n, double* out) {
    const bool is_listed = PyList_CheckExact(given.ptr()) || PyTuple_CheckExact(given.ptr());
    for (std::size_t i = 0; is_listed && i < n; ++i) {
        PyObject* item = PySequence_Fast_ITEMS(given.ptr())[i];
        if (!PyFloat_CheckExact(item) && !PyLong_CheckExact(item)) return false;
    }
    return read_row(given, n, out);
}

std::vector<double> read_probabilities(nb::handle given) {
    std::vector<double> out(row_length(given));
    bool fits = !out.empty() && read_recorded(given, out.size(), out.data());
    for (const double value : out) fits = fits && value >= 0.0 && value <= 1.0;
    if (!fits)
        fail(PyExc_ValueError, "probabilities is " + quoted(given) + "; give one number from 0 to 1 for each arm");
    return out;
}

NamedNumbers numbers_by_name(nb::handle given, const char* argument) {
    nb::list names;
    std::vector<double> values;
    bool fits = PyDict_Check(given.ptr()) && PyDict_Size(given.ptr()) > 0;
    if (fits)
        for (auto [name, value] : nb::borrow<nb::dict>(given)) {
            fits = fits && PyUnicode_Check(name.ptr()) &&
                   (PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()));
            if (!fits) break;
            check_utf8(name, argument);
            names.append(nb::steal(PyUnicode_FromObject(name.ptr())));  // a str proper
            values.push_back(read_reward(value));
        }
    if (!fits) fail(PyExc_ValueError, std::string(argument) + " is " + quoted(given) + "; give numbers by name");
    return {nb::tuple(names), std::move(values)};
}

// policies that divide by it stay finite, and no policy's own are as small
constexpr double least_chance = 1e-100;

nb::object restore(const std::string& id, nb::object arm, double propensity, bool explored, nb::handle x,
                   nb::object reward, nb::handle weight, std::int32_t tag, Known exploration_propensity,
                   Known exploration_rate, Known min_exploration_probability, std::optional<bool> greedy,
                   nb::handle eligible, nb::handle probabilities, bool expired, bool optimistic, bool marginal,
                   nb::handle unit, nb::handle epoch, nb::handle weights, std::optional<bool> learned,
                   nb::handle billed) {
    const std::size_t dim = x.is_none() ? 0 : row_length(x);
    nb::object made = new_decision(dim);
    Decision& d = decision_of(made);
    parse_id(id, d);
    if (!(propensity >= least_chance && propensity <= 1.0))
        fail(PyExc_ValueError, "propensity is " + text(propensity) + "; it must be at least 1e-100 and at most 1");
    if (explored && optimistic)
        fail(PyExc_ValueError, "explored and optimistic are both True; a step is one of them at most");
    if (!x.is_none() && (dim == 0 || !read_recorded(x, dim, d.x)))
        fail(PyExc_ValueError, "x must be a float64 row or a list of finite numbers; got " + quoted(x));
    d.exploration_propensity = read_chance("exploration_propensity", exploration_propensity, "1e-100", least_chance);
    d.exploration_rate = read_chance("exploration_rate", exploration_rate, "0", 0.0);
    d.min_exploration_probability = read_chance("min_exploration_probability", min_exploration_probability, "0", 0.0);
    if (greedy) d.greedy = *greedy ? Choice::Greedy::yes : Choice::Greedy::no;
    const UnitGiven of = unit_given(unit, epoch);
    if (of.is_any() && !of.epoch)
        fail(PyExc_ValueError, "unit is " + quoted(unit) + " but epoch is missing; a decision of a unit has both");
    if (of.is_any()) name_unit(d, of.name, *of.epoch);
    d.learned = learned.value_or(!reward.is_none());
    if (PyDict_Check(reward.ptr()))
        d.extra().outcomes = numbers_by_name(reward, "reward");
    else if (d.learned)
        d.reward = read_reward(reward);
    if (!billed.is_none()) d.extra().billed = read_reward(billed);
    if (!weights.is_none()) d.extra().weights = numbers_by_name(weights, "weights");
    d.eligible = read_eligible(eligible).release().ptr();
    if (!probabilities.is_none()) d.extra().probabilities = read_probabilities(probabilities);
    d.arm = key_of(arm).release().ptr(), d.propensity = propensity, d.explored = explored,
    d.weight = read_weight(weight);
    d.tag = tag, d.expired = expired, d.optimistic = optimistic, d.marginal = marginal;
    return made;
}

template <typename T>
T read_as(nb::handle value, const char* name, const char* kind) {
    T out;
    if (!nb::try_cast<T>(value, out))
        fail(PyExc_TypeError, std::string(name) + " is " + quoted(value) + "; give " + kind);
    return out;
}

bool read_flag(nb::handle value, const char* name) {
    if (!PyBool_Check(value.ptr()))
        fail(PyExc_TypeError, std::string(name) + " is " + quoted(value) + "; give True or False");
    return value.ptr() == Py_True;
}

Known known_or_none(nb::handle value, const char* name) {
    return value.is_none() ? std::nullopt : Known(read_as<double>(value, name, "a number, or None"));
}

std::optional<bool> flag_or_none(nb::handle value, const char* name) {
    return value.is_none() ? std::nullopt : std::optional(read_flag(value, name));
}

// The arguments of the public call, each refused by its name.
nb::object restore_given(nb::handle id, nb::object arm, nb::handle propensity, nb::handle explored, nb::handle x,
                         nb::object reward, nb::handle weight, nb::handle tag, nb::handle exploration_propensity,
                         nb::handle exploration_rate, nb::handle min_exploration_probability, nb::handle greedy,
                         nb::handle eligible, nb::handle probabilities, nb::handle expired, nb::handle optimistic,
                         nb::handle marginal, nb::handle unit, nb::handle epoch, nb::handle weights, nb::handle learned,
                         nb::handle billed) {
    return restore(read_as<std::string>(id, "id", "a string"), arm,
                   read_as<double>(propensity, "propensity", "a number"), read_flag(explored, "explored"), x, reward,
                   weight, read_as<std::int32_t>(tag, "tag", "a whole number of 32 bits"),
                   known_or_none(exploration_propensity, "exploration_propensity"),
                   known_or_none(exploration_rate, "exploration_rate"),
                   known_or_none(min_exploration_probability, "min_exploration_probability"),
                   flag_or_none(greedy, "greedy"), eligible, probabilities, read_flag(expired, "expired"),
                   read_flag(optimistic, "optimistic"), read_flag(marginal, "marginal"), unit, epoch, weights,
                   flag_or_none(learned, "learned"), billed);
}

// One entry of a record, or none; those that must be there are missed by name.
nb::object entry(const nb::dict& record, const char* name, bool required = false) {
    PyObject* found = PyDict_GetItemString(record.ptr(), name);
    if (found && !(required && found == Py_None)) return nb::borrow(found);
    if (required)
        fail(PyExc_ValueError, "the record has no " + std::string(name) + ", so it is none of a decision; it has " +
                                   quoted(nb::list(record.keys())));
    return nb::none();
}

nb::object from_dict(nb::handle given) {
    nb::dict record = nb::steal<nb::dict>(PyDict_New());
    if (PyUnicode_Check(given.ptr()) || PyDict_Update(record.ptr(), given.ptr()) != 0) {
        PyErr_Clear();
        fail(PyExc_TypeError, "the record is " + quoted(given) + "; give a mapping such as Decision.to_dict gave");
    }
    const auto id = read_as<std::string>(entry(record, "id", true), "id", "a string");
    nb::object arm = entry(record, "arm", true);
    const auto propensity = read_as<double>(entry(record, "propensity", true), "propensity", "a number");
    const bool explored = read_flag(entry(record, "explored", true), "explored");
    nb::object greedy = entry(record, "greedy"), tag = entry(record, "tag"), weight = entry(record, "weight"),
               learned = entry(record, "learned"), expired = entry(record, "expired"),
               optimistic = entry(record, "optimistic"), marginal = entry(record, "marginal");
    const bool has_parts = PyDict_Check(entry(record, "reward").ptr());
    const bool waits = has_parts && (weight.is_none() || learned.ptr() == Py_False);
    nb::object made =
        restore(id, arm, propensity, explored, entry(record, "x"), entry(record, "reward"),
                weight.is_none() ? nb::object(nb::float_(1.0)) : weight,
                tag.is_none() ? 0 : read_as<std::int32_t>(tag, "tag", "a whole number of 32 bits"),
                known_or_none(entry(record, "exploration_propensity"), "exploration_propensity"),
                known_or_none(entry(record, "exploration_rate"), "exploration_rate"),
                known_or_none(entry(record, "min_exploration_probability"), "min_exploration_probability"),
                flag_or_none(greedy, "greedy"), entry(record, "eligible"), entry(record, "probabilities"),
                !expired.is_none() && read_flag(expired, "expired"),
                !optimistic.is_none() && read_flag(optimistic, "optimistic"),
                marginal.is_none() || read_flag(marginal, "marginal"), entry(record, "unit"), entry(record, "epoch"),
                entry(record, "weights"), waits ? std::optional(false) : std::nullopt, entry(record, "billed"));
    nb::object t = entry(record, "t");
    if (!t.is_none() && !t.equal(nb::int_(decision_of(made).t)))
        fail(PyExc_ValueError, "t is " + quoted(t) + " but the decision is " + decision_of(made).id() +
                                   ", whose id begins with its step; one of them was changed");
    return made;
}

}  // namespace

void bind_record(nb::module_& m) {
    m.def("restore_decision", &restore_given, nb::arg("id").none(), nb::arg("arm").none(), nb::arg("propensity").none(),
          nb::arg("explored").none(), nb::arg("x").none(), nb::arg("reward").none() = nb::none(),
          nb::arg("weight").none() = 1.0, nb::arg("tag").none() = 0,
          nb::arg("exploration_propensity").none() = nb::none(), nb::arg("exploration_rate").none() = nb::none(),
          nb::arg("min_exploration_probability").none() = nb::none(), nb::arg("greedy").none() = nb::none(),
          nb::arg("eligible").none() = nb::none(), nb::arg("probabilities").none() = nb::none(),
          nb::arg("expired").none() = false, nb::arg("optimistic").none() = false, nb::arg("marginal").none() = true,
          nb::arg("unit").none() = nb::none(), nb::arg("epoch").none() = nb::none(),
          nb::arg("weights").none() = nb::none(), nb::arg("learned").none() = nb::none(),
          nb::arg("billed").none() = nb::none(),
          nb::sig(
              "def restore_decision(id: str, arm: str | int, propensity: float, explored: bool, x: "
              "NDArray[numpy.float64] | list[float] | None, reward: float | dict[str, float] | None = None, weight: "
              "float = 1.0, tag: "
              "int = 0, exploration_propensity: float | None = None, exploration_rate: float | None = None, "
              "min_exploration_probability: float | None = None, greedy: bool | None = None, eligible: "
              "collections.abc.Iterable[str | int] | None = None, "
              "probabilities: NDArray[numpy.float64] | list[float] | None = None, expired: bool = False, optimistic: "
              "bool = False, marginal: bool = True, unit: str | None = None, epoch: int | None = None, weights: "
              "dict[str, float] | None = None, learned: bool | None = None, billed: float | None = None) -> Decision"),
          "A decision from a log or another process, pending unless a reward is given, or `learned` says so.");
    m.def("decision_from_dict", &from_dict, nb::arg("record").none(),
          nb::sig("def decision_from_dict(record: collections.abc.Mapping[str, typing.Any]) -> Decision"),
          "A decision from what `to_dict` gave, as it is or from JSON; entries that it does not know are passed over.");
    nb::object staticmethod = nb::module_::import_("builtins").attr("staticmethod");
    m.attr("Decision").attr("restore") = staticmethod(m.attr("restore_decision"));
    m.attr("Decision").attr("from_dict") = staticmethod(m.attr("decision_from_dict"));
}

}  // namespace armlet
