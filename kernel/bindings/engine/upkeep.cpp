// What happens to a bandit now and then: arms that come and go, copies, merges.
#include "bindings/binding.hpp"
#include "bindings/budget/pacer.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/handed_over.hpp"
#include "bindings/rule_binding.hpp"

namespace armlet {

namespace {

// What a recorder receives of an arm.
nb::dict of_arm(const nb::object& key) {
    nb::dict out;
    out["arm"] = key;
    return out;
}

}  // namespace

// ---- arms

void Engine::add_arm(nb::object label) {
    const nb::object key = key_of(label);
    change(
        "add_arm", [&] { return of_arm(key); },
        [&](Act act) {
            const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
            if (arms_.find(key))
                fail(PyExc_ValueError,
                     "there is an arm " + quoted(label) + " already; restore_arm brings a retired one back");
            policy.attr("check")(arms_.size() + 1, dim_, t);
            if (outcomes_) outcomes_->check_price(key);
            if (act == Act::rehearse) {
                nb::object copy = state.attr("copy")();
                copy.attr("add_arm")();  // it may refuse
                if (has_python_state()) rehearsed_ = copy;
                return;
            }
            if (!take_rehearsed()) state.attr("add_arm")();
            if (epochs_.current) epochs_.current->state.attr("add_arm")();
            arms_.add(label);
            take_outcomes();
        });
}

void Engine::remove_arm(nb::handle label) {
    const nb::object key = key_of(label);
    change(
        "remove_arm", [&] { return of_arm(key); },
        [&](Act act) {
            const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
            const auto arm = arms_.at(key);
            if (arms_.is_last_active(arm) || arms_.size() == 1)
                fail(PyExc_ValueError,
                     "arm " + quoted(label) + " is the only one left to play; add another before removing it");
            policy.attr("check")(arms_.size() - 1, dim_, t);
            if (act == Act::rehearse) {
                nb::object copy = state.attr("copy")();
                copy.attr("remove_arm")(arm);
                if (has_python_state()) rehearsed_ = copy;
                return;
            }
            if (!take_rehearsed()) state.attr("remove_arm")(arm);
            if (epochs_.current) epochs_.current->state.attr("remove_arm")(arm);
            arms_.remove(arm);
            take_outcomes();
        });
}

void Engine::set_active(nb::handle label, bool active) {
    const nb::object key = key_of(label);
    change(
        active ? "restore_arm" : "retire_arm", [&] { return of_arm(key); },
        [&](Act act) {
            const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
            const auto arm = arms_.at(key);
            if (!active && arms_.is_last_active(arm))
                fail(PyExc_ValueError,
                     "arm " + quoted(label) + " is the only one left to play; add another before retiring it");
            if (act == Act::rehearse) return;
            arms_.set_active(arm, active);
            tell_state();
        });
}

ArmSet Engine::arm_set(nb::handle labels) const {
    const auto keys = keys_of(labels);
    if (!keys) fail(PyExc_TypeError, "labels is None; give a list of labels");
    return arms_.look_up(*keys);
}

// ---- units

void Engine::set_epochs(std::optional<Word> length, nb::handle under_way) {
    epochs_.length = length;
    if (under_way.is_none()) return epochs_.current.reset();
    const auto [number, step] = std::pair(nb::cast<Word>(under_way[0]), nb::cast<Word>(under_way[1]));
    epochs_.current.emplace(number, step, nb::cast<double>(under_way[3]), nb::object(under_way[2]), policy, rule_,
                            dim_);
    tell_state();
}

void Engine::begin_epoch(Word number, Word step) {
    const auto turn = learn_turn();
    check_state();
    if (auto begun = new_epoch({nb::str(""), number}, step)) epochs_.current = std::move(begun);
}

nb::object Engine::epoch_under_way() const {
    if (!epochs_.current) return nb::none();
    const Epoch& epoch = *epochs_.current;
    return nb::make_tuple(epoch.number, epoch.step, epoch.state.attr("copy")(), epoch.price);
}

std::optional<Word> Engine::epoch_number() const {
    return epochs_.current ? std::optional(epochs_.current->number) : std::nullopt;
}

// ---- the whole

void Engine::know(nb::handle seed) { streams_.add(parse_seed(seed)); }

nb::object Engine::seed() const { return to_python(streams_.own()); }

void Engine::reseed(nb::handle seed) {
    const Seed next = parse_seed(seed);
    if (recording_)
        fail("BusyError", "a new seed ends a log; save the bandit, and load it with a seed and a log of its own");
    const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
    if (streams_.knows(next))
        fail(PyExc_ValueError, "seed is " + text(seed) +
                                   ", which was in use already, so its coins and ids would come again; give another "
                                   "one, or leave it out");
    streams_.change(next);
}

nb::object Engine::snapshot() {
    check_alive();
    std::optional<Turns::Whole> turn;
    if (python_policy_)
        turn.emplace(turns_, Turns::Whole::Purpose::look);
    else
        turns_.await_settled();
    nb::list others;
    for (const Seed stream : streams_.others()) others.append(to_python(stream));
    return handed_over(Part::snapshot)(t, labels(), retired(), state.attr("copy")(), seed(), others, epoch_under_way(),
                                       spending_values());
}

void Engine::become(const Engine& other, nb::handle values) {
    const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
    ArmTable arms = other.arms_;
    if (arms.labels().equal(arms_.labels())) arms.continue_lives(arms_);
    policy = other.policy, state = other.state, rule_ = other.rule_, model_ = other.model_;
    python_policy_ = other.python_policy_, arms_ = std::move(arms), epochs_ = other.epochs_, t = other.t;
    read_context_ = other.read_context_, names_ = other.names_, range_ = other.range_, bounds_ = other.bounds_;
    outcomes_ = other.outcomes_, spending_ = other.spending_, digits_ = other.digits_;
    if (dim_ != other.dim_) history_ = other.history_;
    dim_ = other.dim_, scaled_ = other.scaled_, learns_always_ = other.learns_always_, ++reading_;
    fixed_rows = other.fixed_rows;
    set_values(values);
}

void Engine::restore(nb::object other, const nb::list& labels, Word steps, std::optional<double> fixed) {
    if (recording_)
        fail("BusyError", "fit forgets what the bandit's log tells; begin a new bandit, with a log of its own");
    const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
    const Word after = next_steps(steps);
    if (!arms_.labels().equal(labels))
        fail(PyExc_ValueError, "arms were added or removed meanwhile; nothing was learned, try again");
    state.attr("restore_arrays")(other.attr("arrays")());
    epochs_.current.reset();
    t = after, fixed_rows = fixed.value_or(fixed_rows);
}

void Engine::replace(const Replacement& next) {
    change(
        "replace", [&] { return nb::cast<nb::dict>(next.fields()); },
        [&](Act act) {
            const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
            const std::size_t dim = next.columns ? next.columns->sources.size() : dim_;
            next.policy.attr("check")(arms_.size(), dim, t);
            nb::object fresh = next.renew(state);
            const auto rule = next.rule.is_none() ? std::nullopt : std::optional(read_rule(next.rule));
            check_takes(next.outcomes, next.policy, rule);
            const Model model = rule ? read_model(*rule, fresh) : model_in(fresh);
            auto names = names_of(next.features, dim);
            std::vector<double> room(dim);
            auto outcomes =
                next.outcomes.is_none() ? std::nullopt : std::optional<Outcomes>(std::in_place, next.outcomes);
            if (outcomes) outcomes->take_prices(labels());  // which may be missing
            const bool learns_always = text(next.policy.attr("learns_from")) == "every step";
            if (act == Act::rehearse) return;
            if (!fresh.is(state)) epochs_.current.reset();  // it was made for another
            policy = next.policy, state = fresh, rule_ = rule, model_ = model;
            read_context_ = next.read_context, names_ = std::move(names), range_ = next.range;
            outcomes_ = std::move(outcomes);
            if (next.columns || next.bounds != bounds_) bounds_ = next.bounds, ++reading_;
            take_budget(next.budget);
            if (next.columns) {
                history_.leave(*next.columns);
                dim_ = dim, scaled_ = std::move(room);
                if (digits_) digits_.emplace(dim_);
            }
            python_policy_.reset();
            if (!rule_) python_policy_.emplace(policy, state, dim_);
            learns_always_ = learns_always;
            take_outcomes();
            tell_state();
            set_values(next.values);
        });
}

// Tried on a copy first, so that a refusal leaves everything as it was.
void Engine::merge(nb::object other, const nb::list& labels, const nb::list& retired, Word steps, const nb::list& seeds,
                   nb::handle spending, const nb::callable& fields, const Engine& from) {
    change(
        "merge", [&] { return nb::cast<nb::dict>(fields()); },
        [&](Act act) {
            const Turns::Whole turn(turns_, Turns::Whole::Purpose::change);
            const Word after = next_steps(steps);
            if (forgets_by_time()) check_clock(nb::cast<const Statistics&>(other));
            std::vector<nb::object> fresh;
            nb::list into;
            for (nb::handle label : labels) {
                const auto arm = arms_.find(key_of(label));
                into.append(arm ? *arm : arms_.size() + fresh.size());
                if (!arm) fresh.push_back(nb::borrow(label));
            }
            policy.attr("check")(arms_.size() + fresh.size(), dim_, t);
            if (outcomes_)
                for (const auto& label : fresh) outcomes_->check_price(key_of(label));
            nb::object trial = state.attr("copy")(), rehearsal = state.attr("copy")();
            for (std::size_t i = 0; i < fresh.size(); ++i) trial.attr("add_arm")(), rehearsal.attr("add_arm")();
            trial.attr("merge")(other, into);
            nb::object arrays = trial.attr("arrays")();
            rehearsal.attr("restore_arrays")(arrays);  // sums that overflowed are refused here
            if (act == Act::rehearse) {
                if (has_python_state()) rehearsed_ = trial;
                return;
            }
            const bool is_done = take_rehearsed();
            for (const auto& label : fresh) {
                if (!is_done) state.attr("add_arm")();
                arms_.add(label);
                if (nb::cast<bool>(retired.attr("__contains__")(label))) arms_.set_active(arms_.size() - 1, false);
            }
            if (!is_done) state.attr("restore_arrays")(arrays);
            epochs_.current.reset();
            take_outcomes();
            tell_state();
            if (spending_ && !spending.is_none()) spending_->merge(read_pacer_values(spending));
            if (!recording_)  // a log holds no seeds, so a replay could not know the other's decisions
                for (nb::handle seed : seeds) streams_.add(parse_seed(seed));
            history_.know(from.history_);
            t = after, fixed_rows += from.fixed_rows;
        });
}

}  // namespace armlet
