// Digits that sums lose when a row is taken back: the rounding of what was subtracted stays in what is left.
//
// A column is n, the rewards or a feature. What it lost is the size of what sums held of it, about their origin, over
// what is left about the mean: 2^32 leaves about six digits of sixteen, and is reported; 2^40 leaves fewer than four,
// and an arm with such a column is emptied, since its sums would be noise. Where rows are discounted, widths rest on
// sums of squared weights, of which a large weight takes twice as many digits: they count in the column n, less two
// digits.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "state/sums.hpp"
#include "state/units.hpp"

namespace armlet {

// A row that was taken back, as sums hold it. If only its reward was, there is no x, and nothing of n.
struct TakenRow {
    std::size_t arm;
    const double* x;
    double reward, weight;
};

// What n rows hold of a column: their sum, and that of squares, about an origin.
struct ColumnSums {
    double n, sum, square;
    // What a row with this value held besides, about the origin or the mean: the less counts.
    double taken(double value, double weight) const;
    // Whether the origin is that of a first row that is gone, and was far from all of them.
    bool is_far_from(double origin) const;
    // The variance, of which a deviation of less than 1 is rounding. A last row, next to one of this weight that was
    // taken back, has none: there it is the square of the value itself.
    double variance(double origin, double weight) const;
    // The value of all rows, about the origin, if this row was the last to differ, or if rounding as large as a
    // variance is left: standard units would divide by that rounding.
    std::optional<double> constant(double value, double weight) const;
};

// Columns of sums in free units in which the rows that remain are alike, and their values there.
struct ConstantColumns {
    std::vector<std::size_t> columns;
    std::vector<double> values;
};

ConstantColumns constant_columns(const Sums& sums, const TakenRow& taken);

class LostDigits {
  public:
    static constexpr double reported = 0x1p32, emptied = 0x1p40;
    static constexpr double most_digits = 16.0;
    static constexpr std::size_t n = 0, reward = 1, features = 2;  // columns

    static double digits_of(double factor);

    // (n_arms, 2 + dim): decimal digits lost so far, up to 16; empty if none were reported.
    std::span<const double> digits() const { return digits_; }
    // Finds what is lost after a row was taken back, and returns the arms to empty.
    std::vector<std::size_t> find(const Sums& sums, const Units& units, const TakenRow& taken);
    void append_arm(std::size_t dim);
    void erase_arm(std::size_t arm, std::size_t dim);
    void clear() { digits_.clear(), news_ = {}; }
    // Which arms lost digits since the last time, and which of them were emptied.
    struct News {
        std::vector<std::size_t> arms, emptied;
    };
    News take_news() { return std::exchange(news_, {}); }

  private:
    void report(std::size_t n_arms, std::size_t arm, std::span<const double> found);

    std::vector<double> digits_;
    News news_;
};

}  // namespace armlet
