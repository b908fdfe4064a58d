// Sums of many rows at once: the rows of each arm are gathered in blocks that stay in the cache, and a block is summed
// in registers. The order of additions is that of the rows within a block, then that of the blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace armlet {

// Whether no value is larger than that, or NaN.
bool all_within(const double* values, std::size_t n, double most);

// (n, dim) values: one row after the other, or, if `rows` is null, a column at each place.
struct Grid {
    const double* rows;
    std::vector<const double*> columns;
};

class RowSums {
  public:
    // Adds to the records of `n_arms` arms, as `Sums` lays them out, of y = x, or, with an origin l, o_1, ..., o_d, of
    // y = (1, x - o) and r - l.
    RowSums(double* records, std::size_t n_arms, std::size_t dim, const double* origin);

    // Rows of one arm that are summed together.
    std::size_t block() const { return block_; }
    // A negative arm is that of a row which is not added. Weights may be null: all are 1.
    void add(const Grid& x, const std::int64_t* arms, const double* rewards, const double* weights, std::size_t n);

  private:
    static constexpr std::size_t chunk = 8;  // rows that are taken out of columns at a time

    const double* turn(const Grid& x, std::size_t first, std::size_t rows);
    void put(std::size_t arm, const double* x, double reward, double weight);
    void settle(std::size_t arm);

    double* records_;
    std::size_t dim_, size_, width_, block_;
    const double* origin_;
    bool is_weighted_ = false;
    std::vector<double> rows_;        // (n_arms, block, width): y, zeros after it
    std::vector<double> pays_;        // (n_arms, 3, block): weights, rewards, and their products
    std::vector<std::size_t> waits_;  // (n_arms,): rows in the block
    std::vector<double> turned_;      // (chunk, dim)
};

}  // namespace armlet
