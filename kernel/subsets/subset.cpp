#include "subsets/subset.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "linear/linear.hpp"

namespace armlet {

namespace {
constexpr std::size_t few_rows = 32;  // not worth a block
}

double Past::total() const { return std::accumulate(counts, counts + size, 0.0); }

Width::Width(const double* x, std::size_t dim) : x_(x, x + dim), y_(dim), z_(dim), L_(dim * dim), inverse_(dim) {
    for (const double v : x_) most_ += v * v;
}

double Width::operator()(const double* A, double n) {
    const std::size_t d = x_.size();
    const double scale = 1.0 / std::sqrt(n), negligible = static_cast<double>(d) * 0x1p-52;
    double* L = L_.data();
    for (std::size_t k = 0; k < d; ++k)  // B, its lower triangle, row by row
        for (std::size_t i = k; i < d; ++i) L[i * d + k] = *A++ * scale;
    for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            double sum = L[i * d + k];
            for (std::size_t j = 0; j < k; ++j) sum -= L[i * d + j] * L[k * d + j];
            L[i * d + k] = sum * inverse_[k];
        }
        const double whole = 1.0 + L[i * d + i];
        double pivot = whole;
        for (std::size_t j = 0; j < i; ++j) pivot -= L[i * d + j] * L[i * d + j];
        // B >= I, even after rounding; and a pivot lost to rounding must not blow up the rows below it
        inverse_[i] = 1.0 / std::sqrt(std::max({pivot, 1.0, negligible * whole}));
    }
    solve(x_, y_);
    double f = 0.0;
    for (const double v : y_) f += v * v;
    return f <= most_ ? f : most_;  // B >= I; for NaN too
}

void Width::solve(const std::vector<double>& b, std::vector<double>& out) const {
    const std::size_t d = x_.size();
    const double* L = L_.data();
    for (std::size_t i = 0; i < d; ++i) {
        double sum = b[i];
        for (std::size_t j = 0; j < i; ++j) sum -= L[i * d + j] * out[j];
        out[i] = sum * inverse_[i];
    }
    for (std::size_t i = d; i-- > 0;) {
        double sum = out[i];
        for (std::size_t j = i + 1; j < d; ++j) sum -= L[j * d + i] * out[j];
        out[i] = sum * inverse_[i];
    }
}

void Sum::flush() {
    if (waiting_ > 0) add_outers(A_.data(), rows_.data(), weights_.data(), waiting_, dim_);
    waiting_ = 0;
}

std::vector<double> gram(const Past& past, const Weights& weights) {
    if (past.size > few_rows) {
        Sum sum(past.dim);
        for (std::size_t i = 0; i < past.size; ++i)
            if (weights[i] > 0.0) sum.add(past.row(i), weights[i]);
        return sum.A();
    }
    std::vector<double> A(packed_size(past.dim));
    for (std::size_t i = 0; i < past.size; ++i)
        if (weights[i] > 0.0) add_outer(A.data(), past.row(i), weights[i], past.dim);
    return A;
}

double width_of(const Past& past, const Weights& weights, const double* x) {
    const double n = std::accumulate(weights.begin(), weights.end(), 0.0);
    return Width(x, past.dim)(gram(past, weights).data(), n);
}

std::vector<double> estimate(const Past& past, const double* sums, const Weights& weights) {
    const double n = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> b(past.dim), theta(past.dim);
    for (std::size_t i = 0; i < past.size; ++i) {
        if (weights[i] <= 0.0) continue;
        const double paid = weights[i] * (sums[i] / past.counts[i]);
        for (std::size_t j = 0; j < past.dim; ++j) b[j] += paid * past.row(i)[j];
    }
    solve(gram(past, weights).data(), std::sqrt(n), past.dim, {b.data(), theta.data(), 1});
    if (!is_estimate(theta.data(), past.dim, 1)) std::fill(theta.begin(), theta.end(), 0.0);
    return theta;
}

Columns::Columns(const Past& past)
    : size_(past.size), dim_(past.dim), width_(padded(past.size)), values_(past.dim * width_) {
    for (std::size_t i = 0; i < size_; ++i)
        for (std::size_t j = 0; j < dim_; ++j) values_[j * width_ + i] = past.row(i)[j];
}

void Columns::dot(const std::vector<double>& v, std::vector<double>& out) const {
    out.resize(width_);
    score(values_.data(), v.data(), dim_, width_, out.data());
    out.resize(size_);
}

void Columns::slopes(Width& width, std::vector<double>& out) {
    width.find_z();
    dot(width.y(), out);
    dot(width.z(), other_);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= other_[i];
}

void Order::operator()(const std::vector<double>& scores) {
    constexpr int bits = 11;
    const std::size_t n = scores.size();
    double largest = 0.0;
    for (const double v : scores) largest = std::max(largest, std::fabs(v));
    for (auto* array : {&keys_, &order_, &keys_before_, &order_before_}) array->resize(n);
    for (std::size_t i = 0; i < n; ++i) {  // as unsigned numbers that fall where scores rise
        const auto key = std::bit_cast<std::uint32_t>(largest > 0.0 ? static_cast<float>(scores[i] / largest) : 0.0F);
        keys_[i] = key & 0x80000000U ? key : ~key & 0x7fffffffU;
        order_[i] = static_cast<std::uint32_t>(i);
    }
    if (n < 256) {
        std::sort(order_.begin(), order_.end(),
                  [&](auto a, auto b) { return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b; });
        return;
    }
    for (int shift = left_out_; shift < 32; shift += bits) {  // radix sort, least digit first
        std::array<std::uint32_t, (1U << bits) + 1> starts{};
        const auto digit = [&](std::uint32_t key) { return (key >> shift) & ((1U << bits) - 1); };
        for (const auto key : keys_) ++starts[digit(key) + 1];
        for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
        keys_.swap(keys_before_), order_.swap(order_before_);
        for (std::size_t i = 0; i < n; ++i) {
            const auto to = starts[digit(keys_before_[i])]++;
            keys_[to] = keys_before_[i], order_[to] = order_before_[i];
        }
    }
}

Weights Order::take(const double* room, double n) const {
    Weights weights(order_.size());
    for (std::size_t place = 0; place < order_.size() && n > 0.0; ++place) {
        double& w = weights[order_[place]];
        w = std::min(room[order_[place]], n);
        n -= w;
    }
    return weights;
}

}  // namespace armlet
