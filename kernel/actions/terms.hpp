// The terms of a pair (context x, action z): products of (1, x) and (1, z).
//
// They come in this order: the constant, every x_i, every z_j, then the chosen products x_i z_j. A shift or another
// unit of a feature maps sums over terms to sums over terms, since every product has its factors among them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace armlet {

class PairTerms {
  public:
    static constexpr std::size_t n_groups = 3;  // x, z and their products

    // Products as pairs (i, j), counted from 1.
    PairTerms(std::size_t dx, std::size_t dz, std::span<const std::int64_t> products);

    std::size_t dx() const { return dx_; }
    std::size_t dz() const { return dz_; }
    std::size_t size() const { return i_.size(); }
    // Factors of term k: numbers of features of (1, x) and (1, z).
    std::size_t i(std::size_t k) const { return i_[k]; }
    std::size_t j(std::size_t k) const { return j_[k]; }
    // Where the terms of a group begin, and after the last group where they end.
    std::size_t begin(std::size_t group) const { return begins_[group]; }
    bool operator==(const PairTerms&) const = default;

    // out[k] = x_i z_j; x and z begin with what stands for 1.
    void spread(const double* x, const double* z, double* out) const;
    // v with the sum of theta_k x_i z_j = v'z, in the order of the terms.
    void project(const double* theta, const double* x, double* v) const;
    // Sums over terms, `width` numbers each, after (x, z) became ((x, z) - middles) * scales.
    void map(const double* sums, std::size_t width, const double* middles, const double* scales, double* out) const;
    // The same for packed sums over pairs of terms.
    std::vector<double> map_matrix(const double* A, const double* middles, const double* scales) const;

  private:
    std::size_t dx_, dz_;
    std::vector<std::uint32_t> i_, j_;
    std::array<std::size_t, n_groups + 1> begins_;
};

}  // namespace armlet
