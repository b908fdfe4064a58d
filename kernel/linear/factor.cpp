#include "linear/factor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace armlet {

namespace {

// 1 / L_kk. A feature that is, to rounding, a combination of those before it gets 0, hence theta_k = 0. That takes
// features of size 1e7 and more, next to which the ridge vanishes, or rows taken back that were as large.
double inverse_of(double pivot, double diagonal, double floor) {
    return pivot > floor * diagonal ? 1.0 / std::sqrt(pivot) : 0.0;
}

// The factor L of a matrix M = L L', column by column in `M` (rows contiguous, `rows` apart), 1 / L_kk in `inverse`.
// Each entry loses its products in the order k = 0, 1, ...: the same bits whatever the blocking.
void factor_small(double* M, std::size_t rows, std::size_t d, const double* diagonal, double floor, double* inverse) {
    for (std::size_t k = 0; k < d; ++k) {
        double* column = M + k * rows;
        inverse[k] = inverse_of(column[k], diagonal[k], floor);
        for (std::size_t i = k + 1; i < d; ++i) column[i] *= inverse[k];
        for (std::size_t j = k + 1; j < d; ++j)
            for (std::size_t i = j; i < d; ++i) M[j * rows + i] -= column[i] * column[j];
    }
}

// Column 0, and what the d - 1 others lose to it, whole vectors; what is above the diagonal is not read.
template <typename Vec>
ARMLET_INLINE void factor_first_body(double* M, std::size_t rows, std::size_t d, const double* diagonal, double floor,
                                     double* inverse) {
    inverse[0] = inverse_of(M[0], diagonal[0], floor);
    for (std::size_t i = 1; i < d; i += lanes) store(M + i, load<Vec>(M + i) * inverse[0]);
    for (std::size_t j = 1; j < d; ++j) {
        double* column = M + j * rows;
        for (std::size_t i = j - (j - 1) % lanes; i < d; i += lanes)
            store(column + i, load<Vec>(column + i) - load<Vec>(M + i) * M[j]);
    }
}

ARMLET_DISPATCH_LANES(factor_first,
                      (double* M, std::size_t rows, std::size_t d, const double* diagonal, double floor,
                       double* inverse),
                      (M, rows, d, diagonal, floor, inverse))

// Rows i..i+8 of the block of columns j..j+8, less the products of all columns before j.
template <typename Vec>
ARMLET_INLINE void gather_tile(const double* M, std::size_t rows, std::size_t i, std::size_t j, Vec* tile) {
    for (std::size_t c = 0; c < lanes; ++c) tile[c] = load<Vec>(M + (j + c) * rows + i);
    for (std::size_t k = 0; k < j; ++k) {
        const Vec column = load<Vec>(M + k * rows + i);
        const double* row = M + k * rows + j;
        for (std::size_t c = 0; c < lanes; ++c) tile[c] -= column * row[c];
    }
}

// Of d columns, d a multiple of eight.
template <typename Vec>
ARMLET_INLINE void factor_blocks_body(double* M, std::size_t rows, std::size_t d, const double* diagonal, double floor,
                                      double* inverse) {
    for (std::size_t j = 0; j < d; j += lanes) {
        Vec tile[lanes];
        double corner[lanes * lanes];
        gather_tile(M, rows, j, j, tile);
        for (std::size_t c = 0; c < lanes; ++c) store(corner + c * lanes, tile[c]);
        factor_small(corner, lanes, lanes, diagonal + j, floor, inverse + j);
        for (std::size_t c = 0; c < lanes; ++c) store(M + (j + c) * rows + j, load<Vec>(corner + c * lanes));
        for (std::size_t i = j + lanes; i < d; i += lanes) {
            gather_tile(M, rows, i, j, tile);
            for (std::size_t k = 0; k < lanes; ++k) {
                tile[k] *= inverse[j + k];
                for (std::size_t c = k + 1; c < lanes; ++c) tile[c] -= tile[k] * corner[k * lanes + c];
            }
            for (std::size_t c = 0; c < lanes; ++c) store(M + (j + c) * rows + i, tile[c]);
        }
    }
}

ARMLET_DISPATCH_LANES(factor_blocks,
                      (double* M, std::size_t rows, std::size_t d, const double* diagonal, double floor,
                       double* inverse),
                      (M, rows, d, diagonal, floor, inverse))

// A with its shifts as full columns; rows beyond d are those of the identity.
void unpack(const double* A, double first, double shift, std::size_t d, std::size_t rows, double* M) {
    for (std::size_t k = 0; k < rows; ++k) {
        double* column = M + k * rows;
        std::memset(column, 0, rows * sizeof(double));
        column[k] = 1.0;
        if (k >= d) continue;
        std::memcpy(column + k, A, (d - k) * sizeof(double));
        column[k] += k == 0 ? first : shift;
        A += d - k;
    }
}

}  // namespace

Factor factorise(const double* A, double first, double shift, std::size_t d) {
    const bool small = d <= lanes;
    const std::size_t leads = lead(d), rows = small || leads ? d : padded(d);
    thread_local std::vector<double> scratch;
    if (scratch.size() < rows * (rows + 3)) scratch.resize(rows * (rows + 3));
    double *M = scratch.data(), *inverse = M + rows * rows, *y = inverse + rows, *diagonal = y + rows;
    unpack(A, first, shift, d, rows, M);
    for (std::size_t k = 0; k < rows; ++k) diagonal[k] = M[k * rows + k];
    const double floor = negligible(d);
    if (small) {
        factor_small(M, rows, d, diagonal, floor, inverse);
    } else {
        if (leads) factor_first(M, rows, d, diagonal, floor, inverse);
        factor_blocks(M + leads * (rows + 1), rows, rows - leads, diagonal + leads, floor, inverse + leads);
    }
    return {M, inverse, diagonal, y, rows};
}

}  // namespace armlet
