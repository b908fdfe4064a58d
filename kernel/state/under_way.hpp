// How many decisions of every arm wait for their reward.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace armlet {

// Of a bandit a count is never negative. Of what a worker learned since a base it may be: the worker learned the
// rewards of decisions that the base counts.
class UnderWay {
  public:
    static constexpr std::int64_t largest = std::int64_t{1} << 53;  // a float64 is exact up to here

    // From here on decisions are counted; before, every count is 0 and stays so.
    void open(std::size_t n_arms) { counts_.assign(n_arms, 0), n_positive_ = 0, is_open_ = true; }
    bool is_open() const { return is_open_; }
    void append_arm() {
        if (is_open_) counts_.push_back(0);
    }
    void erase_arm(std::size_t arm) {
        if (!is_open_) return;
        set(arm, 0);
        counts_.erase(counts_.begin() + static_cast<std::ptrdiff_t>(arm));
    }

    void begin(std::size_t arm) { set(arm, counts_[arm] + 1); }
    void end(std::size_t arm) {
        if (counts_[arm] > 0) set(arm, counts_[arm] - 1);
    }
    void add(std::size_t arm, std::int64_t more) {
        if (is_open_) set(arm, counts_[arm] + more);
    }
    void restore(std::span<const std::int64_t> counts) {
        for (std::size_t arm = 0; arm < counts_.size(); ++arm) set(arm, counts[arm]);
    }

    // m_a as rules look at it.
    double operator[](std::size_t arm) const {
        return is_open_ ? static_cast<double>(std::max<std::int64_t>(counts_[arm], 0)) : 0.0;
    }
    std::int64_t count(std::size_t arm) const { return is_open_ ? counts_[arm] : 0; }
    // Whether any arm has a decision under way.
    bool any() const { return n_positive_ > 0; }
    std::size_t bytes() const { return counts_.size() * sizeof(std::int64_t); }

  private:
    void set(std::size_t arm, std::int64_t count) {
        n_positive_ += count > 0, n_positive_ -= counts_[arm] > 0;
        counts_[arm] = count;
    }

    bool is_open_ = false;
    std::vector<std::int64_t> counts_;
    std::size_t n_positive_ = 0;  // arms
};

}  // namespace armlet
