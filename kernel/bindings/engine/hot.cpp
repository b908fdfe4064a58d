// The calls that a program makes for every decision, as plain CPython methods: a third of the overhead of a general
// binding, and Python can tell their signatures.
#include "bindings/engine/hot.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "bindings/engine/engine.hpp"

namespace armlet {

namespace {

// The parameters of a method; the first `positional` may come without a name, the first `required` may not be missing.
template <std::size_t N>
struct Parameters {
    const char* function;
    std::array<const char*, N> names;
    std::size_t positional, required;

    std::size_t find(PyObject* name) const {
        std::size_t i = 0;
        while (i < N && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) ++i;
        return i;
    }
    std::string signature() const {
        std::string out;
        for (std::size_t i = 0; i < N; ++i)
            out += (i ? ", " : "") + std::string(i == positional ? "*, " : "") + names[i];
        return std::string(function) + "(" + out + ")";
    }
    [[noreturn]] void refuse(const std::string& what) const {
        fail(PyExc_TypeError, std::string(function) + "() " + what);
    }
    // Names a keyword that it does not know, its value, and the closest one that it does know.
    [[noreturn]] void refuse_keyword(nb::handle name, nb::handle value) const {
        nb::list known;
        for (const char* each : names) known.append(each);
        nb::object close = nb::module_::import_("difflib").attr("get_close_matches")(name, known, 1, 0.5);
        nb::object shown = nb::module_::import_("reprlib").attr("repr")(value);
        const std::string fix = nb::len(close) > 0 ? "did you mean " + quoted(close[0]) + "?" : "call " + signature();
        refuse("got an unexpected keyword " + quoted(name) + ", which is " + text(shown) + "; " + fix);
    }
};

// Sorts the arguments of a vectorcall by name; missing ones stay null.
template <std::size_t N>
std::array<PyObject*, N> parse(const Parameters<N>& parameters, PyObject* const* args, Py_ssize_t n_args,
                               PyObject* keywords) {
    std::array<PyObject*, N> out{};
    const auto given = static_cast<std::size_t>(n_args);
    if (given > parameters.positional)
        parameters.refuse("takes " + std::to_string(parameters.positional) + " by position but got " +
                          std::to_string(given) + "; call " + parameters.signature());
    std::copy_n(args, given, out.begin());
    const Py_ssize_t n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < n_keywords; ++k) {
        PyObject* name = PyTuple_GET_ITEM(keywords, k);
        const std::size_t i = parameters.find(name);
        if (i == N) parameters.refuse_keyword(name, args[n_args + k]);
        if (out[i]) parameters.refuse("got " + quoted(name) + " twice; call " + parameters.signature());
        out[i] = args[n_args + k];
    }
    for (std::size_t i = 0; i < parameters.required; ++i)
        if (!out[i])
            parameters.refuse("is missing '" + std::string(parameters.names[i]) + "'; call " + parameters.signature());
    return out;
}

// Runs `call` and turns what it throws into a Python exception.
template <typename Call>
PyObject* guarded(Call&& call) noexcept {
    try {
        return call();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::domain_error& error) {
        set_policy_error(error);
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

Engine& engine_of(PyObject* self) {
    if (!nb::inst_ready(self))
        fail(PyExc_TypeError, "this Bandit was not set up; a subclass must call super().__init__()");
    return *nb::inst_ptr<Engine>(self);
}

// Calls what takes a row back, and tells the bandit in Python if sums have lost digits by it.
template <typename Call>
void telling_losses(PyObject* self, Call&& call) {
    Engine& engine = engine_of(self);
    call(engine);
    const LostDigits::News lost = engine.take_lost();
    if (!lost.arms.empty()) nb::handle(self).attr("_on_lost_digits")(to_list(lost.arms), to_list(lost.emptied));
}

nb::handle or_none(PyObject* given) { return given ? given : Py_None; }

// A step as a caller names it.
Word read_step(nb::handle t) {
    nb::object number = nb::steal(PyBool_Check(t.ptr()) ? nullptr : PyNumber_Index(t.ptr()));
    PyErr_Clear();
    const Word step = number.is_valid() ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
    const bool is_far = PyErr_Occurred() != nullptr;  // below zero, or beyond all clocks
    PyErr_Clear();
    if (!number.is_valid()) fail(PyExc_TypeError, "t is " + quoted(t) + "; give a step, a whole number from 1");
    if (is_far) fail(PyExc_ValueError, "t is " + quoted(t) + "; give a step, a whole number from 1 to 2^63 - 1");
    return step;
}

// A moment as a caller names it: a datetime, or seconds since 1970.
std::int64_t read_minutes(nb::handle at) {
    const bool has_zone = nb::hasattr(at, "tzinfo");
    if (has_zone && at.attr("tzinfo").is_none())
        fail(PyExc_ValueError, "at is " + quoted(at) + ", without a time zone; give datetime.now(UTC), or seconds");
    const nb::object seconds = has_zone ? at.attr("timestamp")() : nb::borrow(at);
    const double value = PyBool_Check(seconds.ptr()) ? -1.0 : PyFloat_AsDouble(seconds.ptr());
    PyErr_Clear();
    if (!(value > 0.0 && value < 1e11))
        fail(PyExc_ValueError, "at is " + quoted(at) + "; give a datetime with its zone, or seconds since 1970");
    return static_cast<std::int64_t>(value / 60.0);
}

PyObject* decide_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<9> parameters{
        "decide", {"x", "eligible", "probabilities", "t", "propensity", "unit", "epoch", "weights", "at"}, 1, 1};
    return guarded([&] {
        if (n == 1 && !keywords) return engine_of(self).decide({args[0]}).release().ptr();
        const auto in = parse(parameters, args, n, keywords);
        const auto at = or_none(in[3]).is_none() ? std::nullopt : std::optional(read_step(in[3]));
        Engine& engine = engine_of(self);
        std::optional<std::int32_t> minutes;
        if (!or_none(in[8]).is_none()) minutes = engine.check_at(read_minutes(in[8]), in[8]);
        nb::object made = engine.decide({in[0], or_none(in[1]), or_none(in[2]), or_none(in[4]), or_none(in[7]), at,
                                         unit_given(or_none(in[5]), or_none(in[6])), minutes});
        if (minutes) engine.set_time(*minutes);  // not before: a refused call leaves the latest time as it was
        return made.release().ptr();
    });
}

PyObject* advance_to_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<1> parameters{"_advance_to", {"t"}, 1, 1};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        engine_of(self).advance_to(read_step(in[0]));
        Py_RETURN_NONE;
    });
}

