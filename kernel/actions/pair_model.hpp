// One ridge regression over pairs (context x, action z): learning, and the actions of highest estimate, bound or draw.
//
// Learning solves: when the rows since the last time reach n / 64, within 1 and 16 or D / 8. After rows were taken
// back, corrected or merged, or many were learned at once, the evidence is weighed again and all is solved, by who asks
// first or learns the next row: the bits are the same whether anyone asked in between. Asking reads the last solution,
// and the items as they are.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actions/action_rows.hpp"
#include "actions/evidence.hpp"
#include "actions/known_rows.hpp"
#include "actions/pair_sums.hpp"
#include "actions/width_bound.hpp"
#include "coins/philox.hpp"

namespace armlet {

// What the last solve found.
struct PairSolution {
    StandardUnits units;
    std::vector<double> theta;       // in standard units
    std::vector<double> L, inverse;  // of A~ + Lambda, in columns that are `rows` apart; 1 / L_kk
    std::size_t rows = 0;
    double sigma = 0.0;
    Word version = 0;
};

// A context, a table and the rows of it that may be played, all if null.
struct PairQuestion {
    const double* x;
    const ActionRows& rows;
    const bool* allowed;

    bool allows(std::size_t row) const { return allowed == nullptr || allowed[row]; }
};

// How it looks in standard units.
struct PairView {
    std::vector<double> x;       // (1, x)
    std::vector<double> scales;  // of z: 1 / deviation among learned rows, or else among those allowed
    std::vector<double> v;       // v'(1, z) is the estimate, from the origin of rewards and without an intercept
};

// A bound that search keeps until the next solve, another table or other scales.
struct ContextBound {
    Word version = 0, rows = 0;
    std::vector<double> scales;
    QuadraticBound bound;
};

class PairModel {
  public:
    using Rows = std::vector<std::int64_t>;

    PairModel(PairTerms terms, bool intercepts, std::size_t kept);

    const PairSums& sums() const { return sums_; }
    // Only after refresh().
    const std::array<double, n_ridge_groups>& ridges() const { return ridges_; }
    double sigma() const { return solution_.sigma; }
    std::size_t last_exact_widths() const { return last_exact_widths_; }

    void add(const PairRow& row);
    void remove(const PairRow& row);
    void correct(const PairRow& row, double next);
    void merge(const PairModel& other);
    void subtract(const PairModel& base);
    // Everything is to be a function of the sums alone.
    void renew() { is_behind_ = true; }
    // Does what was put off. What asks begins with it.
    void refresh() {
        if (is_behind_) catch_up();
    }

    // Of all rows, in the user's units and in units of sigma.
    std::vector<double> estimates(const PairQuestion& asked);
    std::vector<double> widths(const PairQuestion& asked);
    // The rows that share the highest estimate.
    Rows greedy(const PairQuestion& asked);
    // The rows that share the highest estimate plus scale sigma w sqrt(2 log(1 + t w^2 / D)).
    Rows optimistic(const PairQuestion& asked, Word t, double scale);
    // For each of n draws from the posterior, v times as wide, the rows that share the highest value.
    std::vector<Rows> draws(const PairQuestion& asked, const Coins& coins, std::size_t n, double v);

    struct State {
        PairSums::State sums;
        std::int64_t since, weighed;
        std::array<double, n_ridge_groups> ridges;
        PairSolution solution;
    };
    State state() const;  // only after refresh()
    void restore(const State& state);

  private:
    friend class PairSearch;
    friend class PairDraws;

    void reset();
    void catch_up();
    void solve();  // also weighs the evidence if the rows have doubled
    void weigh();
    void find_solution();
    bool has_varied() const { return solution_.sigma > 0.0; }  // the reward, at the last solve
    PairView view(const PairQuestion& asked, const double* theta) const;
    void view_z(const PairView& view, const ActionRows& rows, std::size_t row, double* z) const;
    void view_sums(std::uint32_t item, double* sums) const;
    // Of a row's features z, in the order of the reference.
    double score(const double* v, const double* z) const;
    double delta(const double* theta, std::uint32_t item, const double* z) const;
    double width(const PairView& view, const double* z, std::uint32_t item) const;
    double bonus(double width, double unit, Word t) const;
    void refresh_known(const ActionRows& rows);

    PairSums sums_;
    std::int64_t since_ = 0, weighed_ = 0;  // rows since the last solve; rows at the last evidence
    bool is_behind_ = false;                // the evidence is to be weighed again
    std::array<double, n_ridge_groups> ridges_;
    PairSolution solution_;
    KnownRows known_;
    mutable ContextBound contexts_;
    std::size_t last_exact_widths_ = 0;
};

}  // namespace armlet
