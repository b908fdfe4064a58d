// The Cholesky factor of one arm's matrix, while it is worked with.
#pragma once
#include <cstddef>

#include "linear/simd.hpp"

namespace armlet {

// How many columns are taken before the blocks of eight: one if it is all that keeps them from being whole, as the
// constant of free units next to 8, 32 or 128 features, or they would be padded by seven columns for its sake.
constexpr std::size_t lead(std::size_t d) { return d > lanes && d % lanes == 1 ? 1 : 0; }

// What rounding may leave of a pivot that should be gone, relative to its diagonal entry.
constexpr double negligible(std::size_t d) { return static_cast<double>(d) * 0x1p-52; }

// L L' = A + a diagonal matrix, in the scratch of this thread until the next.
struct Factor {
    double* M;         // L_ik at k rows + i
    double* inverse;   // 1 / L_kk
    double* diagonal;  // of the matrix itself
    double* y;         // room for d numbers
    std::size_t rows;  // from one column to the next
};

// Of A plus `first` on the diagonal of its first value and `shift` on the others.
Factor factorise(const double* A, double first, double shift, std::size_t d);

}  // namespace armlet
