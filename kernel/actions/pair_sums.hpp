// The sums of a model over pairs (context x, action z), and those of every item, an action of one label and one z.
//
// Rewards are phi'theta + delta_i + noise, where the intercept delta_i of an item is worth kappa rows of prior. With
// n_i, u_i, y_i the sums of 1, x and r of an item and s_i = (n_i, u_i) (x) (1, z_i), intercepts are solved in closed
// form by taking s_i s_i' / (n_i + kappa) out of A, s_i y_i / (n_i + kappa) out of b, and y_i^2 / (n_i + kappa) out of
// the squares.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actions/folded_keys.hpp"
#include "actions/items.hpp"
#include "actions/terms.hpp"
#include "coins/philox.hpp"

namespace armlet {

struct PairRow {
    Word key;
    const double *x, *z;
    double reward, weight;
};

// Sums over pairs of terms, over terms and of squared rewards.
struct TermSums {
    std::vector<double> A, b;  // A packed
    double squares = 0.0;

    explicit TermSums(std::size_t size);
    void clear();
    // Adds what `share` of an item's sums s and y takes out.
    void add_share(const double* s, double y, double share);
};

// Means of x and z from their origins, and 1 / deviation, 0 for a feature that has not varied.
struct StandardUnits {
    std::vector<double> middles, scales;
};

// What intercepts leave of the sums, in standard units.
struct PairSystem {
    std::vector<double> A, b;  // A packed, without a ridge
    double squares, n, variance;
};

class PairSums {
  public:
    PairSums(PairTerms terms, bool intercepts, std::size_t kept);

    const PairTerms& terms() const { return terms_; }
    bool has_intercepts() const { return intercepts_; }
    std::size_t kept() const { return kept_; }
    const Items& items() const { return items_; }
    std::int64_t rows() const { return rows_; }
    double n() const { return n_; }
    double kappa() const { return kappa_; }
    const std::vector<double>& origin() const { return origin_; }
    bool is_empty() const { return rows_ == 0 && items_.size() == 0; }

    // Whether a row of this weight can be taken back: its item is kept apart, and always was.
    bool holds(Word key, double weight) const;
    // Whether both have the same terms, and intercepts or none.
    bool is_like(const PairSums& other) const;
    // Whether an earlier state of these sums may be taken off them.
    bool has_origin_of(const PairSums& other) const { return other.rows_ == 0 || other.origin_ == origin_; }

    void add(const PairRow& row);
    void remove(const PairRow& row);
    // Exchanges the reward of a row for `next`.
    void correct(const PairRow& row, double next);
    void merge(const PairSums& other);
    void subtract(const PairSums& base);
    void clear();
    void set_kappa(double kappa);

    // (2 + dx + dz,): digits that n, rewards and features lost since a row was taken back, up to 16; empty if none did.
    const std::vector<double>& digits_lost() const { return digits_lost_; }
    std::size_t losses() const { return losses_; }

    // Of all rewards; 0 if they differ by rounding alone.
    double variance() const;
    double mean() const { return n_ > 0.0 ? moments_[0] / n_ : 0.0; }  // of rewards, from their origin
    StandardUnits units() const;
    PairSystem system(const StandardUnits& units) const;

    // Keys of items that changed since this was last asked; true if there were too many to say.
    bool take_touched(std::vector<Word>& keys);

    // What must be kept: counts and numbers, in the order of the reference.
    struct State {
        std::int64_t rows;
        std::vector<double> origin, moments, sums, pulls;
        std::vector<Word> keys;
        std::vector<std::int64_t> item_rows;
        std::vector<double> items;
        std::vector<Word> folded;
        double kappa;
    };
    State state() const;
    void restore(const State& state);

  private:
    void change(const PairRow& row, double weight, std::int64_t rows);
    void change_item(const PairRow& row, double weight, std::int64_t rows);
    void add_row(const PairRow& row, double weight);
    void pull(std::uint32_t item, double sign);
    void repull();
    void fold(std::uint32_t item);
    void fold_oldest();
    void accumulate(const PairSums& other, double sign);
    void accumulate_items(const PairSums& other, const std::vector<double>& shift, double sign);
    void view(const PairRow& row);
    const double* item_terms(std::uint32_t item);
    void touch(Word key);
    void clear_if_lost(double weight, std::size_t columns);
    void settle_constants(double weight);

    PairTerms terms_;
    bool intercepts_;
    std::size_t kept_;
    std::int64_t rows_ = 0;
    double n_ = 0.0, kappa_;
    std::vector<double> origin_;   // of r, x, z
    std::vector<double> moments_;  // sums of r, x, z from their origins, then of their squares
    TermSums sums_, pulls_;
    Items items_;
    FoldedKeys folded_;
    std::vector<double> row_, x_, z_, phi_;  // of the row at hand
    std::vector<Word> touched_;
    bool all_touched_ = false;
    std::vector<double> digits_lost_;
    std::size_t losses_ = 0;
};

}  // namespace armlet
