#include "actions/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "actions/pair_sums.hpp"
#include "linear/elementary.hpp"
#include "linear/linear.hpp"
#include "state/ridge_evidence.hpp"

namespace armlet {

namespace {

constexpr std::size_t n_kappas = 7;
constexpr double half_decade = 0.5 * 2.302585092994046;

// out -= x s
ARMLET_INLINE void take_column_body(double* out, const double* x, double s, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] -= x[i] * s;
}

ARMLET_DISPATCH(take_column, (double* out, const double* x, double s, std::size_t n), (out, x, s, n))

struct Eliminated {
    std::vector<double> C, g;  // what the others leave; C with both triangles
    double explained;          // of the squares
};

// Solves for the first `count` values of M, d by d in full columns; each entry loses its products in their order.
Eliminated eliminate(std::vector<double>& M, std::vector<double>& b, std::size_t count) {
    const std::size_t d = b.size(), m = d - count;
    Eliminated out{std::vector<double>(m * m), std::vector<double>(m), 0.0};
    for (std::size_t j = 0; j < d; ++j) {
        double* column = M.data() + j * d;
        const double diagonal = column[j];
        for (std::size_t k = 0; k < std::min(j, count); ++k)
            take_column(column + j, M.data() + k * d + j, M[k * d + j], d - j);
        if (j >= count) continue;
        const double inverse = column[j] > negligible(d) * diagonal ? 1.0 / std::sqrt(column[j]) : 0.0;
        for (std::size_t i = j + 1; i < d; ++i) column[i] *= inverse;
        const double y = b[j] * inverse;
        out.explained += y * y;
        take_column(b.data() + j + 1, column + j + 1, y, d - j - 1);
    }
    std::copy(b.begin() + static_cast<std::ptrdiff_t>(count), b.end(), out.g.begin());
    for (std::size_t j = 0; j < m; ++j)
        for (std::size_t i = j; i < m; ++i) out.C[j * m + i] = out.C[i * m + j] = M[(count + j) * d + count + i];
    return out;
}

// The terms that vary of a group.
std::vector<std::size_t> varying(const PairTerms& terms, std::size_t group, const StandardUnits& units) {
    std::vector<std::size_t> out;
    for (std::size_t k = terms.begin(group); k < terms.begin(group + 1); ++k) {
        const bool x = terms.i(k) == 0 || units.scales[terms.i(k) - 1] > 0.0;
        const bool z = terms.j(k) == 0 || units.scales[terms.dx() + terms.j(k) - 1] > 0.0;
        if (x && z) out.push_back(k);
    }
    return out;
}

// Others are eliminated first; a ridge costs O(D) in the tridiagonal form of what they leave.
double likely_ridge(const PairSystem& system, const std::vector<double>& ridge, const std::vector<std::size_t>& group) {
    const std::size_t d = ridge.size();
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < d; ++k)
        if (!std::binary_search(group.begin(), group.end(), k)) order.push_back(k);
    const std::size_t count = order.size();
    order.insert(order.end(), group.begin(), group.end());
    std::vector<double> M(d * d), b(d);
    for (std::size_t j = 0; j < d; ++j) {
        b[j] = system.b[order[j]];
        for (std::size_t i = j; i < d; ++i) {
            const auto [low, high] = std::minmax(order[i], order[j]);
            M[j * d + i] = system.A[low * d - low * (low + 1) / 2 + high];
        }
        if (j < count) M[j * d + j] += ridge[order[j]];
    }
    Eliminated left = eliminate(M, b, count);
    RidgeEvidence evidence;
    evidence.add_left(left.C.data(), left.g.data(), group.size(), system.n - 1.0, system.squares - left.explained);
    return evidence.ridge(static_cast<double>(group.size()), system.variance);
}

double kappa_likelihood(const PairSums& sums, const PairSystem& system, const std::vector<double>& ridge) {
    const std::size_t d = ridge.size();
    const double kappa = sums.kappa();
    std::vector<double> A = system.A, y = system.b;
    for (std::size_t k = 0, at = 0; k < d; at += d - k, ++k) A[at] += ridge[k];
    const Factor f = factorise(A.data(), 0.0, 0.0, d);
    forward_substitute(f.M, f.inverse, f.rows, d, y.data());
    double explained = 0.0, items = 0.0;
    for (const double one : y) explained += one * one;
    for (auto at = sums.items().first(); at != Items::none; at = sums.items().after(at))
        if (sums.items()[at].n > 0.0) items += elementary::log((sums.items()[at].n + kappa) / kappa);
    const double left = std::max(system.squares - explained, 0.0) + system.variance;
    const double rest = (std::max(system.n - 1.0, 0.0) + 1.0) * elementary::log(left);
    const double off = 0.5 * (elementary::log(kappa) - elementary::log(first_kappa));
    return -0.5 * (((log_determinant(f, d) + items) + rest) + off * off);
}

void weigh_kappa(PairSums& sums, const StandardUnits& units, const std::vector<double>& ridge) {
    std::array<double, n_kappas> logs, likely;
    for (std::size_t k = 0; k < n_kappas; ++k) {
        logs[k] = (static_cast<double>(k) - 1.0) * half_decade;
        sums.set_kappa(elementary::exp(logs[k]));
        likely[k] = kappa_likelihood(sums, sums.system(units), ridge);
        if (!std::isfinite(likely[k])) return sums.set_kappa(first_kappa);
    }
    const double best = *std::max_element(likely.begin(), likely.end());
    double weights = 0.0, sum = 0.0;
    for (std::size_t k = 0; k < n_kappas; ++k) {
        const double weight = elementary::exp(likely[k] - best);
        weights += weight, sum += weight * logs[k];
    }
    sums.set_kappa(elementary::exp(sum / weights));
}

void weigh_ridges(const PairSums& sums, const StandardUnits& units, double* ridges) {
    const PairSystem system = sums.system(units);
    for (std::size_t group = 0; group < PairTerms::n_groups; ++group) {
        const auto own = varying(sums.terms(), group, units);
        if (!own.empty()) ridges[group] = likely_ridge(system, ridge_diagonal(sums, ridges), own);
    }
}

}  // namespace

double first_ridge(std::size_t slopes) {
    return slopes > 0 ? elementary::exp(0.5 * elementary::log(static_cast<double>(slopes))) : 1.0;
}

std::vector<double> ridge_diagonal(const PairSums& sums, const double* ridges) {
    const PairTerms& terms = sums.terms();
    std::vector<double> out(terms.size());
    for (std::size_t group = 0; group < PairTerms::n_groups; ++group)
        for (std::size_t k = terms.begin(group); k < terms.begin(group + 1); ++k) out[k] = ridges[group];
    return out;
}

void weigh_evidence(PairSums& sums, double* ridges) {
    const PairTerms& terms = sums.terms();
    const StandardUnits units = sums.units();
    for (std::size_t group = 0; group < PairTerms::n_groups; ++group)
        ridges[group] = first_ridge(terms.begin(group + 1) - terms.begin(group));
    sums.set_kappa(first_kappa);
    if (!(sums.system(units).variance > 0.0)) return;
    weigh_ridges(sums, units, ridges);
    if (sums.has_intercepts()) weigh_kappa(sums, units, ridge_diagonal(sums, ridges));
    weigh_ridges(sums, units, ridges);
}

}  // namespace armlet
