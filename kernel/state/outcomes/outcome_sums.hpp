// Sums of several outcomes of the same rows, next to those of their contexts: of each outcome o_j, of the products o_j
// o_k, and b_j = sum o_j y. They add up as all sums do. In free units outcomes are about an origin of their own, and
// looked at about their pooled means, so that neither their zero nor their size matters.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "state/sums.hpp"

namespace armlet {

class OutcomeSums {
  public:
    bool is_open() const { return n_ > 0; }
    // From now on rows have n outcomes; there are none yet.
    void open(std::size_t n_arms, std::size_t n, std::size_t dim);
    // How many outcomes, and pairs of them.
    std::size_t n() const { return n_; }
    std::size_t pairs() const { return packed_size(n_); }

    // One arm's record: sum o_j (n), sum o_j o_k (packed), b_j (n, dim).
    std::size_t record_size() const { return n_ + pairs() + n_ * dim_; }
    std::span<const double> records() const { return records_; }
    std::span<const double> record(std::size_t arm) const { return {at(arm), record_size()}; }
    const double* b(std::size_t arm, std::size_t j) const { return at(arm) + n_ + pairs() + j * dim_; }

    // Of a row as the sums hold it, with its outcomes as they were given.
    void add(std::size_t arm, const double* row, const double* outcomes, double weight);
    void correct(std::size_t arm, const double* row, const double* from, const double* to, double weight);
    void merge(std::size_t arm, std::span<const double> record);
    void subtract(std::size_t arm, std::span<const double> earlier);
    void clear(std::size_t arm);
    // As in `Sums`: column j of the contexts is this multiple of the constant.
    void set_multiples(std::span<const std::size_t> columns, std::span<const double> multiples);
    void scale(double factor) {
        for (double& one : records_) one *= factor;
    }
    void restore(std::size_t arm, std::span<const double> record);
    void restore(std::span<const double> records);
    void append_arm();
    void erase_arm(std::size_t arm);

    // ---- in free units
    void set_origin(const double* outcomes);
    void set_origin(const OutcomeSums& other) { origin_ = other.origin_; }
    void drop_origin();
    // A record about the other's origin, as it is about this one: `sums` is the arm's record there, and `moved` what is
    // added to each value of a row.
    void rebase(std::span<double> record, std::span<const double> sums, std::span<const double> moved,
                const OutcomeSums& other) const;
    // Takes the means over all arms, which have n rows together.
    void renew(double n);
    std::span<const double> middle() const { return middle_; }
    // What outcome j of a context is looked at relative to.
    double base(std::size_t j) const { return origin_[j] + middle_[j]; }
    // out: sum (o_j - r_j) (o_k - r_k) about the means r of all rows, and the same about the origin, packed.
    void squares(std::size_t arm, double n, double* centred, double* raw) const;
    // The origin and the means: 2 n numbers.
    std::vector<double> values() const;
    void restore_values(std::span<const double> values);

    // The sums of one reward, sum_j w_j o_j, about an origin l: what `Sums` would hold of it, next to n and A.
    void weigh(std::size_t arm, std::span<const double> weights, double origin, std::span<double> record) const;

    std::size_t bytes() const { return (records_.capacity() + 2 * n_) * sizeof(double); }

  private:
    const double* at(std::size_t arm) const { return records_.data() + arm * record_size(); }
    double* at(std::size_t arm) { return records_.data() + arm * record_size(); }

    std::size_t n_ = 0, dim_ = 0;
    std::vector<double> records_, origin_, middle_;
};

}  // namespace armlet