PyObject* set_time_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<1> parameters{"set_time", {"at"}, 1, 1};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        engine_of(self).set_time(read_minutes(in[0]));
        Py_RETURN_NONE;
    });
}

PyObject* learn_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<3> parameters{"learn", {"decision", "reward", "weight"}, 2, 2};
    return guarded([&]() -> PyObject* {
        std::array<PyObject*, 3> in{};
        if (n == 2 && !keywords)
            in = {args[0], args[1], nullptr};
        else
            in = parse(parameters, args, n, keywords);
        engine_of(self).learn(in[0], in[1], in[2]);
        Py_RETURN_NONE;
    });
}

PyObject* correct_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<3> parameters{"correct", {"decision", "old_reward", "new_reward"}, 3, 3};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        telling_losses(self, [&](Engine& engine) { engine.correct(in[0], in[1], in[2]); });
        Py_RETURN_NONE;
    });
}

PyObject* forget_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<2> parameters{"forget", {"decision", "reward"}, 2, 2};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        telling_losses(self, [&](Engine& engine) { engine.forget(in[0], in[1]); });
        Py_RETURN_NONE;
    });
}

PyObject* expire_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<1> parameters{"expire", {"decision"}, 1, 1};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        engine_of(self).expire(in[0]);
        Py_RETURN_NONE;
    });
}

