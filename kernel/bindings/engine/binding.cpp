// How Python sees the engine.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/binding.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/engine/hot.hpp"

namespace armlet {

namespace {

using Pair = std::optional<std::pair<double, double>>;
using Bounds = std::optional<std::pair<std::vector<double>, std::vector<double>>>;

std::optional<FeatureBounds> bounds_of(const Bounds& given) {
    return given ? std::optional(FeatureBounds{given->first, given->second}) : std::nullopt;
}

void create(Engine* self, nb::object policy, nb::object rule, nb::object state, nb::list labels, nb::handle seed,
            nb::object read_context, nb::handle features, double sign, bool normalize, Pair range, nb::handle outcomes,
            nb::handle budget, Bounds bounds) {
    const auto ends = range ? std::optional(RewardRange{range->first, range->second}) : std::nullopt;
    new (self) Engine(policy, rule, state, labels, seed, read_context, features, sign, normalize, ends, outcomes,
                      budget, bounds_of(bounds));
}

using GivenColumns = std::optional<std::pair<std::vector<std::int64_t>, std::vector<double>>>;

void replace(Engine& self, nb::object policy, nb::object rule, nb::object read_context, nb::handle features, Pair range,
             nb::handle outcomes, nb::handle budget, Bounds bounds, GivenColumns columns, nb::callable renew,
             nb::callable fields, nb::tuple values) {
    self.replace({.policy = policy,
                  .rule = rule,
                  .read_context = read_context,
                  .features = features,
                  .range = range ? std::optional(RewardRange{range->first, range->second}) : std::nullopt,
                  .outcomes = outcomes,
                  .budget = budget,
                  .bounds = bounds_of(bounds),
                  .columns = columns ? std::optional(Columns{columns->first, columns->second}) : std::nullopt,
                  .renew = renew,
                  .fields = fields,
                  .values = values});
}

nb::list listed(const ArmSet& set) {
    nb::list out;
    for (const auto& key : set.keys) out.append(key);
    return out;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? nb::inst_ptr<Engine>(self)->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Engine>(self)->clear();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_methods, hot_methods},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

// The child of a fork must not inherit the middle of another thread's call.
void watch_forks(nb::module_& m) {
    m.def("_before_fork", &Turns::before_fork);
    m.def("_after_fork", &Turns::after_fork, nb::arg("is_child"));
    nb::module_ os = nb::module_::import_("os");
    if (!nb::hasattr(os, "register_at_fork")) return;
    nb::object partial = nb::module_::import_("functools").attr("partial");
    nb::object after = m.attr("_after_fork");
    os.attr("register_at_fork")(nb::arg("before") = m.attr("_before_fork"),
                                nb::arg("after_in_parent") = partial(after, false),
                                nb::arg("after_in_child") = partial(after, true));
}

}  // namespace

void bind_engine(nb::module_& m) {
    nb::class_<ArmSet>(m, "ArmSet", nb::is_final(), "Arms that were looked up beforehand; see `Bandit.arms`.")
        .def("__len__", [](const ArmSet& s) { return s.keys.size(); })
        .def(
            "__iter__", [](const ArmSet& s) { return nb::iter(listed(s)); },
            nb::sig("def __iter__(self) -> collections.abc.Iterator[str | int]"))
        .def("__repr__", [](const ArmSet& s) { return nb::str("ArmSet({})").format(listed(s)); });
    nb::class_<Engine>(m, "Engine", nb::type_slots(slots),
                       "What every decision of a bandit passes through: clock, arms, coins, estimates.")
        .def("__init__", &create, nb::arg("policy"), nb::arg("rule").none(), nb::arg("state"), nb::arg("labels"),
             nb::arg("seed"), nb::arg("read_context"), nb::kw_only(), nb::arg("features").none() = nb::none(),
             nb::arg("sign") = 1.0, nb::arg("normalize") = false, nb::arg("reward_range").none() = nb::none(),
             nb::arg("outcomes").none() = nb::none(), nb::arg("budget").none() = nb::none(),
             nb::arg("bounds").none() = nb::none(),
             nb::sig("def __init__(self, policy: object, rule: object | None, state: object, labels: list[str | int], "
                     "seed: int, read_context: collections.abc.Callable[[typing.Any], NDArray[numpy.float64]], *, "
                     "features: tuple[str, ...] | None = None, sign: float = 1.0, normalize: bool = False, "
                     "reward_range: tuple[float, float] | None = None, outcomes: tuple[typing.Any, ...] | None = None, "
                     "budget: tuple[typing.Any, ...] | None = None, bounds: tuple[list[float], list[float]] | None = "
                     "None) -> None"))
        .def("_decide_many", &Engine::decide_many, nb::arg("X"), nb::arg("eligible").none(),
             nb::arg("t").none() = nb::none(), nb::arg("propensity").none() = nb::none(),
             nb::arg("units").none() = nb::none(), nb::arg("epoch").none() = nb::none(),
             nb::arg("weights").none() = nb::none(),
             nb::sig(
                 "def _decide_many(self, X: object, eligible: object | None, t: int | None = None, propensity: "
                 "object | None = None, units: list[object] | None = None, epoch: int | None = None, weights: object "
                 "| None = None) -> Decisions"))
        .def("_learn_many", &Engine::learn_many, nb::arg("decisions"), nb::arg("rewards"), nb::arg("weights"),
             nb::sig("def _learn_many(self, decisions: list[Decision], rewards: NDArray[numpy.float64], weights: "
                     "NDArray[numpy.float64]) -> None"))
        .def("_learn_rows", &Engine::learn_rows, nb::arg("X"), nb::arg("arms"), nb::arg("rewards"), nb::arg("weights"),
             nb::arg("explored"), nb::arg("steps"), nb::arg("fixed"),
             nb::sig("def _learn_rows(self, X: NDArray[numpy.float64], arms: list[str | int], rewards: "
                     "NDArray[numpy.float64], weights: NDArray[numpy.float64], explored: NDArray[numpy.bool], steps: "
                     "int, fixed: float) -> None"),
             "`fixed` is the weight of those that no reward chose.")
        .def(
            "_learn_logged",
            [](Engine& e, nb::handle X, const nb::list& arms, nb::handle steps, nb::handle rewards, nb::handle weights,
               nb::handle explored, nb::handle propensities, nb::handle tags, nb::handle replaces) {
                e.learn_logged({X, arms, steps, rewards, weights, explored, propensities, tags, replaces});
            },
            nb::arg("X"), nb::arg("arms"), nb::arg("steps"), nb::arg("rewards"), nb::arg("weights"),
            nb::arg("explored"), nb::arg("propensities"), nb::arg("tags"), nb::arg("replaces"),
            nb::sig("def _learn_logged(self, X: NDArray[numpy.float64], arms: list[str | int], steps: "
                    "NDArray[numpy.int64], rewards: NDArray[numpy.float64], weights: NDArray[numpy.float64], explored: "
                    "NDArray[numpy.bool], propensities: NDArray[numpy.float64], tags: NDArray[numpy.int64], replaces: "
                    "NDArray[numpy.float64]) -> None"))
        .def(
            "_take_lost",
            [](Engine& e) {
                const LostDigits::News lost = e.take_lost();
                return nb::make_tuple(to_list(lost.arms), to_list(lost.emptied));
            },
            nb::sig("def _take_lost(self) -> tuple[list[int], list[int]]"),
            "Arms that have lost digits since the last call, and those of them that were emptied.")
        .def("_probabilities", &Engine::probabilities, nb::arg("X"), nb::arg("t").none(), nb::arg("eligible").none(),
             nb::arg("weights").none() = nb::none(), "(n, K): at step t, or at the next one.")
        .def(
            "_view",
            [](Engine& e, nb::handle eligible, nb::handle weights, bool priced) {
                return e.view(eligible, weights, priced ? Price::charged : Price::left_out);
            },
            nb::arg("eligible").none(), nb::arg("weights").none() = nb::none(), nb::arg("priced") = true,
            nb::sig("def _view(self, eligible: object | None, weights: object | None = None, priced: bool = True) -> "
                    "tuple[list[str | int], "
                    "NDArray[numpy.bool], NDArray[numpy.float64], Units | None, float]"),
            "Labels, which of them may be played, theta_hat, the units that it is in if they are free, and what scores "
            "leave out, all of one moment.")
        .def("_scaled", &Engine::scaled, nb::arg("X"), "(n, d): contexts as the policy sees them.")
        .def("_arm_set", &Engine::arm_set, nb::arg("labels").none(),
             nb::sig("def _arm_set(self, labels: collections.abc.Iterable[str | int]) -> ArmSet"))
        .def("_replace", &replace, nb::arg("policy"), nb::arg("rule").none(), nb::arg("read_context"), nb::kw_only(),
             nb::arg("features").none(), nb::arg("reward_range").none(), nb::arg("outcomes").none(),
             nb::arg("budget").none(), nb::arg("bounds").none(), nb::arg("columns").none(), nb::arg("renew"),
             nb::arg("fields"), nb::arg("values"),
             nb::sig(
                 "def _replace(self, policy: object, rule: object | None, read_context: "
                 "collections.abc.Callable[[typing.Any], NDArray[numpy.float64]], *, features: tuple[str, ...] | "
                 "None, reward_range: tuple[float, float] | None, outcomes: tuple[typing.Any, ...] | None, budget: "
                 "tuple[typing.Any, ...] | None, bounds: tuple[list[float], list[float]] | None, columns: "
                 "tuple[list[int], list[float]] | None, "
                 "renew: collections.abc.Callable[[typing.Any], object], fields: collections.abc.Callable[[], "
                 "collections.abc.Mapping[str, typing.Any]], values: tuple[tuple[object, str, object], ...]) -> None"),
             "Goes on with what is given and `renew(state)`, and sets attributes, in one turn. "
             "`columns` are, of other features, the place of each before, or -1, and what it was before where it is "
             "new.")
        .def("_add_arm", &Engine::add_arm, nb::arg("label").none(),
             nb::sig("def _add_arm(self, label: object) -> None"))
        .def("_remove_arm", &Engine::remove_arm, nb::arg("label").none(),
             nb::sig("def _remove_arm(self, label: object) -> None"))
        .def("_set_active", &Engine::set_active, nb::arg("label").none(), nb::arg("active"),
             nb::sig("def _set_active(self, label: object, active: bool) -> None"))
        .def("_begin_decision", &Engine::begin_decision, nb::arg("label"), nb::arg("explored"),
             nb::sig("def _begin_decision(self, label: str | int, explored: bool) -> None"),
             "A decision of this arm, made elsewhere, waits for its reward.")
        .def("_tell_time", &Engine::tell_time, nb::arg("minutes"),
             "When the next decision is made, in minutes since 1970, for a policy that forgets by time.")
        .def("_reach_time", &Engine::reach_time, nb::arg("minutes"),
             "Rows of this time, in minutes since 1970, are in order: they were checked when they were recorded.")
        .def("_set_epochs", &Engine::set_epochs, nb::arg("length").none(), nb::arg("under_way").none(),
             nb::sig(
                 "def _set_epochs(self, length: int | None, under_way: tuple[int, int, typing.Any, float] | None) -> "
                 "None"),
             "How many decisions an epoch lasts, if the clock counts them, and the one that is under way.")
        .def("_begin_epoch", &Engine::begin_epoch, nb::arg("epoch"), nb::arg("t"),
             "What a decision of a unit at step t, made elsewhere, does if it is the first of its epoch.")
        .def_prop_ro("_epoch", &Engine::epoch_number, nb::sig("def _epoch(self, /) -> int | None"),
                     "The number of the epoch that units are in; None before the first decision of one.")
        .def("_advance", &Engine::advance, nb::arg("steps"))
        .def("_reseed", &Engine::reseed, nb::arg("seed"))
        .def("_know", &Engine::know, nb::arg("seed"), "Decisions made with this seed may be learned here.")
        .def("_snapshot", &Engine::snapshot, nb::sig("def _snapshot(self) -> armlet.types.Snapshot"),
             "All of the bandit, of one moment.")
        .def("_continue_lives", &Engine::continue_lives, nb::arg("other"),
             "The arms are those of another bandit in this process, so what was removed there is removed here.")
        .def("_end_lives", &Engine::end_lives, nb::arg("arms"),
             "All that these arms had learned is gone, so none of it can be taken back.")
        .def("_become", &Engine::become, nb::arg("other"), nb::arg("values"),
             nb::sig("def _become(self, other: Engine, values: tuple[tuple[object, str, object], ...]) -> None"),
             "Goes on as another bandit is, which nobody uses after that, but for seeds and log; and sets attributes.")
        .def("_restore", &Engine::restore, nb::arg("state"), nb::arg("labels"), nb::arg("steps"),
             nb::arg("fixed").none() = nb::none(),
             nb::sig("def _restore(self, state: object, labels: list[str | int], steps: int, fixed: float | None = "
                     "None) -> None"))
        .def_rw("_fixed_rows", &Engine::fixed_rows, "The weight of rows that no reward chose.")
        .def("_merge", &Engine::merge, nb::arg("state"), nb::arg("labels"), nb::arg("retired"), nb::arg("steps"),
             nb::arg("seeds"), nb::arg("spending").none(), nb::arg("fields"), nb::arg("other"),
             nb::sig("def _merge(self, state: object, labels: list[str | int], retired: list[str | int], steps: int, "
                     "seeds: list[int], spending: NDArray[numpy.float64] | None, fields: collections.abc.Callable[[], "
                     "collections.abc.Mapping[str, typing.Any]], other: Engine) -> None"),
             "`other` is the bandit that all of this is of.")
        .def("_attach", &Engine::attach, nb::arg("recording"), nb::sig("def _attach(self, recording: object) -> None"),
             "From now on `recording.recorder` receives every change, under `recording.lock`.")
        .def("_restore_spending", &Engine::restore_spending, nb::arg("values"),
             nb::sig("def _restore_spending(self, values: NDArray[numpy.float64]) -> None"))
        .def_prop_ro("_spending_values", &Engine::spending_values,
                     nb::sig("def _spending_values(self, /) -> NDArray[numpy.float64] | None"),
                     "What `_restore_spending` takes, or None without a budget.")
        .def_prop_ro("_spending", &Engine::spending,
                     nb::sig("def _spending(self, /) -> tuple[float, float, int, int] | None"),
                     "The price, what was spent, decisions and costs to come, or None without a budget.")
        .def_prop_ro("_seed", &Engine::seed, nb::sig("def _seed(self, /) -> int"))
        .def_prop_ro("_labels", &Engine::labels, nb::sig("def _labels(self, /) -> list[str | int]"))
        .def_prop_ro("_retired", &Engine::retired, nb::sig("def _retired(self, /) -> list[str | int]"))
        .def_prop_ro(
            "t", [](const Engine& e) { return e.t; }, "Decisions taken so far.")
        .def_ro("state", &Engine::state, nb::sig("def state(self, /) -> typing.Any"),
                "What is known: the sums of every arm, or what else the policy keeps.");
    watch_forks(m);
}

}  // namespace armlet
