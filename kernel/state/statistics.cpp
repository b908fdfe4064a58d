#include "state/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "linear/widths.hpp"

namespace armlet {

double Ridge::shift(double n) const {
    switch (kind) {
        case Kind::paper:
            return std::sqrt(n);  // n lambda_n with lambda_n = 1 / sqrt(n)
        case Kind::inverse_n:
            return 1.0;  // n lambda_n with lambda_n = 1 / n
        case Kind::constant:
            break;
    }
    return value;
}

Statistics::Statistics(std::size_t n_arms, std::size_t dim, Ridge ridge)
    : n_arms_(n_arms), dim_(dim), ridge_(ridge), records_(n_arms * record_size()), versions_(n_arms) {
    mark_all();
}

Statistics::Sums Statistics::sums(std::size_t arm) const {
    double* r = records_.data() + arm * record_size();
    return {r[0], r[1], r[2], r + 3, r + 3 + dim_};
}

void Statistics::touch(std::size_t arm) {
    versions_[arm] = ++changes_;
    mark(arm);
}

void Statistics::mark(std::size_t arm) {
    if (is_stale_[arm]) return;
    is_stale_[arm] = 1;
    stale_.push_back(static_cast<std::uint32_t>(arm));
}

void Statistics::mark_all() {
    if (!waiting_.lengths.empty()) waiting_ = {}, let_rows_wait();
    theta_.assign(dim_ * width(), 0.0);
    is_stale_.assign(n_arms_, 0);
    stale_.clear();
    stale_.reserve(n_arms_);
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        if (record(arm)[0] > 0.0 || keeps_factors()) mark(arm);
    if (keeps_factors()) allocate_factors();
}

void Statistics::allocate_factors() {
    factors_.assign(n_arms_ * factor_size(dim_), 0.0);
    log_determinants_.assign(n_arms_, 0.0);
    floors_.assign(n_arms_, {});
    fits_.assign(n_arms_, {});
    if (!variances_.empty()) variances_.assign(dim_ * width(), 0.0);
}

void Statistics::keep_factors() {
    if (keeps_factors()) return;
    allocate_factors();
    for (std::size_t arm = 0; arm < n_arms_; ++arm) mark(arm);
}

void Statistics::keep_variances() {
    if (!variances_.empty()) return;
    variances_.assign(dim_ * width(), 0.0);
    keep_factors();
    for (std::size_t arm = 0; arm < n_arms_; ++arm) mark(arm);
}

void Statistics::let_rows_wait() {
    if (!waiting_.lengths.empty()) return;
    waiting_.rows.assign(n_arms_ * most_waiting * (2 + dim_), 0.0);
    waiting_.lengths.assign(n_arms_, 0);
}

void Statistics::settle_rows(std::size_t arm) const {
    const std::size_t length = std::exchange(waiting_.lengths[arm], std::uint8_t{0});
    for (std::size_t i = 0; i < length; ++i) {
        const double* row = waiting_row(arm, i);
        add_now(arm, row + 2, row[1], row[0]);
    }
}

void Statistics::settle_all() const {
    for (std::size_t arm = 0; arm < waiting_.lengths.size(); ++arm) settle(arm);
}

double Statistics::count(std::size_t arm) const {
    double n = records_[arm * record_size()];
    const std::size_t length = waiting_.lengths.empty() ? 0 : waiting_.lengths[arm];
    for (std::size_t i = 0; i < length; ++i) n += waiting_row(arm, i)[0];
    return n;
}

bool Statistics::is_empty() const {
    if (witness_ < n_arms_ && count(witness_) > 0.0) return false;
    for (witness_ = 0; witness_ < n_arms_; ++witness_)
        if (count(witness_) > 0.0) return false;
    return true;
}

void Statistics::add(std::size_t arm, const double* x, double reward, double weight) {
    if (waiting_.lengths.empty() || weight < 0.0) {
        settle(arm);
        add_now(arm, x, reward, weight);
    } else {
        double* row = waiting_row(arm, waiting_.lengths[arm]++);
        row[0] = weight, row[1] = reward;
        std::copy_n(x, dim_, row + 2);
        if (waiting_.lengths[arm] == most_waiting) settle_rows(arm);
    }
    if (weight < 0.0 && keeps_factors()) floors_[arm] = {};
    touch(arm);
}

void Statistics::add_now(std::size_t arm, const double* x, double reward, double weight) const {
    const Sums s = sums(arm);
    const double scaled = weight * reward;
    s.n += weight;
    s.sum_r += scaled;
    s.sum_rr += scaled * reward;
    for (std::size_t j = 0; j < dim_; ++j) s.b[j] += scaled * x[j];
    add_outer(s.A, x, weight, dim_);
    // when the last row is taken back, rounding must leave no ghost of it
    if (weight < 0.0 && s.n <= -1e-12 * weight) std::fill_n(&s.n, record_size(), 0.0);
}

void Statistics::correct(std::size_t arm, const double* x, double from, double to, double weight) {
    settle(arm);
    Sums s = sums(arm);
    const double old_reward = weight * from, new_reward = weight * to;
    s.sum_r += new_reward - old_reward;
    s.sum_rr += new_reward * to - old_reward * from;
    for (std::size_t j = 0; j < dim_; ++j) s.b[j] += (new_reward - old_reward) * x[j];
    touch(arm);
}

void Statistics::merge(std::size_t arm, const Statistics& other, std::size_t other_arm) {
    settle(arm);
    const auto theirs = other.record(other_arm);
    double* ours = records_.data() + arm * record_size();
    for (std::size_t i = 0; i < theirs.size(); ++i) ours[i] += theirs[i];
    if (keeps_factors()) floors_[arm] = {};
    touch(arm);
}

void Statistics::subtract(std::size_t arm, const Statistics& earlier, std::size_t earlier_arm) {
    settle(arm);
    const auto theirs = earlier.record(earlier_arm);
    double* ours = records_.data() + arm * record_size();
    for (std::size_t i = 0; i < theirs.size(); ++i) ours[i] -= theirs[i];
    if (ours[0] <= 1e-12 * theirs[0]) std::fill_n(ours, record_size(), 0.0);
    if (keeps_factors()) floors_[arm] = {};
    touch(arm);
}

void Statistics::follow(std::size_t arm, const Statistics& later) {
    settle(arm);
    const auto theirs = later.record(arm);
    std::copy(theirs.begin(), theirs.end(), records_.begin() + static_cast<std::ptrdiff_t>(arm * record_size()));
    touch(arm);
}

void Statistics::append_arm() {
    settle_all();
    records_.reserve(records_.size() + record_size());  // exactly: the state is as large as it has to be
    records_.resize(records_.size() + record_size());
    ++n_arms_;
    versions_.reserve(n_arms_);
    versions_.push_back(++changes_);
    mark_all();
}

void Statistics::erase_arm(std::size_t arm) {
    settle_all();
    const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(arm * record_size());
    records_.erase(begin, begin + static_cast<std::ptrdiff_t>(record_size()));
    --n_arms_;
    versions_.erase(versions_.begin() + static_cast<std::ptrdiff_t>(arm));
    mark_all();
}

void Statistics::refresh() {
    for (const std::size_t arm : stale_) {
        solve_arm(arm);
        is_stale_[arm] = 0;
    }
    stale_.clear();
}

void Statistics::solve_arm(std::size_t arm) {
    settle(arm);
    const Sums s = sums(arm);
    double* theta = theta_.data() + arm;
    if (keeps_factors() || s.n > 0.0) solve_sums(arm, s.A, s.b, ridge_.shift(s.n));
    if (keeps_factors()) raise_floor(arm);
    if (!(s.n > 0.0))  // nothing seen: theta_hat = 0
        for (std::size_t j = 0; j < dim_; ++j) theta[j * width()] = 0.0;
    else if (!is_estimate(theta, dim_, width()))
        solve_as_unseen(arm);
    if (keeps_factors()) measure_fit(arm);
}

void Statistics::solve_sums(std::size_t arm, const double* A, const double* b, double shift) {
    double* theta = theta_.data() + arm;
    if (!keeps_factors()) return solve(A, b, shift, dim_, theta, width());
    log_determinants_[arm] =
        solve_and_keep(A, b, shift, dim_, theta, width(), factors_.data() + arm * factor_size(dim_),
                       variances_.empty() ? nullptr : variances_.data() + arm);
}

// No digit of its sums is right: what they say is not played. Rows may still bring it back.
void Statistics::solve_as_unseen(std::size_t arm) {
    const std::vector<double> nothing(record_size());
    solve_sums(arm, nothing.data(), nothing.data(), ridge_.shift(sums(arm).n));
    if (keeps_factors()) floors_[arm] = {.reach = std::numeric_limits<double>::infinity()};
}

// The sum of (r - x'theta)^2 is sum r^2 - b'theta - shift |theta|^2, since (shift I + A) theta = b.
void Statistics::measure_fit(std::size_t arm) {
    const Sums s = sums(arm);
    const double* theta = theta_.data() + arm;
    double explained = 0.0, square = 0.0;
    for (std::size_t j = 0; j < dim_; ++j, theta += width()) explained += s.b[j] * *theta, square += *theta * *theta;
    fits_[arm] = {s.n, s.sum_rr, std::max(s.sum_rr - explained - ridge_.shift(s.n) * square, 0.0),
                  measure_inflation(arm)};
}

// Over its rows, x'V^-1 x adds up to tr(V^-1 A) = d - shift tr(V^-1), and sum_j x_j^2 (V^-1)_jj to sum_j A_jj
// (V^-1)_jj.
double Statistics::measure_inflation(std::size_t arm) const {
    if (variances_.empty()) return 0.0;
    const Sums s = sums(arm);
    const double *variance = variances_.data() + arm, *A = s.A;
    double rough = 0.0, trace = 0.0;
    for (std::size_t j = 0; j < dim_; A += dim_ - j, ++j, variance += width())
        rough += *A * *variance, trace += *variance;
    const double own = static_cast<double>(dim_) - ridge_.shift(s.n) * trace;
    return s.n > 0.0 && own > 0.0 ? rough / own : std::numeric_limits<double>::infinity();
}

double Statistics::noise() const {
    const auto d = static_cast<double>(dim_);
    double residual = 0.0, freedom = 0.0, squares = 0.0, n = 0.0;
    for (const Fit& fit : fits_) {
        squares += fit.squares, n += fit.n;
        if (fit.n > d) residual += fit.residual, freedom += fit.n - d;
    }
    if (freedom > 0.0) return std::sqrt(residual / freedom);
    return n > 0.0 ? std::sqrt(std::max(squares, 0.0) / n) : 1.0;
}

void Statistics::widths(std::span<const std::uint32_t> arms, const double* x, double* out) const {
    constexpr std::size_t some = 32;
    const double* kept[some];
    for (std::size_t i = 0; i < arms.size(); i += some) {
        const std::size_t n = std::min(some, arms.size() - i);
        for (std::size_t k = 0; k < n; ++k) kept[k] = factor(arms[i + k]);
        find_widths(kept, n, x, dim_, out + i);
    }
}

void Statistics::restore(std::span<const double> records) {
    std::fill(waiting_.lengths.begin(), waiting_.lengths.end(), std::uint8_t{0});
    std::copy(records.begin(), records.end(), records_.begin());
    std::fill(versions_.begin(), versions_.end(), ++changes_);
    mark_all();
}

void Statistics::restore(std::size_t arm, std::span<const double> record) {
    settle(arm);
    std::copy(record.begin(), record.end(), records_.begin() + static_cast<std::ptrdiff_t>(arm * record_size()));
    if (keeps_factors()) floors_[arm] = {};
    touch(arm);
}

std::size_t Statistics::bytes() const {
    const std::size_t numbers = records_.capacity() + theta_.capacity() + factors_.capacity() +
                                log_determinants_.capacity() + variances_.capacity();
    return numbers * sizeof(double) + versions_.capacity() * sizeof(std::int64_t) +
           stale_.capacity() * sizeof(std::uint32_t) + is_stale_.capacity() + floors_.capacity() * sizeof(Floor) +
           fits_.capacity() * sizeof(Fit) + waiting_.rows.capacity() * sizeof(double) + waiting_.lengths.capacity();
}

}  // namespace armlet
