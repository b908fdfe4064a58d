// Upper bounds of squared widths that cost one product a row.
#pragma once
#include <cstddef>
#include <vector>

namespace armlet {

// z'M z <= flat |z|^2 + steep (u'z)^2 for every z, where u leads among the eigenvectors of M.
struct QuadraticBound {
    double flat = 0.0, steep = 0.0;
    std::vector<double> u;
};

// M is m by m, packed.
QuadraticBound bound_quadratic(const std::vector<double>& M, std::size_t m);

// M += Y'Y, packed, with Y = L^-1 X, for m columns of X that lie d apart; L in columns that are `rows` apart.
void add_gram(const double* L, const double* inverse, std::size_t rows, std::size_t d, const std::vector<double>& X,
              std::size_t m, std::vector<double>& M);

}  // namespace armlet
