#include "bindings/outcomes/outcomes.hpp"

#include <algorithm>
#include <cmath>

#include "bindings/engine/arm_table.hpp"
#include "bindings/engine/engine.hpp"

namespace armlet {

Outcomes::Outcomes(nb::handle given) {
    nb::object names = given[0], weights = given[1];
    nb::dict prices = nb::cast<nb::dict>(given[2]), ranges = nb::cast<nb::dict>(given[3]);
    const std::size_t n = nb::len(names);
    std::vector<double> usual, usual_known;
    nb::list learned;
    for (std::size_t i = 0; i < n; ++i) {
        nb::object name = names[i];
        const auto weight = nb::cast<double>(weights[i]);
        names_.push_back(name);
        if (prices.contains(name)) {
            places_.push_back({false, known_.size()});
            known_.push_back(name), usual_known.push_back(weight);
            price_lists_.push_back(nb::cast<nb::dict>(prices[name]));
            continue;
        }
        places_.push_back({true, learned_.size()});
        Learned one{name};
        if (ranges.contains(name)) {
            nb::object ends = nb::borrow(ranges[name]);
            one.has_range = true, one.low = nb::cast<double>(ends[0]), one.high = nb::cast<double>(ends[1]);
        }
        learned_.push_back(one), usual.push_back(weight), learned.append(name);
    }
    usual_ = {Values(usual), Values(usual_known)};
    all_names_ = nb::tuple(names), learned_names_ = nb::tuple(learned);
}

// No code of a subclass is asked whether names are equal.
std::optional<Outcomes::Place> Outcomes::find(nb::handle name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)  // the same object most of the time
        if (names_[i].is(name)) return places_[i];
    if (!PyUnicode_Check(name.ptr())) return std::nullopt;
    for (std::size_t i = 0; i < names_.size(); ++i)
        if (PyUnicode_Compare(names_[i].ptr(), name.ptr()) == 0) return places_[i];
    return std::nullopt;
}

void Outcomes::refuse(nb::handle name, nb::handle given, const char* argument) const {
    nb::list all;
    for (const auto& each : names_) all.append(each);
    fail(PyExc_ValueError, std::string(argument) + " is " + quoted(given) + ", but there is no outcome " +
                               quoted(name) + "; the bandit's are " + quoted(all));
}

double Outcomes::reward(std::span<const double> learned) const {
    double sum = 0.0;
    for (std::size_t j = 0; j < learned.size(); ++j) sum += usual_.learned[j] * learned[j];
    return sum;
}

void Outcomes::check_range(std::size_t j, double value) const {
    const Learned& one = learned_[j];
    if (!is_in_range(j, value))
        fail(PyExc_ValueError, text(one.name) + " is " + text(value) + " but reward_range has (" + text(one.low) +
                                   ", " + text(one.high) +
                                   ") for it; leave it out, or take a wider range: replace(reward_range=...)");
}

namespace {

// What a mapping holds, in a dict that no code can change while it is read.
nb::dict entries_of(nb::handle given, const char* argument, const nb::object& example) {
    if (!PyDict_Check(given.ptr()) && !nb::hasattr(given, "keys"))
        fail(PyExc_TypeError, std::string(argument) + " is " + quoted(given) + "; give numbers by outcome, such as {" +
                                  quoted(example) + ": 1.0}");
    nb::dict out;
    if (PyDict_Update(out.ptr(), given.ptr()) != 0) throw nb::python_error();
    return out;
}

double read_dial_weight(nb::handle name, nb::handle value) {
    try {
        if (!PyBool_Check(value.ptr())) return read_reward(value);
    } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    }
    fail(PyExc_ValueError,
         "weights has " + quoted(value) + " for " + quoted(name) + "; give a finite number of at most 1e40 in size");
}

}  // namespace

// Most are dicts of floats, of which nobody else can have a say; false if it is none, or puts nothing somewhere.
template <typename Put>
bool Outcomes::read_plain(nb::handle given, Put&& put) const {
    if (!PyDict_CheckExact(given.ptr())) return false;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(given.ptr(), &at, &name, &value);) {
        if (!PyFloat_CheckExact(value) || !(std::fabs(PyFloat_AS_DOUBLE(value)) <= largest_value)) return false;
        const auto place = find(name);
        if (!place || !put(*place, PyFloat_AS_DOUBLE(value))) return false;
    }
    return true;
}

