// Numbers of outcomes: in a row of their own while a call works with them, and by name where a decision keeps them.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "bindings/arrays.hpp"

namespace armlet {

constexpr std::size_t most_outcomes = 64;

// A number for each outcome, NaN where there is none; on the stack, since every step needs some.
class Values {
  public:
    Values() = default;
    explicit Values(double one) : n_(1) { values_[0] = one; }
    explicit Values(std::size_t n) : n_(n) { std::fill_n(values_, n, NAN); }
    explicit Values(std::span<const double> values) : n_(values.size()) { std::ranges::copy(values, values_); }
    Values(const Values& other) : Values(std::span(other)) {}
    Values& operator=(const Values& other) {
        n_ = other.n_;
        std::copy_n(other.values_, n_, values_);
        return *this;
    }

    std::size_t size() const { return n_; }
    const double* data() const { return values_; }
    const double* begin() const { return values_; }
    const double* end() const { return values_ + n_; }
    double operator[](std::size_t j) const { return values_[j]; }
    double& operator[](std::size_t j) { return values_[j]; }
    bool is_whole() const {
        return std::none_of(begin(), end(), [](double one) { return std::isnan(one); });
    }

  private:
    std::size_t n_ = 0;
    double values_[most_outcomes];
};

// Those that are there, by name.
inline nb::dict by_name(const nb::object& names, std::span<const double> values) {
    nb::dict out;
    for (std::size_t j = 0; j < values.size(); ++j)
        if (!std::isnan(values[j])) out[names[j]] = values[j];
    return out;
}

// What a decision keeps. The names are a tuple that it shares with the bandit, and no dict is made until one is asked
// for.
struct NamedNumbers {
    nb::object names;  // null if there are none
    std::vector<double> values;

    bool is_any() const { return names.is_valid(); }
    nb::dict to_dict() const { return by_name(names, values); }
};

}  // namespace armlet
