// How much every arm still wants to be explored, by the rows that its sums hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace armlet {

// exp(u) for u <= 0 as a fixed sequence of IEEE operations, so that it has the same bits everywhere: no two libraries'
// exp agree to the last one. Within 2 units of the last place; 0 below -700.
double falling_exp(double u);

// min(1, exp(1 - n / q)): 1 up to q rows, then what Algorithm 1's rate q / t has come to by the time of n rows.
double want(double n, double q);

// The wants of all arms for one q, worked out only for arms that changed.
class Wants {
  public:
    // The arm's rows have changed.
    void mark(std::size_t arm) {
        if (q_ > 0.0 && !is_stale_[arm]) is_stale_[arm] = 1, stale_.push_back(static_cast<std::uint32_t>(arm));
    }
    // The arms themselves have.
    void mark_all() { q_ = 0.0; }

    // count(arm) is n of the arm.
    template <typename Count>
    void refresh(double q, std::size_t n_arms, Count&& count) {
        if (q != q_) start(q, n_arms);
        for (const auto arm : stale_) values_[arm] = want(count(arm), q), is_stale_[arm] = 0;
        stale_.clear();
    }
    // Only after refresh().
    std::span<const double> values() const { return values_; }
    std::size_t bytes() const {
        return values_.capacity() * sizeof(double) + is_stale_.capacity() + stale_.capacity() * 4;
    }

  private:
    void start(double q, std::size_t n_arms);

    double q_ = 0.0;  // nothing is kept yet
    std::vector<double> values_;
    std::vector<std::uint8_t> is_stale_;
    std::vector<std::uint32_t> stale_;
};

}  // namespace armlet
