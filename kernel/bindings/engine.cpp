#include "engine.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>

#include "binding.hpp"
#include "hot.hpp"
#include "rule_binding.hpp"

namespace armlet {

namespace {

std::atomic<Word> tables = 0;

void check_learned(const Decision& d, double reward, const char* name) {
    if (!d.learned)
        fail("DecisionError", "decision " + d.id() + " has no reward yet; learn(decision, reward) comes first");
    if (d.reward != reward)
        fail(PyExc_ValueError, std::string(name) + " is " + text(reward) + " but decision " + d.id() +
                                   " was learned with " + text(d.reward) + "; pass that reward");
}

// The sums that a state holds, where it is made of sums.
Model model_in(nb::handle state) {
    if (nb::isinstance<Tuned>(state)) return model_of(nb::cast<Tuned&>(state));
    if (nb::isinstance<Statistics>(state)) return model_of(nb::cast<Statistics&>(state));
    if (nb::isinstance<Layers>(state) && nb::cast<Layers&>(state).size() == 2)
        return model_of(nb::cast<Layers&>(state));
    return {nullptr};
}

}  // namespace

void check_forgettable(const Statistics& s, std::size_t arm, double weight) {
    const double n = s.count(arm);
    if (weight < 0.0 && n < -0.999 * weight)
        fail("DecisionError", "there is nothing to forget: the arm has n = " + text(n) + " and the row counts " +
                                  text(-weight) + "; another bandit learned it");
}

Seed parse_seed(nb::handle seed) {
    nb::object low = nb::int_(seed) & nb::int_(UINT64_MAX);
    return {nb::cast<Word>(low), nb::cast<Word>(nb::int_(seed) >> nb::int_(64))};
}

Engine::Engine(nb::object policy, nb::object rule, nb::object state, nb::list labels, nb::handle seed,
               nb::object read_context, double sign, bool normalize)
    : policy(policy),
      state(state),
      rule_(rule.is_none() ? std::nullopt : std::optional(read_rule(rule))),
      model_(rule_ ? read_model(*rule_, state) : model_in(state)),
      statistics_(model_.all),
      labels_(copy_list(labels)),
      seed_(parse_seed(seed)),
      read_context_(read_context),
      sign_(sign),
      normalize_(normalize),
      dim_(nb::cast<std::size_t>(state.attr("dim"))),
      learns_always_(text(policy.attr("learns_from")) == "every step") {
    lock_ = nb::module_::import_("threading").attr("RLock")();
    is_active_.assign(nb::len(labels_), 1);
    relabel();
}

void Engine::relabel() {
    table_ = ++tables;
    index_ = nb::dict();
    active_.clear();
    std::uint32_t arm = 0;
    for (nb::handle label : labels_) {
        index_[label] = arm;
        if (is_active_[arm]) active_.push_back(arm);
        ++arm;
    }
}

void Engine::normalize(double* x) const {
    double square = 0.0;
    for (std::size_t j = 0; j < dim_; ++j) square += x[j] * x[j];
    if (square < 1e-200) {  // squares may have vanished: bring the largest value to 1 first
        double largest = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) largest = std::max(largest, std::fabs(x[j]));
        if (largest == 0.0) return;
        square = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) x[j] /= largest, square += x[j] * x[j];
    }
    const double norm = std::sqrt(square);
    for (std::size_t j = 0; j < dim_; ++j) x[j] /= norm;
}

void Engine::read(nb::handle x, double* out) const {
    if (!read_row(x, dim_, out)) {
        nb::object row = read_context_(x);  // converts what can be converted, raises on the rest
        if (!read_row(row, dim_, out)) fail(PyExc_TypeError, "the context reader did not give a float64 row");
    }
    if (normalize_) normalize(out);
}

std::vector<std::uint32_t> Engine::subset(nb::handle eligible) const {
    const bool* mask = booleans(eligible, "eligible", is_active_.size());
    std::vector<std::uint32_t> out;
    for (const auto arm : active_)
        if (mask[arm]) out.push_back(arm);
    if (out.empty()) fail(PyExc_ValueError, "eligible leaves no arm to play: name at least one that is not retired");
    return out;
}

Array<bool> Engine::mask_of(Arms eligible) const {
    std::vector<std::uint8_t> mask(is_active_.size());
    for (const auto arm : eligible) mask[arm] = 1;
    return to_numpy<bool>(std::move(mask), {is_active_.size()});
}

Choice Engine::ask(Word step, const double* x, const Coins& coins, Arms eligible) const {
    nb::object tossed =
        nb::module_::import_("armlet.core.types").attr("Coins")(coins.coin, coins.pick, coins.tie, coins.mark);
    nb::object choice = policy.attr("decide")(state, step, copy_row(x, dim_), tossed, mask_of(eligible));
    return {nb::cast<std::uint32_t>(choice[0]), nb::cast<double>(choice[1]), nb::cast<bool>(choice[2]),
            nb::cast<std::int32_t>(choice[3])};
}

