#include "actions/width_bound.hpp"

#include <algorithm>
#include <cmath>

#include "linear/linear.hpp"
#include "linear/simd.hpp"
#include "linear/tridiagonal.hpp"

namespace armlet {

namespace {

constexpr std::size_t power_steps = 12, halvings = 40;

// y = L^-1 y for eight right-hand sides side by side.
template <typename Vec>
ARMLET_INLINE void forward_eight_body(const double* L, const double* inverse, std::size_t rows, std::size_t d,
                                      double* y) {
    for (std::size_t k = 0; k < d; ++k) {
        const double* column = L + k * rows;
        const Vec solved = load<Vec>(y + k * lanes) * inverse[k];
        store(y + k * lanes, solved);
        for (std::size_t i = k + 1; i < d; ++i) store(y + i * lanes, load<Vec>(y + i * lanes) - solved * column[i]);
    }
}

ARMLET_DISPATCH_LANES(forward_eight,
                      (const double* L, const double* inverse, std::size_t rows, std::size_t d, double* y),
                      (L, inverse, rows, d, y))

std::vector<double> multiply(const std::vector<double>& M, const std::vector<double>& u) {
    std::vector<double> out(u.size());
    for (std::size_t a = 0; a < u.size(); ++a)
        for (std::size_t b = 0; b < u.size(); ++b) out[b] += M[a * u.size() + b] * u[a];
    return out;
}

double length(const std::vector<double>& u) {
    double sum = 0.0;
    for (const double one : u) sum += one * one;
    return std::sqrt(sum);
}

// At least the largest eigenvalue of a tridiagonal matrix.
double largest_eigenvalue(const std::vector<double>& diagonal, const std::vector<double>& off) {
    const std::size_t m = diagonal.size();
    double low = diagonal[0], high = diagonal[0];
    for (std::size_t i = 0; i < m; ++i) {
        const double beside = (i > 0 ? std::fabs(off[i - 1]) : 0.0) + (i + 1 < m ? std::fabs(off[i]) : 0.0);
        low = std::max(low, diagonal[i]), high = std::max(high, diagonal[i] + beside);
    }
    const auto exceeds = [&](double x) {
        double pivot = 1.0;
        for (std::size_t i = 0; i < m; ++i) {
            pivot = (x - diagonal[i]) - (i > 0 ? off[i - 1] * off[i - 1] / pivot : 0.0);
            if (!(pivot > 0.0)) return false;
        }
        return true;
    };
    for (std::size_t step = 0; step < halvings; ++step) {
        const double middle = 0.5 * (low + high);
        (exceeds(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace

// With rho = u'Mu and r = Mu - rho u, M - rho uu' has no eigenvalue above l2, so M - (rho - l2) uu' has none above
// l2 + |r|, whatever u is. The last parts are for rounding.
QuadraticBound bound_quadratic(const std::vector<double>& packed, std::size_t m) {
    QuadraticBound out;
    std::vector<double> M(m * m);
    const double* from = packed.data();
    for (std::size_t a = 0; a < m; ++a)
        for (std::size_t b = a; b < m; ++b) M[a * m + b] = M[b * m + a] = *from++;
    std::size_t lead = 0;
    double trace = 0.0;
    for (std::size_t a = 0; a < m; ++a) {
        trace += M[a * m + a];
        if (M[a * m + a] > M[lead * m + lead]) lead = a;
    }
    out.u.assign(m, 0.0);
    out.u[lead] = 1.0;
    if (!(trace > 0.0)) return out;
    for (std::size_t step = 0; step < power_steps; ++step) {
        std::vector<double> next = multiply(M, out.u);
        const double size = length(next);
        for (std::size_t a = 0; a < m; ++a) out.u[a] = next[a] / size;
    }
    std::vector<double> rest = multiply(M, out.u), left = M, diagonal(m), off(m), unused(m);
    double rho = 0.0;
    for (std::size_t a = 0; a < m; ++a) rho += rest[a] * out.u[a];
    for (std::size_t a = 0; a < m; ++a) rest[a] -= rho * out.u[a];
    for (std::size_t a = 0; a < m; ++a)
        for (std::size_t b = 0; b < m; ++b) left[a * m + b] -= rho * out.u[a] * out.u[b];
    tridiagonalise(left.data(), m, diagonal.data(), off.data(), unused.data());
    const double second = std::max(largest_eigenvalue(diagonal, off), 0.0);
    out.flat = (second + length(rest)) * (1.0 + 1e-9) + 1e-12 * trace;
    out.steep = std::max(rho - second, 0.0) * (1.0 + 1e-9);
    return out;
}

void add_gram(const double* L, const double* inverse, std::size_t rows, std::size_t d, const std::vector<double>& X,
              std::size_t m, std::vector<double>& M) {
    const std::size_t width = padded(m);
    std::vector<double> Y(d * width), y(d * lanes);
    for (std::size_t first = 0; first < m; first += lanes) {
        const std::size_t there = std::min(lanes, m - first);
        std::fill(y.begin(), y.end(), 0.0);
        for (std::size_t c = 0; c < there; ++c)
            for (std::size_t k = 0; k < d; ++k) y[k * lanes + c] = X[(first + c) * d + k];
        forward_eight(L, inverse, rows, d, y.data());
        for (std::size_t k = 0; k < d; ++k) std::copy_n(y.data() + k * lanes, lanes, Y.data() + k * width + first);
    }
    const std::vector<double> ones(d, 1.0);
    add_outers(M.data(), Y.data(), ones.data(), d, m);
}

}  // namespace armlet
