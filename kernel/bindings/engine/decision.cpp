#include "bindings/engine/decision.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "bindings/engine/arm_table.hpp"
#include "bindings/handed_over.hpp"

namespace armlet {

namespace {

PyTypeObject* decision_type = nullptr;

}  // namespace

nb::object new_decision(std::size_t dim) {
    auto* d = PyObject_NewVar(Decision, decision_type, static_cast<Py_ssize_t>(dim));
    if (!d) throw nb::python_error();
    d->t = d->mark = d->table = d->life = 0, d->arm = nullptr, d->index = 0, d->tag = 0;
    d->explored = d->learned = d->has_stream = false;
    d->propensity = d->weight = 1.0, d->reward = 0.0, d->given_exploring = NAN;
    return nb::steal(reinterpret_cast<PyObject*>(d));
}

Decision& as_decision(nb::handle given) {
    if (Py_TYPE(given.ptr()) != decision_type)
        fail(PyExc_TypeError, "decision is " + quoted(given) + "; pass the Decision that decide gave");
    return *reinterpret_cast<Decision*>(given.ptr());
}

void stamp(Decision& d, Word t, Word mark, Seed stream) {
    d.t = t, d.mark = mark, d.stream = stream, d.has_stream = true;
}

void settle(Decision& d, const Choice& choice, nb::object label, Word table) {
    d.arm = label.release().ptr();
    d.index = choice.arm, d.table = table;
    d.propensity = choice.propensity, d.explored = choice.explored, d.tag = choice.tag;
    d.given_exploring = choice.given_exploring;
}

std::string Decision::id() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(mark));
    return std::to_string(t) + "-" + digits;
}

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

nb::object restore(const std::string& id, nb::object arm, double propensity, bool explored, nb::handle x,
                   nb::object reward, nb::handle weight, std::int32_t tag, std::optional<double> given_exploring) {
    const std::size_t dim = row_length(x);
    nb::object made = new_decision(dim);
    Decision& d = decision_of(made);
    parse_id(id, d);
    // policies that divide by it stay finite, and no policy's own are as small
    if (!(propensity >= 1e-100 && propensity <= 1.0))
        fail(PyExc_ValueError, "propensity is " + text(propensity) + "; it must be at least 1e-100 and at most 1");
    if (given_exploring && !(*given_exploring >= 1e-100 && *given_exploring <= 1.0))
        fail(PyExc_ValueError, "given_exploring is " + text(*given_exploring) +
                                   "; it must be at least 1e-100 and at most 1, or None where it is not known");
    if (dim == 0 || !read_row(x, dim, d.x))
        fail(PyExc_ValueError, "x must be a float64 row or a list of finite numbers; got " + quoted(x));
    d.learned = !reward.is_none();
    if (d.learned) d.reward = read_reward(reward);
    d.arm = key_of(arm).release().ptr(), d.propensity = propensity, d.explored = explored,
    d.weight = read_weight(weight);
    d.tag = tag, d.given_exploring = given_exploring.value_or(NAN);
    return made;
}

Array<double> context(const Decision& d) { return to_numpy(std::vector<double>(d.x, d.x + d.dim()), {d.dim()}); }
nb::object given_exploring(const Decision& d) {
    return std::isnan(d.given_exploring) ? nb::none() : nb::object(nb::float_(d.given_exploring));
}
nb::object reward(const Decision& d) { return d.learned ? nb::object(nb::float_(d.reward)) : nb::none(); }

