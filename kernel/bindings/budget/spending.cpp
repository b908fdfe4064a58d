#include "bindings/budget/spending.hpp"

#include <algorithm>
#include <cmath>

#include "bindings/budget/pacer.hpp"
#include "bindings/engine/engine.hpp"

namespace armlet {

namespace {

Plan plan_of(nb::handle given) {
    return {
        .total = nb::cast<double>(given[1]), .length = nb::cast<double>(given[2]), .repeats = nb::cast<bool>(given[3])};
}

std::string shown(double amount) { return text(nb::str("{:g}").format(amount)); }

}  // namespace

Spending::Spending(nb::handle given, const Outcomes& outcomes)
    : outcome_(outcomes.place(given[0])),
      pacer_(plan_of(given)),
      bound_(nb::object(given[4]).is_none() ? std::nullopt : std::optional(nb::cast<double>(given[4]))) {}

void Spending::charge(Outcomes::Dial& dial, double price) const {
    (outcome_.is_learned ? dial.learned : dial.known)[outcome_.index] -= price;
}

void Spending::begin(std::size_t arm, const Outcomes& outcomes) {
    pacer_.begin();
    if (!outcome_.is_learned) pacer_.count(outcomes.price(outcome_.index, arm));
}

void Spending::count(double cost, bool was_expired) {
    if (was_expired && !is_hard()) pacer_.await();
    pacer_.count(cost);
}

void Spending::expire() {
    if (outcome_.is_learned && !is_hard()) pacer_.expire();
}

// It was a step of the clock all the same.
void Spending::undo(std::size_t arm, const Outcomes& outcomes) {
    if (outcome_.is_learned)
        pacer_.expire();
    else
        pacer_.correct(outcomes.price(outcome_.index, arm), 0.0);
}

double Spending::cost_of(std::size_t arm, const Outcomes& outcomes) const {
    return outcome_.is_learned ? *bound_ : outcomes.price(outcome_.index, arm);
}

std::vector<std::uint32_t> Spending::affordable(Arms arms, const Outcomes& outcomes) const {
    std::vector<std::uint32_t> out;
    for (const auto arm : arms)
        if (pacer_.affords(cost_of(arm, outcomes), *bound_)) out.push_back(arm);
    if (out.empty()) refuse("no eligible arm can be played without exceeding that");
    return out;
}

void Spending::check_affords(Arms arms, std::size_t decisions, const Outcomes& outcomes) const {
    double most = 0.0;
    for (const auto arm : arms) most = std::max(most, cost_of(arm, outcomes));
    const Plan& plan = pacer_.plan();
    const double begun = pacer_.decisions() < plan.length ? pacer_.decisions() : 0.0;  // the next begins a period
    const bool is_within = !plan.repeats || begun + static_cast<double>(decisions) <= plan.length;
    if (!is_within || !pacer_.affords(most * static_cast<double>(decisions), *bound_))
        refuse(std::to_string(decisions) + " decisions at once could exceed that; decide one by one");
}

void Spending::refuse(const std::string& what) const {
    const Plan& plan = pacer_.plan();
    const double left = plan.total - pacer_.spent();
    const std::string now = is_exceeded_by(0.0)
                                ? "is exceeded by " + shown(-left) + ": " + shown(pacer_.spent()) + " of " +
                                      text(plan.total) + " are spent, "
                                : "has " + shown(std::max(left, 0.0)) + " of " + text(plan.total) + " left, ";
    fail("BudgetError", "the budget is hard and " + now +
                            (outcome_.is_learned ? "some of it kept back for costs to come, and " : "and ") + what +
                            "; or go on with a larger one: replace(budget=...), of a loop change(budget=...)");
}

void Spending::merge(std::span<const double> values) {
    Pacer other(pacer_.plan());
    other.restore(values);
    pacer_.merge(other);
}

// ---- the bandit's side

void Engine::spend(std::uint32_t arm) {
    if (spending_) spending_->begin(arm, *outcomes_);
}

double Engine::spent_on(const Decision& d) const {
    return std::isnan(d.billed()) ? spending_->cost_in(outcomes_->so_far(d)) : d.billed();
}

// The first cost ends the wait for it, and moves the price; another one takes its place.
void Engine::spend_on(Decision& d, double cost) {
    const double before = spent_on(d);
    if (std::isnan(before))
        spending_->count(cost, d.expired);
    else
        spending_->correct(before, cost);
}

// Of a row of outcomes, if the cost is one that has just come.
void Engine::count_cost_of(std::span<const double> parts, Decision& d) {
    const double cost = spending_->cost_in(parts);
    if (std::isnan(cost)) return;
    spend_on(d, cost);
    if (d.extras) d.extras->billed = NAN;
}

void Engine::bill(nb::handle decision, nb::handle cost) {
    Decision& d = as_decision(decision);
    const double amount = armlet::read_reward(cost, "cost");
    if (!spending_ || !spending_->is_learned())
        fail(PyExc_ValueError, "cost is " + text(amount) + ", but " +
                                   (spending_ ? "the cost of every arm is known, and counts with the decision"
                                              : "the bandit has no budget; give it one: replace(budget=...)"));
    bill(d, amount);
}

void Engine::bill(Decision& d, double cost) {
    const auto fields = [&] {
        nb::dict out = recorded(d);
        out["cost"] = cost;
        if (d.has_outcomes()) out["reward"] = reward_of(d);
        if (d.learned) out["weight"] = d.weight;
        return out;
    };
    const double before = spent_on(d);
    warn_of_excess(d, std::isnan(before) ? cost : cost - before);
    change("bill", fields, [&](Act act) {
        const auto turn = learn_turn();
        check_state();
        check_known(d);
        if (act == Act::rehearse) return;
        spend_on(d, cost);
        d.extra().billed = cost;
    });
}

// The range says what may be learned; the money is gone.
void Engine::bill_outside(Decision& d, double cost) {
    const std::string message = text(outcomes_->name(spending_->index())) + " of decision " + d.id() + " is " +
                                text(cost) +
                                ", outside of its reward_range: it is spent, and nothing was learned of this call; "
                                "take a wider range, replace(reward_range=...), and learn it again";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) throw nb::python_error();
    bill(d, cost);
}

