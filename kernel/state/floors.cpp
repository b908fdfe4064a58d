// What is proved about the smallest eigenvalue of an arm's V, from which widths are bounded before they are worked out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "state/solved.hpp"

namespace armlet {

namespace {

double trace(const double* A, std::size_t d) {
    double sum = 0.0;
    for (std::size_t k = 0; k < d; A += d - k, ++k) sum += *A;
    return sum;
}

// A number that the smallest eigenvalue of shift I + A exceeds: the first of falling guesses that can be taken off the
// diagonal and leave the matrix definite, else 0.
double prove_floor(const double* A, double shift, std::size_t d, double guess) {
    for (int tries = 0; tries < 12 && guess > shift; ++tries, guess *= 0.6)
        if (is_definite(A, shift - guess, d)) return guess;
    return is_definite(A, 0.1 * shift, d) ? 0.9 * shift : 0.0;
}

}  // namespace

// An eigenvalue of the computed factor can be off by a few units in the last place of the trace for each of d steps,
// and the sums themselves by one for each row (Higham 2002, theorem 10.3).
void Solved::raise_floor(const System& system, std::size_t arm) {
    const double n = system.n, shift = system.shift, *A = system.A;
    const double d = static_cast<double>(dim_), whole = d * shift + trace(A, dim_);
    Floor& floor = floors_[arm];
    if (!(n > 0.0)) {
        floor.value = std::min(shift, shift + system.extra);
    } else if (n >= 2.0 * floor.checked) {
        const bool spans = n >= 2.0 * d;  // fewer rows leave directions in which only the ridge counts
        if (spans || floor.value == 0.0)
            floor.value = std::max(floor.value, prove_floor(A, shift, dim_, spans ? 0.8 * whole / d : 0.0));
        if (spans || floor.value == 0.0) floor.checked = n;
    }
    const double doubt = (d + std::fabs(n)) * 0x1p-50 * whole;
    floor.reach = floor.value > 2.0 * doubt ? (1.0 + 1e-6) / std::sqrt(floor.value - doubt)
                                            : std::numeric_limits<double>::infinity();
}

}  // namespace armlet
