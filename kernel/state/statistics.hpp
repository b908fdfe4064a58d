// What Algorithm 1 remembers: n, A, b, sum r and sum r^2 of every arm, and the estimates solved from them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "linear/linear.hpp"
#include "linear/simd.hpp"

namespace armlet {

// The ridge of (shift I + A) theta = b, the paper's (lambda_n I + A / n) theta = b / n multiplied by n.
struct Ridge {
    enum class Kind { paper, inverse_n, constant };
    Kind kind = Kind::paper;
    double value = 1.0;  // of a constant ridge

    double shift(double n) const;
};

// theta_hat of all arms, the arms of one feature side by side: (dim, width), width a multiple of the vector.
struct Estimates {
    const double* theta;
    std::size_t dim, width;

    void scores(const double* x, double* out) const { score(theta, x, dim, width, out); }
};

class Statistics {
  public:
    Statistics(std::size_t n_arms, std::size_t dim, Ridge ridge);

    std::size_t n_arms() const { return n_arms_; }
    std::size_t dim() const { return dim_; }
    Ridge ridge() const { return ridge_; }

    // Algorithm 1's n += 1, b += r x, A += x x', with a weight; a negative weight takes a row back.
    void add(std::size_t arm, const double* x, double reward, double weight);
    // The row stays, its reward changes.
    void correct(std::size_t arm, const double* x, double from, double to, double weight);
    // Adds the sums of an arm of other statistics to an arm of these.
    void merge(std::size_t arm, const Statistics& other, std::size_t other_arm);
    // Takes the sums of an arm of earlier statistics away; what is left of no rows is nothing.
    void subtract(std::size_t arm, const Statistics& earlier, std::size_t earlier_arm);
    // From now on rows wait, up to eight an arm, and are added to its sums together, in the order in which they came:
    // the same bits, but A is brought into the cache once for all of them. Whoever looks at the sums adds them first.
    void let_rows_wait();
    // Makes an arm's sums those that it has in others, which have seen the same rows and more.
    void follow(std::size_t arm, const Statistics& later);
    void append_arm();
    void erase_arm(std::size_t arm);

    // From now on refresh() keeps, for every arm, a Cholesky factor of V_a = shift I + A_a. It doubles the memory, so
    // it is done for rules that ask for widths. Each factor is made from the sums anew: a function of them alone.
    void keep_factors();
    bool keeps_factors() const { return !log_determinants_.empty(); }
    // Likewise the diagonal of V_a^-1, d numbers an arm; with the factors.
    void keep_variances();

    // Solves the arms that changed.
    void refresh();
    // Only after refresh().
    Estimates estimates() const { return {theta_.data(), dim_, width()}; }
    std::size_t width() const { return padded(n_arms_); }
    // out[i] = sqrt(x' V_a^-1 x) of arm a = arms[i], with factors kept and fresh.
    void widths(std::span<const std::uint32_t> arms, const double* x, double* out) const;
    // out[a] = sum_j x_j^2 (V_a^-1)_jj of all arms, `width()` of them, from squares[j] = x_j^2; with variances kept and
    // fresh. It lies between 1 / d of the squared width and, if the features of an arm's rows go together, far above.
    void rough_squares(const double* squares, double* out) const {
        score(variances_.data(), squares, dim_, width(), out);
    }
    // One arm's kept factor, likewise.
    const double* factor(std::size_t arm) const { return factors_.data() + arm * factor_size(dim_); }
    // At least the width at x divided by |x| for any x, rounding included; infinite if nothing is known.
    double reach(std::size_t arm) const { return floors_[arm].reach; }
    // The deviation of rewards about the estimates, with factors kept and fresh: the squared residuals of the arms that
    // have more than d rows, over their rows beyond d. Before any has, the root of the mean squared reward; 1 if
    // nothing was seen.
    double noise() const;
    // How many times too large squared rough widths are on average, over the rows that the arm is solved for; with
    // variances kept and fresh. Infinite for an arm without rows.
    double inflation(std::size_t arm) const { return fits_[arm].inflation; }
    // log det V_a of every arm, with factors kept and fresh.
    std::span<const double> log_determinants() const { return log_determinants_; }

