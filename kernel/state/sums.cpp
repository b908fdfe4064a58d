#include "state/sums.hpp"

#include <algorithm>
#include <cmath>

namespace armlet {

void Sums::add(std::size_t arm, const double* x, double reward, double weight) {
    double *record = at(arm), *b = record + 3;
    const double scaled = weight * reward;
    record[0] += weight;
    record[1] += scaled;
    record[2] += scaled * reward;
    for (std::size_t j = 0; j < dim_; ++j) b[j] += scaled * x[j];
    add_outer(b + dim_, x, weight, dim_);
    if (keeps_squares()) add_outer(squares_.data() + arm * packed_size(dim_), x, weight * std::fabs(weight), dim_);
    // when the last row is taken back, rounding must leave no ghost of it
    if (weight < 0.0 && record[0] <= -1e-12 * weight) clear(arm);
}

void Sums::clear(std::size_t arm) {
    std::fill_n(at(arm), record_size(), 0.0);
    const std::size_t size = squares(arm).size();
    std::fill_n(squares_.begin() + static_cast<std::ptrdiff_t>(arm * size), size, 0.0);
}

namespace {

// Packed: column k from its diagonal down, the first one first.
void set_rows(double* A, std::size_t dim, std::span<const std::size_t> columns, std::span<const double> multiples) {
    for (std::size_t c = 0; c < columns.size(); ++c) A[columns[c]] = multiples[c] * A[0];
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const std::size_t j = columns[c];
        double* column = A + dim;
        for (std::size_t k = 1; k < j; column += dim - k, ++k) column[j - k] = multiples[c] * A[k];
        for (std::size_t i = j; i < dim; ++i) column[i - j] = multiples[c] * A[i];
    }
}

}  // namespace

void Sums::set_multiples(std::span<const std::size_t> columns, std::span<const double> multiples) {
    for (std::size_t arm = 0; arm < n_arms_; ++arm) {
        double* b = at(arm) + 3;
        for (std::size_t c = 0; c < columns.size(); ++c) b[columns[c]] = multiples[c] * b[0];
        set_rows(b + dim_, dim_, columns, multiples);
        if (keeps_squares()) set_rows(squares_.data() + arm * packed_size(dim_), dim_, columns, multiples);
    }
}

void Sums::scale(double factor) {
    for (double& one : records_) one *= factor;
    for (double& one : squares_) one *= factor * factor;
    for (std::size_t arm = 0; arm < n_arms_; ++arm)
        if (!(n(arm) >= 0x1p-200)) clear(arm);
}

void Sums::restore_squares(std::size_t arm, std::span<const double> square) {
    std::copy(square.begin(), square.end(), squares_.begin() + static_cast<std::ptrdiff_t>(arm * square.size()));
}

void Sums::merge_squares(std::size_t arm, std::span<const double> square, double sign) {
    double* ours = squares_.data() + arm * square.size();
    for (std::size_t i = 0; i < square.size(); ++i) ours[i] += sign * square[i];
}

void Sums::margin(std::size_t arm, double* out) const {
    const double* column = A(arm);
    *out++ = n(arm);
    out = std::copy_n(column, dim_, out);
    for (std::size_t j = 0; j < dim_; column += dim_ - j, ++j) *out++ = *column;
}

void Sums::correct(std::size_t arm, const double* x, double from, double to, double weight) {
    double *record = at(arm), *b = record + 3;
    const double old_reward = weight * from, new_reward = weight * to;
    record[1] += new_reward - old_reward;
    record[2] += new_reward * to - old_reward * from;
    for (std::size_t j = 0; j < dim_; ++j) b[j] += (new_reward - old_reward) * x[j];
}

void Sums::merge(std::size_t arm, std::span<const double> record) {
    double* ours = at(arm);
    for (std::size_t i = 0; i < record.size(); ++i) ours[i] += record[i];
}

void Sums::subtract(std::size_t arm, std::span<const double> earlier) {
    double* ours = at(arm);
    const double less = earlier[0];  // `earlier` may be this very record
    for (std::size_t i = 0; i < earlier.size(); ++i) ours[i] -= earlier[i];
    if (ours[0] <= 1e-12 * less) clear(arm);
}

void Sums::restore(std::size_t arm, std::span<const double> record) {
    std::copy(record.begin(), record.end(), at(arm));
}

void Sums::restore(std::span<const double> records) { std::copy(records.begin(), records.end(), records_.begin()); }

void Sums::append_arm() {
    records_.reserve(records_.size() + record_size());  // exactly: the state is as large as it has to be
    records_.resize(records_.size() + record_size());
    if (keeps_squares()) squares_.resize(squares_.size() + packed_size(dim_));
    ++n_arms_;
}

void Sums::erase_arm(std::size_t arm) {
    const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(arm * record_size());
    records_.erase(begin, begin + static_cast<std::ptrdiff_t>(record_size()));
    if (keeps_squares()) {
        const auto square = squares_.begin() + static_cast<std::ptrdiff_t>(arm * packed_size(dim_));
        squares_.erase(square, square + static_cast<std::ptrdiff_t>(packed_size(dim_)));
    }
    --n_arms_;
}

}  // namespace armlet
