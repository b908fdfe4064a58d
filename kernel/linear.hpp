// The linear algebra of one arm and the scores of all arms: plain pointers in, numbers out.
//
// A symmetric matrix is packed as the columns of its lower triangle, one after the other: d (d + 1) / 2 numbers.
#pragma once
#include <cstddef>

namespace armlet {

constexpr std::size_t packed_size(std::size_t d) { return d * (d + 1) / 2; }

// A += w x x'
void add_outer(double* A, const double* x, double w, std::size_t d);

// theta[0], theta[step], ... = (shift I + A)^-1 b by Cholesky.
void solve(const double* A, const double* b, double shift, std::size_t d, double* theta, std::size_t step);

// out[a] = x' theta_a for all arms at once; theta is (d, width): the arms of one feature lie side by side.
void score(const double* theta, const double* x, std::size_t d, std::size_t width, double* out);

}  // namespace armlet
