// Off-policy evaluation: what a block of logged rows adds to the sums of every estimator. All sums run over rows in
// their order, and over features 0 to d-1, so that the reference in numpy gives the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "rules/batch.hpp"

namespace armlet {

// A linear reward model for each arm on y = (1, x): theta (K, d+1), and the inverse of sum y y' + ridge (K, d+1, d+1).
struct RewardModel {
    const double* theta;
    const double* inverse;
    std::size_t n_arms, dim;
};

// out[i]: what the model says of the arm that row i played, without that row where the model has learned from it.
void predict_played(const RewardModel& model, const double* X, const std::int64_t* arms, const double* rewards,
                    const bool* learned, std::size_t n, double* out);
// The arms that were played, and what `predict_played` says of them.
struct PlayedRows {
    const std::int64_t* arms;
    const double* said;
    std::size_t n;
};

// out[i]: what it says of the arm that a policy would play; or of a law P (n, K) over arms. Of the arm that row i
// played it says the same here as there: a row is left out of both, or the difference would be a bias of order 1/n.
void predict_chosen(const RewardModel& model, const double* X, const std::int64_t* chosen, const PlayedRows& rows,
                    double* out);
void predict_law(const RewardModel& model, const double* X, const double* P, const PlayedRows& rows, double* out);

struct ValuedRows {
    const double* X;
    const std::int64_t* arms;
    const double* rewards;
    const bool* learned;
    std::size_t n;
};

// Of a policy that plays the best of the eligible arms by x' theta, (n,) each.
struct GreedyRows {
    std::int64_t* best;  // the arm, or -1 where another is as good but for rounding, or the row is no context
    double* direct;      // what the model says of it, without the row where it is the arm that was played
    double* played;      // the same there; 0 elsewhere
};

// All of it while a row is in the cache. `estimates` have a place for every arm of the model.
void value_greedy(const Estimates& estimates, Arms eligible, const RewardModel& model, const ValuedRows& rows,
                  const GreedyRows& out);

// sums (2, d): of x - origin, and of its squares, over n rows in their order.
void sum_moments(const double* X, std::size_t n, std::size_t d, const double* origin, double* sums);

// Columns of a row's features; reference.py names them.
constexpr std::size_t n_features = 13;
// The first seven, the reward, the others, and columns of zeros up to whole vectors.
constexpr std::size_t n_columns = 16, reward_column = 7;

struct EvaluatedRows {
    const double* pi;      // the target's probability of the arm played
    const double* direct;  // what the model says of the target
    const double* rewards;
    const double* chance;    // the probability of that arm
    const double* given;     // the same given that the step explores; 1 where that is not known
    const double* explored;  // 1 or 0
    const double* model;     // what the model says of the arm played
    const double* h;         // the row's weight among all rows
    std::size_t n;
};

// out (n, n_features). Switch-DR leaves out weights above `most`, DRos shrinks them by `shrink`.
void row_features(const EvaluatedRows& rows, double most, double shrink, double* out);

// out (n_features, n_features) = F' G, for F and G of n rows.
void gram(const double* F, const double* G, std::size_t n, double* out);

// Both at once, without the features ever being written down: sums (n_columns, n_columns) = F' F, where F also has the
// rewards, and the largest weight.
void sum_features(const EvaluatedRows& rows, double most, double shrink, double* sums, double* largest);

}  // namespace armlet
