#include "bindings/engine/decision.hpp"

#include <cmath>
#include <cstddef>

#include "bindings/handed_over.hpp"

namespace armlet {

namespace {

PyTypeObject* decision_type = nullptr;

}  // namespace

nb::object new_decision(std::size_t dim) {
    auto* d = PyObject_NewVar(Decision, decision_type, static_cast<Py_ssize_t>(dim));
    if (!d) throw nb::python_error();
    d->t = d->mark = d->table = d->life = d->features = 0, d->index = 0, d->tag = 0;
    d->arm = d->eligible = nullptr, d->extras = nullptr;
    d->explored = d->optimistic = d->learned = d->expired = d->has_stream = false, d->marginal = true;
    d->greedy = Choice::Greedy::unknown;
    d->propensity = d->weight = 1.0, d->reward = 0.0,
    d->exploration_propensity = d->exploration_rate = d->min_exploration_probability = NAN;
    return nb::steal(reinterpret_cast<PyObject*>(d));
}

Decision& as_decision(nb::handle given) {
    if (Py_TYPE(given.ptr()) != decision_type)
        fail(PyExc_TypeError, "decision is " + quoted(given) + "; pass the Decision that decide gave");
    return *reinterpret_cast<Decision*>(given.ptr());
}

void stamp(Decision& d, Word t, Word mark, Seed stream, Word features) {
    d.t = t, d.mark = mark, d.stream = stream, d.has_stream = true, d.features = features;
}

void name_unit(Decision& d, nb::object unit, Word epoch) { d.extra().unit = std::move(unit), d.extra().epoch = epoch; }

void settle(Decision& d, const Choice& choice, nb::object label, Word table, const nb::object& eligible) {
    d.arm = label.release().ptr(), d.eligible = Py_XNewRef(eligible.ptr());
    d.index = choice.arm, d.table = table;
    d.propensity = choice.propensity, d.marginal = choice.marginal, d.tag = choice.tag;
    d.explored = choice.explored, d.optimistic = choice.optimistic;
    d.exploration_propensity = choice.exploration_propensity, d.exploration_rate = choice.exploration_rate,
    d.min_exploration_probability = choice.min_exploration_probability;
    d.greedy = choice.explored ? choice.greedy : Choice::Greedy::yes;
}

std::string decision_id(Word t, Word mark) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(mark));
    return std::to_string(t) + "-" + digits;
}

const char* design_of(const Choice& choice) {
    if (std::isnan(choice.exploration_propensity)) return "choice";
    return choice.explored && choice.exploration_rate == 1.0 && choice.min_exploration_probability == 0.0 ? "turn"
                                                                                                          : "coin";
}

const char* Decision::design() const {
    return design_of({.arm = index,
                      .propensity = propensity,
                      .explored = explored,
                      .exploration_propensity = exploration_propensity,
                      .exploration_rate = exploration_rate,
                      .min_exploration_probability = min_exploration_probability});
}

