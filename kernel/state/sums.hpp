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
    // From now on also A2 = sum w^2 x x', packed; there are no rows yet.
    void keep_squares() { squares_.assign(n_arms_ * packed_size(dim_), 0.0); }
    bool keeps_squares() const { return !squares_.empty(); }
    std::span<const double> squares() const { return squares_; }
    std::span<const double> squares(std::size_t arm) const {
        const std::size_t size = keeps_squares() ? packed_size(dim_) : 0;
        return {squares_.data() + arm * size, size};
    }
    void restore_squares(std::size_t arm, std::span<const double> square);
    // Multiplies everything by a power of two, and A2 by its square. An arm that counts next to nothing is left with
    // nothing.
    void scale(double factor);
    // n, the first column of A and its diagonal: 1 + 2 dim numbers.
    void margin(std::size_t arm, double* out) const;

    // n += w, b += w r x, A += w x x'; a negative weight takes a row back.
    void add(std::size_t arm, const double* x, double reward, double weight);
    // The row stays, its reward changes.
    void correct(std::size_t arm, const double* x, double from, double to, double weight);
    void merge(std::size_t arm, std::span<const double> record);
    void merge_squares(std::size_t arm, std::span<const double> square, double sign);
    // Takes an earlier record away; what is left of no rows is nothing.
    void subtract(std::size_t arm, std::span<const double> earlier);
    void clear(std::size_t arm);
    // Column j is this multiple of the first one, the constant, in all rows of all arms.
    void set_multiples(std::span<const std::size_t> columns, std::span<const double> multiples);
    void restore(std::size_t arm, std::span<const double> record);
    void restore(std::span<const double> records);
    void append_arm();
    void erase_arm(std::size_t arm);

    std::size_t bytes() const { return (records_.capacity() + squares_.capacity()) * sizeof(double); }

  private:
    const double* at(std::size_t arm) const { return records_.data() + arm * record_size(); }
    double* at(std::size_t arm) { return records_.data() + arm * record_size(); }

    std::size_t n_arms_, dim_;
    std::vector<double> records_;
    std::vector<double> squares_;  // (n_arms, packed); empty unless kept
};

}  // namespace armlet
