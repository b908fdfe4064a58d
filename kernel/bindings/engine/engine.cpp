#include "bindings/engine/engine.hpp"

#include <algorithm>

#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"

namespace armlet {

namespace {

void check_learned(const Decision& d, double reward, const char* name) {
    if (!d.learned)
        fail("DecisionError", "decision " + d.id() + " has no reward yet; learn(decision, reward) comes first");
    if (d.reward != reward)
        fail(PyExc_ValueError, std::string(name) + " is " + text(reward) + " but decision " + d.id() +
                                   " was learned with " + text(d.reward) + "; pass that reward");
}

void check_holds(const Statistics& s, std::size_t arm, double weight, When when, const char* what) {
    const double n = s.count(arm);
    if (n < 0.999 * s.aged(weight, when))
        fail("DecisionError", "there is nothing to " + std::string(what) + ": the arm has n = " + text(n) +
                                  " and the row counts " + text(weight) + "; another bandit learned it");
}

}  // namespace

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

Engine::Turn Engine::learn_turn() {
    check_alive();
    if (!rule_) return Turn(turns_);
    turns_.await_learn();
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

const double* Engine::seen(const double* x) {
    if (!scales_) return x;
    std::copy_n(x, dim_, scaled_.data());
    scale(scaled_.data(), dim_);
    return scaled_.data();
}

const double* Engine::carried_context(const Decision& d) {
    const Columns* columns = history_.since(d.features);
    if (!columns) return d.x;
    carried_.resize(dim_);
    columns->carry(d.x, carried_.data());
    return carried_.data();
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

double Engine::read_reward(nb::handle value) const {
    const double reward = armlet::read_reward(value);
    check_reward(reward);
    return reward;
}

void Engine::check_reward(double reward) const {
    if (range_ && !(reward >= range_->low && reward <= range_->high))
        fail(PyExc_ValueError, "reward is " + text(reward) + " but reward_range is (" + text(range_->low) + ", " +
                                   text(range_->high) +
                                   "); leave it out, or take a wider range: replace(reward_range=...)");
}

// Said once, before the row is learned and before the turn is taken, since a warning may run Python.
void Engine::watch(const double* x, std::size_t dim, double reward) {
    if (rewards_.is_open() && rewards_.see(reward)) {
        const std::string message = "the first " + std::to_string(SameRewards::look) +
                                    " rewards are all the same, so every arm looks alike; if only successes are "
                                    "reported, learn a reward of 0 for the other decisions too, such as by a window "
                                    "and a default_reward of a loop";
        if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) throw nb::python_error();
    }
    if (!digits_ || !digits_->is_open() || dim != dim_) return;
    std::vector<double> row(x, x + dim);
    if (scales_) scale(row.data(), dim);
    const auto found = digits_->see(row.data(), reward);
    if (!found) return;
    const std::string what = *found == 0 ? "rewards" : "feature " + std::to_string(*found - 1) + " of contexts";
    const std::string message = what +
                                " lie so far from zero, next to how much they vary, that sums of squares lose most of "
                                "their digits; take units='free' where the policy has it, or subtract a typical value";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) throw nb::python_error();
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
void Engine::check_state() const {
    if (model_.has_sums() && model_.sums().n_arms() != arms_.size())
        fail(PyExc_ValueError, "the state has " + std::to_string(model_.sums().n_arms()) + " arms but the bandit has " +
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

void Engine::check_known(const Decision& d) const {
    const bool known = d.has_stream ? streams_.knows(d.stream) : streams_.marked(d.t, d.mark) != nullptr;
    if (!known)
        fail("DecisionError",
             "decision " + d.id() + " was made by another bandit; learn it there, or merge that bandit into this one");
}

std::optional<std::uint32_t> Engine::arm_of(const Decision& d) const {
    check_known(d);
    return d.table == arms_.id() ? std::optional(d.index) : arms_.find(key_of(d.arm));
}

std::uint32_t Engine::locate(const Decision& d) const {
    if (d.dim() == 0)
        fail(PyExc_ValueError,
             "decision " + d.id() + " was kept without its context, so nothing can be learned from it");
    if (d.dim() != dim_ && !history_.since(d.features))
        fail(PyExc_ValueError, "decision " + d.id() + " has a context of " + std::to_string(d.dim()) +
                                   " values but dim is " + std::to_string(dim_) +
                                   "; it is another bandit's, or was recorded before features were replaced: carry its "
                                   "x to those of now");
    if (history_.is_unknown(d.features))
        fail("DecisionError", "decision " + d.id() +
                                  " was made by another bandit, perhaps before features were replaced here; learn it "
                                  "from its record, with x carried to the features of now");
    const auto arm = arm_of(d);
    if (!arm)
        fail(PyExc_KeyError, "arm " + quoted(d.arm) +
                                 " was removed, so its rewards cannot be learned; retire_arm keeps an "
                                 "arm's sums open for late rewards");
    return *arm;
}

void Engine::check_learnable(const Decision& d) const {
    if (d.learned)
        fail("DecisionError", "decision " + d.id() + " was learned already, with reward " + quoted(reward_of(d)) +
                                  "; change it with correct(decision, old_reward, new_reward)");
    if (d.has_outcomes() && !outcomes_)
        fail("DecisionError", "decision " + d.id() + " has outcomes, " + quoted(reward_of(d)) +
                                  ", but the bandit has one reward; another bandit made it");
    if (forgets_by_time()) check_moment(d);
}

// What was learned from it must still be here.
void Engine::check_can_take_back(const Decision& d, std::uint32_t arm, const char* verb) const {
    if (d.life != 0 && arms_.has_ended(d.life))
        fail("DecisionError", "arm " + quoted(d.arm) + " was removed or emptied after decision " + d.id() +
                                  " was learned, and all that was known of it; there is nothing to " + verb);
    check_held(arm, d.explored, d.weight, {d.t, d.tag}, verb);
}

// There is a row of this weight.
void Engine::check_held(std::uint32_t arm, bool explored, double weight, When when, const char* verb) const {
    if (model_.has_sums() && (explored || learns_always_)) check_holds(model_.sums(), arm, weight, when, verb);
}

void Engine::update(const Event& event) {
    if (take_rehearsed()) return;
    if (python_policy_) return python_policy_->update(event);
    if (!learns(*rule_, event.explored)) return;
    const Row row{event.arm, event.x,        event.reward,          event.weight, event.explored,
                  event.t,   event.outcomes, event.outcomes_before, event.tag};
    if (event.replaces)
        correct_reward(*rule_, model_, row, *event.replaces);
    else
        armlet::learn(*rule_, model_, row);
}

Event Engine::event_of(const Decision& d, std::uint32_t arm, double reward, double weight,
                       std::optional<double> replaces) {
    if (replaces) replaces = sign_ * *replaces;
    return {d.t, arm, seen(carried_context(d)), sign_ * reward, weight, d.propensity, d.explored, d.tag, replaces};
}

// A compiled rule takes any row; a policy in Python may refuse one, or be interrupted: it learns on a copy.
void Engine::rehearse(const Event& event) {
    if (!python_policy_) return;
    rehearsed_ = state.attr("copy")();
    PythonPolicy(policy, rehearsed_, dim_).update(event);
}

bool Engine::take_rehearsed() {
    if (!rehearsed_.is_valid()) return false;
    go_on_with(std::exchange(rehearsed_, nb::object()));
    return true;
}

void Engine::go_on_with(nb::object next) {
    python_policy_.emplace(policy, next, dim_);
    model_ = model_in(next);
    state = std::move(next);
}

nb::dict Engine::recorded(const Decision& d) const {
    nb::dict out;
    out["id"] = nb::str(d.id().c_str());
    if (d.expired && !d.learned) out["expired"] = true;
    if (!std::isnan(d.billed())) out["billed"] = d.billed();
    if (d.has_stream && d.stream == streams_.own() && d.t > recording_->since) return out;
    nb::dict record = to_dict(d);
    if (const Columns* columns = history_.since(d.features)) {
        std::vector<double> x(columns->sources.size());
        columns->carry(d.x, x.data());
        record["x"] = to_list(x);
    }
    out["decision"] = record;
    return out;
}

// In the next four, all that may run Python comes first: between the look at `learned` and its change nobody else
// runs, or, for a policy in Python, nobody else has the turn. Numbers are read once, so that a recorder receives those
// that are learned.

void Engine::learn(nb::handle decision, nb::handle reward, nb::handle weight) {
    Decision& d = as_decision(decision);
    if (outcomes_) return learn_outcomes(d, reward, weight);
    const double r = read_reward(reward), w = weight.is_valid() ? read_weight(weight) : 1.0;
    watch(d.x, watched_width(d), r);
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = r, out["weight"] = w;
        return out;
    };
    change("learn", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_learnable(d);
        const auto arm = locate(d);
        const Event event = event_of(d, arm, r, w, std::nullopt);
        if (act == Act::rehearse) return rehearse(event);
        update(event);
        note_learned(d, arm, r, w);
    });
}

void Engine::note_learned(Decision& d, std::uint32_t arm, double reward, double weight) {
    if (!d.expired) end(arm, d.explored);
    d.learned = true, d.reward = reward, d.weight = weight, d.life = arms_.life(arm);
    if (spending_) spending_->see(reward + outcomes_->worth_of_known(arm));
}

void Engine::correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward) {
    Decision& d = as_decision(decision);
    if (outcomes_) return correct_outcomes(d, old_reward, new_reward);
    const double before = armlet::read_reward(old_reward), after = read_reward(new_reward);
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["old_reward"] = before, out["new_reward"] = after, out["weight"] = d.weight;
        return out;
    };
    change("correct", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_learned(d, before, "old_reward");
        const auto arm = locate(d);
        check_can_take_back(d, arm, "correct");
        const Event event = event_of(d, arm, after, d.weight, before);
        if (act == Act::rehearse) return rehearse(event);
        update(event);
        d.reward = after;
    });
}

