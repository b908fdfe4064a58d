// Rows that wait to be added to an arm's sums together, in the order in which they came: the same bits, but A is
// brought into the cache once for all of them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "state/sums.hpp"

namespace armlet {

class WaitingRows {
  public:
    static constexpr std::size_t most = 8;  // of an arm

    bool is_open() const { return !lengths_.empty(); }
    // From now on rows may wait.
    void open(std::size_t n_arms, std::size_t dim) {
        dim_ = dim;
        rows_.assign(n_arms * most * (2 + dim), 0.0);
        lengths_.assign(n_arms, 0);
    }
    // The arms have changed; no row waits.
    void resize(std::size_t n_arms) {
        const std::size_t dim = dim_;
        *this = {};
        open(n_arms, dim);
    }
    void drop() { std::fill(lengths_.begin(), lengths_.end(), std::uint8_t{0}); }

    bool any(std::size_t arm) const { return is_open() && lengths_[arm] > 0; }
    // Returns whether the arm has no room for another.
    bool put(std::size_t arm, const double* x, double reward, double weight) {
        double* row = rows_.data() + place(arm, lengths_[arm]++);
        row[0] = weight, row[1] = reward;
        std::copy_n(x, dim_, row + 2);
        return lengths_[arm] == most;
    }
    void settle(std::size_t arm, Sums& sums) {
        const std::size_t length = std::exchange(lengths_[arm], std::uint8_t{0});
        for (std::size_t i = 0; i < length; ++i) {
            const double* row = rows_.data() + place(arm, i);
            sums.add(arm, row + 2, row[1], row[0]);
        }
    }
    // n, with the weights of the rows that wait.
    double add_to(double n, std::size_t arm) const {
        const std::size_t length = is_open() ? lengths_[arm] : 0;
        for (std::size_t i = 0; i < length; ++i) n += rows_[place(arm, i)];
        return n;
    }

    std::size_t bytes() const { return rows_.capacity() * sizeof(double) + lengths_.capacity(); }

  private:
    std::size_t place(std::size_t arm, std::size_t i) const { return (arm * most + i) * (2 + dim_); }

    std::size_t dim_ = 0;
    std::vector<double> rows_;           // (n_arms, most, 2 + dim): w, r and x of each
    std::vector<std::uint8_t> lengths_;  // (n_arms,); empty unless rows may wait
};

}  // namespace armlet
