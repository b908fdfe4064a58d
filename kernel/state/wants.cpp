#include "state/wants.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace armlet {

namespace {

constexpr int degree = 13;  // of Taylor's series: r^14 / 14! is below 2^-56 for |r| <= log(2) / 2

constexpr double log2_e = 1.4426950408889634;
// log 2 in two parts: the first has so many zeros at its end that k times it is exact
constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;

}  // namespace

double falling_exp(double u) {
    if (!(u >= -700.0)) return 0.0;
    const double k = std::nearbyint(u * log2_e);
    const double r = (u - k * ln2_high) - k * ln2_low;
    double factorial = 6227020800.0;  // 13!
    double sum = 1.0 / factorial;
    for (int i = degree; i > 0; --i) {
        factorial /= i;  // exact
        sum = sum * r + 1.0 / factorial;
    }
    return std::ldexp(sum, static_cast<int>(k));
}

double want(double n, double q) {
    const double u = 1.0 - n / q;
    return u >= 0.0 ? 1.0 : std::min(1.0, falling_exp(u));
}

void Wants::mark_all(std::size_t n_arms) {
    values_.resize(n_arms);
    is_stale_.assign(n_arms, 1);
    stale_.resize(n_arms);
    std::iota(stale_.begin(), stale_.end(), 0u);
}

}  // namespace armlet
