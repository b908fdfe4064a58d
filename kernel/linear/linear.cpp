#include "linear/linear.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/elementary.hpp"
#include "linear/factor.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

ARMLET_INLINE void add_outer_body(double* A, const double* x, double w, std::size_t d) {
    for (std::size_t k = 0; k < d; ++k) {
        const double xk = x[k];
        const double* rest = x + k;
        const std::size_t length = d - k;
        if (w == 1.0)
            for (std::size_t i = 0; i < length; ++i) A[i] += xk * rest[i];
        else
            for (std::size_t i = 0; i < length; ++i) A[i] += w * (xk * rest[i]);
        A += length;
    }
}

// A tile of eight by eight at a time stays in registers while all rows go by.
template <typename Vec>
ARMLET_INLINE void add_outers_body(double* A, const double* rows, const double* weights, std::size_t n, std::size_t d) {
    const std::size_t width = padded(d);
    for (std::size_t left = 0; left < width; left += lanes)
        for (std::size_t top = left; top < width; top += lanes) {
            Vec tile[lanes];
            for (std::size_t c = 0; c < lanes; ++c) tile[c] = Vec{};
            for (std::size_t r = 0; r < n; ++r) {
                const double* row = rows + r * width;
                const Vec column = weights[r] * load<Vec>(row + top);
                for (std::size_t c = 0; c < lanes; ++c) tile[c] += row[left + c] * column;
            }
            for (std::size_t k = left; k < std::min(left + lanes, d); ++k) {
                double* to = A + k * d - k * (k + 1) / 2;  // where row 0 of column k would be
                for (std::size_t i = std::max(k, top); i < std::min(top + lanes, d); ++i)
                    to[i] += tile[k - left][i - top];
            }
        }
}

template <typename Vec, std::size_t Blocks>
ARMLET_INLINE void score_blocks(const double* theta, const double* x, std::size_t d, std::size_t width, double* out) {
    Vec sum[Blocks];
    for (std::size_t b = 0; b < Blocks; ++b) sum[b] = Vec{};
    for (std::size_t j = 0; j < d; ++j)
        for (std::size_t b = 0; b < Blocks; ++b) sum[b] += x[j] * load<Vec>(theta + j * width + b * lanes);
    for (std::size_t b = 0; b < Blocks; ++b) store(out + b * lanes, sum[b]);
}

// Several blocks of arms at a time hide the latency of each one's sum.
template <typename Vec>
ARMLET_INLINE void score_body(const double* theta, const double* x, std::size_t d, std::size_t width, double* out) {
    for (std::size_t a = 0; a < width;) {
        const std::size_t left = (width - a) / lanes;
        const std::size_t blocks = left <= 6 ? left : left < 12 ? left - left / 2 : 6;
        switch (blocks) {
            case 1:
                score_blocks<Vec, 1>(theta + a, x, d, width, out + a);
                break;
            case 2:
                score_blocks<Vec, 2>(theta + a, x, d, width, out + a);
                break;
            case 3:
                score_blocks<Vec, 3>(theta + a, x, d, width, out + a);
                break;
            case 4:
                score_blocks<Vec, 4>(theta + a, x, d, width, out + a);
                break;
            case 5:
                score_blocks<Vec, 5>(theta + a, x, d, width, out + a);
                break;
            default:
                score_blocks<Vec, 6>(theta + a, x, d, width, out + a);
        }
        a += blocks * lanes;
    }
}

template <typename Vec>
ARMLET_INLINE void weigh_rows_body(const double* rows, std::span<const double> weights, std::size_t size, double* out) {
    for (std::size_t i = 0; i < size; i += lanes) {
        Vec sum = weights[0] * load<Vec>(rows + i);
        for (std::size_t j = 1; j < weights.size(); ++j) sum += weights[j] * load<Vec>(rows + j * size + i);
        store(out + i, sum);
    }
}

// y = L^-1 y
ARMLET_INLINE void forward_substitute_body(const double* L, const double* inverse, std::size_t rows, std::size_t d,
                                           double* y) {
    for (std::size_t k = 0; k < d; ++k) {
        y[k] *= inverse[k];
        const double* column = L + k * rows;
        for (std::size_t i = k + 1; i < d; ++i) y[i] -= y[k] * column[i];
    }
}

}  // namespace

ARMLET_DISPATCH(forward_substitute,
                (const double* L, const double* inverse, std::size_t rows, std::size_t d, double* y),
                (L, inverse, rows, d, y))

