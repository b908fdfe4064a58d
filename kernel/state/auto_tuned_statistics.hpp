// Sums of explored rows, and the p that a rule sets by them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "state/statistics.hpp"

namespace armlet {

// How far p was raised, which arms share it, when to look again, and the latest contexts, on which a look is judged.
class Tuner {
  public:
    static constexpr std::size_t room = 64;  // contexts that are kept, the latest

    explicit Tuner(std::size_t dim) : dim_(dim), sample_(room * dim) {}
    // With shares of p, all alike.
    Tuner(std::size_t dim, std::size_t n_arms) : dim_(dim), sample_(room * dim), shares_(n_arms, 1.0) {}

    double raised() const { return p_; }
    double next() const { return next_; }
    void raise(double p) { p_ = p; }
    // (n_arms,): what part of p is whose, whatever they add up to; empty if all arms are explored alike.
    std::span<const double> shares() const { return shares_; }
    void share(std::span<const double> shares) { shares_.assign(shares.begin(), shares.end()); }
    void look_at(double rows) { next_ = rows; }
    // At the next row: what was known has changed by other means.
    void look_soon() { next_ = 0.0; }

    // A newcomer has a share of middle size.
    void append_arm();
    void erase_arm(std::size_t arm);
    // Arms that came after the first row, and arms that left for good.
    double came() const { return came_; }
    double left() const { return left_; }
    void turn_over(double came, double left) { came_ = came, left_ = left; }

    void keep(const double* x);
    // What is forgotten must leave no trace: its context goes as well, if it is still here.
    void drop(const double* x);
    // (m, dim): the contexts kept, the oldest first.
    std::vector<double> sample() const;

    void merge(const Tuner& other);
    // The other's arm i is this arm into[i]. Each has a say by its rows.
    void merge_shares(double rows, const Tuner& other, double other_rows, std::span<const std::size_t> into);
    // Forgets the contexts of an earlier one.
    void subtract(const Tuner& earlier);
    void restore(double p, double next, std::span<const double> sample);
    std::size_t bytes() const { return sizeof *this + (sample_.capacity() + shares_.capacity()) * sizeof(double); }

  private:
    const double* kept(std::size_t age) const { return sample_.data() + (first_ + age) % room * dim_; }

    std::size_t dim_;
    double p_ = 0.0;     // the highest so far; it falls only where arms come and go
    double next_ = 0.0;  // rows at the next look
    double came_ = 0.0, left_ = 0.0;
    std::vector<double> sample_;  // a ring
    std::vector<double> shares_;
    std::size_t first_ = 0, size_ = 0;
};

// Of all arms, with those that wait.
inline double rows_of(const Statistics& sums) {
    double n = 0.0;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm) n += sums.count(arm);
    return n;
}

struct AutoTunedStatistics : Statistics {
    AutoTunedStatistics(std::size_t n_arms, const Units& units, Ridge ridge)
        : Statistics(n_arms, units, ridge), tuner(units.is_free() ? Tuner(units.dim(), n_arms) : Tuner(units.dim())) {
        if (units.is_free()) count_under_way();
    }

    // Steps that an arm is there, if so many were played: infinite unless arms both come and go. Those that rest are
    // gone as long as they do.
    double life(double t) const {
        const double K = static_cast<double>(n_active()), resting = static_cast<double>(n_arms()) - K;
        const double turns = std::min(tuner.came(), tuner.left() + resting);
        return turns > 0.0 ? K * t / turns : std::numeric_limits<double>::infinity();
    }

    // p in proportion to the shares of the arms that may be played: rows that each arm is given to begin with. Of an
    // arm of which nothing has come back yet, no more than `least`.
    void set_quotas(double p, double least);
    std::span<const double> quotas() const { return quotas_; }
    // min(1, exp(1 - (n_a + e_a) / q_a)) of every arm, e_a the rows that are still to come of it; after set_quotas().
    // Without e, as if nothing were under way.
    void set_weights(std::span<const double> expected);
    std::span<const double> weights() const { return weights_.empty() ? exploration_weights() : weights_; }

    Tuner tuner;

  private:
    std::vector<double> quotas_;
    std::vector<double> weights_;  // if anything is to come
};

}  // namespace armlet