namespace {

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
    {"eligible", get<[](Decision& d) { return Py_NewRef(d.eligible ? d.eligible : Py_None); }>, nullptr,
     "The labels of the arms that could be played, as a tuple; None if all that were not retired could.", nullptr},
    {"unit", get<[](Decision& d) { return unit_of(d).release().ptr(); }>, nullptr,
     "The unit that it is of, a name; None if decide was given none.", nullptr},
    {"epoch", get<[](Decision& d) { return epoch_of(d).release().ptr(); }>, nullptr,
     "The number of the epoch whose first state and clock the unit met; None without a unit.", nullptr},
    {"propensity", get<[](Decision& d) { return PyFloat_FromDouble(d.propensity); }>, nullptr,
     "The probability with which this arm was to be played: over all coins if `marginal`, else as if every step were "
     "of "
     "this one's kind, greedy or optimistic.",
     nullptr},
    {"marginal", get<[](Decision& d) { return PyBool_FromLong(d.marginal); }>, nullptr,
     "Whether the propensity is over all coins, as an evaluation needs it; False if it is given what kind of step the "
     "coin made it: see `propensity`.",
     nullptr},
    {"probabilities", get<[](Decision& d) { return probabilities_of(d).release().ptr(); }>, nullptr,
     "(K,): a copy of the probability of every arm at this step; None unless decide was asked for them.", nullptr},
    {"exploration_propensity", get<[](Decision& d) { return known(d.exploration_propensity).release().ptr(); }>,
     nullptr,
     "The probability of this arm given that the step explores, which no context moves; None if the policy has none.",
     nullptr},
    {"exploration_rate", get<[](Decision& d) { return known(d.exploration_rate).release().ptr(); }>, nullptr,
     "The probability that the step explores; None if the policy has none.", nullptr},
    {"min_exploration_probability",
     get<[](Decision& d) { return known(d.min_exploration_probability).release().ptr(); }>, nullptr,
     "The smallest probability of an eligible arm given that the step explores; None if the policy has none.", nullptr},
    {"explored", get<[](Decision& d) { return PyBool_FromLong(d.explored); }>, nullptr,
     "Whether the step explored: the turn or the coins chose, not the estimates.", nullptr},
    {"optimistic", get<[](Decision& d) { return PyBool_FromLong(d.optimistic); }>, nullptr,
     "Whether the coin made it an optimistic step, which plays the highest bound and does not explore; False for "
     "policies without such steps.",
     nullptr},
    {"greedy", get<[](Decision& d) { return greedy_of(d).release().ptr(); }>, nullptr,
     "Whether the arm is the best-looking one, or one of several, that a step which does not explore may play; None if "
     "a step that was sure to explore did not look.",
     nullptr},
    {"design", get<[](Decision& d) { return string(d.design()); }>, nullptr,
     "How the arm was found: by its \"turn\", which left other arms no chance; by a \"coin\" that no context moves, or "
     "that fell for the best; or by the policy's own \"choice\".",
     nullptr},
    {"learned", get<[](Decision& d) { return PyBool_FromLong(d.learned); }>, nullptr,
     "Whether a reward was learned from it.", nullptr},
    {"expired", get<[](Decision& d) { return PyBool_FromLong(d.expired && !d.learned); }>, nullptr,
     "Whether its reward is no longer waited for: it was expired, or learned and forgotten.", nullptr},
    {"reward", get<[](Decision& d) { return reward_of(d).release().ptr(); }>, nullptr,
     "The reward learned, if any; of a bandit with several outcomes those that have come, by name.", nullptr},
    {"billed", get<[](Decision& d) { return known(d.billed()).release().ptr(); }>, nullptr,
     "What counts as its cost in a budget, if that is not the cost that was learned; None if nothing was billed.",
     nullptr},
    {"weights", get<[](Decision& d) { return weights_of(d).release().ptr(); }>, nullptr,
     "The weights of outcomes that it was made with, by name, if some were given; None if it was by the usual ones.",
     nullptr},
    {"weight", get<[](Decision& d) { return PyFloat_FromDouble(d.weight); }>, nullptr,
     "The weight with which it was learned.", nullptr},
    {"tag", get<[](Decision& d) { return PyLong_FromLong(d.tag); }>, nullptr,
     "A number that the policy attached for its own use; 0 for most policies.", nullptr},
    {"x", get<[](Decision& d) { return context_of(d).release().ptr(); }>, nullptr,
     "A copy of the context as it was given, before `normalize` scales it; empty if it was not kept.", nullptr},
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
        return nb::make_tuple(handed_over(Part::unpickle_decision), fields_of(d)).release().ptr();
    }>(self, nullptr);
}

PyObject* as_dict(PyObject* self, PyObject*) noexcept {
    return get<[](Decision& d) { return to_dict(d).release().ptr(); }>(self, nullptr);
}

void dealloc(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    auto* d = reinterpret_cast<Decision*>(self);
    Py_XDECREF(d->arm);
    Py_XDECREF(d->eligible);
    delete d->extras;
    PyObject_Free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {"to_dict", as_dict, METH_NOARGS,
                          R"(to_dict($self, /)
--

Give everything that a later `learn` and an evaluation need, as plain JSON types.

Returns
-------
dict
    id, t, x, eligible, arm, propensity, explored, optimistic, exploration_rate, exploration_propensity,
    min_exploration_probability, greedy, design and tag; probabilities if they were asked for; reward and weight once a
    reward was learned; marginal, False, if the propensity is not over all coins; expired, True, if no reward is waited
    for any more; unit and epoch, if it is of a unit; weights, if some were given; billed, if something was; learned,
    False, if outcomes that came apart have a weight but are not all there.
    `Decision.from_dict` reads it back.

Examples
--------
>>> import json, armlet
>>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1)
>>> line = json.dumps(bandit.decide([0.5]).to_dict())
>>> bandit.learn(armlet.Decision.from_dict(json.loads(line)), 1.0)
)"},
                         {nullptr, nullptr, 0, nullptr}};

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

void bind_decision(nb::module_& m) {
    decision_type = make_type();
    m.attr("Decision") = nb::handle(reinterpret_cast<PyObject*>(decision_type));
    bind_record(m);
}

}  // namespace armlet
