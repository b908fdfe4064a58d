// In which units sums are kept and systems solved: as the user gave them, or free of them.
//
// Free: a row (x, r) is added as y = (1, x - o) and r - l, about an origin (o, l) that stays; it is looked at as z =
// (1, (x - o - m) / s), with the pooled means m and deviations s of all rows, and rewards as r - l - r0, with their
// pooled mean r0. Then neither the zero nor the size of a feature or of rewards matters. Means and deviations are kept
// until the rows have grown by a tenth, or with many features while rows are few until they have doubled: they change
// every arm's system, so each change costs a solve of all arms. A row that by itself doubles the deviation of a
// feature, or makes a constant one vary, ends them at once.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "state/sums.hpp"

namespace armlet {

class Units {
  public:
    enum class Kind { as_given, free };

    // `origin` is l, o_1, ..., o_d if the user gives it; else it is found with the first row.
    Units(Kind kind, std::size_t dim, std::span<const double> origin = {});

    bool is_free() const { return !middle_.empty(); }
    // How many values a row has in the sums, and a context where it is looked at.
    std::size_t size() const { return size_; }
    std::size_t dim() const { return is_free() ? size_ - 1 : size_; }

    // ---- rows
    // The row as sums hold it; `out` has room for `size()` values.
    const double* row(const double* x, double* out) const;
    double reward(double r) const { return is_free() ? r - origin_[0] : r; }
    // The context as estimates see it.
    const double* view(const double* x, double* out) const;
    // What x'theta is of, in the user's units: l + r0.
    double base() const { return is_free() ? origin_[0] + middle_[0] : 0.0; }

    // ---- the origin: zero for ordinary sizes; beyond, eight bits of the first row, so that no row can be read off it
    void set_origin(const double* x, double r);
    void set_origin(const Units& other);
    bool has_origin_of(const Units& other) const { return origin_ == other.origin_; }
    bool is_given() const { return is_given_; }
    const std::vector<double>& origin() const { return origin_; }  // l, o; empty as given
    // A record of sums about the other's origin, as it is about this one; and what that adds to the values of a row.
    void rebase(std::span<double> record, const Units& other) const;
    std::vector<double> moved(const Units& other) const;
    // Eight bits of a value; zero for one of ordinary size.
    static double rounded(double value);

    // ---- the snapshot of means and deviations
    // A row of this weight was added: whether it is time for another.
    bool is_due(double weight) { return (left_ -= weight) <= 0.0; }
    // All rows so far count this much less, and so do those that are left until then.
    void fade(double factor) { left_ *= factor; }
    void renew(const Sums& sums);
    // Whether a row in the sums, of this weight, n with it, is outside of what a feature has been: it is further than
    // eight deviations from the mean and doubles the deviation, or differs where nothing did. Each time the squares of
    // that feature add up to four times as much, so heavy tails end few snapshots. `is_far` is quick, and false for no
    // row that leaves.
    bool is_far(const double* row) const;
    bool leaves(const double* row, double weight, double n) const;
    // Whether a row in an arm's sums is more than a quarter of what the arm knows about some feature beyond its own
    // mean, from the margin of the sums (`Sums::margin`) and the ridge. Never in units as given.
    bool has_leverage(const double* row, const double* margin, double shift) const;
    // The deviation of rewards, whatever arm and context.
    double deviation() const { return spread_[0]; }
    // How many of the values of a view are not zero regardless of x.
    std::size_t rank() const { return rank_; }

    // ---- systems: A_z = M A M' and b_z = M (b - r0 A_0), where z = M y
    void standardise(const double* A, const double* b, double* A_z, double* b_z) const;
    // A_z alone.
    void standardise(const double* A, double* A_z) const;
    // b_z alone, of rewards whose pooled mean is r0.
    void standardise_side(const double* A, const double* b, double r0, double* b_z) const;
    // The sum of (r - l - r0)^2.
    double centred_squares(std::span<const double> record) const;
    // A theta of z, as slopes of x (d of them) and an intercept.
    double to_user(const double* theta, std::size_t step, double* slopes) const;

    // ---- what must be kept: the rows until the next snapshot; l and o; r0 and m; the deviations of rewards and s
    std::size_t n_values() const { return is_free() ? 1 + 3 * size_ : 0; }
    std::vector<double> values() const;
    void restore(std::span<const double> values);
    std::size_t bytes() const;

  private:
    void scale();
    double worth(std::size_t n_arms) const;

    std::size_t size_;
    bool is_given_;
    std::vector<double> origin_;  // l, o; empty as given
    std::vector<double> middle_;  // r0, m
    std::vector<double> spread_;  // the deviation of rewards, s
    std::vector<double> m_, t_;   // means and 1 / s of y itself: 0 and 1 of its constant; 0 where s is
    std::vector<double> limits_;  // squared distances from the mean, up to which a value has not left
    double left_ = 0.0;
    std::size_t rank_;
};

}  // namespace armlet
