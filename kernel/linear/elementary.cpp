#include "linear/elementary.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace armlet::elementary {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr double log2_e = 1.4426950408889634;
constexpr double root_half = 0.70710678118654757;
// log 2 in two parts: the first has so many zeros at its end that a small whole number times it is exact
constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
constexpr double two_over_root_pi = 1.1283791670955126;

constexpr int degree = 13;     // of exp: r^14 / 14! is below 2^-56 for |r| <= log(2) / 2
constexpr int terms = 12;      // of log: s^24 / 25 is below 2^-65 for |s| <= 0.1716
constexpr int erf_terms = 13;  // x^26 / (13! 27) is below 2^-60 for |x| <= 1/2

// (1 + 2 x) exp(x^2) erfc(x) for 0.5 <= x <= 26.6 as a polynomial in (x - 3.75) / (x + 3.75), to 2e-17: the interpolant
// at Chebyshev's nodes, worked out with 60 digits.
constexpr std::array<double, 21> scaled_tail = {1.2375126308378275,     -0.14024059858554683,   0.0035854154854635515,
                                                0.08227673849012578,    -0.10880393014172078,   0.09230432116116839,
                                                -0.058693398589643606,  0.02836227740440179,    -0.009746579566909011,
                                                0.001755625998727877,   0.000293713800919683,   -0.0002901549536790636,
                                                5.164813067515518e-05,  2.2387507201076533e-05, -1.1440162458655546e-05,
                                                -9.812937689690547e-07, 1.7416677137597937e-06, -4.5907516137617107e-08,
                                                -2.435690505898307e-07, 1.3777614753573438e-08, 2.5728635360083206e-08};

// exp(-x^2), x >= 0: of x = h + l only h has a square without rounding
double falling_square(double x) {
    const double c = x * 134217729.0, h = c - (c - x), l = x - h;
    return exp(-(h * h)) * exp(-(l * (x + h)));
}

// erf(x) / x by its series: 2 / sqrt(pi) times 1 - z / 3 + z^2 / (2! 5) - ..., z = x^2
double near_zero(double x) {
    const double z = -(x * x);
    double factorial = 479001600.0;  // 12!
    double sum = 0.0;
    for (int k = erf_terms - 1; k >= 0; --k) {
        sum = sum * z + 1.0 / (factorial * (2.0 * k + 1.0));
        if (k > 0) factorial /= k;  // exact
    }
    return two_over_root_pi * sum;
}

double tail(double x) {
    if (!(x <= 26.4)) return x > 0.0 ? 0.0 : x;  // or NaN
    const double t = (x - 3.75) / (x + 3.75);
    double sum = 0.0;
    for (std::size_t k = scaled_tail.size(); k-- > 0;) sum = sum * t + scaled_tail[k];
    return falling_square(x) * sum / (1.0 + 2.0 * x);
}

}  // namespace

// exp(k log 2 + r) = 2^k (1 + r + r^2 / 2! + ...)
double exp(double u) {
    if (u < -700.0) return 0.0;
    if (!(u <= 709.78)) return u + infinity;  // or NaN
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

// log(2^e m) = e log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1)
double log(double v) {
    if (!(v > 0.0)) return v == 0.0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
    if (v == infinity) return v;
    int e;
    double m = std::frexp(v, &e);
    if (m < root_half) m *= 2.0, --e;
    const double s = (m - 1.0) / (m + 1.0), square = s * s, k = e;
    double sum = 1.0 / (2.0 * terms - 1.0);
    for (int i = terms - 2; i >= 0; --i) sum = sum * square + 1.0 / (2.0 * i + 1.0);
    return k * ln2_high + (k * ln2_low + 2.0 * s * sum);
}

double erfc(double x) {
    if (std::fabs(x) < 0.5) return 1.0 - x * near_zero(x);
    return x < 0.0 ? 2.0 - tail(-x) : tail(x);
}

}  // namespace armlet::elementary
