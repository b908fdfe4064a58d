// A p that sets itself (Section 4.2): looks at what explored rows say, now and then, and explores as much as is
// predicted to cost the least regret up to a horizon.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "rules/epsilon_greedy.hpp"

namespace armlet {

// Algorithm 1 without a p.
struct AutoSchedule {
    double horizon;    // steps that are going to be played
    double caution;    // what predicted losses of exploiting are multiplied by
    double start;      // p is at least this many times the number of arms
    double most;       // and at most this share of the horizon
    bool round_robin;  // while every step explores: arm t mod K, or uniform
};

// What explored rows say about exploring.
struct Prospect {
    double noise;                // standard deviation of a reward
    double gap;                  // what a random arm loses a step
    std::vector<double> losses;  // what exploiting loses a step, with 1, 1.5, 1.5^2, ... times as many rows
    double p;                    // the best for the rest of the horizon; 0 if there is nothing to say
};

class Tuner {
  public:
    static constexpr std::size_t room = 64;  // contexts that are kept, the latest

    explicit Tuner(std::size_t dim) : dim_(dim), sample_(room * dim) {}

    double p(const AutoSchedule& rule, std::size_t n_arms) const {
        return std::max(p_, rule.start * static_cast<double>(n_arms));
    }
    Schedule schedule(const AutoSchedule& rule, std::size_t n_arms) const {
        return {p(rule, n_arms), rule.round_robin, false};
    }

    // An explored row of step t was added to the sums, or, with a negative weight, taken back. Looks if enough rows
    // came since the last time; returns whether p has changed.
    bool learned(const AutoSchedule& rule, Statistics& sums, const double* x, double weight, Word t);
    // Looks at the next row: what was known has changed by other means.
    void look_soon() { next_ = 0.0; }
    void merge(const Tuner& other);
    // Forgets the contexts of an earlier one.
    void subtract(const Tuner& earlier);

    // (m, dim): the contexts kept, the oldest first.
    std::vector<double> sample() const;
    double raised() const { return p_; }
    double next() const { return next_; }
    void restore(double p, double next, std::span<const double> sample);
    std::size_t bytes() const { return sizeof *this + sample_.capacity() * sizeof(double); }

  private:
    const double* kept(std::size_t age) const { return sample_.data() + (first_ + age) % room * dim_; }
    void keep(const double* x);
    void drop(const double* x);

    std::size_t dim_;
    double p_ = 0.0;              // the highest so far; it never falls
    double next_ = 0.0;           // rows at the next look
    std::vector<double> sample_;  // a ring
    std::size_t first_ = 0, size_ = 0;
};

// What to expect of exploring after n rows at step t, judged on a sample of contexts (m, dim).
Prospect look(const AutoSchedule& rule, Statistics& sums, std::span<const double> sample, double t);

// Sums of explored rows, and the p that follows from them.
struct Tuned : Statistics {
    Tuned(std::size_t n_arms, std::size_t dim, Ridge ridge) : Statistics(n_arms, dim, ridge), tuner(dim) {}

    Tuner tuner;
};

}  // namespace armlet