void Engine::forget(nb::handle decision, nb::handle reward) {
    Decision& d = as_decision(decision);
    if (outcomes_) return forget_outcomes(d, reward);
    const double r = armlet::read_reward(reward);
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = r, out["weight"] = d.weight;
        return out;
    };
    change("forget", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_learned(d, r, "reward");
        const auto arm = locate(d);
        check_can_take_back(d, arm, "forget");
        const Event event = event_of(d, arm, r, -d.weight, std::nullopt);
        if (act == Act::rehearse) return rehearse(event);
        update(event);
        d.learned = false, d.expired = true;
    });
}

LostDigits::News Engine::take_lost() { return model_.has_sums() ? model_.sums().take_lost() : LostDigits::News(); }

void Engine::expire(nb::handle decision) {
    Decision& d = as_decision(decision);
    change("expire", [&] { return recorded(d); }, [&](Act act) { expire(d, act); });
}

// An arm that was removed has taken its count along.
void Engine::expire(Decision& d, Act act) {
    const auto turn = learn_turn();
    check_state();
    if (d.learned)
        fail("DecisionError", "decision " + d.id() + " was learned already, with reward " + quoted(reward_of(d)) +
                                  ", so nobody waits for it; take it back with forget(decision, reward)");
    if (d.expired)
        fail("DecisionError", "decision " + d.id() +
                                  " was expired already, or its reward was forgotten, so nobody waits for it; leave it "
                                  "out");
    const auto arm = arm_of(d);
    const bool has_cost_to_come = is_cost_to_come(d);
    if (act == Act::rehearse) return;
    if (arm) end(*arm, d.explored);
    if (has_cost_to_come) spending_->expire();
    d.expired = true;
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
