#include "state/statistics.hpp"

#include <algorithm>

namespace armlet {

Statistics::Statistics(std::size_t n_arms, std::size_t dim, Ridge ridge)
    : sums_(n_arms, dim), solved_(ridge), is_retired_(n_arms), versions_(n_arms) {
    solved_.mark_all(sums_);
}

void Statistics::touch(std::size_t arm) {
    versions_[arm] = ++changes_;
    solved_.mark(arm);
    wants_.mark(arm);
    if (witness_ == nobody && count(arm) > 0.0) witness_ = arm;
    if (witness_ == arm && !(count(arm) > 0.0)) find_witness();
}

void Statistics::touch_all() {
    if (waiting_.is_open()) waiting_.resize(n_arms());
    solved_.mark_all(sums_);
    wants_.mark_all();
    find_witness();
}

void Statistics::set_active(std::size_t arm, bool active) {
    const std::uint8_t retired = active ? 0 : 1;
    n_retired_ += retired, n_retired_ -= is_retired_[arm];
    is_retired_[arm] = retired;
}

void Statistics::find_witness() {
    witness_ = nobody;
    for (std::size_t arm = 0; arm < n_arms() && witness_ == nobody; ++arm)
        if (count(arm) > 0.0) witness_ = arm;
}

void Statistics::let_rows_wait() {
    if (!waiting_.is_open()) waiting_.open(n_arms(), dim());
}

void Statistics::settle_all() {
    if (!waiting_.is_open()) return;
    for (std::size_t arm = 0; arm < n_arms(); ++arm) settle(arm);
}

void Statistics::solve_stale() {
    for (const auto arm : solved_.stale()) settle(arm);
    solved_.solve(sums_);
}

void Statistics::add(std::size_t arm, const double* x, double reward, double weight) {
    if (!waiting_.is_open() || weight < 0.0) {
        settle(arm);
        sums_.add(arm, x, reward, weight);
    } else if (waiting_.put(arm, x, reward, weight)) {
        settle(arm);
    }
    if (weight < 0.0) solved_.doubt(arm);
    touch(arm);
}

void Statistics::correct(std::size_t arm, const double* x, double from, double to, double weight) {
    settle(arm);
    sums_.correct(arm, x, from, to, weight);
    touch(arm);
}

void Statistics::merge(std::size_t arm, Statistics& other, std::size_t other_arm) {
    settle(arm);
    sums_.merge(arm, other.record(other_arm));
    solved_.doubt(arm);
    touch(arm);
}

void Statistics::subtract(std::size_t arm, Statistics& earlier, std::size_t earlier_arm) {
    settle(arm);
    sums_.subtract(arm, earlier.record(earlier_arm));
    solved_.doubt(arm);
    touch(arm);
}

void Statistics::follow(std::size_t arm, Statistics& later) {
    settle(arm);
    sums_.restore(arm, later.record(arm));
    touch(arm);
}

void Statistics::append_arm() {
    settle_all();
    sums_.append_arm();
    versions_.reserve(n_arms());
    versions_.push_back(++changes_);
    is_retired_.push_back(0);
    touch_all();
}

void Statistics::erase_arm(std::size_t arm) {
    settle_all();
    sums_.erase_arm(arm);
    set_active(arm, true);  // so that nobody counts it any more
    is_retired_.erase(is_retired_.begin() + static_cast<std::ptrdiff_t>(arm));
    versions_.erase(versions_.begin() + static_cast<std::ptrdiff_t>(arm));
    touch_all();
}

void Statistics::restore(std::span<const double> records) {
    waiting_.drop();
    sums_.restore(records);
    std::fill(versions_.begin(), versions_.end(), ++changes_);
    touch_all();
}

void Statistics::restore(std::size_t arm, std::span<const double> record) {
    settle(arm);
    sums_.restore(arm, record);
    solved_.doubt(arm);
    touch(arm);
}

std::size_t Statistics::bytes() const {
    return sums_.bytes() + waiting_.bytes() + solved_.bytes() + wants_.bytes() + is_retired_.capacity() +
           versions_.capacity() * sizeof(std::int64_t);
}

}  // namespace armlet
