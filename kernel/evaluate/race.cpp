#include "evaluate/race.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "linear/linear.hpp"
#include "linear/simd.hpp"
#include "state/solved.hpp"

namespace armlet {

namespace {

// Whether the arm is the first of the best; scores of every arm.
bool is_first_best(const double* scores, const bool* eligible, std::size_t n_arms, std::size_t arm) {
    for (std::size_t a = 0; a < n_arms; ++a)
        if (eligible[a] && (a < arm ? scores[a] >= scores[arm] : scores[a] > scores[arm])) return false;
    return true;
}

// Settles in float64 what float32 left open.
class Exact {
  public:
    explicit Exact(const LoggedRows& rows) : rows_(rows) {}

    // From now on of this policy (m, K, d).
    void take(const double* theta, std::size_t n_outcomes) {
        n_outcomes_ = n_outcomes, width_ = padded(n_outcomes * rows_.n_arms);
        by_feature_ = by_feature(theta, n_outcomes * rows_.n_arms, rows_.dim);
        scores_.resize(width_), sum_.resize(rows_.n_arms);
    }
    void look_at(std::size_t row) {
        row_ = row;
        score(by_feature_.data(), rows_.X + row * rows_.dim, rows_.dim, width_, scores_.data());
    }
    // Whether the policy plays what was played, with one outcome; and under a dial.
    bool agrees() const { return is_best(scores_.data()); }
    bool agrees(const double* dial) {
        const std::size_t k = rows_.n_arms;
        std::fill(sum_.begin(), sum_.end(), 0.0);
        for (std::size_t o = 0; o < n_outcomes_; ++o)
            for (std::size_t a = 0; a < k; ++a) sum_[a] += dial[o] * scores_[o * k + a];
        return is_best(sum_.data());
    }

  private:
    bool is_best(const double* scores) const {
        return is_first_best(scores, rows_.eligible + row_ * rows_.n_arms, rows_.n_arms,
                             static_cast<std::size_t>(rows_.arms[row_]));
    }

    const LoggedRows& rows_;
    std::size_t n_outcomes_ = 0, width_ = 0, row_ = 0;
    std::vector<double> by_feature_, scores_, sum_;
};

// agree (n in groups): bit p of a row's word is of policy p.
void settle_block(const LoggedRows& rows, const GroupedRows& groups, const LinearPolicies& policies,
                  std::vector<std::uint32_t>& agree, std::vector<std::uint32_t>& open) {
    const PolicyBlock block(policies);
    std::uint32_t any = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        block.settle(groups[g], agree.data() + g * row_group, open.data() + g * row_group);
        for (std::size_t r = 0; r < row_group; ++r) any |= open[g * row_group + r];
    }
    Exact exact(rows);
    for (; any != 0; any &= any - 1) {
        const int p = std::countr_zero(any);
        exact.take(policies.theta + static_cast<std::size_t>(p) * policies.size(), 1);
        for (std::size_t i = 0; i < rows.n; ++i)
            if (open[i] >> p & 1U) {
                exact.look_at(i);
                agree[i] = (agree[i] & ~(1U << p)) | static_cast<std::uint32_t>(exact.agrees()) << p;
            }
    }
}

// For every byte of agreements eight factors, 0 or 1.
constexpr auto make_factors() {
    std::array<double, 256 * lanes> out{};
    for (std::size_t byte = 0; byte < 256; ++byte)
        for (std::size_t i = 0; i < lanes; ++i) out[byte * lanes + i] = static_cast<double>(byte >> i & 1U);
    return out;
}

alignas(64) constexpr auto factors = make_factors();

template <typename Vec>
struct Sequence {
    Vec total, squares;

