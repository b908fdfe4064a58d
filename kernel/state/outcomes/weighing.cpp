// Estimates and noise of several outcomes, weighed as one reward.
#include <algorithm>
#include <cmath>

#include "state/solved.hpp"

namespace armlet {

namespace {

// w'M w of a symmetric M, packed.
double quadratic(const double* M, std::span<const double> w) {
    double sum = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) {
        double row = w[j] * *M++;
        for (std::size_t k = j + 1; k < w.size(); ++k) row += 2.0 * w[k] * *M++;
        sum += w[j] * row;
    }
    return sum;
}

}  // namespace

void Solved::open_outcomes(std::size_t n) {
    n_outcomes_ = n;
    weights_.assign(n, 1.0);
    allocate_outcomes();
    mark_each();
}

void Solved::allocate_outcomes() {
    thetas_.assign(n_outcomes_ * dim_ * width(), 0.0);
    products_.assign(n_arms_ * 3 * packed_size(n_outcomes_), 0.0);
    offsets_.clear();  // arms have others
}

void Solved::weigh(std::span<const double> weights, std::span<const double> offsets) {
    if (std::ranges::equal(weights, weights_) && std::ranges::equal(offsets, offsets_)) return;
    weights_.assign(weights.begin(), weights.end());
    offsets_.assign(offsets.begin(), offsets.end());
    ++weighings_;
    combine_all();
    if (!keeps_factors()) return;
    for (std::size_t arm = 0; arm < n_arms_; ++arm) weigh_fit(arm);
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
}

// The same sums in the same order as for a single arm.
void Solved::combine_all() {
    const std::size_t size = dim_ * width();
    for (std::size_t i = 0; i < size; ++i) theta_[i] = weights_[0] * thetas_[i];
    for (std::size_t j = 1; j < n_outcomes_; ++j) {
        const double weight = weights_[j], *more = thetas_.data() + j * size;
        for (std::size_t i = 0; i < size; ++i) theta_[i] += weight * more[i];
    }
    for (std::size_t arm = 0; arm < offsets_.size(); ++arm) theta_[arm] += offsets_[arm];
}

void Solved::combine(std::size_t arm) {
    const std::size_t size = dim_ * width();
    for (std::size_t i = arm; i < size; i += width()) {
        double value = weights_[0] * thetas_[i];
        for (std::size_t j = 1; j < n_outcomes_; ++j) value += weights_[j] * thetas_[j * size + i];
        theta_[i] = value;
    }
    if (!offsets_.empty()) theta_[arm] += offsets_[arm];
}

// As the fit of one reward, for every pair of outcomes: the sum of (o_j - x'theta_j) (o_k - x'theta_k).
void Solved::measure_products(const System& s, std::size_t arm) {
    const std::size_t pairs = packed_size(n_outcomes_), size = dim_ * width();
    double *centred = products_.data() + arm * 3 * pairs, *residual = centred + pairs;
    std::copy_n(s.products, pairs, centred);
    std::copy_n(s.products + pairs, pairs, residual + pairs);
    for (std::size_t j = 0; j < n_outcomes_; ++j)
        for (std::size_t k = j; k < n_outcomes_; ++k, ++residual, ++centred) {
            const double *one = thetas_.data() + j * size + arm, *other = thetas_.data() + k * size + arm;
            double explained = 0.0, square = 0.0;
            for (std::size_t i = 0; i < dim_; ++i)
                explained += s.b[j * dim_ + i] * other[i * width()], square += one[i * width()] * other[i * width()];
            *residual = *centred - explained;
            if (!is_penalised_) *residual = *residual - s.shift * square - s.extra * (*one * *other);
        }
    const double lengths = s.has_constant ? 0.0 : trace(s.A, dim_);
    fits_[arm] = {s.n, 0.0, 0.0, 0.0, lengths, 0.0, measure_inflation(s, arm)};
    weigh_fit(arm);
}

void Solved::weigh_fit(std::size_t arm) {
    const std::size_t pairs = packed_size(n_outcomes_);
    const double* products = products_.data() + arm * 3 * pairs;
    Fit& fit = fits_[arm];
    fit.squares = quadratic(products, weights_);
    fit.residual = std::max(quadratic(products + pairs, weights_), 0.0);
    fit.raw = quadratic(products + 2 * pairs, weights_);
}

std::vector<double> Solved::outcome_values() const {
    const std::size_t pairs = 3 * packed_size(n_outcomes_);
    std::vector<double> out;
    out.reserve(n_arms_ * outcome_value_size());
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        for (std::size_t i = arm; i < thetas_.size(); i += width()) out.push_back(thetas_[i]);
        out.insert(out.end(), products_.begin() + static_cast<std::ptrdiff_t>(arm * pairs),
                   products_.begin() + static_cast<std::ptrdiff_t>((arm + 1) * pairs));
    }
    return out;
}

void Solved::restore_outcomes(std::span<const double> values) {
    const std::size_t pairs = 3 * packed_size(n_outcomes_);
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        for (std::size_t i = arm; i < thetas_.size(); i += width(), values = values.subspan(1)) thetas_[i] = values[0];
        std::copy_n(values.begin(), pairs, products_.data() + arm * pairs);
        values = values.subspan(pairs);
        weigh_fit(arm);
    }
    ++weighings_;
    combine_all();
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
}

}  // namespace armlet
