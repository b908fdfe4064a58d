// Whether rewards say anything, and whether features or rewards lie so far from zero, next to how much they vary, that
// sums of squares lose digits.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace armlet {

// Looks at the first rewards that are learned. Zeros may be rare successes that are still to come; any other number
// that comes every time is more likely what is reported only when it happens.
class SameRewards {
  public:
    static constexpr int look = 100;

    bool is_open() const { return rows_ < look; }
    // Whether this is the last of so many that are all the same.
    bool see(double reward) {
        if (rows_ == 0) first_ = reward;
        if (reward != first_ || reward == 0.0) {
            rows_ = look;
            return false;
        }
        return ++rows_ == look;
    }

  private:
    double first_ = 0.0;
    int rows_ = 0;
};

// Looks at the first rows that are learned in units as given, and no more.
class DigitWatch {
  public:
    // Of a mean square over a variance: about six of sixteen digits are left beyond it.
    static constexpr double most = 1e10;

    explicit DigitWatch(std::size_t dim) : first_(dim + 1), sums_(dim + 1), squares_(dim + 1) {}

    bool is_open() const { return rows_ < last_look; }
    // Returns the place of what loses digits: 0 for rewards, 1 + j for feature j; nothing if it is not time to look.
    std::optional<std::size_t> see(const double* x, double reward) {
        for (std::size_t i = 0; i < first_.size(); ++i) {
            const double value = i == 0 ? reward : x[i - 1];
            if (rows_ == 0) first_[i] = value;
            sums_[i] += value - first_[i];
            squares_[i] += (value - first_[i]) * (value - first_[i]);
        }
        ++rows_;
        return rows_ == first_look || rows_ == last_look ? find() : std::nullopt;
    }

  private:
    static constexpr std::size_t first_look = 32, last_look = 256;

    // What does not vary at all has no digits to lose: it is a constant.
    std::optional<std::size_t> find() {
        const auto n = static_cast<double>(rows_);
        for (std::size_t i = 0; i < first_.size(); ++i) {
            const double shift = sums_[i] / n, mean = first_[i] + shift, variance = squares_[i] / n - shift * shift;
            if (!(variance > 0.0 && mean * mean > most * variance)) continue;
            rows_ = last_look;
            return i;
        }
        return std::nullopt;
    }

    std::vector<double> first_, sums_, squares_;  // of the first row, and of all rows less the first
    std::size_t rows_ = 0;
};

}  // namespace armlet