Values Outcomes::read(nb::handle given, const char* argument) const {
    Values out(learned_.size());
    const auto put = [&](Place place, double value) { return place.is_learned && (out[place.index] = value, true); };
    if (read_plain(given, put) && PyDict_GET_SIZE(given.ptr()) > 0) return out;
    const nb::dict entries = entries_of(given, argument, learned_.front().name);
    if (entries.size() == 0)
        fail(PyExc_ValueError, std::string(argument) + " is empty; give at least one outcome, such as {" +
                                   quoted(learned_.front().name) + ": 1.0}");
    for (auto [name, value] : entries) {
        const auto place = find(name);
        if (!place) refuse(name, given, argument);
        if (!place->is_learned)
            fail(PyExc_ValueError,
                 std::string(argument) + " has " + quoted(name) + ", whose price of every arm is known; leave it out");
        put(*place, armlet::read_reward(value));
    }
    return out;
}

Values Outcomes::so_far(const Decision& d) const {
    if (!d.has_outcomes()) return Values(learned_.size());
    const NamedNumbers& held = d.extras->outcomes;
    return held.names.is(learned_names_) ? Values(std::span(held.values)) : read(held.to_dict(), "reward");
}

Outcomes::Dial Outcomes::read_dial(nb::handle weights) const {
    Dial out = usual_;
    const auto put = [&](Place place, double value) {
        (place.is_learned ? out.learned : out.known)[place.index] = value;
        return true;
    };
    if (read_plain(weights, put)) return out;
    for (auto [name, value] : entries_of(weights, "weights", names_.front())) {
        const auto place = find(name);
        if (!place) refuse(name, weights, "weights");
        put(*place, read_dial_weight(name, value));
    }
    return out;
}

NamedNumbers Outcomes::named(const Dial& dial) const {
    std::vector<double> values;
    values.reserve(places_.size());
    for (const Place& place : places_) values.push_back((place.is_learned ? dial.learned : dial.known)[place.index]);
    return {all_names_, std::move(values)};
}

void Outcomes::check_price(nb::handle label) const {
    for (std::size_t k = 0; k < known_.size(); ++k)
        if (!price_lists_[k].contains(label))
            fail(PyExc_ValueError,
                 "known has no " + text(known_[k]) + " of arm " + quoted(label) +
                     "; give it first: replace(known=...) with the prices of all arms, that one too; of a loop: "
                     "add_arm(..., known=...)");
}

void Outcomes::take_prices(const nb::list& labels) {
    prices_.assign(known_.size(), {});
    for (nb::handle label : labels) {
        const nb::object key = key_of(label);  // no code of a subclass is asked
        check_price(key);
        for (std::size_t k = 0; k < known_.size(); ++k) prices_[k].push_back(nb::cast<double>(price_lists_[k][key]));
    }
}

std::vector<double> Outcomes::offsets(const Dial& dial) const {
    if (known_.empty()) return {};
    std::vector<double> out(prices_.front().size(), 0.0);
    for (std::size_t k = 0; k < known_.size(); ++k)
        for (std::size_t arm = 0; arm < out.size(); ++arm) out[arm] += dial.known[k] * prices_[k][arm];
    return out;
}

double Outcomes::worth_of_known(std::size_t arm) const {
    double out = 0.0;
    for (std::size_t k = 0; k < known_.size(); ++k) out += usual_.known[k] * prices_[k][arm];
    return out;
}

int Outcomes::traverse(visitproc visit, void* arg) const {
    for (const auto& list : price_lists_) Py_VISIT(list.ptr());
    return 0;
}

// ---- the bandit's side

// Prices are those of the arms that there are now.
void Engine::take_outcomes() {
    if (!outcomes_) return;
    outcomes_->take_prices(labels());
    if (model_.has_sums())
        model_.sums().set_usual_weights(outcomes_->usual().learned, outcomes_->offsets(outcomes_->usual()));
}

