// The best arm of many contexts at once, with float32 arithmetic that proves its own answer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rules/choice.hpp"

namespace armlet {

constexpr std::uint32_t undecided = UINT32_MAX;

// Scores many rows against a fixed set of arms in float32. Where the runner-up is further behind than float32 can be
// wrong, the best arm is the float64 one too; otherwise the row is left `undecided` for float64 to settle.
class BatchArgmax {
  public:
    // `eligible` must outlive this object.
    BatchArgmax(const Estimates& estimates, Arms eligible);

    // best[i] = the one best arm of row i of X (rows, dim), or `undecided`.
    void operator()(const double* X, std::size_t rows, std::uint32_t* best) const;

    // The length of the longest theta.
    double longest() const { return longest_; }

  private:
    std::size_t dim_;
    Arms eligible_;
    std::vector<float> panels_;  // theta of the eligible arms in panels of (dim, 4)
    double longest_ = 0.0;
    double margin_;  // times |x|: a lead that float32 cannot fake
    bool usable_;
};

}  // namespace armlet
