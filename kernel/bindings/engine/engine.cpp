#include "bindings/engine/engine.hpp"

#include <algorithm>

#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"

namespace armlet {

namespace {}  // namespace

// Names that no code of a subclass can change; none, and dicts are for Python to read, if there are others.
Names names_of(nb::handle features, std::size_t dim) {
    std::vector<nb::object> names;
    if (features.is_none()) return std::make_shared<const std::vector<nb::object>>();
    for (nb::handle name : features)
        if (PyUnicode_CheckExact(name.ptr())) names.push_back(nb::borrow(name));
    if (names.size() != dim) names.clear();
    return std::make_shared<const std::vector<nb::object>>(std::move(names));
}

// The sums that a state holds, where it is made of sums.
Model model_in(nb::handle state) {
    if (nb::isinstance<AutoTunedStatistics>(state)) return Model(nb::cast<AutoTunedStatistics&>(state));
    if (nb::isinstance<Statistics>(state)) return Model(nb::cast<Statistics&>(state));
    return {};
}

Seed parse_seed(nb::handle seed) {
    const bool is_whole = PyLong_Check(seed.ptr()) && !PyBool_Check(seed.ptr());
    if (!is_whole || seed < nb::int_(0) || (nb::int_(seed) >> nb::int_(128)) > nb::int_(0))
        fail(PyExc_ValueError, "seed is " + quoted(seed) + "; give an integer from 0 to 2^128 - 1");
    nb::object low = nb::int_(seed) & nb::int_(UINT64_MAX);
    return {nb::cast<Word>(low), nb::cast<Word>(nb::int_(seed) >> nb::int_(64))};
}

nb::object to_python(Seed seed) { return (nb::int_(seed.high) << nb::int_(64)) | nb::int_(seed.low); }

Engine::Engine(nb::object policy, nb::object rule, nb::object state, nb::list labels, nb::handle seed,
               nb::object read_context, nb::handle features, double sign, bool normalize,
               std::optional<RewardRange> range, nb::handle outcomes, nb::handle budget,
               std::optional<FeatureBounds> bounds)
    : policy(policy),
      state(state),
      rule_(rule.is_none() ? std::nullopt : std::optional(read_rule(rule))),
      model_(rule_ ? read_model(*rule_, state) : model_in(state)),
      arms_(labels),
      streams_(parse_seed(seed)),
      read_context_(read_context),
      sign_(sign),
      scales_(normalize),
      range_(range),
      bounds_(std::move(bounds)),
      dim_(nb::cast<std::size_t>(state.attr("dim"))),
      learns_always_(text(policy.attr("learns_from")) == "every step"),
      scaled_(dim_) {
    names_ = names_of(features, dim_);
    if (!rule_) python_policy_.emplace(policy, state, dim_);
    if (model_.has_sums() && !model_.sums().units().is_free()) digits_.emplace(dim_);
    check_takes(outcomes, policy, rule_);
    if (!outcomes.is_none()) outcomes_.emplace(outcomes);
    take_outcomes();
    take_budget(budget);
    tell_state();
}

void Engine::check_takes(nb::handle outcomes, nb::handle policy, const std::optional<Rule>& rule) {
    if (!outcomes.is_none() && !rule)
        fail(PyExc_ValueError, "policy is " + quoted(policy) +
                                   ", which is asked in Python and learns from one reward; with outcomes choose one "
                                   "that the kernel plays, such as the default");
}

// ---- turns: a compiled policy is done before anybody else runs, a policy in Python has the bandit to itself

Engine::Turn Engine::decide_turn() {
    check_alive();
    if (!rule_) return Turn(turns_);
    turns_.await_decide();
    return Turn();
}

// Only a finaliser can still reach a bandit that the garbage collector has taken apart.
void Engine::check_alive() const {
    if (!rule_ && !python_policy_)
        fail(PyExc_RuntimeError, "this bandit is being collected as garbage; it cannot be used");
}

// ---- contexts and rewards

void Engine::scale(double* x, std::size_t width) const {
    double square = 0.0;
    for (std::size_t j = 0; j < width; ++j) square += x[j] * x[j];
    if (square < 1e-200) {  // squares may have vanished: bring the largest value to 1 first
        double largest = 0.0;
        for (std::size_t j = 0; j < width; ++j) largest = std::max(largest, std::fabs(x[j]));
        if (largest == 0.0) return;
        square = 0.0;
        for (std::size_t j = 0; j < width; ++j) x[j] /= largest, square += x[j] * x[j];
    }
    const double norm = std::sqrt(square);
    for (std::size_t j = 0; j < width; ++j) x[j] /= norm;
}

const double* Engine::scaled_copy(const double* x) {
    std::copy_n(x, dim_, scaled_.data());
    scale(scaled_.data(), dim_);
    return scaled_.data();
}

void Engine::check_features(Word before) const {
    if (before != reading_)
        fail("BusyError",
             "features or their ranges were replaced while this call waited; nothing was changed, call again");
}

// Python has read these rows, and somebody may have replaced the ranges since.
void Engine::check_within(const std::vector<double>& X, std::size_t rows) const {
    for (std::size_t i = 0; bounds_ && i < rows; ++i)
        if (!bounds_->hold(X.data() + i * dim_))
            fail("BusyError", "feature_range was replaced while this call waited; nothing was changed, call again");
}

// Python may run in between, and replace features: what is read with is held until then.
void Engine::read(nb::handle x, double* out, std::size_t width) const {
    const auto is_inside = [&] { return !bounds_ || bounds_->hold(out); };
    if (read_row(x, width, out) && is_inside()) return;
    const auto names = names_;
    if (names->size() == width && read_named(x, *names, out) && is_inside()) return;
    const nb::object reader = read_context_;
    nb::object row = reader(x);  // converts what can be converted, raises on the rest
    if (!read_row(row, width, out)) fail(PyExc_TypeError, "the context reader did not give a float64 row");
}

// ---- the clock

// The clock n steps after another one.
Word Engine::steps_after(Word step, std::size_t n) const {
    if (n > last_step - step)
        fail(PyExc_ValueError, "the clock stands at " + std::to_string(step) + " and cannot take " + std::to_string(n) +
                                   " more steps: it ends at 2^63 - 1");
    return step + n;
}

void Engine::advance(Word steps) { t = next_steps(steps); }

// The next step, or a later one.
Word Engine::step_ahead(std::optional<Word> at) const {
    if (!at) return next_steps(1);
    if (*at <= t || *at > last_step)
        fail(PyExc_ValueError, "t is " + std::to_string(*at) + " but the clock stands at " + std::to_string(t) +
                                   " and goes forward only, up to 2^63 - 1; give a later step");
    return *at;
}

void Engine::advance_to(Word step) {
    if (recording_ && step == 0)  // no event is of a step before the first
        fail(PyExc_ValueError, "t is 0; give a step, a whole number from 1 to 2^63 - 1");
    const auto fields = [&] {
        nb::dict out;
        out["t"] = step;
        return out;
    };
    change("advance", fields, [&](Act act) {
        const auto turn = decide_turn();
        const Word after = step == t ? t : step_ahead(step);
        if (act == Act::perform) t = after;
    });
}

// ---- one step

// Anyone who holds the state may have changed its arms behind the bandit's back.
void Engine::refuse_state(const Statistics& sums) const {
    fail(PyExc_ValueError, "the state has " + std::to_string(sums.n_arms()) + " arms but the bandit has " +
                               std::to_string(arms_.size()) + "; add and remove arms of the bandit");
}

// A state that is none of sums has no use for it.
void Engine::tell_state() {
    const auto tell = [this](const Model& model) {
        if (!model.has_sums()) return;
        for (std::size_t arm = 0; arm < std::min(model.sums().n_arms(), arms_.size()); ++arm)
            model.sums().set_active(arm, arms_.is_active(arm));
    };
    tell(model_);
    if (epochs_.current) tell(epochs_.current->model);
}

// Over all coins for who asks, and for a recorder: what is kept may be evaluated.
Propensities Engine::wanted_propensities(nb::handle propensity) const {
    if (!propensity.is_none() && !(PyUnicode_Check(propensity.ptr()) && text(propensity) == "marginal"))
        fail(PyExc_ValueError, "propensity is " + quoted(propensity) + "; give 'marginal', or leave it out");
    return recording_ || !propensity.is_none() ? Propensities::exact : Propensities::conditional;
}

nb::object Engine::decide(const Asked& asked) {
    const Propensities wanted = wanted_propensities(asked.propensity);
    if (!recording_) return make_decision(asked, wanted);
    const Recording::Locked lock(*recording_);
    const auto epoch = asked.unit.is_any() ? epochs_.current : std::nullopt;
    const auto spent = spending_;
    const Word before = t;
    Recording::Record record(*recording_);
    nb::object made = make_decision(asked, wanted);
    try {
        record.decision(made, to_dict(decision_of(made)));
    } catch (...) {
        expire(decision_of(made), Act::perform);
        if (asked.unit.is_any()) epochs_.current = epoch;
        spending_ = spent;
        if (record.is_of_lines()) t = before;
        throw;
    }
    record.keep();
    return made;
}

std::optional<Epoch> Engine::new_epoch(const UnitGiven& unit, Word step) const {
    const Word number = epochs_.number_at(step, unit);
    if (epochs_.is_under_way(number)) return std::nullopt;
    std::optional<Epoch> out(std::in_place, number, step, price_now(), state.attr("copy")(), policy, rule_, dim_);
    if (forgets_by_time()) out->model.sums().look_at(0);  // as of its sums: replicas, and files, know no other time
    return out;
}

Choice Engine::choose(const Basis& basis, const double* x, Arms eligible, Propensities wanted) {
    if (!rule_) return basis.python_policy->decide(basis.step, x, basis.coins, eligible, arms_.size());
    return armlet::decide(*rule_, basis.model, basis.step, x, basis.coins, eligible, scratch_, wanted);
}

nb::object Engine::make_decision(const Asked& asked, Propensities propensity) {
    const auto wanted = wanted_of(asked.eligible);
    const bool wants_all = !asked.probabilities.is_none();
    if (wants_all && !(PyUnicode_Check(asked.probabilities.ptr()) && text(asked.probabilities) == "all"))
        fail(PyExc_ValueError, "probabilities is " + quoted(asked.probabilities) + "; give 'all', or leave it out");
    if (wants_all) propensity = Propensities::exact;
    nb::object made = new_decision(dim_);
    Decision& d = decision_of(made);
    const Word features = history_.id(), reading = reading_;
    read(asked.x, d.x, d.dim());
    const auto dial = read_dial(asked.weights);
    if (dial) d.extra().weights = outcomes_->named(*dial);
    const UnitGiven& unit = asked.unit;
    const bool has_unit = unit.is_any();
    const auto turn = has_unit ? learn_turn() : decide_turn();  // an epoch begins with no half of a batch
    check_features(reading);
    check_state();
    std::vector<std::uint32_t> some;
    bool is_all = wanted.is_all();
    if (!is_all) some = arms_.playable(wanted);
    if (auto fewer = affordable(is_all ? arms_.active() : Arms(some))) some = std::move(*fewer), is_all = false;
    const Arms arms = is_all ? arms_.active() : Arms(some);
    const Word step = step_ahead(asked.at);
    const std::int32_t minutes = take_time(asked.minutes);
    const double* context = seen(d.x);
    const Basis own = basis_at(step);
    std::optional<Epoch> begun = has_unit ? new_epoch(unit, step) : std::nullopt;
    const Basis basis = has_unit ? (begun ? *begun : *epochs_.current).basis(seed_of(streams_.own(), unit.name)) : own;
    weigh(basis.model, dial, basis.price);
    Choice choice = choose(basis, context, arms, propensity);
    if (minutes) choice.tag = minutes;
    if (wants_all) {
        auto& all = d.extra().probabilities;
        all.resize(arms_.size());
        if (rule_)
            armlet::probabilities(*rule_, basis.model, basis.step, context, arms, scratch_, all);
        else
            basis.python_policy->probabilities(basis.step, context, arms, arms_.size(), all.data());
    }
    if (begun) epochs_.current = std::move(begun);
    t = step;
    stamp(d, step, own.coins.mark, streams_.own(), features);
    if (has_unit) name_unit(d, unit.name, epochs_.current->number);
    settle(d, choice, arms_.label(choice.arm), arms_.id(), is_all ? nb::object() : arms_.labels_of(arms));
    begin(choice.arm, choice.explored);
    spend(choice.arm);
    return made;
}

void Engine::begin_decision(nb::handle label, bool explored) {
    const nb::object key = key_of(label);
    const auto turn = decide_turn();
    check_state();
    const auto arm = arms_.at(key);
    begin(arm, explored);
    spend(arm);
}

// ---- what Python's collector asks

int Engine::traverse(visitproc visit, void* arg) const {
    Py_VISIT(policy.ptr());
    Py_VISIT(state.ptr());
    Py_VISIT(read_context_.ptr());
    if (outcomes_)
        if (const int stop = outcomes_->traverse(visit, arg)) return stop;
    if (python_policy_)
        if (const int stop = python_policy_->traverse(visit, arg)) return stop;
    if (recording_)
        if (const int stop = recording_->traverse(visit, arg)) return stop;
    if (epochs_.current)
        if (const int stop = epochs_.current->traverse(visit, arg)) return stop;
    return arms_.traverse(visit, arg);
}

void Engine::clear() {
    rule_.reset(), model_ = {};
    policy = state = read_context_ = nb::none();
    python_policy_.reset();
    recording_.reset();
    epochs_.current.reset();
    outcomes_.reset();
    arms_.clear();
}

}  // namespace armlet
