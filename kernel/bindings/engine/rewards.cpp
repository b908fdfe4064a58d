// The reward of a decision: learned, corrected, forgotten. It has parts: one, which is the reward itself, or outcomes,
// which may come apart; NaN stands for one that has not come.
#include <algorithm>
#include <cmath>

#include "bindings/engine/engine.hpp"

namespace armlet {

namespace {

void check_holds(const Statistics& s, std::size_t arm, double weight, When when, const char* what) {
    const double n = s.count(arm);
    if (n < 0.999 * s.aged(weight, when))
        fail("DecisionError", "there is nothing to " + std::string(what) + ": the arm has n = " + text(n) +
                                  " and the row counts " + text(weight) + "; another bandit learned it");
}

}  // namespace

Engine::Turn Engine::learn_turn() {
    check_alive();
    if (!rule_) return Turn(turns_);
    turns_.await_learn();
    return Turn();
}

// ---- parts

Values Engine::read_parts(nb::handle given, const char* argument) const {
    if (outcomes_) return outcomes_->read(given, argument);
    return Values(armlet::read_reward(given, argument));
}

void Engine::refuse_reward(double reward) const {
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

void Engine::check_range(std::size_t j, double value) const {
    outcomes_ ? outcomes_->check_range(j, value) : check_reward(value);
}

// But for a cost outside of its range, which is spent all the same.
void Engine::check_outcome_ranges(const Values& parts, double outside) const {
    for (std::size_t j = 0; j < parts.size(); ++j)
        if (!std::isnan(parts[j]) && !(parts[j] == outside)) outcomes_->check_range(j, parts[j]);
}

Values Engine::parts_of(const Decision& d) const {
    return outcomes_ ? outcomes_->so_far(d) : Values(d.learned ? d.reward : NAN);
}

// What a decision has with these parts, none of which it has already.
Values Engine::with_parts(const Decision& d, const Values& parts) const {
    Values all = parts_of(d);
    for (std::size_t j = 0; j < all.size(); ++j) {
        if (std::isnan(parts[j])) continue;
        if (!std::isnan(all[j]))
            fail("DecisionError", "decision " + d.id() + " has its " + text(outcomes_->name(j)) + " already, " +
                                      text(all[j]) + "; change it with correct(decision, old_reward, new_reward)");
        all[j] = parts[j];
    }
    return all;
}

// What a decision has once some of its parts are others.
Values Engine::corrected(const Decision& d, const Values& from, const Values& to) const {
    Values out = parts_of(d);
    for (std::size_t j = 0; j < from.size(); ++j) {
        if (std::isnan(from[j])) continue;
        if (out[j] != from[j]) refuse_parts(d, from, "old_reward");
        out[j] = to[j];
    }
    return out;
}

// They are not those that the decision has.
void Engine::refuse_parts(const Decision& d, const Values& parts, const char* argument) const {
    const Values has = parts_of(d);
    const auto is_missing = [](double part) { return std::isnan(part); };
    if (std::all_of(has.begin(), has.end(), is_missing))
        fail("DecisionError", "decision " + d.id() + " has no reward yet; learn(decision, reward) comes first");
    fail(PyExc_ValueError, std::string(argument) + " is " + quoted(written(parts)) + " but decision " + d.id() +
                               " was learned with " + quoted(written(has)) + "; pass that reward");
}

nb::object Engine::written(std::span<const double> parts) const {
    return outcomes_ ? nb::object(outcomes_->write(parts)) : nb::float_(parts[0]);
}

void Engine::keep_parts(Decision& d, std::span<const double> parts) const {
    if (outcomes_) d.extra().outcomes = outcomes_->named(parts);
}

// A row has one weight: that of the parts that came first.
double Engine::read_part_weight(const Decision& d, nb::handle weight) const {
    const bool is_first = d.learned || !d.has_outcomes();
    const double w = weight.is_valid() ? read_weight(weight) : is_first ? 1.0 : d.weight;
    if (!is_first && w != d.weight)
        fail(PyExc_ValueError, "weight is " + text(w) + ", but the outcomes of decision " + d.id() +
                                   " that came first have weight " + text(d.weight) +
                                   ", and a row has one; leave it out, or give that");
    return w;
}

void Engine::note_learned(Decision& d, std::uint32_t arm, std::span<const double> parts, double weight) {
    if (!d.expired) end(arm, d.explored);
    keep_parts(d, parts);
    d.learned = true, d.reward = worth(parts), d.weight = weight, d.life = arms_.life(arm);
    if (spending_) spending_->see(d.reward + outcomes_->worth_of_known(arm));
}

// ---- the decision that a reward is of

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

Event Engine::event_of(const Decision& d, std::uint32_t arm, std::span<const double> parts, double weight,
                       const Values* before) {
    Event event{.t = d.t,
                .arm = arm,
                .x = seen(carried_context(d)),
                .reward = 0.0,
                .weight = weight,
                .propensity = d.propensity,
                .explored = d.explored,
                .tag = d.tag,
                .replaces = std::nullopt};
    set_reward(event, parts.data(), before ? before->data() : nullptr);
    return event;
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

const double* Engine::carried_context(const Decision& d) {
    const Columns* columns = history_.since(d.features);
    if (!columns) return d.x;
    carried_.resize(dim_);
    columns->carry(d.x, carried_.data());
    return carried_.data();
}

// ---- in the next three, all that may run Python comes first: between the look at `learned` and its change nobody else
// runs, or, for a policy in Python, nobody else has the turn. Numbers are read once, so that a recorder receives those
// that are learned.

void Engine::learn(nb::handle decision, nb::handle reward, nb::handle weight) {
    Decision& d = as_decision(decision);
    const Values parts = read_parts(reward, "reward");
    const double outside = bill_in(parts);
    check_ranges(parts, outside);
    if (!std::isnan(outside)) {
        check_learnable(d);
        with_parts(d, parts);
        return bill_outside(d, outside);
    }
    const double w = weight_of(d, weight);
    if (is_watching()) watch(d.x, watched_width(d), parts[0]);
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = written(parts), out["weight"] = w;
        return out;
    };
    change("learn", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_learnable(d);
        Values joined;
        if (outcomes_) joined = with_parts(d, parts);
        const Values& all = outcomes_ ? joined : parts;
        const auto arm = locate(d);
        if (outcomes_ && !all.is_whole()) {
            if (act == Act::rehearse) return;
            count_cost(parts, d);
            keep_parts(d, all);
            d.weight = w;
            return;
        }
        const Event event = event_of(d, arm, all, w);
        if (act == Act::rehearse) return rehearse(event);
        update(event);
        count_cost(parts, d);
        note_learned(d, arm, all, w);
    });
}

void Engine::correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward) {
    Decision& d = as_decision(decision);
    const Values from = read_parts(old_reward, "old_reward"), to = read_parts(new_reward, "new_reward");
    const double outside = bill_in(to);
    for (std::size_t j = 0; j < from.size(); ++j) {
        if (std::isnan(from[j]) != std::isnan(to[j]))
            fail(PyExc_ValueError, "old_reward is " + quoted(old_reward) + " and new_reward is " + quoted(new_reward) +
                                       "; give the same outcomes in both");
        if (!std::isnan(to[j]) && to[j] != from[j] && !(to[j] == outside)) check_range(j, to[j]);
    }
    const bool is_other_cost = spending_ && spending_->cost_in(to) != spending_->cost_in(from);
    if (is_other_cost && !std::isnan(outside)) {
        corrected(d, from, to);
        return bill_outside(d, outside);
    }
    if (is_other_cost) warn_of_excess(d, spending_->cost_in(to) - spent_on(d));
    Values before, after;
    const auto fields = [&] {  // all that it has, so that a replay need not look for the others
        nb::dict out = recorded(d);
        out["old_reward"] = written(before), out["new_reward"] = written(after), out["weight"] = d.weight;
        return out;
    };
    change("correct", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        before = parts_of(d), after = corrected(d, from, to);
        const auto arm = locate(d);
        if (d.learned) {
            check_can_take_back(d, arm, "correct");
            const Event event = event_of(d, arm, after, d.weight, &before);
            if (act == Act::rehearse) return rehearse(event);
            update(event);
            d.reward = worth(after);
        }
        if (act == Act::rehearse) return;
        if (is_other_cost) count_cost(to, d);  // a record has all outcomes, changed or not
        keep_parts(d, after);
    });
}

