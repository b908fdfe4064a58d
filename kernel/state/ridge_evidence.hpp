// Which ridge on slopes the sums of all arms make likely.
//
// With intercepts left out, slopes of variance sigma^2 / ridge and noise of variance sigma^2, the sums of an arm give
// the marginal likelihood of its rewards; sigma is common to all arms and profiled out. The ridge is the posterior mean
// of its logarithm over a grid, under a prior that is centred at sqrt(number of slopes).
#pragma once
#include <array>
#include <cstddef>

#include "linear/linear.hpp"

namespace armlet {

class RidgeEvidence {
  public:
    static constexpr std::size_t n_ridges = 25;  // 10^(k / 4)

    RidgeEvidence();

    // Rows of one arm in standard units: A packed, with the constant first, b and the sum of squared rewards.
    void add(const double* A, const double* b, double n, double squares, std::size_t size);
    // What other values have left of a system of m slopes: C with both triangles, which is lost, g, the rows that are
    // free and the squares.
    void add_left(double* C, double* g, std::size_t m, double freedom, double squares);
    // The likely ridge, where `slopes` of the values vary and rewards have this variance; 1 if nothing tells, and the
    // centre of the prior if some likelihood is not finite.
    double ridge(double slopes, double variance) const;

  private:
    void weigh(const double* diagonal, const double* off, const double* h, std::size_t m, double whole, bool is_low,
               double squares);

    std::array<double, n_ridges> logs_, ridges_;
    std::array<double, n_ridges> determinants_{}, left_{};  // of all arms: log det (I + C / ridge), squares unexplained
    double freedom_ = 0.0;
};

}  // namespace armlet
