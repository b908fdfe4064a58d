// Off-policy evaluation: what a block of logged rows adds to the sums of every estimator. All sums run over rows in
// their order, and over features 0 to d-1, so that the reference in numpy gives the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace armlet {

// A linear reward model for each arm on y = (1, x): theta (K, d+1), and the inverse of sum y y' + ridge (K, d+1, d+1).
struct RewardModel {
    const double* theta;
    const double* inverse;
    std::size_t n_arms, dim;

    double predict(const double* x, std::size_t arm) const;
    // y' V^-1 y, how much of a learned row's prediction is its own reward. `scratch` holds d+1 numbers.
    double leverage(const double* x, std::size_t arm, double* scratch) const;
};

// out[i]: what the model says of the arm that row i played, without that row where the model has learned from it.
void predict_played(const RewardModel& model, const double* X, const std::int64_t* arms, const double* rewards,
                    const bool* learned, std::size_t n, double* out);
// out[i]: what it says of the arm that a policy would play; or of a law P (n, K) over arms.
void predict_chosen(const RewardModel& model, const double* X, const std::int64_t* chosen, std::size_t n, double* out);
void predict_law(const RewardModel& model, const double* X, const double* P, std::size_t n, double* out);

// Columns of a row's features; reference.py names them.
constexpr std::size_t n_features = 13;

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

}  // namespace armlet
