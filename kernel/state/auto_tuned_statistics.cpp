#include "state/auto_tuned_statistics.hpp"

#include <algorithm>
#include <numeric>

namespace armlet {

namespace {

double sum(std::span<const double> shares) { return std::accumulate(shares.begin(), shares.end(), 0.0); }

}  // namespace

void Tuner::append_arm() {
    if (!shares_.empty()) shares_.push_back(sum(shares_) / static_cast<double>(shares_.size()));
}

void Tuner::erase_arm(std::size_t arm) {
    if (!shares_.empty()) shares_.erase(shares_.begin() + static_cast<std::ptrdiff_t>(arm));
}

void Tuner::keep(const double* x) {
    std::copy_n(x, dim_, sample_.data() + (first_ + size_) % room * dim_);
    if (size_ < room)
        ++size_;
    else
        first_ = (first_ + 1) % room;
}

void Tuner::drop(const double* x) {
    std::vector<double> rest = sample();
    for (std::size_t i = size_; i-- > 0;) {
        if (!std::equal(x, x + dim_, rest.begin() + static_cast<std::ptrdiff_t>(i * dim_))) continue;
        const auto at = rest.begin() + static_cast<std::ptrdiff_t>(i * dim_);
        rest.erase(at, at + static_cast<std::ptrdiff_t>(dim_));
        return restore(p_, next_, rest);
    }
}

std::vector<double> Tuner::sample() const {
    std::vector<double> out(size_ * dim_);
    for (std::size_t i = 0; i < size_; ++i) std::copy_n(kept(i), dim_, out.data() + i * dim_);
    return out;
}

void Tuner::restore(double p, double next, std::span<const double> sample) {
    p_ = p, next_ = next, first_ = 0, size_ = 0;
    std::fill(sample_.begin(), sample_.end(), 0.0);
    for (std::size_t i = 0; i < sample.size() / dim_; ++i) keep(sample.data() + i * dim_);
}

void Tuner::subtract(const Tuner& earlier) {
    for (std::size_t age = 0; age < earlier.size_; ++age) drop(earlier.kept(age));
    came_ = std::max(came_ - earlier.came_, 0.0), left_ = std::max(left_ - earlier.left_, 0.0);
    look_soon();
}

// The latest contexts of both by turns, as if they had come together.
void Tuner::merge(const Tuner& other) {
    std::vector<double> both;
    for (std::size_t age = 0; age < std::max(size_, other.size_); ++age) {  // from the latest back
        if (age < size_) both.insert(both.begin(), kept(size_ - 1 - age), kept(size_ - 1 - age) + dim_);
        if (age < other.size_) {
            const double* x = other.kept(other.size_ - 1 - age);
            both.insert(both.begin(), x, x + dim_);
        }
    }
    restore(std::max(p_, other.p_), 0.0, both);
    came_ += other.came_, left_ += other.left_;
}

void Tuner::merge_shares(double rows, const Tuner& other, double other_rows, std::span<const std::size_t> into) {
    if (shares_.empty() || other.shares_.empty()) return;
    // an arm of one side only must keep some share, whatever the rows
    const double mine = std::max(rows, 1.0) / sum(shares_), theirs = std::max(other_rows, 1.0) / sum(other.shares_);
    for (double& share : shares_) share *= mine;
    for (std::size_t i = 0; i < into.size(); ++i) shares_[into[i]] += theirs * other.shares_[i];
}

void AutoTunedStatistics::set_quotas(double p, double least) {
    const auto shares = tuner.shares();
    double total = 0.0;
    for (std::size_t arm = 0; arm < shares.size(); ++arm)
        if (is_active(arm)) total += shares[arm];
    quotas_.resize(shares.size());
    for (std::size_t arm = 0; arm < shares.size(); ++arm) quotas_[arm] = p * (shares[arm] / total);
    if (!under_way().any() || !any_empty()) return;
    for (std::size_t arm = 0; arm < shares.size(); ++arm)
        if (under_way()[arm] > 0.0 && !(count(arm) > 0.0)) quotas_[arm] = std::min(quotas_[arm], least);
}

void AutoTunedStatistics::set_weights(std::span<const double> expected) {
    weights_.clear();
    if (expected.empty()) return refresh_exploration_weights(quotas_);
    for (std::size_t arm = 0; arm < expected.size(); ++arm)
        weights_.push_back(exploration_weight(count(arm) + expected[arm], quotas_[arm]));
}

}  // namespace armlet
