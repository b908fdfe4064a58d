// What is proved about the smallest eigenvalue of an arm's V, from which widths are bounded before they are worked out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "state/solved.hpp"

namespace armlet {

namespace {

double norm(const double* x, std::size_t d) {
    double square = 0.0;
    for (std::size_t j = 0; j < d; ++j) square += x[j] * x[j];
    return std::sqrt(square);
}

}  // namespace

// Whether the smallest eigenvalue exceeds the value: it can be taken off the diagonal and leave the matrix definite.
// What a constant leaves is definite if the whole is, with nothing taken off the constant.
bool Solved::exceeds(const System& s, double value) const {
    return is_definite(s.A, s.has_constant ? s.shift : s.shift - value, s.shift - value, dim_);
}

// The first of falling guesses. A search from above is coarse; where new units have voided the last proof, what was
// proved then is nearly right, and a little more is tried.
void Solved::prove_floor(const System& s, Floor& floor) const {
    const double d = static_cast<double>(dim_), mean = s.shift + trace(s.A, dim_) / d;
    const bool spans = s.n >= 2.0 * d;  // fewer rows leave directions in which only the ridge counts
    if (!spans && floor.value > 0.0) return;
    const bool anew = s.n >= 2.0 * floor.searched;
    double guess = !spans ? 0.0 : anew ? 0.8 * mean : 1.1 * floor.share * s.n;
    bool found = false;
    for (int tries = 0; tries < 12 && guess > s.shift && !(found = exceeds(s, guess)); ++tries)
        guess *= anew ? 0.6 : 0.85;
    if (!found) guess = exceeds(s, 0.9 * s.shift) ? 0.9 * s.shift : 0.0;
    floor.value = std::max(floor.value, guess);
    floor.checked = s.n, floor.share = floor.value / s.n;
    if (spans && anew) floor.searched = s.n;
}

// An eigenvalue of the computed factor can be off by a few units in the last place of the trace for each of d steps,
// and the sums themselves by one for each row (Higham 2002, theorem 10.3); of what a constant leaves, by 1 + lean^2
// times as much.
void Solved::raise_floor(const System& s, std::size_t arm) {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    Floor& floor = floors_[arm];
    if (!(s.n > 0.0))
        floor.value = s.shift;
    else if (s.n >= 2.0 * floor.checked)
        prove_floor(s, floor);
    const double d = static_cast<double>(dim_), whole = d * s.shift + trace(s.A, dim_), own = s.A[0] + s.shift;
    const double lean = s.has_constant ? norm(s.A + 1, dim_ - 1) / own : 0.0;
    const double doubt = (d + std::fabs(s.n)) * 0x1p-50 * whole * (1.0 + lean * lean);
    const bool known = own > 0.0 && floor.value > 2.0 * doubt;  // false for NaN
    floor.residual_bound = known ? (1.0 + 1e-6) / std::sqrt(floor.value - doubt) : unknown;
    floor.first = known ? 1.0 / std::sqrt(own) : 0.0;
    floor.lean = known ? lean : 0.0;
}

// Unless the constant leads the blocks, it is in them.
void Solved::take_coarse(const System& s, std::size_t arm) {
    const bool is_apart = !s.has_constant || lead(dim_) > 0;
    coarse_.take(arm, factor(arm), is_apart ? residual_bound(arm) : widest(arm, {1.0, 1.0}));
}

}  // namespace armlet
