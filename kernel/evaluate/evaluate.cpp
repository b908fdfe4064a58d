#include "evaluate/evaluate.hpp"

#include <algorithm>
#include <vector>

#include "linear/simd.hpp"

namespace armlet {

namespace {

ARMLET_INLINE double predicted(const RewardModel& model, const double* x, std::size_t arm) {
    const double* coefficients = model.theta + arm * (model.dim + 1);
    double total = coefficients[0];
    for (std::size_t j = 0; j < model.dim; ++j) total += x[j] * coefficients[j + 1];
    return total;
}

// y' V^-1 y, how much of a learned row's prediction is its own reward. `scratch` holds d+1 numbers.
ARMLET_INLINE double leverage(const RewardModel& model, const double* x, std::size_t arm, double* __restrict scratch) {
    const std::size_t size = model.dim + 1;
    const double* __restrict rows = model.inverse + arm * size * size;
    for (std::size_t i = 0; i < size; ++i) scratch[i] = rows[i];
    for (std::size_t j = 0; j < model.dim; ++j) {
        const double value = x[j];
        const double* __restrict row = rows + (j + 1) * size;
        for (std::size_t i = 0; i < size; ++i) scratch[i] += value * row[i];
    }
    double total = scratch[0];
    for (std::size_t i = 0; i < model.dim; ++i) total += x[i] * scratch[i + 1];
    return total;
}

template <typename>
ARMLET_INLINE void predict_played_body(const RewardModel& model, const double* X, const std::int64_t* arms,
                                       const double* rewards, const bool* learned, std::size_t n, double* out) {
    std::vector<double> scratch(model.dim + 1);
    for (std::size_t i = 0; i < n; ++i) {
        const double* x = X + i * model.dim;
        const auto arm = static_cast<std::size_t>(arms[i]);
        const double fitted = predicted(model, x, arm);
        out[i] =
            learned[i] ? rewards[i] - (rewards[i] - fitted) / (1.0 - leverage(model, x, arm, scratch.data())) : fitted;
    }
}

template <typename>
ARMLET_INLINE void gram_body(const double* F, const double* G, std::size_t n, double* out) {
    double sums[n_features][n_features] = {};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t a = 0; a < n_features; ++a) {
            const double value = F[i * n_features + a];
            for (std::size_t b = 0; b < n_features; ++b) sums[a][b] += value * G[i * n_features + b];
        }
    std::copy(&sums[0][0], &sums[0][0] + n_features * n_features, out);
}

}  // namespace

ARMLET_DISPATCH(predict_played,
                (const RewardModel& model, const double* X, const std::int64_t* arms, const double* rewards,
                 const bool* learned, std::size_t n, double* out),
                (model, X, arms, rewards, learned, n, out))
ARMLET_DISPATCH(gram, (const double* F, const double* G, std::size_t n, double* out), (F, G, n, out))

void predict_chosen(const RewardModel& model, const double* X, const std::int64_t* chosen, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i)
        out[i] = predicted(model, X + i * model.dim, static_cast<std::size_t>(chosen[i]));
}

void predict_law(const RewardModel& model, const double* X, const double* P, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) {
        double total = 0.0;
        for (std::size_t a = 0; a < model.n_arms; ++a)
            if (const double chance = P[i * model.n_arms + a]; chance != 0.0)
                total += chance * predicted(model, X + i * model.dim, a);
        out[i] = total;
    }
}

void row_features(const EvaluatedRows& rows, double most, double shrink, double* out) {
    for (std::size_t i = 0; i < rows.n; ++i) {
        double* f = out + i * n_features;
        const double r = rows.rewards[i], direct = rows.direct[i], off = r - rows.model[i];
        const double w = rows.pi[i] / rows.chance[i], h = rows.h[i];
        const double x = rows.explored[i], v = x * (rows.pi[i] / rows.given[i]);
        f[0] = 1.0;
        f[1] = w;
        f[2] = w * r;
        f[3] = direct;
        f[4] = w * off;
        f[5] = w <= most ? direct + f[4] : direct;
        f[6] = direct + shrink * w / (w * w + shrink) * off;
        f[7] = h;
        f[8] = h * (direct + f[4]);
        f[9] = x;
        f[10] = v;
        f[11] = v * r;
        f[12] = x * direct + v * off;
    }
}

}  // namespace armlet
