// Rows that fade: the clock that sums are as of, how they are looked at later, and widths of weighted rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/linear.hpp"
#include "state/statistics.hpp"

namespace armlet {

// ---- the clock of the sums: that of the latest decision that was learned

void Statistics::open_discount(const Discount& discount, Widths widths) {
    discount_ = discount;
    if (widths == Widths::plain) return;
    sums_.keep_squares();
    solved_.keep_spreads();
}

double Statistics::age(double weight, When when) {
    const double time = discount_.time(when);
    advance(Discount::tick(time));
    return weight * Discount::weight(time, Discount::half_lives(clock_));
}

double Statistics::aged(double weight, When when) const {
    if (!discount_.is_on()) return weight;
    return weight * fade_ * Discount::weight(discount_.time(when), Discount::half_lives(clock_));
}

void Statistics::advance(Discount::Tick tick) {
    if (tick <= clock_) return;
    const auto passed = Discount::half_lives(tick) - Discount::half_lives(clock_);
    clock_ = tick;
    if (passed > 0) halve(passed);
    look_at(std::max(look_, clock_));
}

// What is looked at stays as it is: sums are less by a power of two, and their factor is more by it. Only what has
// faded to nothing is gone.
void Statistics::halve(std::int64_t times) {
    const double factor = std::ldexp(1.0, -static_cast<int>(std::min(times, 2 * Discount::forever)));
    sums_.scale(factor);
    if (outcomes_.is_open()) outcomes_.scale(factor);
    units_.fade(factor);
    found_for_ *= factor;
    fade_ = Discount::fade(look_, Discount::half_lives(clock_));
    solved_.keep_fade(fade_);
    for (std::size_t arm = 0; arm < n_arms(); ++arm)
        if (count(arm) > 0.0 && !(sums_.n(arm) > 0.0)) {
            if (outcomes_.is_open()) outcomes_.clear(arm);
            solved_.doubt(arm);
            touch(arm);
        }
}

// Clocks that differ by less than a half-life see sums as of the later one. Beyond that a row was stamped ahead: it has
// moved the clock, and others must not look older for it.
void Statistics::look(When when) {
    const Discount::Tick tick = Discount::tick(discount_.time(when));
    const bool is_behind = discount_.is_by_time() && clock_ - tick >= Discount::per_half_life;
    is_behind ? set_look(tick) : look_at(tick);
}

void Statistics::look_at(Discount::Tick tick) { set_look(std::max(tick, clock_)); }

void Statistics::set_look(Discount::Tick tick) {
    if (tick == look_) return;
    look_ = tick;
    const double before = fade_;
    fade_ = Discount::fade(look_, Discount::half_lives(clock_));
    solved_.set_fade(fade_, before, sums_);
    for (std::size_t arm = 0; arm < n_arms(); ++arm) count_rows(arm);
    exploration_weights_.mark_all(n_arms());
}

void Statistics::restore_clock(Discount::Tick tick) {
    clock_ = look_ = tick;
    fade_ = Discount::fade(look_, Discount::half_lives(clock_));
    solved_.keep_fade(fade_);
}

double Statistics::since(const Statistics& other) const {
    const auto passed = Discount::half_lives(clock_) - Discount::half_lives(other.clock_);
    return std::ldexp(1.0, -static_cast<int>(std::clamp(passed, std::int64_t{0}, 2 * Discount::forever)));
}

// As sums of which nothing but A is of interest.
std::vector<double> Statistics::squares_from(Statistics& other, std::size_t other_arm) const {
    const std::size_t size = sums_.dim();
    const auto square = other.squares(other_arm);
    std::vector<double> record(3 + size);
    record[0] = square[0];
    record.insert(record.end(), square.begin(), square.end());
    units_.rebase(record, other.units_);
    std::vector<double> out(record.begin() + static_cast<std::ptrdiff_t>(3 + size), record.end());
    for (double& one : out) one *= since(other) * since(other);
    return out;
}

double Statistics::rows() const {
    if (!discount_.is_on()) return count();
    double n = 0.0;
    for (std::size_t arm = 0; arm < n_arms(); ++arm) n += sums_.n(arm);
    return n;
}

// ---- what is solved

void Solved::set_fade(double fade, double before, const Sums& sums) {
    fade_ = fade;
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        if (sums.n(arm) > 0.0) mark(arm);
    const double less = std::min(fade / before, 1.0);
    for (Floor& floor : floors_) {
        floor.value *= (1.0 - 1e-9) * less;
        floor.checked *= less, floor.searched *= less;
    }
}

void Solved::keep_spreads() {
    spreads_.assign(n_arms_ * packed_size(dim_), 0.0);
    keep_factors();
    mark_each();
}

// V^-1 V2 first, then V^-1 of its rows, for all columns at once.
void Solved::take_spread(const System& s, std::size_t arm) {
    const std::size_t d = dim_;
    std::vector<double> V2(d * d), half(d * d);
    const double* from = s.A2;
    for (std::size_t k = 0; k < d; ++k)
        for (std::size_t i = k; i < d; ++i) V2[k * d + i] = V2[i * d + k] = *from++ + (i == k ? s.shift : 0.0);
    V2[0] += s.extra;
    armlet::solve(s.A, s.shift, d, {V2.data(), half.data(), 1, d, d});
    for (std::size_t k = 0; k < d; ++k)
        for (std::size_t i = 0; i < d; ++i) V2[k * d + i] = half[i * d + k];
    armlet::solve(s.A, s.shift, d, {V2.data(), half.data(), 1, d, d});
    double* to = spreads_.data() + arm * packed_size(d);
    for (std::size_t k = 0; k < d; ++k)
        for (std::size_t i = k; i < d; ++i) *to++ = half[k * d + i];
}

double Solved::spread_width(std::size_t arm, const double* x) const {
    const double* M = spreads_.data() + arm * packed_size(dim_);
    double square = 0.0;
    for (std::size_t k = 0; k < dim_; ++k) {
        double below = 0.0;
        const double own = *M++ * x[k];
        for (std::size_t i = k + 1; i < dim_; ++i) below += *M++ * x[i];
        square += x[k] * (own + 2.0 * below);
    }
    square = std::max(square, 0.0);
    return square <= beyond_any * beyond_any ? std::sqrt(square) : beyond_any;  // for NaN too
}

}  // namespace armlet
