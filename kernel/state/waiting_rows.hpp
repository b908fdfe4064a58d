// Rows that wait to be added to an arm's sums together, in the order in which they came: the same bits, but A is
// brought into the cache once for all of them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "state/outcomes/outcome_sums.hpp"
#include "state/sums.hpp"

namespace armlet {

class WaitingRows {
  public:
    bool is_open() const { return !lengths_.empty(); }
    // From now on rows may wait. An arm has room for as many as a solve takes the time of, or nearly.
    void open(std::size_t n_arms, std::size_t dim, std::size_t n_outcomes) {
        dim_ = dim, most_ = std::max<std::size_t>(8, dim / 4), n_outcomes_ = n_outcomes;
        rows_.assign(n_arms * place(1, 0), 0.0);
        margins_.assign(n_arms * margin_size(dim), 0.0);
        lengths_.assign(n_arms, 0);
        knows_.assign(n_arms, 0);
    }
    // The arms have changed; no row waits.
    void resize(std::size_t n_arms) {
        const std::size_t dim = dim_, n_outcomes = n_outcomes_;
        *this = {};
        open(n_arms, dim, n_outcomes);
    }
    void drop() {
        std::fill(lengths_.begin(), lengths_.end(), 0u);
        std::fill(knows_.begin(), knows_.end(), std::uint8_t{0});
    }

    bool any(std::size_t arm) const { return is_open() && lengths_[arm] > 0; }
    bool is_full(std::size_t arm) const { return lengths_[arm] == most_; }
    void put(std::size_t arm, const Sums& sums, const double* x, double reward, double weight, const double* outcomes) {
        double* row = rows_.data() + place(arm, lengths_[arm]++);
        row[0] = weight, row[1] = reward;
        std::copy_n(x, dim_, row + 2);
        std::copy_n(outcomes, n_outcomes_, row + 2 + dim_);
        add_to_margin(arm, sums, x, weight);
    }
    void settle(std::size_t arm, Sums& sums, OutcomeSums& outcomes) {
        const std::size_t length = std::exchange(lengths_[arm], 0u);
        for (std::size_t i = 0; i < length; ++i) {
            const double* row = rows_.data() + place(arm, i);
            sums.add(arm, row + 2, row[1], row[0]);
            if (n_outcomes_) outcomes.add(arm, row + 2, row + 2 + dim_, row[0]);
        }
    }
    // The sums of an arm, of which no row waits, have changed by other means.
    void forget(std::size_t arm) {
        if (is_open()) knows_[arm] = 0;
    }

    // n, with the weights of the rows that wait.
    double count(std::size_t arm, const Sums& sums) const { return any(arm) ? *margin(arm) : sums.n(arm); }
    // n, the first column of A and its diagonal, also; only after put().
    const double* margin(std::size_t arm) const { return margins_.data() + arm * margin_size(dim_); }
    static std::size_t margin_size(std::size_t dim) { return 1 + 2 * dim; }

    std::size_t bytes() const {
        return (rows_.capacity() + margins_.capacity()) * sizeof(double) + lengths_.capacity() * sizeof(std::uint32_t) +
               knows_.capacity();
    }

  private:
    std::size_t place(std::size_t arm, std::size_t i) const { return (arm * most_ + i) * (2 + dim_ + n_outcomes_); }

    // As `Sums` adds them.
    void add_to_margin(std::size_t arm, const Sums& sums, const double* x, double weight) {
        double *to = margins_.data() + arm * margin_size(dim_), *first = to + 1, *squares = first + dim_;
        if (!std::exchange(knows_[arm], 1)) sums.margin(arm, to);
        *to += weight;
        for (std::size_t j = 0; j < dim_; ++j) first[j] += weight * (x[0] * x[j]);
        for (std::size_t j = 0; j < dim_; ++j) squares[j] += weight * (x[j] * x[j]);
    }

    std::size_t dim_ = 0, most_ = 0, n_outcomes_ = 0;
    std::vector<double> rows_;            // (n_arms, most, 2 + dim + n_outcomes): w, r, x and outcomes of each
    std::vector<double> margins_;         // (n_arms, 1 + 2 dim)
    std::vector<std::uint32_t> lengths_;  // (n_arms,); empty unless rows may wait
    std::vector<std::uint8_t> knows_;     // (n_arms,): whether the margin is that of the sums and the rows that wait
};

}  // namespace armlet