PyObject* bill_call(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    static constexpr Parameters<2> parameters{"bill", {"decision", "cost"}, 2, 2};
    return guarded([&]() -> PyObject* {
        const auto in = parse(parameters, args, n, keywords);
        engine_of(self).bill(in[0], in[1]);
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef hot_methods[] = {
    {"decide", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&decide_call)), METH_FASTCALL | METH_KEYWORDS,
     R"(decide($self, x, *, eligible=None, probabilities=None, t=None, propensity=None, unit=None, epoch=None, weights=None, at=None)
--

Choose an arm for one context, and advance the clock.

Parameters
----------
x
    A numpy row, a list, or a mapping by feature name.
eligible
    The arms that may be played this time; all that are not retired if left out. Labels, or a boolean for each of
    `bandit.arms` as a numpy row, or `bandit.arms.subset(labels)`, which need no look-up.
probabilities
    "all" for `decision.probabilities`, those of every arm at this very step.
t
    The step to decide, with the coins of that step: for clocks that are handed out in ranges, and to replay a log. It
    is later than the clock, which stands at it afterwards; steps in between stay unused. The next step if left out.
propensity
    "marginal" for a `decision.propensity` over all coins, which equals that of `predict_proba`: what an evaluation
    needs. It makes a difference where a coin says what a step looks for, as in the default policy, whose steps are
    greedy or optimistic: left out, a decision looks for the one candidate that it plays, and its propensity is as if
    every step were of this kind (`decision.marginal` is False). Decisions of a bandit with a log, of a loop, and those
    with `probabilities="all"` always have the marginal one.
unit
    The name of a session, a user, a machine: text of 1 to 256 characters. Within an epoch all of its decisions have the
    same coins, and meet the estimates and the clock that the epoch's first decision of any unit found: in the same
    context, with the same arms to choose from, it has the same arm. The propensity is over the coins of units.
epoch
    The number of the epoch, which goes forward only, for a bandit whose own setting `epoch` does not count them.
weights
    Of outcomes, by name, for this decision alone: the dial. Those left out weigh what they usually do. Nothing is
    learned again: estimates are linear in them.
at
    When the decision is made, for a policy that forgets by time (`half_life="7 days"`): a datetime with its zone, or
    seconds since 1970, at most 10 half-lives from the latest (`set_time`). It is kept in `decision.tag`, in minutes. A
    loop knows it by itself.

Examples
--------
>>> import armlet
>>> one, other = (armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1) for _ in range(2))
>>> one.decide([0.5]).id == other.decide([0.5], t=1).id
True
>>> one.decide([0.5], t=1)
Traceback (most recent call last):
armlet.errors.InvalidValueError: t is 1 but the clock stands at 1 and goes forward only, up to 2^63 - 1; give a later step
>>> default = armlet.Bandit(["a", "b"], 1, seed=1)
>>> for _ in range(20):
...     default.learn(default.decide([0.5]), 1.0)
>>> default.decide([0.5]).marginal, default.decide([0.5], propensity="marginal").marginal
(False, True)
>>> sticky = armlet.Bandit(["a", "b"], 1, seed=1, epoch=1000)
>>> len({sticky.decide([0.5], unit="session-17").arm for _ in range(1000)})
1
)"},
    {"_advance_to", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&advance_to_call)),
     METH_FASTCALL | METH_KEYWORDS,
     R"(_advance_to($self, t)
--

Set the clock forward: the next decision is of step t + 1. Steps in between stay unused, and their ids too.
)"},
    {"set_time", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&set_time_call)),
     METH_FASTCALL | METH_KEYWORDS,
     R"(set_time($self, at)
--

