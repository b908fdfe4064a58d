// The linear algebra of one arm and the scores of all arms: plain pointers in, numbers out.
//
// A symmetric matrix is packed as the columns of its lower triangle, one after the other: d (d + 1) / 2 numbers.
#pragma once
#include <cstddef>
#include <span>

#include "linear/factor.hpp"
#include "linear/simd.hpp"

namespace armlet {

constexpr std::size_t packed_size(std::size_t d) { return d * (d + 1) / 2; }

double trace(const double* A, std::size_t d);

// A += w x x'
void add_outer(double* A, const double* x, double w, std::size_t d);

// A += the sum of w x x' over rows that lie padded(d) apart, zeros after each: many rows in one pass over A.
void add_outers(double* A, const double* rows, const double* weights, std::size_t n, std::size_t d);

// Contexts, rewards and weights are at most 1e40 in size and a ridge is at least 1e-40, so |theta| <= sqrt(sum r^2) /
// (2 sqrt(ridge)) stays below 1e100, widths <= |x| / sqrt(ridge) also. What is beyond
// comes of sums that have lost all their digits: of huge rows that were taken back.
constexpr double beyond_any = 1e100;

// Whether all of theta[0], theta[step], ... could be estimates.
bool is_estimate(const double* theta, std::size_t d, std::size_t step);

// Right-hand sides of one matrix, d numbers each and one after the other, and where their solutions go: theta[0],
// theta[step], ... of the first one, `apart` further on those of the next.
struct Sides {
    const double* b;
    double* theta;
    std::size_t step, n = 1, apart = 0;
};

// theta = (shift I + A)^-1 b of every side, by Cholesky.
void solve(const double* A, double shift, std::size_t d, const Sides& sides);

// y = L^-1 y, or L'^-1 y, of a factor in columns that are `rows` apart.
void forward_substitute(const double* L, const double* inverse, std::size_t rows, std::size_t d, double* y);
void back_substitute(const double* L, const double* inverse, std::size_t rows, std::size_t d, double* y);
// Of the matrix that was factorised. A pivot that rounding has eaten counts as what is negligible.
double log_determinant(const Factor& factor, std::size_t d);

// A kept factor L of shift I + A = L L': for each eight columns, their rows from the diagonal down, in tiles of eight
// by eight that are read once from first to last; then 1 / L_kk of every column. Where one column leads the blocks, it
// comes last: its rows below the diagonal, 1 / L_00, and zeros.
constexpr std::size_t factor_size(std::size_t d) {
    const std::size_t n = d - lead(d), blocks = padded(n) / lanes;
    return lanes * lanes * blocks * (blocks + 1) / 2 + padded(n) + lead(d) * padded(d);
}

// The same, keeping the factor as well; returns log det(shift I + A).
double solve_and_keep(const double* A, double shift, std::size_t d, const Sides& sides, double* kept);

// Whether A plus `first` on the diagonal of its first value and `shift` on the others is positive definite, beyond what
// rounding could feign.
bool is_definite(const double* A, double first, double shift, std::size_t d);

// out[a] = x' theta_a for all arms at once; theta is (d, width): the arms of one feature lie side by side.
void score(const double* theta, const double* x, std::size_t d, std::size_t width, double* out);
// out[i] = w_0 rows[i] + w_1 rows[size + i] + ..., in this order, of n rows whose size is a multiple of the vector.
void weigh_rows(const double* rows, std::span<const double> weights, std::size_t size, double* out);

}  // namespace armlet
