// The weight of every arm in exploration, by the rows that its sums hold.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace armlet {

// min(1, exp(1 - n / q)): 1 up to q rows, then what Algorithm 1's rate q / t has come to by the time of n rows.
double exploration_weight(double n, double q);

// The weights of all arms, for one q or for a q of each, worked out only for arms that changed.
class ExplorationWeights {
  public:
    explicit ExplorationWeights(std::size_t n_arms) { mark_all(n_arms); }

    // The arm's rows have changed.
    void mark(std::size_t arm) {
        if (!is_stale_[arm]) is_stale_[arm] = 1, stale_.push_back(static_cast<std::uint32_t>(arm));
    }
    // The arms themselves have.
    void mark_all(std::size_t n_arms);

    // count(arm) is n of the arm.
    template <typename Count>
    void refresh(double q, Count&& count) {
        if (q != q_ || !quotas_.empty()) q_ = q, quotas_.clear(), mark_all(values_.size());
        for (const auto arm : stale_) values_[arm] = exploration_weight(count(arm), q), is_stale_[arm] = 0;
        stale_.clear();
    }
    // With a q for each arm.
    template <typename Count>
    void refresh(std::span<const double> quotas, Count&& count) {
        if (!std::ranges::equal(quotas, quotas_)) {
            quotas_.assign(quotas.begin(), quotas.end());
            mark_all(values_.size());
        }
        for (const auto arm : stale_) values_[arm] = exploration_weight(count(arm), quotas[arm]), is_stale_[arm] = 0;
        stale_.clear();
    }
    // Only after refresh().
    std::span<const double> values() const { return values_; }
    // All arms may be stale.
    std::size_t bytes() const {
        const std::size_t of_arm = sizeof(double) + sizeof(std::uint8_t) + sizeof(std::uint32_t);
        return values_.size() * of_arm + quotas_.size() * sizeof(double);
    }

  private:
    double q_ = 0.0;
    std::vector<double> quotas_;  // if every arm has its own
    std::vector<double> values_;
    std::vector<std::uint8_t> is_stale_;
    std::vector<std::uint32_t> stale_;
};

}  // namespace armlet