std::optional<Outcomes::Dial> Engine::read_dial(nb::handle weights) const {
    if (weights.is_none()) return std::nullopt;
    if (!outcomes_)
        fail(PyExc_ValueError, "weights is " + quoted(weights) +
                                   ", but the bandit has one reward; weights are for one that was made with outcomes");
    return outcomes_->read_dial(weights);
}

void Engine::weigh(const Model& model, const std::optional<Outcomes::Dial>& dial, double price) {
    if (!outcomes_) return;
    Outcomes::Dial charged;
    if (price > 0.0) {
        charged = dial ? *dial : outcomes_->usual();
        spending_->charge(charged, price);
    }
    const Outcomes::Dial& weights = price > 0.0 ? charged : dial ? *dial : outcomes_->usual();
    if (model.has_sums()) model.sums().weigh(weights.learned, outcomes_->offsets(weights));
}

nb::tuple Engine::view_weighed(nb::object labels, nb::object playable, const std::optional<Outcomes::Dial>& dial,
                               Price price) {
    Statistics& all = model_.sums();
    weigh(model_, dial, price == Price::charged ? price_now() : 0.0);
    all.refresh();
    const Estimates e = all.estimates();
    std::vector<double> theta(all.n_arms() * e.dim);
    for (std::size_t arm = 0; arm < all.n_arms(); ++arm)
        for (std::size_t j = 0; j < e.dim; ++j) theta[arm * e.dim + j] = e.theta[j * e.width + arm];
    const auto& weights = dial ? dial->learned : outcomes_->usual().learned;
    double base = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) base += weights[j] * all.outcomes().base(j);
    nb::object estimates = nb::cast(to_numpy(std::move(theta), {all.n_arms(), e.dim}));
    return nb::make_tuple(labels, playable, estimates, all.units().is_free() ? nb::cast(all.units()) : nb::none(),
                          base);
}

// Of n rows, row by row.
const double* Engine::rewards_of_rows(nb::handle rewards, const char* argument, std::size_t n) const {
    return outcomes_ ? doubles(rewards, argument, {n, n_values()}) : doubles(rewards, argument, {n});
}

std::vector<double> Engine::read_rewards(nb::handle rewards, const char* argument, std::size_t n) const {
    const std::vector<double> out = copy(rewards_of_rows(rewards, argument, n), n * n_values());
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (outcomes_)
            outcomes_->check_range(i % n_values(), out[i]);
        else
            check_reward(out[i]);
    }
    return out;
}

// From the values of one row, and those that they take the place of.
void Engine::set_reward(Event& event, const double* values, const double* before) const {
    if (!outcomes_) {
        event.reward = sign_ * *values;
        if (before) event.replaces = sign_ * *before;
        return;
    }
    const std::size_t n = n_values();
    event.reward = outcomes_->reward({values, n}), event.outcomes = values;
    if (before) event.replaces = outcomes_->reward({before, n}), event.outcomes_before = before;
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

double Engine::bill_in(std::span<const double> parts) const {
    const double cost = spending_ ? spending_->cost_in(parts) : NAN;
    return std::isnan(cost) || outcomes_->is_in_range(spending_->index(), cost) ? NAN : cost;
}

// What a decision has with these parts, none of which it has already.
Values Engine::with_parts(const Decision& d, const Values& parts) const {
    Values all = outcomes_->so_far(d);
    for (std::size_t j = 0; j < all.size(); ++j) {
        if (std::isnan(parts[j])) continue;
        if (!std::isnan(all[j]))
            fail("DecisionError", "decision " + d.id() + " has its " + text(outcomes_->name(j)) + " already, " +
                                      text(all[j]) + "; change it with correct(decision, old_reward, new_reward)");
        all[j] = parts[j];
    }
    return all;
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

void Engine::learn_outcomes(Decision& d, nb::handle given, nb::handle weight) {
    const Values parts = outcomes_->read(given, "reward");
    const double outside = bill_in(parts);
    for (std::size_t j = 0; j < parts.size(); ++j)
        if (!std::isnan(parts[j]) && !(parts[j] == outside)) outcomes_->check_range(j, parts[j]);
    if (!std::isnan(outside)) {
        check_learnable(d);
        with_parts(d, parts);
        return bill_outside(d, outside);
    }
    const double w = read_part_weight(d, weight);
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = outcomes_->write(parts), out["weight"] = w;
        return out;
    };
    change("learn", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_learnable(d);
        const Values all = with_parts(d, parts);
        const auto arm = locate(d);
        if (act == Act::rehearse) return;
        count_cost(parts, d);
        d.extra().outcomes = outcomes_->named(all);
        d.weight = w;
        if (!all.is_whole()) return;
        const double reward = outcomes_->reward(all);
        Event event = event_of(d, arm, reward, w, std::nullopt);
        event.outcomes = all.data();
        update(event);
        note_learned(d, arm, reward, w);
    });
}