void Engine::warn_of_excess(const Decision& d, double more) const {
    if (!(more > 0.0) || !spending_->is_exceeded_by(more)) return;
    const double after = spending_->pacer().spent() + more;
    const std::string message = "the cost of decision " + d.id() + " takes the spend to " + shown(after) +
                                " of a hard budget of " + text(spending_->pacer().plan().total) +
                                ": it is spent, and no arm can be played before replace(budget=...)";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) throw nb::python_error();
}

bool Engine::is_cost_to_come(const Decision& d) const { return spending_ && std::isnan(spent_on(d)); }

std::optional<std::vector<std::uint32_t>> Engine::affordable(Arms arms) const {
    if (!spending_ || !spending_->is_hard()) return std::nullopt;
    auto out = spending_->affordable(arms, *outcomes_);
    return out.size() < arms.size() ? std::optional(std::move(out)) : std::nullopt;
}

void Engine::take_budget(nb::handle budget) {
    auto before = std::exchange(spending_, std::nullopt);
    if (budget.is_none()) {
        if (epochs_.current) epochs_.current->price = 0.0;  // nothing has a price any more
        return;
    }
    spending_.emplace(budget, *outcomes_);
    if (before) spending_->restore(before->values());
}

nb::object Engine::spending() const {
    if (!spending_) return nb::none();
    const Pacer& pacer = spending_->pacer();
    return nb::make_tuple(pacer.price(), pacer.spent(), static_cast<Word>(pacer.decisions()),
                          static_cast<Word>(std::max(pacer.waiting(), 0.0)));
}

nb::object Engine::spending_values() const {
    return spending_ ? nb::cast(pacer_array(spending_->pacer())) : nb::none();
}

void Engine::restore_spending(nb::handle values) {
    if (spending_) spending_->restore(read_pacer_values(values));
}

}  // namespace armlet