// One attribute as CPython wants it: a getter that turns a value into a new reference.
template <auto Get>
PyObject* get(PyObject* self, void*) noexcept {
    try {
        return Get(*reinterpret_cast<Decision*>(self));
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* string(const std::string& s) {
    return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

PyGetSetDef attributes[] = {
    {"id", get<[](Decision& d) { return string(d.id()); }>, nullptr,
     "A name for the decision: its step, and 64 bits that tell bandits apart.", nullptr},
    {"t", get<[](Decision& d) { return PyLong_FromUnsignedLongLong(d.t); }>, nullptr, "The step, from 1.", nullptr},
    {"arm", get<[](Decision& d) { return Py_NewRef(d.arm); }>, nullptr, "The label of the arm to play.", nullptr},
    {"propensity", get<[](Decision& d) { return PyFloat_FromDouble(d.propensity); }>, nullptr,
     "The probability with which this arm was to be played.", nullptr},
    {"given_exploring", get<[](Decision& d) { return given_exploring(d).release().ptr(); }>, nullptr,
     "The probability of this arm given that the step explores, which no context moves; None if the policy has none.",
     nullptr},
    {"explored", get<[](Decision& d) { return PyBool_FromLong(d.explored); }>, nullptr,
     "Whether the step explored: the turn or the coins chose, not the estimates.", nullptr},
    {"learned", get<[](Decision& d) { return PyBool_FromLong(d.learned); }>, nullptr,
     "Whether a reward was learned from it.", nullptr},
    {"reward", get<[](Decision& d) { return reward(d).release().ptr(); }>, nullptr, "The reward learned, if any.",
     nullptr},
    {"weight", get<[](Decision& d) { return PyFloat_FromDouble(d.weight); }>, nullptr,
     "The weight with which it was learned.", nullptr},
    {"tag", get<[](Decision& d) { return PyLong_FromLong(d.tag); }>, nullptr,
     "A number that the policy attached for its own use; 0 for most policies.", nullptr},
    {"x", get<[](Decision& d) { return nb::cast(context(d)).release().ptr(); }>, nullptr,
     "A copy of the context as it was given, before `normalize` scales it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* repr(PyObject* self) noexcept {
    return get<[](Decision& d) {
        return string("Decision(id='" + d.id() + "', arm=" + quoted(d.arm) + ", propensity=" + text(d.propensity) +
                      ", explored=" + (d.explored ? "True" : "False") + ")");
    }>(self, nullptr);
}

PyObject* reduce(PyObject* self, PyObject*) noexcept {
    return get<[](Decision& d) {
        nb::tuple fields = nb::make_tuple(d.id(), nb::handle(d.arm), d.propensity, d.explored, context(d), reward(d),
                                          d.weight, d.tag, given_exploring(d));
        return nb::make_tuple(handed_over(Part::unpickle_decision), fields).release().ptr();
    }>(self, nullptr);
}

void dealloc(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(reinterpret_cast<Decision*>(self)->arm);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject* make_type() {
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         const_cast<char*>("What `decide` answers: the arm to play, and what `learn` needs when the reward comes.")},
        {Py_tp_getset, attributes},
        {Py_tp_methods, methods},
        {Py_tp_repr, reinterpret_cast<void*>(repr)},
        {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
        {0, nullptr},
    };
    static PyType_Spec spec = {"armlet._kernel.Decision", offsetof(Decision, x), sizeof(double),
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(nb::steal(PyType_FromSpec(&spec)).release().ptr());
}

}  // namespace

Decisions::Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim,
                     std::vector<double>&& contexts)
    : before(before), X(std::move(contexts)), seed_(seed), labels_(labels), table_(table), dim_(dim) {
    const std::size_t rows = X.size() / dim;
    index.resize(rows), propensities.resize(rows), explored.resize(rows), tags.resize(rows);
    given_exploring.resize(rows);
}

void Decisions::note(std::size_t row, const Choice& choice) {
    index[row] = choice.arm, propensities[row] = choice.propensity, explored[row] = choice.explored;
    tags[row] = choice.tag, given_exploring[row] = choice.given_exploring;
}

nb::object Decisions::make(std::size_t row) const {
    const Word t = before + row + 1;
    nb::object made = new_decision(dim_);
    Decision& d = decision_of(made);
    stamp(d, t, toss(seed_, t).mark, seed_);
    settle(d,
           {static_cast<std::uint32_t>(index[row]), propensities[row], explored[row] != 0, tags[row],
            given_exploring[row]},
           labels_[static_cast<std::size_t>(index[row])], table_);
    std::copy_n(X.data() + row * dim_, dim_, d.x);
    return made;
}

nb::object Decisions::item(std::ptrdiff_t row) {
    const auto rows = static_cast<std::ptrdiff_t>(size());
    if (row < -rows || row >= rows)
        fail(PyExc_IndexError, "row " + std::to_string(row) + " of " + std::to_string(rows) + " decisions");
    return items()[static_cast<std::size_t>(row < 0 ? row + rows : row)];
}

const nb::list& Decisions::items() {
    if (nb::len(made_) == 0)
        for (std::size_t i = 0; i < size(); ++i) made_.append(make(i));
    return made_;
}

nb::list Decisions::arms() const {
    nb::list out;
    for (const auto arm : index) out.append(labels_[static_cast<std::size_t>(arm)]);
    return out;
}

void bind_decision(nb::module_& m) {
    decision_type = make_type();
    m.attr("Decision") = nb::handle(reinterpret_cast<PyObject*>(decision_type));
    m.def(
        "restore_decision", &restore, nb::arg("id"), nb::arg("arm"), nb::arg("propensity"), nb::arg("explored"),
        nb::arg("x"), nb::arg("reward").none() = nb::none(), nb::arg("weight") = 1.0, nb::arg("tag") = 0,
        nb::arg("given_exploring").none() = nb::none(),
        nb::sig("def restore_decision(id: str, arm: str | int, propensity: float, explored: bool, x: "
                "NDArray[numpy.float64] | list[float], reward: float | None = None, weight: float = 1.0, tag: int = 0, "
                "given_exploring: float | None = None) -> Decision"),
        "A decision from a log or another process, pending unless a reward is given.");
    nb::object staticmethod = nb::module_::import_("builtins").attr("staticmethod");
    m.attr("Decision").attr("restore") = staticmethod(m.attr("restore_decision"));
    using Self = const Decisions&;
    nb::class_<Decisions>(m, "Decisions", nb::is_final(), "Many decisions in columns; each item is a Decision.")
        .def("__len__", &Decisions::size)
        .def(
            "__iter__", [](Decisions& s) { return nb::iter(s.items()); },
            nb::sig("def __iter__(self) -> collections.abc.Iterator[Decision]"))
        .def("__getitem__", &Decisions::item, nb::arg("row"), nb::sig("def __getitem__(self, row: int, /) -> Decision"))
        .def_prop_ro("arms", &Decisions::arms, nb::sig("def arms(self, /) -> list[str | int]"), "The labels to play.")
        .def_prop_ro(
            "t",
            [](Self s) {
                std::vector<std::int64_t> steps(s.size());
                for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<std::int64_t>(s.before + i + 1);
                return to_numpy<std::int64_t>(std::move(steps), {s.size()});
            },
            owned, "(n,): the steps.")
        .def_prop_ro(
            "indices", [](Self s) { return to_numpy<std::int64_t>(std::vector(s.index), {s.size()}); }, owned,
            "(n,): the arms by index.")
        .def_prop_ro(
            "propensities", [](Self s) { return to_numpy(std::vector(s.propensities), {s.size()}); }, owned,
            "(n,): the probability with which each arm was to be played.")
        .def_prop_ro(
            "given_exploring", [](Self s) { return to_numpy(std::vector(s.given_exploring), {s.size()}); }, owned,
            "(n,): the probability of each arm given that the step explores; NaN if the policy has none.")
        .def_prop_ro(
            "explored", [](Self s) { return to_numpy<bool>(std::vector(s.explored), {s.size()}); }, owned,
            "(n,): which steps explored.")
        .def("__repr__", [](Self s) { return "<" + std::to_string(s.size()) + " decisions>"; });
}

}  // namespace armlet
