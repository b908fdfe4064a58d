#include "state/ridge_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "linear/elementary.hpp"
#include "linear/tridiagonal.hpp"

namespace armlet {

namespace {

constexpr double step = 0.25 * 2.302585092994046;  // of log ridge
constexpr double much = 0x1p300;                   // what a product of ratios may reach before its logarithm is taken

}  // namespace

RidgeEvidence::RidgeEvidence() {
    for (std::size_t k = 0; k < n_ridges; ++k) {
        logs_[k] = static_cast<double>(k) * step;
        ridges_[k] = elementary::exp(logs_[k]);
    }
}

// C = A_ss - a a' / n and g = b_s - a b_0 / n are what the constant leaves. Few rows leave C of low rank: C = L L',
// g = L c, and log det (I + C / ridge) is that of L'L, the explained squares c'c - ridge c' (L'L + ridge)^-1 c. One row
// leaves nothing but rounding.
void RidgeEvidence::add(const double* A, const double* b, double n, double squares, std::size_t size) {
    const std::size_t m = size - 1;
    if (!(n > 1.0) || m == 0) return;
    std::vector<double> C(m * m), g(m), diagonal(m), off(m);
    const double *a = A + 1, *packed = A + size;
    double largest = 0.0;
    for (std::size_t j = 0; j < m; packed += m - j, ++j) {
        largest = std::max(largest, *packed);
        g[j] = b[j + 1] - a[j] * b[0] / n;
        for (std::size_t i = j; i < m; ++i) C[j * m + i] = C[i * m + j] = packed[i - j] - a[i] * a[j] / n;
    }
    freedom_ += n - 1.0;
    const double left = std::max(squares - b[0] * b[0] / n, 0.0);
    const std::size_t most = m / 2;
    std::optional<LowRank> low;
    if (n <= static_cast<double>(most)) low = factorise_low_rank(C.data(), m, most, g.data(), largest);
    if (!low) {
        tridiagonalise(C.data(), m, diagonal.data(), off.data(), g.data());
        return weigh(diagonal.data(), off.data(), g.data(), m, 0.0, false, left);
    }
    const std::size_t r = low->rank, width = padded(r);
    std::vector<double> rows(m * width), ones(m, 1.0), packed_G(packed_size(r));
    for (std::size_t k = 0; k < r; ++k)
        for (std::size_t i = 0; i < m; ++i) rows[i * width + k] = low->L[k * m + i];
    add_outers(packed_G.data(), rows.data(), ones.data(), m, r);
    double whole = 0.0;
    for (const double one : low->c) whole += one * one;
    const double* from = packed_G.data();
    for (std::size_t j = 0; j < r; from += r - j, ++j)
        for (std::size_t i = j; i < r; ++i) C[j * r + i] = C[i * r + j] = from[i - j];
    tridiagonalise(C.data(), r, diagonal.data(), off.data(), low->c.data());
    weigh(diagonal.data(), off.data(), low->c.data(), r, whole, true, left);
}

void RidgeEvidence::add_left(double* C, double* g, std::size_t m, double freedom, double squares) {
    std::vector<double> diagonal(m), off(m);
    freedom_ += std::max(freedom, 0.0);
    tridiagonalise(C, m, diagonal.data(), off.data(), g);
    weigh(diagonal.data(), off.data(), g, m, 0.0, false, squares);
}

// Elimination from the first to the last, for all ridges side by side. Of a matrix without negative eigenvalues no
// pivot is below the ridge.
void RidgeEvidence::weigh(const double* diagonal, const double* off, const double* h, std::size_t m, double whole,
                          bool is_low, double squares) {
    std::array<double, n_ridges> pivot{}, y{}, explained{}, product;
    product.fill(1.0);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t k = 0; k < n_ridges; ++k) {
            const double share = i > 0 ? off[i - 1] / pivot[k] : 0.0, before = i > 0 ? off[i - 1] : 0.0;
            y[k] = h[i] - share * y[k];
            pivot[k] = std::max((diagonal[i] + ridges_[k]) - share * before, ridges_[k]);
            explained[k] += y[k] * y[k] / pivot[k];
            product[k] *= pivot[k] / ridges_[k];
            if (product[k] > much) determinants_[k] += elementary::log(product[k]), product[k] = 1.0;
        }
    for (std::size_t k = 0; k < n_ridges; ++k) {
        determinants_[k] += elementary::log(product[k]);
        left_[k] += std::max(squares - (is_low ? whole - ridges_[k] * explained[k] : explained[k]), 0.0);
    }
}

double RidgeEvidence::ridge(double slopes, double variance) const {
    if (!(slopes > 0.0 && variance > 0.0)) return 1.0;
    std::array<double, n_ridges> likely;
    const double centre = 0.5 * elementary::log(slopes);
    for (std::size_t k = 0; k < n_ridges; ++k) {
        const double off = logs_[k] - centre, rows = freedom_ + 1.0;
        likely[k] = -0.5 * (determinants_[k] + rows * elementary::log(left_[k] + variance) + off * off);
        if (!std::isfinite(likely[k])) return elementary::exp(centre);
    }
    const double best = *std::max_element(likely.begin(), likely.end());
    double weights = 0.0, sum = 0.0;
    for (std::size_t k = 0; k < n_ridges; ++k) {
        const double weight = elementary::exp(likely[k] - best);
        weights += weight, sum += weight * logs_[k];
    }
    return elementary::exp(sum / weights);
}

}  // namespace armlet