nb::object Engine::decide(nb::handle x, nb::handle eligible) {
    nb::object made = new_decision(dim_, 0, 0);
    Decision& d = decision_of(made);
    read(x, d.x);
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    std::vector<std::uint32_t> some;
    if (!eligible.is_none()) some = subset(eligible);
    const Arms arms = eligible.is_none() ? Arms(active_) : Arms(some);
    const Word step = t + 1;
    const Coins coins = toss(seed_, step);
    const Choice choice =
        rule_ ? armlet::decide(*rule_, model_, step, d.x, coins, arms, scratch_) : ask(step, d.x, coins, arms);
    t = d.t = step, d.mark = coins.mark;
    settle(d, choice, labels_, table_);
    return made;
}

std::uint32_t Engine::locate(const Decision& d) const {
    if (d.dim() != dim_)
        fail(PyExc_ValueError, "decision " + d.id() + " has a context of " + std::to_string(d.dim()) +
                                   " values but dim is " + std::to_string(dim_) + "; it is another bandit's");
    if (d.table == table_) return d.index;
    nb::object arm = index_of(d.arm);
    if (arm.is_none())
        fail(PyExc_KeyError, "arm " + quoted(d.arm) +
                                 " was removed, so its rewards cannot be learned; retire_arm keeps an "
                                 "arm's sums open for late rewards");
    return nb::cast<std::uint32_t>(arm);
}

nb::object Engine::index_of(nb::handle label) const {
    return nb::borrow(index_.contains(label) ? nb::object(index_[label]) : nb::none());
}

void Engine::update(const Row& row) {
    if (!rule_) {
        nb::object interaction =
            nb::module_::import_("armlet.core.types")
                .attr("Interaction")(nb::arg("t") = row.t, nb::arg("x") = copy_row(row.x, dim_),
                                     nb::arg("arm") = row.arm, nb::arg("reward") = row.reward,
                                     nb::arg("propensity") = row.propensity, nb::arg("explored") = row.explored,
                                     nb::arg("weight") = row.weight, nb::arg("replaces") = row.replaces,
                                     nb::arg("tag") = row.tag);
        policy.attr("update")(state, interaction);
    } else if (learns(*rule_, row.explored)) {
        const armlet::Row learned{row.arm, row.x, row.reward, row.weight, row.explored, row.t};
        if (row.replaces)
            correct_reward(*rule_, model_, learned, *row.replaces);
        else
            armlet::learn(*rule_, model_, learned);
    }
}

void Engine::update(const Decision& d, double reward, double weight, std::optional<double> replaces) {
    if (replaces) replaces = sign_ * *replaces;
    const auto arm = locate(d);
    if (model_.solved && (replaces || weight < 0.0))
        fail("DecisionError",
             quoted(policy.attr("__class__").attr("__name__")) +
                 " cannot take back or change what it learned; choose a policy whose state is a sum of rows");
    if (statistics_ && (d.explored || learns_always_)) check_forgettable(*statistics_, arm, weight);
    if (model_.forced && d.explored) check_forgettable(*model_.forced, arm, weight);
    update({d.t, arm, d.x, sign_ * reward, weight, d.propensity, d.explored, d.tag, replaces});
}

// In the next three, all that may run Python comes first: between the look at `learned` and its change nobody else
// runs, or, for a policy in Python, nobody else has the turn.

void Engine::learn(nb::handle decision, nb::handle reward, nb::handle weight) {
    Decision& d = as_decision(decision);
    const double r = read_reward(reward), w = weight.is_valid() ? read_weight(weight) : 1.0;
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    if (d.learned)
        fail("DecisionError", "decision " + d.id() + " was learned already, with reward " + text(d.reward) +
                                  "; change it with correct(decision, old_reward, new_reward)");
    update(d, r, w, std::nullopt);
    d.learned = true, d.reward = r, d.weight = w;
}

void Engine::correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward) {
    Decision& d = as_decision(decision);
    const double before = read_reward(old_reward), after = read_reward(new_reward);
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    check_learned(d, before, "old_reward");
    update(d, after, d.weight, before);
    d.reward = after;
}

void Engine::forget(nb::handle decision, nb::handle reward) {
    Decision& d = as_decision(decision);
    const double r = read_reward(reward);
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    check_learned(d, r, "reward");
    update(d, r, -d.weight, std::nullopt);
    d.learned = false;
}

void Engine::add_arm(nb::object label) {
    std::optional<Turn> turn(lock_);
    state.attr("add_arm")();
    labels_.append(label);
    is_active_.push_back(1);
    const Word same = table_;
    relabel();
    table_ = same;  // the arms before it keep their places
}