    // One row: the guess before it must not be above 1.
    ARMLET_INLINE void add(Vec value, double rows_and_one) {
        const Vec error = value - at_most_one((total + 0.5) / rows_and_one);
        squares += error * error;
        total += value;
    }
};

// sums (4, 8) of eight policies, whose bits of a row's word begin at `shift`.
template <typename Vec>
ARMLET_INLINE void add_sequences_body(const std::uint32_t* agree, std::size_t n, std::size_t shift,
                                      const RacedRows& raced, double* sums) {
    Sequence<Vec> below{load<Vec>(sums), load<Vec>(sums + lanes)};
    Sequence<Vec> above{load<Vec>(sums + 2 * lanes), load<Vec>(sums + 3 * lanes)};
    for (std::size_t i = 0; i < n; ++i) {
        const Vec plays = load<Vec>(factors.data() + (agree[i] >> shift & 0xffU) * lanes);
        const auto rows_and_one = static_cast<double>(raced.before + i) + 1.0;
        below.add(raced.below[i] * plays, rows_and_one);
        above.add(raced.above[i] * plays, rows_and_one);
    }
    store(sums, below.total), store(sums + lanes, below.squares);
    store(sums + 2 * lanes, above.total), store(sums + 3 * lanes, above.squares);
}

ARMLET_DISPATCH_LANES(add_sequences,
                      (const std::uint32_t* agree, std::size_t n, std::size_t shift, const RacedRows& raced,
                       double* sums),
                      (agree, n, shift, raced, sums))

// Adds to the sums (D, width) of a policy's dials, one or two vectors of columns wide.
template <typename Vec>
ARMLET_INLINE void add_columns_body(const std::uint32_t* agree, std::size_t n_words, std::size_t n,
                                    const double* values, std::size_t width, std::size_t first, double* sums) {
    const bool two = width - first > lanes;
    for (std::size_t r = 0; r < n; ++r) {
        const double* row = values + r * width + first;
        const Vec low = load<Vec>(row), high = two ? load<Vec>(row + lanes) : Vec{};
        for (std::size_t word = 0; word < n_words; ++word) {
            double* begin = sums + word * word_bits * width + first;
            for (std::uint32_t bits = agree[word * row_group + r]; bits != 0; bits &= bits - 1) {
                double* sum = begin + static_cast<std::size_t>(std::countr_zero(bits)) * width;
                store(sum, load<Vec>(sum) + low);
                if (two) store(sum + lanes, load<Vec>(sum + lanes) + high);
            }
        }
    }
}

ARMLET_DISPATCH_LANES(add_columns,
                      (const std::uint32_t* agree, std::size_t n_words, std::size_t n, const double* values,
                       std::size_t width, std::size_t first, double* sums),
                      (agree, n_words, n, values, width, first, sums))

// Whether eight policies' sums, those of `first` on, are in place, or a part of them that ends early.
void gather(const double* sums, std::size_t n_policies, std::size_t first, double* eight) {
    for (std::size_t s = 0; s < 4; ++s)
        std::copy_n(sums + s * n_policies + first, std::min(lanes, n_policies - first), eight + s * lanes);
}

void scatter(const double* eight, std::size_t n_policies, std::size_t first, double* sums) {
    for (std::size_t s = 0; s < 4; ++s)
        std::copy_n(eight + s * lanes, std::min(lanes, n_policies - first), sums + s * n_policies + first);
}

}  // namespace

void race(const LoggedRows& rows, const RacedRows& raced, const LinearPolicies& policies, double* sums, bool* known) {
    const GroupedRows groups(rows);
    std::vector<std::uint32_t> agree(groups.size() * row_group), open(groups.size() * row_group);
    for (std::size_t first = 0; first < policies.count; first += word_bits) {
        const std::size_t count = std::min(word_bits, policies.count - first);
        settle_block(rows, groups, {policies.theta + first * policies.size(), count, 1, rows.n_arms, rows.dim}, agree,
                     open);
        std::uint32_t all = ~0U;
        for (std::size_t i = 0; i < rows.n; ++i)
            if (raced.certain[i]) all &= agree[i];
        for (std::size_t p = 0; p < count; ++p) known[first + p] = all >> p & 1U;
        for (std::size_t shift = 0; shift < count; shift += lanes) {
            double eight[4 * lanes] = {};
            gather(sums, policies.count, first + shift, eight);
            add_sequences(agree.data(), rows.n, shift, raced, eight);
            scatter(eight, policies.count, first + shift, sums);
        }
    }
}

void sum_agreeing(const LoggedRows& rows, const LinearPolicies& policies, const double* dials, std::size_t n_dials,
                  const Columns& columns, double* sums) {
    const GroupedRows groups(rows);
    Exact exact(rows);
    for (std::size_t j = 0; j < policies.count; ++j) {
        const double* theta = policies.theta + j * policies.size();
        DialedPolicy policy({theta, 1, policies.n_outcomes, rows.n_arms, rows.dim}, dials, n_dials);
        exact.take(theta, policies.n_outcomes);
        std::vector<std::uint32_t> agree(policy.n_words() * row_group);
        std::uint32_t open[row_group];
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const std::size_t begin = g * row_group, n = std::min(row_group, rows.n - begin);
            policy.settle(groups[g], agree.data(), open);
            for (std::size_t r = 0; r < n; ++r)
                if (open[r]) {
                    exact.look_at(begin + r);
                    for (std::size_t word = 0; word < policy.n_words(); ++word) agree[word * row_group + r] = 0;
                    for (std::size_t k = 0; k < n_dials; ++k)
                        agree[k / word_bits * row_group + r] |=
                            static_cast<std::uint32_t>(exact.agrees(dials + k * policies.n_outcomes)) << k % word_bits;
                }
            for (std::size_t first = 0; first < columns.width; first += 2 * lanes)
                add_columns(agree.data(), policy.n_words(), n, columns.values + begin * columns.width, columns.width,
                            first, sums + j * n_dials * columns.width);
        }
    }
}

}  // namespace armlet
