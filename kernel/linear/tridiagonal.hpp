// A symmetric matrix in a form in which it is solved with any ridge in O(d).
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace armlet {

// M = Q T Q' by Householder's reflections: M (m by m, both triangles, columns m apart) is lost, T's diagonal and what
// is next to it are found, and g becomes Q'g.
void tridiagonalise(double* M, std::size_t m, double* diagonal, double* off, double* g);

// L with M = L L', m by r, where M has no more rank than r <= most; g, which M spans, as L c.
struct LowRank {
    std::size_t rank;
    std::vector<double> L;  // columns m apart
    std::vector<double> c;
};

// By pivoted Cholesky; nothing if M has more rank than that. M as above, and kept. A pivot below 1e-12 of `size`, the
// largest number that M was made of, is rounding.
std::optional<LowRank> factorise_low_rank(const double* M, std::size_t m, std::size_t most, const double* g,
                                          double size);

}  // namespace armlet