Set the time of a bandit that forgets by time, after a pause, or after a wrong one.

`decide(at=)` refuses a time that is more than 10 half-lives from the latest, and `learn`, `partial_fit` and `merge` rows
that are further ahead: such a row would outweigh all others. The time that passes while the program runs is added to
the latest. Nothing that was learned changes, and nothing is recorded.

Parameters
----------
at
    The time now: a datetime with its zone, or seconds since 1970.

Examples
--------
>>> import armlet
>>> from datetime import datetime, timedelta, UTC
>>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(half_life="1 day"), seed=1)
>>> monday = datetime(2026, 3, 2, tzinfo=UTC)
>>> bandit.learn(bandit.decide([0.5], at=monday), 1.0)
>>> summer = monday + timedelta(days=90)
>>> bandit.set_time(summer)
>>> bandit.decide([0.5], at=summer).arm in ("a", "b")
True
)"},
    {"learn", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&learn_call)), METH_FASTCALL | METH_KEYWORDS,
     R"(learn($self, decision, reward, *, weight=1.0)
--

Learn the reward of a decision: late, out of order, or never, but only once.

Parameters
----------
decision
    What `decide` gave.
reward
    Any finite number; a cost if the objective is "min". Of a bandit with several outcomes, those that have come, by
    name: the others may come in later calls, and the row is learned when all have.
weight
    How much it counts, a positive number, at least 1e-40. Of outcomes that come apart, that of the first call counts,
    and another one is refused.
)"},
    {"correct", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&correct_call)),
     METH_FASTCALL | METH_KEYWORDS,
     R"(correct($self, decision, old_reward, new_reward)
--

Replace the reward that was learned from a decision, exactly but for rounding.
)"},
    {"forget", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&forget_call)), METH_FASTCALL | METH_KEYWORDS,
     R"(forget($self, decision, reward)
--

Take back what was learned from a decision, exactly but for rounding; it may be learned again.
)"},
    {"expire", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&expire_call)), METH_FASTCALL | METH_KEYWORDS,
     R"(expire($self, decision)
--

Stop waiting for the reward of a decision, which will not come. If it comes after all, it can still be learned.
A hard budget keeps the upper end of its cost back all the same, until that is learned or `bill` says what it is.

The default policy counts decisions whose rewards are under way, and takes an arm with many of them for better known
than its rewards alone make it (`state.under_way`).

Parameters
----------
decision
    What `decide` gave, without a reward.

Examples
--------
>>> import armlet
>>> bandit = armlet.Bandit(["a", "b"], 1, seed=1)
>>> decision = bandit.decide([0.5])
>>> int(bandit.state.under_way.sum()), decision.expired
(1, False)
>>> bandit.expire(decision)
>>> int(bandit.state.under_way.sum()), decision.expired
(0, True)
>>> bandit.learn(decision, 1.0)
)"},
    {"bill", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&bill_call)), METH_FASTCALL | METH_KEYWORDS,
     R"(bill($self, decision, cost)
--

Count what a decision costs in the budget, and learn nothing from it.

For a cost that should not teach, and for one that will never come: 0 releases what a hard budget keeps back for it. A
later bill, or a cost that is learned later, takes its place.

Parameters
----------
decision
    What `decide` gave.
cost
    Any finite number, in the units of the budget; `reward_range` says nothing about it.

Examples
--------
>>> import armlet
>>> budget = armlet.Budget("cost", total=10.0, horizon=100, hard=True)
>>> bandit = armlet.Bandit(
...     ["a", "b"], 1, outcomes={"quality": 1.0, "cost": 0.0}, reward_range={"cost": (0, 6)}, budget=budget, seed=1
... )
>>> decision = bandit.decide([0.5])
>>> bandit.bill(decision, 0.0)  # the request was never sent
>>> bandit.budget
Spending(0 of 10 cost spent, 10 left for 99 decisions; price ...)
)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace armlet