// y = L'^-1 y. Each entry loses its products from the last row upwards; eight columns at a time hide the latency.
void back_substitute(const double* L, const double* inverse, std::size_t rows, std::size_t d, double* y) {
    for (std::size_t end = d; end > 0;) {
        const std::size_t begin = end > lanes ? (end - 1) / lanes * lanes : 0;
        for (std::size_t i = d; i-- > end;)
            for (std::size_t c = begin; c < end; ++c) y[c] -= y[i] * L[c * rows + i];
        for (std::size_t c = end; c-- > begin;) {
            y[c] *= inverse[c];
            for (std::size_t k = begin; k < c; ++k) y[k] -= y[c] * L[k * rows + c];
        }
        end = begin;
    }
}

ARMLET_DISPATCH(add_outer, (double* A, const double* x, double w, std::size_t d), (A, x, w, d))

ARMLET_DISPATCH_LANES(add_outers, (double* A, const double* rows, const double* weights, std::size_t n, std::size_t d),
                      (A, rows, weights, n, d))

ARMLET_DISPATCH_LANES(weigh_rows, (const double* rows, std::span<const double> weights, std::size_t size, double* out),
                      (rows, weights, size, out))

ARMLET_DISPATCH_LANES(score, (const double* theta, const double* x, std::size_t d, std::size_t width, double* out),
                      (theta, x, d, width, out))

namespace {

void substitute(const Factor& f, std::size_t d, const Sides& sides) {
    for (std::size_t side = 0; side < sides.n; ++side) {
        double* theta = sides.theta + side * sides.apart;
        std::memcpy(f.y, sides.b + side * d, d * sizeof(double));
        forward_substitute(f.M, f.inverse, f.rows, d, f.y);
        back_substitute(f.M, f.inverse, f.rows, d, f.y);
        for (std::size_t j = 0; j < d; ++j) theta[j * sides.step] = f.y[j];
    }
}

void keep(const Factor& f, std::size_t d, double* kept) {
    const std::size_t first = lead(d), n = d - first;
    const double *M = f.M + first * (f.rows + 1), *inverse = f.inverse + first;
    for (std::size_t j = 0; j < n; j += lanes)
        for (std::size_t i = j; i < n; i += lanes)
            for (std::size_t k = j; k < j + lanes; ++k, kept += lanes) {
                if (i > j)  // n > lanes, so the columns are padded too
                    std::memcpy(kept, M + k * f.rows + i, lanes * sizeof(double));
                else
                    for (std::size_t c = 0; c < lanes; ++c)
                        kept[c] = i + c > k && i + c < n ? M[k * f.rows + i + c] : 0.0;
            }
    for (std::size_t k = 0; k < padded(n); ++k) *kept++ = k < n ? inverse[k] : 0.0;
    if (first == 0) return;
    std::memcpy(kept, f.M + 1, n * sizeof(double));
    kept[n] = f.inverse[0];
}

}  // namespace

double log_determinant(const Factor& factor, std::size_t d) {
    double sum = 0.0;
    for (std::size_t k = 0; k < d; ++k)
        sum +=
            elementary::log(std::max({factor.M[k * factor.rows + k], negligible(d) * factor.diagonal[k], 0x1p-1022}));
    return sum;
}

double trace(const double* A, std::size_t d) {
    double sum = 0.0;
    for (std::size_t k = 0; k < d; A += d - k, ++k) sum += *A;
    return sum;
}

bool is_estimate(const double* theta, std::size_t d, std::size_t step) {
    bool is_one = true;
    for (std::size_t j = 0; j < d; ++j) is_one &= std::fabs(theta[j * step]) <= beyond_any;  // false for NaN
    return is_one;
}

void solve(const double* A, double shift, std::size_t d, const Sides& sides) {
    substitute(factorise(A, shift, shift, d), d, sides);
}

bool is_definite(const double* A, double first, double shift, std::size_t d) {
    const Factor f = factorise(A, first, shift, d);
    return std::all_of(f.inverse, f.inverse + d, [](double one) { return one > 0.0; });
}

double solve_and_keep(const double* A, double shift, std::size_t d, const Sides& sides, double* kept) {
    const Factor f = factorise(A, shift, shift, d);
    substitute(f, d, sides);
    keep(f, d, kept);
    return log_determinant(f, d);
}

}  // namespace armlet
