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

double Engine::cost_outside(std::span<const double> parts) const {
    const double cost = spending_->cost_in(parts);
    return std::isnan(cost) || outcomes_->is_in_range(spending_->index(), cost) ? NAN : cost;
}

}  // namespace armlet