void Engine::forget(nb::handle decision, nb::handle reward) {
    Decision& d = as_decision(decision);
    const Values parts = read_parts(reward, "reward");
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = written(parts), out["weight"] = d.weight;
        return out;
    };
    change("forget", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        const Values all = parts_of(d);
        for (std::size_t j = 0; j < all.size(); ++j)
            if (all[j] != parts[j] && !(std::isnan(all[j]) && std::isnan(parts[j]))) refuse_parts(d, parts, "reward");
        const auto arm = locate(d);
        if (d.learned) {
            check_can_take_back(d, arm, "forget");
            const Event event = event_of(d, arm, all, -d.weight);
            if (act == Act::rehearse) return rehearse(event);
            update(event);
        }
        if (act == Act::rehearse) return;
        if (spending_ && !std::isnan(spent_on(d))) d.extra().billed = spent_on(d);  // not again, should it come again
        if (d.learned) d.learned = false, d.expired = true;
        if (d.extras) d.extras->outcomes = {};
    });
}

// ---- of rows

// Of n rows, row by row.
const double* Engine::rewards_of_rows(nb::handle rewards, const char* argument, std::size_t n) const {
    return outcomes_ ? doubles(rewards, argument, {n, n_values()}) : doubles(rewards, argument, {n});
}

std::vector<double> Engine::read_rewards(nb::handle rewards, const char* argument, std::size_t n) const {
    const std::vector<double> out = copy(rewards_of_rows(rewards, argument, n), n * n_values());
    for (std::size_t i = 0; i < out.size(); ++i) check_range(i % n_values(), out[i]);
    return out;
}

// From the parts of one row, and those that they take the place of.
void Engine::set_reward(Event& event, const double* parts, const double* before) const {
    const std::size_t n = n_values();
    event.reward = sign_ * worth({parts, n});
    if (before) event.replaces = sign_ * worth({before, n});
    if (outcomes_) event.outcomes = parts, event.outcomes_before = before;
}

nb::object Engine::reward_columns(const std::vector<double>& values) const {
    const std::size_t n = n_values();
    const auto column = [&](std::size_t j) {
        nb::list out;
        for (std::size_t i = j; i < values.size(); i += n) out.append(known(values[i]));
        return out;
    };
    if (!outcomes_) return column(0);
    nb::dict out;
    for (std::size_t j = 0; j < n; ++j) out[outcomes_->name(j)] = column(j);
    return out;
}

}  // namespace armlet