// What a decision has once some of its outcomes are others.
Values Engine::corrected(const Decision& d, const Values& from, const Values& to) const {
    Values out = outcomes_->so_far(d);
    for (std::size_t j = 0; j < from.size(); ++j) {
        if (std::isnan(from[j])) continue;
        if (!(out[j] == from[j]))
            fail(PyExc_ValueError,
                 "old_reward has " + text(from[j]) + " for " + text(outcomes_->name(j)) + " but decision " + d.id() +
                     (std::isnan(out[j]) ? " has none yet; learn it first" : " has " + text(out[j]) + "; pass that"));
        out[j] = to[j];
    }
    return out;
}

void Engine::correct_outcomes(Decision& d, nb::handle old_reward, nb::handle new_reward) {
    const Values from = outcomes_->read(old_reward, "old_reward"), to = outcomes_->read(new_reward, "new_reward");
    const double outside = bill_in(to);
    for (std::size_t j = 0; j < from.size(); ++j) {
        if (std::isnan(from[j]) != std::isnan(to[j]))
            fail(PyExc_ValueError, "old_reward is " + quoted(old_reward) + " and new_reward is " + quoted(new_reward) +
                                       "; give the same outcomes in both");
        if (!std::isnan(to[j]) && to[j] != from[j] && !(to[j] == outside)) outcomes_->check_range(j, to[j]);
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
        out["old_reward"] = outcomes_->write(before), out["new_reward"] = outcomes_->write(after);
        out["weight"] = d.weight;
        return out;
    };
    change("correct", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        before = outcomes_->so_far(d), after = corrected(d, from, to);
        const auto arm = locate(d);
        if (d.learned) check_can_take_back(d, arm, "correct");
        if (act == Act::rehearse) return;
        if (d.learned) {
            Event event = event_of(d, arm, outcomes_->reward(after), d.weight, outcomes_->reward(before));
            event.outcomes = after.data(), event.outcomes_before = before.data();
            update(event);
            d.reward = outcomes_->reward(after);
        }
        if (is_other_cost) count_cost(to, d);  // a record has all outcomes, changed or not
        d.extra().outcomes = outcomes_->named(after);
    });
}

void Engine::forget_outcomes(Decision& d, nb::handle given) {
    const Values parts = outcomes_->read(given, "reward");
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["reward"] = outcomes_->write(parts), out["weight"] = d.weight;
        return out;
    };
    change("forget", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        const Values all = outcomes_->so_far(d);
        for (std::size_t j = 0; j < all.size(); ++j)
            if (!(all[j] == parts[j]) && !(std::isnan(all[j]) && std::isnan(parts[j])))
                fail(PyExc_ValueError, "reward is " + quoted(given) + " but decision " + d.id() + " has " +
                                           quoted(outcomes_->write(all)) + "; pass that");
        const auto arm = locate(d);
        if (d.learned) check_can_take_back(d, arm, "forget");
        if (act == Act::rehearse) return;
        if (spending_ && !std::isnan(spent_on(d))) d.extra().billed = spent_on(d);  // not again, should it come again
        if (d.learned) {
            Event event = event_of(d, arm, outcomes_->reward(all), -d.weight, std::nullopt);
            event.outcomes = all.data();
            update(event);
            d.learned = false, d.expired = true;
        }
        if (d.extras) d.extras->outcomes = {};
    });
}

}  // namespace armlet
