#include "state/outcomes/outcome_sums.hpp"

#include <algorithm>
#include <cmath>

#include "state/units.hpp"

namespace armlet {

void OutcomeSums::open(std::size_t n_arms, std::size_t n, std::size_t dim) {
    n_ = n, dim_ = dim;
    records_.assign(n_arms * record_size(), 0.0);
    origin_.assign(n, 0.0), middle_.assign(n, 0.0);
}

void OutcomeSums::add(std::size_t arm, const double* row, const double* outcomes, double weight) {
    double *sums = at(arm), *products = sums + n_, *b = products + pairs();
    for (std::size_t j = 0; j < n_; ++j, b += dim_) {
        const double scaled = weight * (outcomes[j] - origin_[j]);
        sums[j] += scaled;
        for (std::size_t k = j; k < n_; ++k) *products++ += scaled * (outcomes[k] - origin_[k]);
        for (std::size_t i = 0; i < dim_; ++i) b[i] += scaled * row[i];
    }
}

void OutcomeSums::correct(std::size_t arm, const double* row, const double* from, const double* to, double weight) {
    double *sums = at(arm), *products = sums + n_, *b = products + pairs();
    for (std::size_t j = 0; j < n_; ++j, b += dim_) {
        const double before = weight * (from[j] - origin_[j]), after = weight * (to[j] - origin_[j]);
        sums[j] += after - before;
        for (std::size_t k = j; k < n_; ++k)
            *products++ += after * (to[k] - origin_[k]) - before * (from[k] - origin_[k]);
        for (std::size_t i = 0; i < dim_; ++i) b[i] += (after - before) * row[i];
    }
}

void OutcomeSums::merge(std::size_t arm, std::span<const double> record) {
    double* ours = at(arm);
    for (std::size_t i = 0; i < record.size(); ++i) ours[i] += record[i];
}

void OutcomeSums::subtract(std::size_t arm, std::span<const double> earlier) {
    double* ours = at(arm);
    for (std::size_t i = 0; i < earlier.size(); ++i) ours[i] -= earlier[i];
}

void OutcomeSums::clear(std::size_t arm) { std::fill_n(at(arm), record_size(), 0.0); }

void OutcomeSums::set_multiples(std::span<const std::size_t> columns, std::span<const double> multiples) {
    for (std::size_t arm = 0; arm * record_size() < records_.size(); ++arm)
        for (std::size_t outcome = 0; outcome < n_; ++outcome) {
            double* own = at(arm) + n_ + pairs() + outcome * dim_;
            for (std::size_t c = 0; c < columns.size(); ++c) own[columns[c]] = multiples[c] * own[0];
        }
}

void OutcomeSums::restore(std::size_t arm, std::span<const double> record) {
    std::copy(record.begin(), record.end(), at(arm));
}

void OutcomeSums::restore(std::span<const double> records) {
    std::copy(records.begin(), records.end(), records_.begin());
}

void OutcomeSums::append_arm() {
    records_.reserve(records_.size() + record_size());
    records_.resize(records_.size() + record_size());
}

void OutcomeSums::erase_arm(std::size_t arm) {
    const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(arm * record_size());
    records_.erase(begin, begin + static_cast<std::ptrdiff_t>(record_size()));
}

void OutcomeSums::set_origin(const double* outcomes) {
    for (std::size_t j = 0; j < n_; ++j) origin_[j] = Units::rounded(outcomes[j]);
}

void OutcomeSums::drop_origin() { std::fill(origin_.begin(), origin_.end(), 0.0); }

// With y = y' + moved and o_j = o_j' + raised_j.
void OutcomeSums::rebase(std::span<double> record, std::span<const double> sums, std::span<const double> moved,
                         const OutcomeSums& other) const {
    const double n = sums[0], *first = sums.data() + 3 + dim_;
    double *totals = record.data(), *products = totals + n_, *b = products + pairs();
    std::vector<double> raised(n_);
    for (std::size_t j = 0; j < n_; ++j) raised[j] = other.origin_[j] - origin_[j];
    for (std::size_t j = 0; j < n_; ++j)
        for (std::size_t k = j; k < n_; ++k)
            *products++ += raised[j] * totals[k] + raised[k] * (totals[j] + raised[j] * n);
    for (std::size_t j = 0; j < n_; ++j, b += dim_) {
        for (std::size_t i = 1; i < dim_; ++i) b[i] += moved[i] * totals[j] + raised[j] * (first[i] + moved[i] * n);
        totals[j] += raised[j] * n;
        b[0] = totals[j];
    }
}

void OutcomeSums::renew(double n) {
    std::fill(middle_.begin(), middle_.end(), 0.0);
    if (!(n > 0.0)) return drop_origin();
    for (std::size_t start = 0; start < records_.size(); start += record_size())
        for (std::size_t j = 0; j < n_; ++j) middle_[j] += records_[start + j];
    for (double& one : middle_) one /= n;
}

void OutcomeSums::squares(std::size_t arm, double n, double* centred, double* raw) const {
    const double *totals = at(arm), *products = totals + n_;
    for (std::size_t j = 0; j < n_; ++j)
        for (std::size_t k = j; k < n_; ++k) {
            *raw++ = *products;
            *centred++ = (*products++ - middle_[j] * totals[k]) - middle_[k] * (totals[j] - middle_[j] * n);
        }
}

std::vector<double> OutcomeSums::values() const {
    std::vector<double> out = origin_;
    out.insert(out.end(), middle_.begin(), middle_.end());
    return out;
}

void OutcomeSums::restore_values(std::span<const double> values) {
    std::copy_n(values.begin(), n_, origin_.begin());
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(n_), n_, middle_.begin());
}

// r - l = sum_j w_j (o_j - l_j) + L with L = sum_j w_j l_j - l.
void OutcomeSums::weigh(std::size_t arm, std::span<const double> weights, double origin,
                        std::span<double> record) const {
    const double *totals = at(arm), *products = totals + n_, n = record[0], *first = record.data() + 3 + dim_;
    double lift = -origin, sum = 0.0, square = 0.0;
    for (std::size_t j = 0; j < n_; ++j) {
        lift += weights[j] * origin_[j], sum += weights[j] * totals[j];
        for (std::size_t k = j; k < n_; ++k) square += (k > j ? 2.0 : 1.0) * weights[j] * weights[k] * *products++;
    }
    record[1] = sum + lift * n;
    record[2] = square + lift * (2.0 * sum + lift * n);
    for (std::size_t i = 0; i < dim_; ++i) {
        double value = lift == 0.0 ? 0.0 : lift * first[i];
        for (std::size_t j = 0; j < n_; ++j) value += weights[j] * b(arm, j)[i];
        record[3 + i] = value;
    }
}

}  // namespace armlet