void Engine::remove_arm(std::size_t arm) {
    std::optional<Turn> turn(lock_);
    state.attr("remove_arm")(arm);
    labels_.attr("pop")(arm);
    is_active_.erase(is_active_.begin() + static_cast<std::ptrdiff_t>(arm));
    relabel();
}

void Engine::set_active(std::size_t arm, bool active) {
    is_active_.at(arm) = active;
    const Word same = table_;
    relabel();
    table_ = same;
}

Array<bool> Engine::active() const {
    return to_numpy<bool>(std::vector<std::uint8_t>(is_active_), {is_active_.size()});
}

nb::object Engine::estimates() const {
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    return policy.attr("estimates")(state);
}

void Engine::restore(nb::object other) {
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    if (nb::cast<std::size_t>(other.attr("n_arms")) != is_active_.size())
        fail(PyExc_ValueError, "arms were added or removed meanwhile; try again");
    state.attr("restore_arrays")(other.attr("arrays")());
}

void Engine::merge(nb::object other, const std::vector<std::size_t>& into, Word steps) {
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    state.attr("merge")(other, into);
    t += steps;
}

nb::tuple Engine::snapshot() const {
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    return nb::make_tuple(t, labels(), active(), state.attr("copy")());
}

void bind_engine(nb::module_& m) {
    nb::class_<Schedule>(m, "Schedule", "When a compiled policy explores, and which steps it learns from.")
        .def(nb::init<double, bool, bool>(), nb::arg("p"), nb::kw_only(), nb::arg("round_robin"),
             nb::arg("learn_always"));
    static PyType_Slot slots[] = {{Py_tp_methods, hot_methods}, {0, nullptr}};
    nb::class_<Engine>(m, "Engine", nb::type_slots(slots),
                       "What every decision of a bandit passes through: clock, labels, coins, estimates.")
        .def(nb::init<nb::object, nb::object, nb::object, nb::list, nb::handle, nb::object, double, bool>(),
             nb::arg("policy"), nb::arg("rule").none(), nb::arg("state"), nb::arg("labels"), nb::arg("seed"),
             nb::arg("read_context"), nb::kw_only(), nb::arg("sign") = 1.0, nb::arg("normalize") = false,
             nb::sig("def __init__(self, policy: object, rule: object | None, state: object, labels: list[str | int], "
                     "seed: int, read_context: collections.abc.Callable[[typing.Any], NDArray[numpy.float64]], *, "
                     "sign: float = 1.0, normalize: bool = False) -> None"))
        .def("_decide_many", &Engine::decide_many, nb::arg("X"), nb::arg("eligible").none())
        .def("_probabilities", &Engine::probabilities, nb::arg("X"), nb::arg("t"), nb::arg("eligible").none())
        .def("_learn_rows", &Engine::learn_rows, nb::arg("table"), nb::arg("X"), nb::arg("arms"), nb::arg("rewards"),
             nb::arg("weights"), nb::arg("explored"))
        .def("_normalized", &Engine::normalized, nb::arg("X"))
        .def("_add_arm", &Engine::add_arm, nb::arg("label"))
        .def("_remove_arm", &Engine::remove_arm, nb::arg("arm"))
        .def("_set_active", &Engine::set_active, nb::arg("arm"), nb::arg("active"))
        .def("_index_of", &Engine::index_of, nb::arg("label"),
             nb::sig("def _index_of(self, label: object) -> int | None"))
        .def(
            "_locate", [](const Engine& e, nb::handle decision) { return e.locate(as_decision(decision)); },
            nb::arg("decision"), nb::sig("def _locate(self, decision: Decision) -> int"),
            "The index of a decision's arm, or why it cannot be learned.")
        .def("_advance", &Engine::advance, nb::arg("steps"))
        .def("_snapshot", &Engine::snapshot,
             nb::sig("def _snapshot(self) -> tuple[int, list[str | int], NDArray[numpy.bool], typing.Any]"),
             "Clock, labels, which are active, and a copy of the state, all of one moment.")
        .def("_estimates", &Engine::estimates, nb::sig("def _estimates(self) -> NDArray[numpy.float64]"))
        .def("_restore", &Engine::restore, nb::arg("state"))
        .def("_merge", &Engine::merge, nb::arg("state"), nb::arg("into"), nb::arg("steps"))
        .def_prop_ro(
            "_table", [](const Engine& e) { return e.table(); }, "Names the table of labels; a removal makes another.")
        .def_prop_ro("_labels", &Engine::labels, nb::sig("def _labels(self, /) -> list[str | int]"))
        .def_prop_ro("_active", &Engine::active, owned)
        .def_prop_ro(
            "t", [](const Engine& e) { return e.t; }, "Decisions taken so far.")
        .def_ro("state", &Engine::state, nb::sig("def state(self, /) -> typing.Any"),
                "What is known: the sums of every arm, or what else the policy keeps.");
}

}  // namespace armlet
