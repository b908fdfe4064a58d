// How noisy the rewards of each arm are about its estimate, from the residuals of all.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "state/solved.hpp"

namespace armlet {

namespace {

constexpr double prior = 4.0;  // rows that the others' noise counts for in an arm's own

// The value at which half of the weight lies below.
double weighted_median(std::vector<std::pair<double, double>>& values, double whole) {
    std::sort(values.begin(), values.end());
    double running = 0.0;
    for (const auto& [value, weight] : values)
        if ((running += weight) >= 0.5 * whole) return value;
    return values.back().first;
}

}  // namespace

// An estimate of d numbers takes d rows; a ridge leaves it something to be wrong about before that.
double Solved::freedom(double n) const { return std::max(n - std::min(static_cast<double>(rank_), n), 0.25 * n); }

std::vector<double> Solved::fits() const {
    std::vector<double> out;
    for (const Fit& fit : fits_) out.insert(out.end(), {fit.n, fit.residual, freedom(fit.n)});
    return out;
}

void Solved::deviations(NoiseRule kind, std::vector<double>& out) const {
    double squares = 0.0, raw = 0.0, residual = 0.0, free = 0.0, weighted = 0.0, weights = 0.0;
    thread_local std::vector<std::pair<double, double>> variances;
    variances.clear();
    for (const Fit& fit : fits_) {
        const double f = freedom(fit.n), weight = f / (f + prior);
        squares += fit.squares, raw += fit.raw;
        residual += fit.residual, free += f;
        weighted += fit.residual / (f + prior), weights += weight;
        if (kind == NoiseRule::median && f > 0.0) variances.emplace_back(fit.residual / f, weight);
    }
    const bool is_still = raw > 0.0 && squares <= 0x1p-46 * raw;  // all rewards are the same, to rounding
    double common = free > 0.0 ? residual / free : 1.0;
    if (free > 0.0 && kind == NoiseRule::max) common = weighted / weights;
    if (free > 0.0 && kind == NoiseRule::median) common = weighted_median(variances, weights);
    if (is_still) common = 0.0;
    out.assign(n_arms_, std::sqrt(common));
    if (kind == NoiseRule::pool || is_still) return;
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        const double own = (fits_[arm].residual + prior * common) / (freedom(fits_[arm].n) + prior);
        out[arm] = std::sqrt(std::max(common, own));
    }
}

std::vector<double> Solved::values() const {
    std::vector<double> out;
    out.reserve(n_arms_ * value_size());
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        const Fit& fit = fits_[arm];
        out.insert(out.end(), {fit.n, fit.squares, fit.residual, fit.raw, log_determinants_[arm]});
        for (std::size_t j = 0; j < dim_; ++j) out.push_back(theta_[j * width() + arm]);
        out.insert(out.end(), factor(arm), factor(arm) + factor_size(dim_));
    }
    return out;
}

void Solved::restore(std::span<const double> values, const Units& units) {
    rank_ = units.rank();
    for (std::size_t arm = 0; arm < n_arms_; ++arm, values = values.subspan(n_facts + dim_ + factor_size(dim_))) {
        const double *fit = values.data(), *theta = fit + n_facts;
        fits_[arm] = {fit[0], fit[1], fit[2], fit[3]};
        floors_[arm] = {.residual_bound =
                            std::numeric_limits<double>::infinity()};  // what others proved is not trusted
        log_determinants_[arm] = fit[4];
        for (std::size_t j = 0; j < dim_; ++j) theta_[j * width() + arm] = theta[j];
        std::copy_n(theta + dim_, factor_size(dim_), factors_.data() + arm * factor_size(dim_));
        is_stale_[arm] = 0;
        if (keeps_coarse()) coarse_.drop(arm);
    }
    stale_.clear();
    is_noise_stale_ = false;
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
    ++solves_;
}

}  // namespace armlet
