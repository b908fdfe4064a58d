#include "actions/terms.hpp"

#include <algorithm>

#include "linear/linear.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

// out = (a - m one) s
ARMLET_INLINE void map_main_body(const double* a, const double* one, double m, double s, std::size_t width,
                                 double* out) {
    for (std::size_t c = 0; c < width; ++c) out[c] = (a[c] - m * one[c]) * s;
}

ARMLET_DISPATCH(map_main, (const double* a, const double* one, double m, double s, std::size_t width, double* out),
                (a, one, m, s, width, out))

struct Product {
    const double *both, *x, *z, *one;
    double mx, mz, scale;
};

// out = ((both - mz x) - mx (z - mz one)) scale
ARMLET_INLINE void map_product_body(const Product& p, std::size_t width, double* out) {
    for (std::size_t c = 0; c < width; ++c)
        out[c] = ((p.both[c] - p.mz * p.x[c]) - p.mx * (p.z[c] - p.mz * p.one[c])) * p.scale;
}

ARMLET_DISPATCH(map_product, (const Product& p, std::size_t width, double* out), (p, width, out))

void transpose(const double* M, std::size_t d, double* out) {
    constexpr std::size_t tile = 8;
    for (std::size_t top = 0; top < d; top += tile)
        for (std::size_t left = 0; left < d; left += tile)
            for (std::size_t i = top; i < std::min(top + tile, d); ++i)
                for (std::size_t j = left; j < std::min(left + tile, d); ++j) out[j * d + i] = M[i * d + j];
}

}  // namespace

PairTerms::PairTerms(std::size_t dx, std::size_t dz, std::span<const std::int64_t> products)
    : dx_(dx), dz_(dz), i_{0}, j_{0} {
    for (std::size_t i = 1; i <= dx; ++i) i_.push_back(static_cast<std::uint32_t>(i)), j_.push_back(0);
    for (std::size_t j = 1; j <= dz; ++j) i_.push_back(0), j_.push_back(static_cast<std::uint32_t>(j));
    for (std::size_t k = 0; k < products.size(); k += 2) {
        i_.push_back(static_cast<std::uint32_t>(products[k]));
        j_.push_back(static_cast<std::uint32_t>(products[k + 1]));
    }
    begins_ = {1, 1 + dx, 1 + dx + dz, i_.size()};
}

void PairTerms::spread(const double* x, const double* z, double* out) const {
    for (std::size_t k = 0; k < size(); ++k) out[k] = x[i_[k]] * z[j_[k]];
}

void PairTerms::project(const double* theta, const double* x, double* v) const {
    std::fill_n(v, dz_ + 1, 0.0);
    for (std::size_t k = 0; k < size(); ++k) v[j_[k]] += theta[k] * x[i_[k]];
}

void PairTerms::map(const double* sums, std::size_t width, const double* middles, const double* scales,
                    double* out) const {
    const auto row = [&](std::size_t k) { return sums + k * width; };
    std::copy_n(sums, width, out);
    for (std::size_t f = 0; f < dx_ + dz_; ++f)
        map_main(row(1 + f), sums, middles[f], scales[f], width, out + (1 + f) * width);
    for (std::size_t k = begins_[2]; k < size(); ++k) {
        const std::size_t x = i_[k], z = dx_ + j_[k];  // numbers of their terms
        const Product product{
            row(k), row(x), row(z), sums, middles[x - 1], middles[z - 1], scales[x - 1] * scales[z - 1]};
        map_product(product, width, out + k * width);
    }
}

std::vector<double> PairTerms::map_matrix(const double* A, const double* middles, const double* scales) const {
    const std::size_t d = size();
    std::vector<double> whole(d * d), mapped(d * d), out(packed_size(d));
    for (std::size_t k = 0; k < d; ++k)
        for (std::size_t i = k; i < d; ++i) whole[k * d + i] = whole[i * d + k] = *A++;
    map(whole.data(), d, middles, scales, mapped.data());
    transpose(mapped.data(), d, whole.data());
    map(whole.data(), d, middles, scales, mapped.data());
    double* to = out.data();
    for (std::size_t k = 0; k < d; ++k) to = std::copy(mapped.data() + k * d + k, mapped.data() + (k + 1) * d, to);
    return out;
}

}  // namespace armlet
