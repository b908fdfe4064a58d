// The budget of a bandit: which outcome it is of, how much of it is spent, and what a unit of it counts.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "bindings/outcomes/outcomes.hpp"
#include "budget/pacer.hpp"
#include "rules/choice.hpp"

namespace armlet {

class Spending {
  public:
    // (outcome, total, length, repeats, bound): `bound` is what any decision costs at most, or none if the total may be
    // exceeded.
    Spending(nb::handle given, const Outcomes& outcomes);

    const Pacer& pacer() const { return pacer_; }
    bool is_hard() const { return bound_.has_value(); }
    bool is_learned() const { return outcome_.is_learned; }
    std::size_t index() const { return outcome_.index; }  // among the outcomes that are learned, or known
    // Whether the total of a hard budget is exceeded once so much more is spent.
    bool is_exceeded_by(double more) const { return is_hard() && !pacer_.affords(more, 0.0); }
    bool is_of(const Spending& other) const {
        return outcome_.is_learned == other.outcome_.is_learned && outcome_.index == other.outcome_.index;
    }

    // The weights that a decision is made with at a price.
    void charge(Outcomes::Dial& dial, double price) const;
    // The cost of an outcome that is learned among those of a row; NaN if it has not come, or is known.
    double cost_in(std::span<const double> learned) const {
        return outcome_.is_learned ? learned[outcome_.index] : NAN;
    }

    // ---- events
    void begin(std::size_t arm, const Outcomes& outcomes);  // of a decision of this arm
    void count(double cost, bool was_expired);              // of a decision that nobody may have waited for any more
    void correct(double before, double after) { pacer_.correct(before, after); }
    void see(double reward) { pacer_.see(reward); }
    void expire();  // nobody waits for it any more, unless the budget is hard: then a cost is waited for until it comes
    void undo(std::size_t arm, const Outcomes& outcomes);  // a decision that nobody got

    // ---- hard budgets
    // Those of some arms whose cost the budget affords, or BudgetError if there are none.
    std::vector<std::uint32_t> affordable(Arms arms, const Outcomes& outcomes) const;
    // BudgetError unless it affords so many decisions, of any of these arms each.
    void check_affords(Arms arms, std::size_t decisions, const Outcomes& outcomes) const;

    // ---- what must be kept
    std::vector<double> values() const { return pacer_.values(); }
    void restore(std::span<const double> values) { pacer_.restore(values); }
    void merge(std::span<const double> values);

  private:
    double cost_of(std::size_t arm, const Outcomes& outcomes) const;  // at most
    [[noreturn]] void refuse(const std::string& what) const;

    Outcomes::Place outcome_;
    Pacer pacer_;
    std::optional<double> bound_;
};

}  // namespace armlet
