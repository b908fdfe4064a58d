// Estimates and noise of several outcomes, weighed as one reward.
#include <algorithm>
#include <utility>

#include "linear/linear.hpp"
#include "state/solved.hpp"

namespace armlet {

void Solved::open_outcomes(std::size_t n) {
    n_outcomes_ = n;
    weights_.assign(n, 1.0);
    allocate_outcomes();
    mark_each();
}

void Solved::allocate_outcomes() {
    thetas_.assign(n_outcomes_ * dim_ * width(), 0.0);
    products_.assign(3 * packed_size(n_outcomes_) * width(), 0.0);
    offsets_.clear();  // arms have others
    is_fit_unweighed_ = true;
}

// What noise there is under these weights is found when it is asked for: most steps do without.
void Solved::weigh(std::span<const double> weights, std::span<const double> offsets) {
    if (std::ranges::equal(weights, weights_) && std::ranges::equal(offsets, offsets_)) return;
    weights_.assign(weights.begin(), weights.end());
    offsets_.assign(offsets.begin(), offsets.end());
    ++weighings_;
    is_fit_unweighed_ = true;
    combine_all();
}

// The same sums in the same order as for a single arm.
void Solved::combine_all() {
    weigh_rows(thetas_.data(), weights_, dim_ * width(), theta_.data());
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
    double *to = products_.data() + arm, *residual = to + pairs * width(), *raw = residual + pairs * width();
    const double* centred = s.products;
    for (std::size_t j = 0; j < n_outcomes_; ++j)
        for (std::size_t k = j; k < n_outcomes_; ++k, ++centred) {
            const double *one = thetas_.data() + j * size + arm, *other = thetas_.data() + k * size + arm;
            double explained = 0.0, square = 0.0;
            for (std::size_t i = 0; i < dim_; ++i)
                explained += s.b[j * dim_ + i] * other[i * width()], square += one[i * width()] * other[i * width()];
            double left = *centred - explained;
            if (!is_penalised_) left = left - s.shift * square - s.extra * (*one * *other);
            *to = *centred, *residual = left, *raw = centred[pairs];
            to += width(), residual += width(), raw += width();
        }
    const double lengths = s.has_constant ? 0.0 : trace(s.A, dim_);
    fits_[arm] = {s.n, 0.0, 0.0, 0.0, lengths, 0.0};
    is_fit_unweighed_ = true;
}

// w'M w of each arm's products, with w_j w_k counted twice for j < k.
void Solved::weigh_fits() {
    if (!is_fit_unweighed_ || !keeps_factors()) return;
    const std::size_t pairs = packed_size(n_outcomes_), size = pairs * width();
    thread_local std::vector<double> squares, room;
    squares.clear(), room.resize(3 * width());
    for (std::size_t j = 0; j < n_outcomes_; ++j)
        for (std::size_t k = j; k < n_outcomes_; ++k)
            squares.push_back((k > j ? 2.0 : 1.0) * (weights_[j] * weights_[k]));
    for (std::size_t part = 0; part < 3; ++part)
        weigh_rows(products_.data() + part * size, squares, width(), room.data() + part * width());
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        fits_[arm].squares = room[arm];
        fits_[arm].residual = std::max(room[width() + arm], 0.0);
        fits_[arm].raw = room[2 * width() + arm];
    }
    is_fit_unweighed_ = false, is_noise_unweighed_ = true;
}

void Solved::weigh_noise() {
    weigh_fits();
    if (!std::exchange(is_noise_unweighed_, false)) return;
    noise_ = measured_noise();
    typical_noise_ = measured_typical_noise();
}

std::vector<double> Solved::outcome_values() const {
    std::vector<double> out;
    out.reserve(n_arms_ * outcome_value_size());
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        for (const auto* part : {&thetas_, &products_})
            for (std::size_t i = arm; i < part->size(); i += width()) out.push_back((*part)[i]);
    return out;
}

void Solved::restore_outcomes(std::span<const double> values) {
    auto next = values.begin();
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        for (auto* part : {&thetas_, &products_})
            for (std::size_t i = arm; i < part->size(); i += width()) (*part)[i] = *next++;
    ++weighings_;
    is_fit_unweighed_ = true;
    combine_all();
}

}  // namespace armlet
