#include "state/solved.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear/widths.hpp"

namespace armlet {

namespace {

constexpr double trust = 32.0;  // rows

// to = factor * from, which may be the same place.
void scale(const double* from, double factor, std::size_t n, double* to) {
    for (std::size_t i = 0; i < n; ++i) to[i] = factor * from[i];
}

}  // namespace

void Solved::mark_all(const Sums& sums) {
    n_arms_ = sums.n_arms(), dim_ = sums.dim();
    theta_.assign(dim_ * width(), 0.0);
    if (n_outcomes_) allocate_outcomes();
    is_stale_.assign(n_arms_, 0);
    stale_.clear();
    stale_.reserve(n_arms_);
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        if (sums.n(arm) > 0.0 || keeps_factors()) mark(arm);
    if (keeps_factors()) allocate_factors();
}

void Solved::mark_each() {
    for (std::size_t arm = 0; arm < n_arms_; ++arm) mark(arm);
}

void Solved::mark_seen(const Sums& sums) {
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        if (sums.n(arm) > 0.0) mark(arm), doubt(arm);
}

void Solved::allocate_factors() {
    factors_.assign(n_arms_ * factor_size(dim_), 0.0);
    log_determinants_.assign(n_arms_, 0.0);
    floors_.assign(n_arms_, {});
    fits_.assign(n_arms_, {});
    if (keeps_coarse()) coarse_.open(n_arms_, dim_);
    if (keeps_spreads()) spreads_.assign(n_arms_ * packed_size(dim_), 0.0);
}

void Solved::keep_factors() {
    if (keeps_factors()) return;
    allocate_factors();
    mark_each();
}

void Solved::keep_coarse() {
    if (keeps_coarse()) return;
    coarse_.open(n_arms_, dim_);
    keep_factors();
    mark_each();
}

void Solved::solve(const Sums& sums, const Units& units, const OutcomeSums& outcomes) {
    rank_ = units.rank();
    ++solves_;
    std::size_t blank = n_arms_;  // an arm without rows: they all have the same system
    for (const std::size_t arm : stale_) {
        is_stale_[arm] = 0;
        if (keeps_factors() && !(sums.n(arm) > 0.0) && blank < n_arms_) {
            copy_solved(blank, arm);
            continue;
        }
        solve_arm(system_of(sums, units, outcomes, arm), arm);
        if (!(sums.n(arm) > 0.0)) blank = arm;
    }
    stale_.clear();
    is_noise_stale_ = false;
    if (!keeps_factors() || n_outcomes_) return;  // of outcomes, when it is asked for
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
}

void Solved::solve_one(std::size_t arm, const Sums& sums, const Units& units, const OutcomeSums& outcomes) {
    rank_ = units.rank();
    ++solves_;
    solve_arm(system_of(sums, units, outcomes, arm), arm);
    is_stale_[arm] = 0;
    std::erase(stale_, static_cast<std::uint32_t>(arm));
    is_noise_stale_ = true;
}

void Solved::copy_solved(std::size_t from, std::size_t arm) {
    const std::size_t size = factor_size(dim_);
    std::copy_n(factors_.data() + from * size, size, factors_.data() + arm * size);
    for (auto* rows : {&theta_, &thetas_, &products_})
        for (std::size_t j = 0; j < rows->size(); j += width()) (*rows)[j + arm] = (*rows)[j + from];
    log_determinants_[arm] = log_determinants_[from];
    floors_[arm] = floors_[from], fits_[arm] = fits_[from];
    if (keeps_coarse()) coarse_.copy(from, arm);
    if (keeps_spreads()) {
        const std::size_t packed = packed_size(dim_);
        std::copy_n(spreads_.data() + from * packed, packed, spreads_.data() + arm * packed);
    }
    if (!n_outcomes_) return;
    combine(arm);  // offsets are each arm's own
}

// In free units the constant is penalised as by one row at the pooled mean reward, whatever the ridge of the slopes.
// What fades are the sums, never a penalty.
Solved::System Solved::system_of(const Sums& sums, const Units& units, const OutcomeSums& outcomes,
                                 std::size_t arm) const {
    const double n = fade_ * sums.n(arm), raw = fade_ * sums.sum_rr(arm);
    const std::size_t m = n_outcomes_, packed = packed_size(dim_), pairs = packed_size(m);
    const std::size_t size = 2 * packed + n_sides() * dim_ + 2 * pairs;
    thread_local std::vector<double> room;
    if (room.size() < size) room.resize(size);
    double *A = room.data(), *b = A + packed, *products = b + n_sides() * dim_, *squares = products + 2 * pairs;
    if (m) outcomes.squares(arm, sums.n(arm), products, products + pairs);
    System out{sums.A(arm), m ? outcomes.b(arm, 0) : sums.b(arm), ridge_.shift(n), 0.0, false, n, raw, raw};
    if (units.is_free()) {
        const double shift = ridge_.shift(std::max(n, 1.0));
        units.standardise(sums.A(arm), sums.b(arm), A, b);
        for (std::size_t j = 0; j < m; ++j)
            units.standardise_side(sums.A(arm), outcomes.b(arm, j), outcomes.middle()[j], b + j * dim_);
        const double centred = fade_ * units.centred_squares(sums.record(arm));
        out = {A, b, shift, 1.0 - shift, true, n, centred, raw};
    }
    if (m) out.products = products;
    if (fade_ != 1.0) {
        scale(out.A, fade_, packed, A), scale(out.b, fade_, n_sides() * dim_, b),
            scale(products, fade_, 2 * pairs, products);
        out.A = A, out.b = b;
    }
    if (units.is_free()) A[0] += out.extra;
    if (keeps_spreads()) {
        const double* kept = sums.squares(arm).data();
        if (units.is_free()) units.standardise(kept, squares), kept = squares;
        scale(kept, fade_ * fade_, packed, squares);
        out.A2 = squares;
    }
    return out;
}

void Solved::solve_arm(const System& system, std::size_t arm) {
    const Sides solved = sides(arm, system.b);
    if (keeps_factors() || system.n > 0.0) solve_system(arm, system.A, system.b, system.shift);
    if (keeps_factors()) raise_floor(system, arm);
    bool is_one = true;
    for (std::size_t side = 0; side < solved.n; ++side) {
        double* theta = solved.theta + side * solved.apart;
        if (!(system.n > 0.0))  // nothing seen: theta_hat = 0
            for (std::size_t j = 0; j < dim_; ++j) theta[j * width()] = 0.0;
        is_one &= is_estimate(theta, dim_, width());
    }
    if (!is_one) solve_as_unseen(system, arm);
    if (n_outcomes_) combine(arm);
    if (keeps_factors()) measure_fit(system, arm);
    if (keeps_coarse()) take_coarse(system, arm);
    if (keeps_spreads()) take_spread(system, arm);
}

void Solved::solve_system(std::size_t arm, const double* A, const double* b, double shift) {
    if (!keeps_factors()) return armlet::solve(A, shift, dim_, sides(arm, b));
    log_determinants_[arm] = solve_and_keep(A, shift, dim_, sides(arm, b), factors_.data() + arm * factor_size(dim_));
}

// No digit of its sums is right: what they say is not played. Rows may still bring it back.
void Solved::solve_as_unseen(const System& system, std::size_t arm) {
    std::vector<double> A(packed_size(dim_)), b(n_sides() * dim_);
    A[0] = system.extra;
    solve_system(arm, A.data(), b.data(), system.shift);
    if (keeps_factors()) floors_[arm] = {.residual_bound = std::numeric_limits<double>::infinity()};
}

// The sum of (r - x'theta)^2 is sum r^2 - b'theta - shift |theta|^2, since (shift I + A) theta = b; with what theta is
// penalised for, the last term is gone.
void Solved::measure_fit(const System& s, std::size_t arm) {
    if (n_outcomes_) return measure_products(s, arm);
    const double *theta = theta_.data() + arm, first = *theta;
    double explained = 0.0, square = 0.0;
    for (std::size_t j = 0; j < dim_; ++j, theta += width()) explained += s.b[j] * *theta, square += *theta * *theta;
    double residual = s.squares - explained;
    if (!is_penalised_) residual = residual - s.shift * square - s.extra * (first * first);
    const double lengths = s.has_constant ? 0.0 : trace(s.A, dim_);
    fits_[arm] = {s.n, s.squares, std::max(residual, 0.0), s.raw, lengths, 0.0};
}

double Solved::measured_noise() const {
    const auto d = static_cast<double>(rank_);
    double residual = 0.0, freedom = 0.0, squares = 0.0, raw = 0.0, n = 0.0;
    for (const Fit& fit : fits_) {
        squares += fit.squares, raw += fit.raw, n += fit.n;
        if (fit.n > d) residual += fit.residual, freedom += fit.n - d;
    }
    if (raw > 0.0 && squares <= 0x1p-46 * raw) return 0.0;  // in free units: all rewards are the same, to rounding
    if (freedom > 0.0) return std::sqrt(residual / freedom);
    return n > 0.0 ? std::sqrt(std::max(squares, 0.0) / n) : 1.0;
}

// A mean of the arms' own precisions: an arm that is much noisier than the others hardly moves it, where it would rule
// the mean of squares. To each arm's rows `trust` rows of the pooled noise are added, or one that was lucky at first
// would seem to have none; arms of fewer rows count less.
double Solved::measured_typical_noise() const {
    const double pooled = noise_ * noise_;
    double precisions = 0.0, weights = 0.0;
    for (const Fit& fit : fits_) {
        // a ridge takes fewer degrees of freedom than its rank
        const double freedom = std::max(fit.n - static_cast<double>(rank_), 0.25 * fit.n);
        const double own = (fit.residual + trust * pooled) / (freedom + trust), weight = freedom / (freedom + trust);
        precisions += weight / own, weights += weight;
    }
    return pooled > 0.0 && weights > 0.0 ? std::sqrt(weights / precisions) : noise_;
}

void Solved::widths(std::span<const std::uint32_t> arms, const double* x, double* out) const {
    if (keeps_spreads()) {
        for (std::size_t i = 0; i < arms.size(); ++i) out[i] = spread_width(arms[i], x);
        return;
    }
    constexpr std::size_t some = 32;
    const double* kept[some];
    for (std::size_t i = 0; i < arms.size(); i += some) {
        const std::size_t n = std::min(some, arms.size() - i);
        for (std::size_t k = 0; k < n; ++k) kept[k] = factor(arms[i + k]);
        find_widths(kept, n, x, dim_, out + i);
    }
}

std::size_t Solved::bytes() const {
    const std::size_t numbers = theta_.capacity() + factors_.capacity() + log_determinants_.capacity() +
                                thetas_.capacity() + products_.capacity() + weights_.capacity() + offsets_.capacity() +
                                spreads_.capacity();
    return numbers * sizeof(double) + coarse_.bytes() + stale_.capacity() * sizeof(std::uint32_t) +
           is_stale_.capacity() + floors_.capacity() * sizeof(Floor) + fits_.capacity() * sizeof(Fit);
}

}  // namespace armlet
