// Sums of explored rows, and the p that a rule sets by them.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "state/statistics.hpp"

namespace armlet {

// How far p was raised, when to look again, and the latest contexts, on which a look is judged.
class Tuner {
  public:
    static constexpr std::size_t room = 64;  // contexts that are kept, the latest

    explicit Tuner(std::size_t dim) : dim_(dim), sample_(room * dim) {}

    double raised() const { return p_; }
    double next() const { return next_; }
    void raise(double p) { p_ = p; }
    void look_at(double rows) { next_ = rows; }
    // At the next row: what was known has changed by other means.
    void look_soon() { next_ = 0.0; }

    void keep(const double* x);
    // What is forgotten must leave no trace: its context goes as well, if it is still here.
    void drop(const double* x);
    // (m, dim): the contexts kept, the oldest first.
    std::vector<double> sample() const;

    void merge(const Tuner& other);
    // Forgets the contexts of an earlier one.
    void subtract(const Tuner& earlier);
    void restore(double p, double next, std::span<const double> sample);
    std::size_t bytes() const { return sizeof *this + sample_.capacity() * sizeof(double); }

  private:
    const double* kept(std::size_t age) const { return sample_.data() + (first_ + age) % room * dim_; }

    std::size_t dim_;
    double p_ = 0.0;              // the highest so far; it never falls
    double next_ = 0.0;           // rows at the next look
    std::vector<double> sample_;  // a ring
    std::size_t first_ = 0, size_ = 0;
};

struct Tuned : Statistics {
    Tuned(std::size_t n_arms, const Units& units, Ridge ridge) : Statistics(n_arms, units, ridge), tuner(units.dim()) {}

    Tuner tuner;
};

}  // namespace armlet
