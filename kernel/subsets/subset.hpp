// What Contextual UCB (Algorithm 2) minimises: f(T) = |(I + A_T / sqrt(n))^-1 x|^2 over subsets T of an arm's past.
//
// A subset is given by how often it counts each row, so that equal rows need to be kept only once.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "linear/linear.hpp"

namespace armlet {

// The rows of one arm and how often each occurred.
struct Past {
    const double* rows;    // (size, dim)
    const double* counts;  // (size,): whole numbers of at least 1
    std::size_t size, dim;

    const double* row(std::size_t i) const { return rows + i * dim; }
    double total() const;
};

using Weights = std::vector<double>;  // how often each row counts: whole numbers from 0 to its count

struct Subset {
    Weights weights;
    double value = 0.0;     // f
    bool exact = false;     // proved to be the minimum
    std::size_t tried = 0;  // subsets evaluated, where the search counts them
};

// f for one x, and what its slopes need.
class Width {
  public:
    Width(const double* x, std::size_t dim);

    // f of the subset with this A, packed, and this n; it is finite.
    double operator()(const double* A, double n);
    // With B = I + A / sqrt(n) of the last call: z = B^-1 y, where y = B^-1 x.
    void find_z() { solve(y_, z_); }
    const std::vector<double>& y() const { return y_; }
    const std::vector<double>& z() const { return z_; }
    void solve(const std::vector<double>& b, std::vector<double>& out) const;

  private:
    std::vector<double> x_, y_, z_, L_, inverse_;
    double most_ = 0.0;  // |x|^2
};

// A growing sum of w x x', packed; rows are added in blocks.
class Sum {
  public:
    explicit Sum(std::size_t dim) : dim_(dim), A_(packed_size(dim)), rows_(at_once * padded(dim)), weights_(at_once) {}

    void add(const double* row, double w) {
        std::copy_n(row, dim_, rows_.data() + waiting_ * padded(dim_));
        weights_[waiting_++] = w;
        if (waiting_ == at_once) flush();
    }
    const std::vector<double>& A() { return flush(), A_; }

  private:
    static constexpr std::size_t at_once = 64;
    void flush();

    std::size_t dim_, waiting_ = 0;
    std::vector<double> A_, rows_, weights_;
};

inline double dot(const double* a, const double* b, std::size_t d) { return std::inner_product(a, a + d, b, 0.0); }

// sum of w x x', packed
std::vector<double> gram(const Past& past, const Weights& weights);
// f of a subset from its definition.
double width_of(const Past& past, const Weights& weights, const double* x);
// The solution of (sqrt(n) I + A_T) theta = b_T, where each row pays its mean reward.
std::vector<double> estimate(const Past& past, const double* sums, const Weights& weights);

// Rows side by side, so that all can be scored at once.
class Columns {
  public:
    explicit Columns(const Past& past);
    // out[i] = v' x_i
    void dot(const std::vector<double>& v, std::vector<double>& out) const;
    // How steeply f falls with the weight of each row, up to a factor, at the subset that `width` last saw.
    void slopes(Width& width, std::vector<double>& out);

  private:
    std::size_t size_, dim_, width_;
    std::vector<double> values_, other_;
};

// Rows by falling score, the first of equal ones first; scores are compared as float32, relative to the largest, of
// which 256 rows and more may leave out some last bits.
class Order {
  public:
    explicit Order(int left_out = 0) : left_out_(left_out) {}
    void operator()(const std::vector<double>& scores);
    std::size_t operator[](std::size_t place) const { return order_[place]; }
    // The weights that give n to the first rows, as far as `room` for each goes.
    Weights take(const double* room, double n) const;

  private:
    int left_out_;
    std::vector<std::uint32_t> keys_, order_, keys_before_, order_before_;
};

}  // namespace armlet
