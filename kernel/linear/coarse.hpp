// Upper bounds on widths, from factors that are rounded to 16 bits: a quarter of the memory to go through, twice as
// many values at a time, and within a hundredth of the widths themselves unless features go together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace armlet {

class CoarseFactors {
  public:
    bool is_open() const { return !slacks_.empty(); }
    // From now on there is room for so many arms of d values; nothing is known of them.
    void open(std::size_t n_arms, std::size_t d);
    // Takes a kept factor. Its columns in blocks are those of a matrix L, and `residual_bound` is at least |L^-1|.
    void take(std::size_t arm, const double* kept, double residual_bound);
    // An arm has the same factor as another.
    void copy(std::size_t from, std::size_t arm);
    // Nothing is known of the arm any more.
    void drop(std::size_t arm);

    // out[a] = at least the width of arm a at x, from its kept factor on; infinite if nothing is known. All arms' kept
    // factors lie one after the other.
    void bounds(std::span<const std::uint32_t> arms, const double* kept, const double* x, double* out) const;

    std::size_t bytes() const;

  private:
    std::size_t d_ = 0, n_ = 0, words_ = 0;  // values, those in blocks, and the numbers that an arm's tiles take
    std::vector<std::uint32_t> tiles_;       // as those of a kept factor, two columns in a number: low bits, high bits
    std::vector<float> inverses_;            // 1 / L_kk
    std::vector<float> units_;               // what 2^-16 of a number stands for, of every arm
    std::vector<double> slacks_;             // what a width from all this may be too small by, also
};

}  // namespace armlet
