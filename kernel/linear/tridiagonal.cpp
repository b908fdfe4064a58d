#include "linear/tridiagonal.hpp"

#include <algorithm>
#include <cmath>

#include "linear/simd.hpp"

namespace armlet {

namespace {

constexpr double negligible_pivot = 1e-12;  // of what it was made of
constexpr double least_square = 0x1p-900;   // of what is reflected: below, 2 over it may be infinite

// out -= v w_j + w v_j
ARMLET_INLINE void take_two_body(double* column, const double* v, const double* w, double vj, double wj,
                                 std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) column[i] -= v[i] * wj + w[i] * vj;
}

ARMLET_DISPATCH(take_two, (double* column, const double* v, const double* w, double vj, double wj, std::size_t n),
                (column, v, w, vj, wj, n))

// The same for n columns, `rows` apart, and p = M u of what is left: one pass.
ARMLET_INLINE void take_and_multiply_body(double* M, std::size_t rows, const double* v, const double* w,
                                          const double* u, std::size_t n, double* p) {
    for (std::size_t j = 0; j < n; ++j, M += rows) {
        const double vj = v[j], wj = w[j], uj = u[j];
        for (std::size_t i = 0; i < n; ++i) {
            const double left = M[i] - (v[i] * wj + w[i] * vj);
            M[i] = left;
            p[i] += left * uj;
        }
    }
}

ARMLET_DISPATCH(take_and_multiply,
                (double* M, std::size_t rows, const double* v, const double* w, const double* u, std::size_t n,
                 double* p),
                (M, rows, v, w, u, n, p))

// out -= x s
ARMLET_INLINE void take_body(double* out, const double* x, double s, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] -= x[i] * s;
}

ARMLET_DISPATCH(take, (double* out, const double* x, double s, std::size_t n), (out, x, s, n))

double dot(const double* x, const double* y, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

}  // namespace

// Of step k, u reflects what is below the diagonal of column k; v and w of the step before are taken off what is left
// of M while it is multiplied by u. All three begin at row k + 1.
void tridiagonalise(double* M, std::size_t m, double* diagonal, double* off, double* g) {
    std::vector<double> room(4 * m);
    double *v = room.data(), *w = v + m, *u = w + m, *p = u + m;
    for (std::size_t k = 0; k < m; ++k) {
        double* column = M + k * m;
        take_two(column + k, v, w, *v, *w, m - k);  // nothing at first
        diagonal[k] = column[k];
        if (k + 1 == m) return;
        const std::size_t n = m - k - 1;
        const double first = column[k + 1], rest = dot(column + k + 2, column + k + 2, n - 1);
        std::copy_n(column + k + 1, n, u);
        const double norm = std::sqrt(first * first + rest);
        off[k] = rest > least_square ? first > 0.0 ? -norm : norm : first;
        u[0] = first - off[k];
        const double scale = rest > least_square ? 2.0 / (u[0] * u[0] + rest) : 0.0;
        std::fill_n(p, n, 0.0);
        take_and_multiply(column + m + k + 1, m, v + 1, w + 1, u, n, p);
        for (std::size_t i = 0; i < n; ++i) p[i] *= scale;
        take(p, u, 0.5 * scale * dot(p, u, n), n);
        take(g + k + 1, u, scale * dot(u, g + k + 1, n), n);
        std::copy_n(u, n, v), std::copy_n(p, n, w);
    }
}

std::optional<LowRank> factorise_low_rank(const double* M, std::size_t m, std::size_t most, const double* g,
                                          double size) {
    LowRank out{0, {}, {}};
    std::vector<double> left(m);
    std::vector<std::size_t> pivots;
    for (std::size_t i = 0; i < m; ++i) left[i] = M[i * m + i];
    const double least = negligible_pivot * size;
    for (std::size_t k = 0;; ++k) {
        const auto pivot = static_cast<std::size_t>(std::max_element(left.begin(), left.end()) - left.begin());
        if (!(left[pivot] > least)) break;
        if (k == most) return std::nullopt;
        out.L.resize((k + 1) * m);
        double *L = out.L.data(), *column = L + k * m, rest = g[pivot];
        std::copy_n(M + pivot * m, m, column);
        for (std::size_t j = 0; j < k; ++j) {
            const double own = L[j * m + pivot];
            take(column, L + j * m, own, m);
            rest -= out.c[j] * own;
        }
        for (const auto earlier : pivots) column[earlier] = 0.0;
        const double root = std::sqrt(left[pivot]);
        for (std::size_t i = 0; i < m; ++i) column[i] /= root;
        column[pivot] = root;
        for (std::size_t i = 0; i < m; ++i) left[i] -= column[i] * column[i];
        pivots.push_back(pivot);
        left[pivot] = -1.0;
        out.c.push_back(rest / root);
    }
    out.rank = pivots.size();
    return out;
}

}  // namespace armlet
