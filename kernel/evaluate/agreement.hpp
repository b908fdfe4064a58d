// Whether linear policies play the arm that a log played: blocks of rows against blocks of policies, or of one policy's
// dials, in float32 that proves its answer; what it cannot prove is left open for float64 to settle.
//
// Only the played arm and the best of the others matter. Rows and policies are divided by powers of two first, which
// changes no choice and leaves nothing that float32 could not hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace armlet {

constexpr std::size_t row_group = 32;  // rows that are looked at together
constexpr std::size_t word_bits = 32;  // policies or dials that are: a bit each of a row's word

// What is known of n rows; no value is larger than 1e40, in thetas and dials neither.
struct LoggedRows {
    const double* X;           // (n, d)
    const bool* eligible;      // (n, K)
    const std::int64_t* arms;  // (n,), each below K
    std::size_t n, dim, n_arms;
};

// Policies (J, m, K, d) with m outcomes each.
struct LinearPolicies {
    const double* theta;
    std::size_t count, n_outcomes, n_arms, dim;

    std::size_t size() const { return n_outcomes * n_arms * dim; }
};

struct Line {
    alignas(64) float values[16];
};

// Memory that starts where a line of the cache does.
class Lines {
  public:
    explicit Lines(std::size_t n) : lines_((n + 15) / 16) {}
    float* data() { return lines_.empty() ? nullptr : lines_.front().values; }
    const float* data() const { return lines_.empty() ? nullptr : lines_.front().values; }

  private:
    std::vector<Line> lines_;
};

// As many rows as are looked at together; those after the last are zeros.
struct RowGroup {
    const float* x;            // (d, row_group)
    const float* barred;       // (K in whole panels, row_group): minus infinity where the arm may not be played, else 0
    const float* length;       // (row_group,): |x|, infinite where float32 proves nothing
    const std::int32_t* arms;  // (row_group,): -1 where the arm that was played is not eligible
};

class GroupedRows {
  public:
    explicit GroupedRows(const LoggedRows& rows);
    std::size_t size() const { return n_groups_; }
    RowGroup operator[](std::size_t group) const;

  private:
    std::size_t dim_, arms_in_panels_, n_groups_;
    Lines x_, barred_, length_;
    std::vector<std::int32_t> arms_;
};

// At most 32 policies with one outcome.
class PolicyBlock {
  public:
    explicit PolicyBlock(const LinearPolicies& policies);
    // Bit p of a row's words: policy p plays the arm that was played; and that is not certain.
    void settle(const RowGroup& rows, std::uint32_t* agree, std::uint32_t* open) const;

  private:
    std::size_t count_, n_arms_, dim_;
    std::vector<float> panels_;  // of each policy: its arms in panels of (d, 4)
    std::vector<float> bounds_;  // times |x|: a lead that float32 cannot fake
};

// One policy with m outcomes, and the weights of D dials (D, m).
class DialedPolicy {
  public:
    DialedPolicy(const LinearPolicies& policy, const double* dials, std::size_t n_dials);
    std::size_t n_words() const { return (n_dials_ + word_bits - 1) / word_bits; }
    // agree (n_words, row_group): bit k of a row's words is of dial k, those after the last are 0. open (row_group,): 1
    // where a bit of the row is not certain.
    void settle(const RowGroup& rows, std::uint32_t* agree, std::uint32_t* open);

  private:
    std::size_t n_dials_, n_outcomes_, n_arms_, dim_;
    std::vector<float> panels_;   // (m, K in panels, d, 4)
    std::vector<float> weights_;  // (D in fours, m, 4)
    float bound_;
    Lines scores_;  // room to work in
};

}  // namespace armlet
