// The rows of a table with the highest estimate or bound: float32 leaves out what cannot be it, float64 settles the
// rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actions/coarse_scores.hpp"
#include "actions/pair_model.hpp"
#include "actions/width_bound.hpp"

namespace armlet {

// v'(1, z) of all rows in float32, in units of `unit` and without `constant`, within `error`.
struct CoarseScorer {
    std::vector<float> v;
    float ratio;  // of units of known intercepts
    double unit, constant, error;

    bool is_usable() const { return error < 1e6; }  // false for NaN
};

class PairSearch {
  public:
    // Intercepts of known rows are part of scores; `unit` at least is the unit.
    PairSearch(const PairModel& model, const PairQuestion& asked, PairView view)
        : model_(model), asked_(asked), view_(std::move(view)), z_(view_.v.size()), sums_(view_.x.size()) {}

    const PairView& view() const { return view_; }
    CoarseScorer scorer(const std::vector<double>& v, double largest_intercept, double least_unit) const;

    PairModel::Rows highest_scores();
    PairModel::Rows highest_bounds(Word t, double scale, std::size_t& n_widths);

  private:
    struct Candidate {
        float score;
        std::uint32_t row;
    };

    std::vector<Candidate> find_candidates(const CoarseScorer& scorer) const;
    // Of all rows: scores, squares of widths and bounds; padding after the last.
    struct Bounds {
        std::vector<float> scores, squares, bounds;
    };

    void bound_squares_of_all(const CoarseScorer& scorer, Bounds& all, float& top);
    float bound_squares_of_known(Bounds& all);
    void bound_all(const CoarseScorer& scorer, double unit, Word t, Bounds& all);
    // At least the squared width of a known row, given its bound as if it were unknown: `own` bounds z'Gz.
    float known_square(std::size_t row, float before, double own);
    double context_square(std::size_t row) const;
    double refined_bound(std::size_t row, const Bounds& all, double unit, Word t);
    const QuadraticBound& contexts() const;
    double height(float top, double unit, Word t) const;
    // The terms of (1, z) as they depend on a row's scaled features: a column for the constant and one for each
    // feature.
    std::vector<double> columns(const double* x) const;
    double exact_score(std::size_t row);
    double exact_bound(std::size_t row, double unit, Word t);

    const PairModel& model_;
    const PairQuestion& asked_;
    PairView view_;
    std::vector<double> z_, sums_;
    std::vector<float> unknown_;  // squares of known rows as if they were unknown, in the order of those known
    float base_ = 0.0F;
};

// The rows of the highest value, as they come.
class Highest {
  public:
    void offer(std::size_t row, double value) {
        if (rows_.empty() || value > value_) rows_.clear(), value_ = value;
        if (value == value_) rows_.push_back(static_cast<std::int64_t>(row));
    }
    double value() const { return value_; }
    bool is_empty() const { return rows_.empty(); }
    PairModel::Rows sorted() &&;

  private:
    PairModel::Rows rows_;
    double value_ = 0.0;
};

}  // namespace armlet
