#include "state/statistics.hpp"

#include <algorithm>
#include <utility>

#include "state/ridge_evidence.hpp"

namespace armlet {

namespace {

// Values in a row, from which on one pass over A for eight rows, or over rounded factors, is quicker.
constexpr std::size_t worth_waiting = 64;

constexpr double least_gain = 0.1;  // what rows must tell about an arm, so that estimates from before are of no use

}  // namespace

Statistics::Statistics(std::size_t n_arms, Units units, Ridge ridge)
    : units_(std::move(units)),
      row_(units_.is_free() ? units_.size() : 0),
      sums_(n_arms, units_.size()),
      solved_(ridge),
      counts_(n_arms),
      n_empty_(n_arms),
      exploration_weights_(n_arms),
      is_retired_(n_arms),
      versions_(n_arms) {
    solved_.mark_all(sums_);
}

void Statistics::touch(std::size_t arm) {
    waiting_.forget(arm);
    note(arm);
    solved_.mark(arm);
}

void Statistics::note(std::size_t arm) {
    versions_[arm] = ++changes_;
    count_rows(arm);
    exploration_weights_.mark(arm);
    if (witness_ == nobody && count(arm) > 0.0) witness_ = arm;
    if (witness_ == arm && !(count(arm) > 0.0)) find_witness();
}

void Statistics::touch_all() {
    if (waiting_.is_open()) waiting_.resize(n_arms());
    counts_.assign(n_arms(), 0.0), n_empty_ = n_arms();
    for (std::size_t arm = 0; arm < n_arms(); ++arm) count_rows(arm);
    solved_.mark_all(sums_);
    exploration_weights_.mark_all(n_arms());
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

void Statistics::buffer_rows() {
    if (!waiting_.is_open()) waiting_.open(n_arms(), sums_.dim(), outcomes_.n());
}

void Statistics::solve_rarely() {
    is_paced_ = true;
    solved_.keep_penalties();
    solved_.keep_factors();
    view_.resize(view_size());
    if (view_size() < worth_waiting) return;
    buffer_rows();
    solved_.keep_coarse();
}

// A fiftieth; up to a tenth, while a solve takes longer than that many steps.
double Statistics::rows_due(double n) const {
    const auto d = static_cast<double>(view_size()), k = static_cast<double>(n_arms());
    return std::max(0.02 * n, std::min(0.1 * n, d * d / (6.0 * (k + d))));
}

bool Statistics::is_due(std::size_t arm) const {
    const double solved = solved_.is_marked(arm) ? sums_.n(arm) : solved_.n(arm);
    return count(arm) - solved >= rows_due(solved);
}

// Over the rows that an arm was solved for, squared widths add up to at most the rank.
bool Statistics::gains(std::size_t arm, const double* x, double weight) {
    if (solved_.is_marked(arm)) return false;
    const auto each = static_cast<std::uint32_t>(arm);
    double width;
    solved_.widths({&each, 1}, units_.view(x, view_.data()), &width);
    solved_.gain(arm, weight * (width * width));
    const double n = solved_.n(arm), usual = static_cast<double>(units_.rank()) * (rows_due(n) / n);
    return solved_.gained(arm) > std::max(least_gain, 2.0 * usual);
}

// A paced arm is solved for the rows that it had when it was marked: those that came later still wait.
void Statistics::settle(std::size_t arm) {
    if (!waiting_.any(arm)) return;
    if (is_paced_ && solved_.is_marked(arm)) solved_.solve_one(arm, sums_, units_, outcomes_);
    waiting_.settle(arm, sums_, outcomes_);
}

void Statistics::settle_unsolved(std::size_t arm) {
    if (waiting_.any(arm)) waiting_.settle(arm, sums_, outcomes_);
}

void Statistics::settle_all() {
    for (std::size_t arm = 0; arm < n_arms(); ++arm) settle(arm);
}

void Statistics::settle_all_unsolved() {
    for (std::size_t arm = 0; arm < n_arms(); ++arm) settle_unsolved(arm);
}

void Statistics::mark(std::size_t arm) {
    if (is_paced_) settle_unsolved(arm);
    solved_.mark(arm);
}

void Statistics::solve_stale() {
    if (!is_paced_)
        for (const auto arm : solved_.stale()) settle(arm);
    solved_.solve(sums_, units_, outcomes_);
}

void Statistics::release() {
    if (!is_held_) return;
    is_held_ = false;
    renew();
}

void Statistics::renew() { look_again(true); }

void Statistics::look_again(bool anew) {
    if (!units_.is_free() && !is_paced_) return;  // what changed is marked
    settle_all_unsolved();
    if (!units_.is_free()) return solved_.mark_seen(sums_);
    units_.renew(sums_);
    if (outcomes_.is_open()) outcomes_.renew(rows());
    solved_.mark_seen(sums_);
    ++renewals_;
    if (anew) found_for_ = 0.0;
    is_ridge_due_ = finds_ridge_ && (discount_.is_on() ? !(found_for_ > 0.0) : count() >= 2.0 * found_for_);
}

void Statistics::take_ridge() {
    const std::size_t size = sums_.dim();
    std::vector<double> room(sums_.record_size());
    double *b = room.data(), *A = b + size;
    RidgeEvidence evidence;
    const double fade = Discount::fade(clock_, Discount::half_lives(clock_));  // regardless of who looks
    for (std::size_t arm = 0; arm < n_arms(); ++arm) {
        units_.standardise(sums_.A(arm), sums_.b(arm), A, b);
        if (fade != 1.0)
            for (double& one : room) one *= fade;
        const double squares = units_.centred_squares(sums_.record(arm));
        evidence.add(A, b, fade * sums_.n(arm), fade * squares, size);
    }
    const double deviation = units_.deviation();
    restore_ridge(evidence.ridge(static_cast<double>(units_.rank() - 1), deviation * deviation), rows());
}

void Statistics::add(std::size_t arm, const double* x, double reward, double weight, const double* outcomes,
                     When when) {
    if (weight >= 0.0 && !is_held_) catch_up();
    if (discount_.is_on()) weight = age(weight, when);
    if (units_.is_free() && weight > 0.0 && is_empty()) {
        units_.set_origin(x, reward);
        if (outcomes_.is_open()) outcomes_.set_origin(outcomes);
    }
    const double *row = units_.row(x, row_.data()), r = units_.reward(reward);
    const bool is_paced = is_paced_ && weight >= 0.0;
    if (waiting_.is_open() && weight >= 0.0) {
        if (waiting_.is_full(arm)) settle_unsolved(arm);
        waiting_.put(arm, sums_, row, r, weight, outcomes);
    } else {
        settle_unsolved(arm);
        sums_.add(arm, row, r, weight);
        if (outcomes_.is_open()) outcomes_.add(arm, row, outcomes, weight);
        if (outcomes_.is_open() && !(sums_.n(arm) > 0.0)) outcomes_.clear(arm);  // no ghost of the last row
        waiting_.forget(arm);
    }
    if (weight < 0.0) solved_.doubt(arm);
    if (discount_.is_on()) found_for_ = std::max(found_for_ - weight, 0.0);
    note(arm);
    if (is_held_ && is_paced) return;
    if (!is_paced || is_due(arm) || has_leverage(arm, row, weight) || gains(arm, x, weight)) mark(arm);
    if (weight < 0.0) {
        empty_lost({arm, row, r, -weight});
        if (is_empty() && discount_.is_by_time()) restore_clock(0);  // no row is left that has set it
        return renew();
    }
    if (units_.is_free() && (units_.is_due(weight) || leaves_units(row, weight))) look_again(false);
    finish();
}

bool Statistics::leaves_units(const double* row, double weight) const {
    return weight > 0.0 && units_.is_far(row) && units_.leaves(row, weight, rows());
}

bool Statistics::has_leverage(std::size_t arm, const double* row, double weight) {
    if (!(units_.is_free() && weight > 0.0)) return false;
    const double shift = ridge().shift(std::max(count(arm), 1.0));
    if (waiting_.is_open()) return units_.has_leverage(row, waiting_.margin(arm), shift);
    thread_local std::vector<double> margin;
    margin.resize(WaitingRows::margin_size(sums_.dim()));
    sums_.margin(arm, margin.data());
    return units_.has_leverage(row, margin.data(), shift);
}

double Statistics::count() const {
    double n = 0.0;
    for (std::size_t arm = 0; arm < n_arms(); ++arm) n += count(arm);
    return n;
}

void Statistics::correct(std::size_t arm, const double* x, const Change& reward, double weight, When when) {
    settle_unsolved(arm);
    if (discount_.is_on()) weight = age(weight, when);
    const double* row = units_.row(x, row_.data());
    sums_.correct(arm, row, units_.reward(reward.from), units_.reward(reward.to), weight);
    if (outcomes_.is_open()) outcomes_.correct(arm, row, reward.outcomes_from, reward.outcomes_to, weight);
    touch(arm);
    empty_lost({arm, nullptr, units_.reward(reward.from), weight});
    renew();
}

// Origins are shared, so that all arms may have lost what one row is taken back of.
void Statistics::empty_lost(const TakenRow& taken) {
    if (units_.is_free()) settle_all_unsolved();
    const std::vector<std::size_t> lost = lost_digits_.find(sums_, units_, taken);
    for (const auto arm : lost) {
        sums_.clear(arm);
        if (outcomes_.is_open()) outcomes_.clear(arm);
        solved_.doubt(arm);
        touch(arm);
    }
    if (units_.is_free() && taken.x && lost.empty()) settle_constants(taken);  // else its rounding is gone
}

// Standard units divide by deviations: of a column that no longer varies, rounding must not be one.
void Statistics::settle_constants(const TakenRow& taken) {
    const auto [columns, values] = constant_columns(sums_, taken);
    if (columns.empty()) return;
    sums_.set_multiples(columns, values);
    if (outcomes_.is_open()) outcomes_.set_multiples(columns, values);
    for (std::size_t arm = 0; arm < n_arms(); ++arm) {
        if (!(sums_.n(arm) > 0.0)) continue;
        solved_.doubt(arm);
        touch(arm);
    }
}

// Without rows there is nothing that another origin could spoil.
void Statistics::adopt_origin(const Statistics& other) {
    if (!units_.is_free() || !is_empty()) return;
    units_.set_origin(other.units_);
    if (outcomes_.is_open()) outcomes_.set_origin(other.outcomes_);
}

void Statistics::open_outcomes(std::size_t n) {
    outcomes_.open(n_arms(), n, sums_.dim());
    usual_weights_.assign(n, 1.0);
    solved_.open_outcomes(n);
    if (waiting_.is_open()) waiting_.open(n_arms(), sums_.dim(), n);
    finish();
}

void Statistics::reweigh(std::span<const double> weights) {
    settle_all_unsolved();
    for (std::size_t arm = 0; arm < n_arms(); ++arm) {
        std::vector<double> record(sums_.record(arm).begin(), sums_.record(arm).end());
        outcomes_.weigh(arm, weights, -units_.reward(0.0), record);
        sums_.restore(arm, record);
        touch(arm);
    }
    renew();
    finish();
}

std::vector<double> Statistics::outcomes_from(Statistics& other, std::size_t other_arm) const {
    const auto sums = other.record(other_arm), record = other.outcomes_.record(other_arm);
    std::vector<double> out(record.begin(), record.end());
    if (units_.is_free()) outcomes_.rebase(out, sums, units_.moved(other.units_), other.outcomes_);
    for (double& one : out) one *= since(other);
    return out;
}

void Statistics::set_usual_weights(std::span<const double> weights, std::span<const double> offsets) {
    usual_weights_.assign(weights.begin(), weights.end());
    usual_offsets_.assign(offsets.begin(), offsets.end());
    use_usual_weights();
}

std::vector<double> Statistics::record_from(Statistics& other, std::size_t other_arm) const {
    const auto record = other.record(other_arm);
    std::vector<double> out(record.begin(), record.end());
    units_.rebase(out, other.units_);
    for (double& one : out) one *= since(other);
    return out;
}

void Statistics::merge(std::size_t arm, Statistics& other, std::size_t other_arm) {
    settle_unsolved(arm);
    advance(other.clock_);
    adopt_origin(other);
    if (outcomes_.is_open()) outcomes_.merge(arm, outcomes_from(other, other_arm));
    if (sums_.keeps_squares()) sums_.merge_squares(arm, squares_from(other, other_arm), 1.0);
    if (units_.is_free() || discount_.is_on())
        sums_.merge(arm, record_from(other, other_arm));
    else
        sums_.merge(arm, other.record(other_arm));
    under_way_.add(arm, other.under_way_.count(other_arm));
    solved_.doubt(arm);
    touch(arm);
    renew();
}

void Statistics::subtract(std::size_t arm, Statistics& earlier, std::size_t earlier_arm) {
    settle_unsolved(arm);
    advance(earlier.clock_);
    if (outcomes_.is_open()) outcomes_.subtract(arm, outcomes_from(earlier, earlier_arm));
    if (sums_.keeps_squares()) sums_.merge_squares(arm, squares_from(earlier, earlier_arm), -1.0);
    if (units_.is_free() || discount_.is_on())
        sums_.subtract(arm, record_from(earlier, earlier_arm));
    else
        sums_.subtract(arm, earlier.record(earlier_arm));
    if (outcomes_.is_open() && !(sums_.n(arm) > 0.0)) outcomes_.clear(arm);
    under_way_.add(arm, -earlier.under_way_.count(earlier_arm));
    solved_.doubt(arm);
    touch(arm);
    renew();
}

void Statistics::append_arm() {
    settle_all_unsolved();
    sums_.append_arm();
    if (outcomes_.is_open()) outcomes_.append_arm();
    under_way_.append_arm();
    lost_digits_.append_arm(dim());
    versions_.reserve(n_arms());
    versions_.push_back(++changes_);
    is_retired_.push_back(0);
    touch_all();
}

void Statistics::erase_arm(std::size_t arm) {
    settle_all_unsolved();
    sums_.erase_arm(arm);
    if (outcomes_.is_open()) outcomes_.erase_arm(arm);
    under_way_.erase_arm(arm);
    lost_digits_.erase_arm(arm, dim());
    set_active(arm, true);  // so that nobody counts it any more
    is_retired_.erase(is_retired_.begin() + static_cast<std::ptrdiff_t>(arm));
    versions_.erase(versions_.begin() + static_cast<std::ptrdiff_t>(arm));
    touch_all();
    renew();
}

void Statistics::restore(std::span<const double> records) {
    waiting_.drop();
    lost_digits_.clear();
    sums_.restore(records);
    std::fill(versions_.begin(), versions_.end(), ++changes_);
    touch_all();
    renew();
}

void Statistics::restore(std::size_t arm, std::span<const double> record) {
    settle_unsolved(arm);
    sums_.restore(arm, record);
    solved_.doubt(arm);
    touch(arm);
    renew();
}

void Statistics::restore(std::span<const double> records, std::span<const double> units) {
    restore(records);
    restore_units(units);
}

void Statistics::restore_units(std::span<const double> units) {
    if (!units_.is_free()) return;
    settle_all_unsolved();
    units_.restore(units);
    solved_.mark_seen(sums_);
    ++renewals_;
}

std::size_t Statistics::bytes() const {
    return sums_.bytes() + outcomes_.bytes() + waiting_.bytes() + solved_.bytes() + units_.bytes() +
           row_.capacity() * sizeof(double) + counts_.size() * sizeof(double) + under_way_.bytes() +
           exploration_weights_.bytes() + is_retired_.size() + versions_.capacity() * sizeof(std::int64_t);
}

}  // namespace armlet
