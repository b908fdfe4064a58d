// What Algorithm 1 remembers: n, sum r, sum r^2, b and A of every arm. They add up, whatever the order of the rows.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "linear/linear.hpp"

namespace armlet {

class Sums {
  public:
    Sums(std::size_t n_arms, std::size_t dim) : n_arms_(n_arms), dim_(dim), records_(n_arms * record_size()) {}

    std::size_t n_arms() const { return n_arms_; }
    std::size_t dim() const { return dim_; }

    // One arm's record: n, sum_r, sum_rr, b (dim), A (packed). All arms' lie one after the other.
    std::size_t record_size() const { return 3 + dim_ + packed_size(dim_); }
    std::span<const double> records() const { return records_; }
    std::span<const double> record(std::size_t arm) const { return {at(arm), record_size()}; }
    double n(std::size_t arm) const { return *at(arm); }
    double sum_rr(std::size_t arm) const { return at(arm)[2]; }
    const double* b(std::size_t arm) const { return at(arm) + 3; }
    const double* A(std::size_t arm) const { return at(arm) + 3 + dim_; }
    // n, the first column of A and its diagonal: 1 + 2 dim numbers.
    void margin(std::size_t arm, double* out) const;

    // n += w, b += w r x, A += w x x'; a negative weight takes a row back.
    void add(std::size_t arm, const double* x, double reward, double weight);
    // The row stays, its reward changes.
    void correct(std::size_t arm, const double* x, double from, double to, double weight);
    void merge(std::size_t arm, std::span<const double> record);
    // Takes an earlier record away; what is left of no rows is nothing.
    void subtract(std::size_t arm, std::span<const double> earlier);
    void restore(std::size_t arm, std::span<const double> record);
    void restore(std::span<const double> records);
    void append_arm();
    void erase_arm(std::size_t arm);

    std::size_t bytes() const { return records_.capacity() * sizeof(double); }

  private:
    const double* at(std::size_t arm) const { return records_.data() + arm * record_size(); }
    double* at(std::size_t arm) { return records_.data() + arm * record_size(); }

    std::size_t n_arms_, dim_;
    std::vector<double> records_;
};

}  // namespace armlet
