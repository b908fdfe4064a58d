#include "linear/widths.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "linear/linear.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

// y = L^-1 y of one corner on the diagonal. The corner is zero from its diagonal up, so a lane stays as it is once its
// turn has come, and rows beyond the last stay zero.
template <typename Vec>
ARMLET_INLINE void corner_step(const double* corner, const double* inverse, std::size_t columns, double* y) {
    const Vec scale = load<Vec>(inverse);
    Vec left = load<Vec>(y);
#pragma GCC unroll 8
    for (std::size_t c = 0; c < lanes; ++c) {
        if (c == columns) break;
        const Vec solved = left * scale;
        left -= solved[c] * load<Vec>(corner + c * lanes);
    }
    store(y, left * scale);
}

// Rows below a corner lose the products of its eight columns, in order. Returns the end of the tiles read.
template <typename Vec>
ARMLET_INLINE const double* sweep(const double* tiles, const double* solved, double* y, std::size_t rows) {
    double v[lanes];
    std::memcpy(v, solved, sizeof v);
    for (std::size_t i = 0; i < rows; i += lanes, tiles += lanes * lanes) {
        Vec tile = load<Vec>(y + i);
        for (std::size_t c = 0; c < lanes; ++c) tile -= v[c] * load<Vec>(tiles + c * lanes);
        store(y + i, tile);
    }
    return tiles;
}

template <typename Vec>
ARMLET_INLINE void advance_body(Substitution* arms, std::size_t n, std::size_t d) {
    const std::size_t rows = padded(d);
    for (Substitution* arm = arms; arm != arms + n; ++arm) {
        const std::size_t j = arm->column;
        corner_step<Vec>(arm->at, arm->kept + factor_size(d) - rows + j, d - j, arm->y + j);
    }
    for (Substitution* arm = arms; arm != arms + n; ++arm) {
        double* y = arm->y + arm->column;
        arm->column += lanes;
        arm->at = sweep<Vec>(arm->at + lanes * lanes, y, y + lanes, rows - arm->column);
    }
}

// out = x - first * column
template <typename Vec>
ARMLET_INLINE void take_column_body(const double* x, double first, const double* column, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; i += lanes) store(out + i, load<Vec>(x + i) - first * load<Vec>(column + i));
}

ARMLET_DISPATCH_LANES(take_column, (const double* x, double first, const double* column, std::size_t n, double* out),
                      (x, first, column, n, out))

// out = y[begin]^2 + ... + y[end - 1]^2, whole vectors: in eight columns, then across. What leads is one place before
// y[0], at the head of the columns.
template <typename Vec>
ARMLET_INLINE void sum_squares_body(const double* y, std::size_t begin, std::size_t end, std::size_t leads,
                                    double first, double& out) {
    double columns[lanes] = {};
    if (leads) columns[lanes - 1] = first * first;
    Vec sum = load<Vec>(columns);
    for (std::size_t i = begin; i < end; i += lanes) sum += load<Vec>(y + i) * load<Vec>(y + i);
    store(columns, sum);
    out = leads ? columns[lanes - 1] : 0.0;
    for (std::size_t c = 0; c < lanes - leads; ++c) out += columns[c];
}

ARMLET_DISPATCH_LANES(sum_squares,
                      (const double* y, std::size_t begin, std::size_t end, std::size_t leads, double first,
                       double& out),
                      (y, begin, end, leads, first, out))

std::vector<double>& room() {
    thread_local std::vector<double> numbers;
    return numbers;
}

}  // namespace

ARMLET_DISPATCH_LANES(advance, (Substitution * arms, std::size_t n, std::size_t d), (arms, n, d))

Substitutions::Substitutions(std::size_t d) : lead_(lead(d)), d_(d - lead_), room_(room()) {
    room_.resize(most * padded(d_));
    for (std::size_t i = 0; i < most; ++i) arms_[i].y = room_.data() + i * padded(d_);
}

void Substitutions::start(const double* kept, const double* x) {
    double *y = arms_[size_].y, first = 0.0;
    if (lead_) {
        const double* column = kept + factor_size(d_);
        first = x[0] * column[d_];
        take_column(x + 1, first, column, d_, y);
    } else {
        std::memcpy(y, x, d_ * sizeof(double));
        std::fill(y + d_, y + padded(d_), 0.0);
    }
    arms_[size_++] = {kept, kept, y, 0, first};
}

double Substitutions::width(std::size_t i) const {
    double square;
    sum_squares(arms_[i].y, 0, padded(d_), lead_, arms_[i].first, square);
    return square <= beyond_any * beyond_any ? std::sqrt(square) : beyond_any;  // for NaN too
}

double Substitutions::bound(std::size_t i, double residual_bound) const {
    double solved, left;
    sum_squares(arms_[i].y, 0, arms_[i].column, lead_, arms_[i].first, solved);
    sum_squares(arms_[i].y, arms_[i].column, padded(d_), 0, 0.0, left);
    // squares so small may have vanished
    if (!(solved + left >= 1e-200 && residual_bound < 1e40)) return std::numeric_limits<double>::infinity();
    return (1.0 + 1e-9) * std::sqrt(solved + left * residual_bound * residual_bound);
}

void find_widths(const double* const* kept, std::size_t n, const double* x, std::size_t d, double* out) {
    Substitutions some(d);
    for (std::size_t begin = 0; begin < n; begin += Substitutions::most) {
        const std::size_t end = std::min(n, begin + Substitutions::most);
        for (std::size_t i = begin; i < end; ++i) some.start(kept[i], x);
        while (!some.is_done(0)) some.advance();
        for (std::size_t i = begin; i < end; ++i) out[i] = some.width(i - begin);
        while (some.size() > 0) some.drop(some.size() - 1);
    }
}

}  // namespace armlet