    // Which change of these statistics was the last that an arm saw: a stamp that no two states of its sums share.
    std::span<const std::int64_t> versions() const { return versions_; }

    // One arm's sums: n, sum_r, sum_rr, b (dim), A (packed). All arms' lie one after the other.
    std::size_t record_size() const { return 3 + dim_ + packed_size(dim_); }
    std::span<const double> record(std::size_t arm) const {
        settle(arm);
        return {records_.data() + arm * record_size(), record_size()};
    }
    std::span<const double> records() const {
        settle_all();
        return records_;
    }
    // n of an arm, with the rows that wait.
    double count(std::size_t arm) const;
    // Whether no arm has a row. Quick once one has: it is remembered which.
    bool is_empty() const;
    void restore(std::span<const double> records);
    void restore(std::size_t arm, std::span<const double> record);
    std::size_t bytes() const;

  private:
    struct Sums {
        double &n, &sum_r, &sum_rr;
        double *b, *A;
    };
    Sums sums(std::size_t arm) const;
    void touch(std::size_t arm);  // its sums have changed
    void mark(std::size_t arm);   // it is to be solved
    void mark_all();
    void allocate_factors();
    void solve_arm(std::size_t arm);
    void solve_sums(std::size_t arm, const double* A, const double* b, double shift);
    void solve_as_unseen(std::size_t arm);
    void raise_floor(std::size_t arm);

    // What is proved about the smallest eigenvalue of V_a. Rows only raise it; rows taken back or sums from elsewhere
    // void the proof. No decision depends on it, only how soon it is found.
    struct Floor {
        double value = 0.0;    // at most the eigenvalue; 0 if nothing is proved
        double checked = 0.0;  // n at the last proof
        double reach = 0.0;
    };

    // How well an arm's estimate fits its rows.
    struct Fit {
        double n = 0.0, squares = 0.0, residual = 0.0;  // sums of weights, of squared rewards and squared residuals
        double inflation = 0.0;
    };
    void measure_fit(std::size_t arm);
    double measure_inflation(std::size_t arm) const;

    // Rows that wait: w, r and x of each.
    static constexpr std::size_t most_waiting = 8;
    struct Waiting {
        std::vector<double> rows;           // (n_arms, most_waiting, 2 + dim)
        std::vector<std::uint8_t> lengths;  // (n_arms,); empty unless rows wait
    };
    double* waiting_row(std::size_t arm, std::size_t i) const {
        return waiting_.rows.data() + (arm * most_waiting + i) * (2 + dim_);
    }
    void settle(std::size_t arm) const {
        if (!waiting_.lengths.empty() && waiting_.lengths[arm] > 0) settle_rows(arm);
    }
    void settle_rows(std::size_t arm) const;
    void settle_all() const;
    void add_now(std::size_t arm, const double* x, double reward, double weight) const;

    std::size_t n_arms_, dim_;
    Ridge ridge_;
    mutable std::vector<double> records_;  // with the rows that do not wait
    mutable Waiting waiting_;
    mutable std::size_t witness_ = 0;  // an arm that had a row when somebody last asked
    std::vector<double> theta_;
    std::vector<std::uint32_t> stale_;  // arms to solve before the next score
    std::vector<std::uint8_t> is_stale_;
    std::vector<std::int64_t> versions_;
    std::int64_t changes_ = 0;
    std::vector<double> factors_, log_determinants_;  // empty unless kept
    std::vector<double> variances_;                   // (dim, width) as theta; empty unless kept
    std::vector<Floor> floors_;                       // empty unless factors are kept
    std::vector<Fit> fits_;                           // likewise
};

}  // namespace armlet
