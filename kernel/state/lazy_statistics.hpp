// Sums of all rows, estimates that are solved from them rarely, how noisy each arm's rewards are, and how many of them
// are under way. Where rows fade, estimates are solved when they are looked at, as of then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "state/statistics.hpp"

namespace armlet {

class LazyStatistics : public Statistics {
  public:
    // In free units the ridge may be left to the sums.
    LazyStatistics(std::size_t n_arms, const Units& units, Ridge ridge, bool finds_it, const Discount& discount = {})
        : Statistics(n_arms, units, ridge) {
        if (discount.is_on())
            open_discount(discount, Widths::plain), keep_penalties(), keep_factors();
        else
            solve_rarely();
        if (finds_it) find_ridge();
        refresh();
        count_under_way();
        deviations_.reserve(n_arms);
    }

    // What the noise of every arm is taken to be; only after refresh_deviations(), after refresh().
    std::span<const double> deviations() const { return deviations_; }
    void refresh_deviations(NoiseRule kind) {
        if (seen_ == changes() && kind == kind_) return;
        refresh_fits();
        Statistics::deviations(kind, deviations_);
        seen_ = changes(), kind_ = kind;
    }
    std::size_t bytes() const { return Statistics::bytes() + deviations_.capacity() * sizeof(double); }

  private:
    std::vector<double> deviations_;
    std::int64_t seen_ = -1;  // how much had changed when they were found
    NoiseRule kind_ = NoiseRule::max;
};

}  // namespace armlet
