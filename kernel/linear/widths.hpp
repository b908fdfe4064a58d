// Widths sqrt(x' V^-1 x) = |L^-1 x| from kept factors, by forward substitution that can be given up on the way.
#pragma once
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace armlet {

// L^-1 x of one arm, under way: the first `column` entries of y are solved, the others are what is left of x. If a
// column leads the blocks, its entry is apart and solved from the start.
struct Substitution {
    const double *kept, *at;  // the factor, and how far it is read
    double* y;
    std::size_t column;
    double first;
};

// The next eight of the d columns in blocks, for each of n arms: while one waits for its corner, the others have work.
void advance(Substitution* arms, std::size_t n, std::size_t d);

// Some arms at a time, each with room of its own.
class Substitutions {
  public:
    static constexpr std::size_t most = 4;

    explicit Substitutions(std::size_t d);

    std::size_t size() const { return size_; }
    void start(const double* kept, const double* x);
    void advance() { armlet::advance(arms_.data(), size_, d_); }
    void drop(std::size_t i) { std::swap(arms_[i], arms_[--size_]); }

    bool is_done(std::size_t i) const { return arms_[i].column >= d_; }
    // Whether so little is left that it is quicker to finish than to ask for a bound.
    bool is_nearly_done(std::size_t i) const { return arms_[i].column + 16 >= d_; }
    // The width of an arm that is done.
    double width(std::size_t i) const;
    // At least the width of an arm that is not, given its residual bound: the rest of the factor is that of a matrix
    // whose smallest eigenvalue is no smaller than that of the whole, or of what its first value leaves (a Schur
    // complement).
    double bound(std::size_t i, double residual_bound) const;

  private:
    std::size_t lead_, d_, size_ = 0;  // d_ columns are in blocks
    std::array<Substitution, most> arms_;
    std::vector<double>& room_;  // of this thread
};

// out[i] = the width at x of each of n kept factors.
void find_widths(const double* const* kept, std::size_t n, const double* x, std::size_t d, double* out);

}  // namespace armlet
