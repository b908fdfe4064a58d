// How noisy the rewards of each arm are about its estimate, from the residuals of all.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/elementary.hpp"
#include "state/solved.hpp"

namespace armlet {

namespace {

constexpr double prior = 4.0;   // rows that the others' noise counts for in an arm's own
constexpr double least = 3.0;   // rows, from which on the noise of an arm tells how arms differ
constexpr double tiny = 1e-12;  // of the common variance: less is none

}  // namespace

// An estimate of d numbers takes d rows; a ridge leaves it something to be wrong about before that. What an estimate is
// penalised for makes up for them.
double Solved::freedom(double n) const {
    return is_penalised_ ? n : std::max(n - std::min(static_cast<double>(rank_), n), 0.25 * n);
}

double Solved::typical_norm() const {
    double raw = 0.0, squares = 0.0;
    for (const Fit& fit : fits_) raw += fit.raw, squares += fit.trace;
    return squares > 0.0 ? std::sqrt(std::max(raw, 0.0) / squares) : 0.0;
}

std::vector<double> Solved::fits() const {
    std::vector<double> out;
    for (const Fit& fit : fits_) out.insert(out.end(), {fit.n, fit.residual, freedom(fit.n)});
    return out;
}

// By empirical Bayes: log variances of arms are normal about a common one, beyond what chance makes of them (Smyth
// 2004, with the first terms of digamma and trigamma). An arm's own counts as its freedom, the common one as the
// freedom that says how much arms differ.
void Solved::shrink_deviations(double pooled, std::vector<double>& out) const {
    double arms = 0.0, sum = 0.0, squares = 0.0, chance = 0.0;
    for (const Fit& fit : fits_) {
        const double f = freedom(fit.n);
        if (!(f >= least)) continue;
        const double each = elementary::log(std::max(fit.residual / f, tiny * pooled)) + 1.0 / f;
        arms += 1.0, sum += each, squares += each * each, chance += 2.0 / f;
    }
    if (arms < 2.0) return;
    const double mean = sum / arms, differ = (squares - mean * sum) / (arms - 1.0) - chance / arms;
    if (!(differ > 0.0)) return;
    const double common_freedom = (1.0 + std::sqrt(1.0 + 2.0 * differ)) / differ;
    const double common = elementary::exp(mean - 1.0 / common_freedom), lowest = std::min(common, pooled);
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        const double f = freedom(fits_[arm].n);
        const double own = (common_freedom * common + fits_[arm].residual) / (common_freedom + f);
        out[arm] = std::sqrt(std::max(own, lowest));
    }
}

void Solved::deviations(NoiseRule kind, std::vector<double>& out) const {
    double squares = 0.0, raw = 0.0, residual = 0.0, free = 0.0, weighted = 0.0, weights = 0.0;
    for (const Fit& fit : fits_) {
        const double f = freedom(fit.n), weight = f / (f + prior);
        squares += fit.squares, raw += fit.raw;
        residual += fit.residual, free += f;
        weighted += fit.residual / (f + prior), weights += weight;
    }
    const bool is_still = raw > 0.0 && squares <= 0x1p-46 * raw;  // all rewards are the same, to rounding
    double common = free > 0.0 ? residual / free : 1.0;
    if (free > 0.0 && kind == NoiseRule::max) common = weighted / weights;
    if (is_still) common = 0.0;
    out.assign(n_arms_, std::sqrt(common));
    if (!(common > 0.0) || kind == NoiseRule::pool) return;
    if (kind == NoiseRule::shrunk) return shrink_deviations(common, out);
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
        out.push_back(fit.n);
        const bool is_weighed = n_outcomes_ > 0;  // then these are by the last weights, and `outcome_values` has them
        for (const double one : {fit.squares, fit.residual, fit.raw}) out.push_back(is_weighed ? 0.0 : one);
        out.insert(out.end(), {fit.trace, fit.gained, log_determinants_[arm]});
        for (std::size_t j = 0; j < dim_; ++j) out.push_back(is_weighed ? 0.0 : theta_[j * width() + arm]);
        out.insert(out.end(), factor(arm), factor(arm) + factor_size(dim_));
    }
    return out;
}

void Solved::restore(std::span<const double> values, const Units& units) {
    rank_ = units.rank();
    for (std::size_t arm = 0; arm < n_arms_; ++arm, values = values.subspan(n_facts + dim_ + factor_size(dim_))) {
        const double *fit = values.data(), *theta = fit + n_facts;
        fits_[arm] = {fit[0], fit[1], fit[2], fit[3], fit[4], fit[5]};
        floors_[arm] = {.residual_bound =
                            std::numeric_limits<double>::infinity()};  // what others proved is not trusted
        log_determinants_[arm] = fit[6];
        for (std::size_t j = 0; j < dim_; ++j) theta_[j * width() + arm] = theta[j];
        std::copy_n(theta + dim_, factor_size(dim_), factors_.data() + arm * factor_size(dim_));
        is_stale_[arm] = 0;
        if (keeps_coarse()) coarse_.drop(arm);
    }
    stale_.clear();
    is_noise_stale_ = false;
    ++solves_;
    if (n_outcomes_) return;  // of which `restore_outcomes` tells
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
}

}  // namespace armlet
