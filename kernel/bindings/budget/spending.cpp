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
    if (was_expired) pacer_.await();
    pacer_.count(cost);
}

void Spending::await() {
    if (outcome_.is_learned) pacer_.await();
}

void Spending::expire() {
    if (outcome_.is_learned) pacer_.expire();
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
    nb::str left = nb::str("{:g}").format(std::max(plan.total - pacer_.spent(), 0.0));
    fail("BudgetError", "the budget is hard and has " + text(left) + " of " + text(plan.total) + " left, " +
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

// Of a row of outcomes, if the cost is one that has just come.
void Engine::count_cost(std::span<const double> parts, const Decision& d) {
    if (!spending_) return;
    if (const double cost = spending_->cost_in(parts); !std::isnan(cost)) spending_->count(cost, d.expired);
}

bool Engine::is_cost_to_come(const Decision& d) const {
    return spending_ && std::isnan(spending_->cost_in(outcomes_->so_far(d)));
}

std::optional<std::vector<std::uint32_t>> Engine::affordable(Arms arms) const {
    if (!spending_ || !spending_->is_hard()) return std::nullopt;
    auto out = spending_->affordable(arms, *outcomes_);
    return out.size() < arms.size() ? std::optional(std::move(out)) : std::nullopt;
}

void Engine::take_budget(nb::handle budget) {
    auto before = std::exchange(spending_, std::nullopt);
    if (budget.is_none()) return;
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
