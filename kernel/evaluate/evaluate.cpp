#include "evaluate/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/half.hpp"

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

// What a model says of a row that it has learned, had it not.
ARMLET_INLINE double without(double fitted, double reward, double leverage) {
    return reward - (reward - fitted) / (1.0 - leverage);
}

ARMLET_INLINE void predict_played_body(const RewardModel& model, const double* X, const std::int64_t* arms,
                                       const double* rewards, const bool* learned, std::size_t n, double* out) {
    std::vector<double> scratch(model.dim + 1);
    for (std::size_t i = 0; i < n; ++i) {
        const double* x = X + i * model.dim;
        const auto arm = static_cast<std::size_t>(arms[i]);
        out[i] = predicted(model, x, arm);
        if (learned[i]) out[i] = without(out[i], rewards[i], leverage(model, x, arm, scratch.data()));
    }
}

// What follows the argmax, for rows whose contexts are still in the cache.
ARMLET_INLINE void predict_greedy_body(const RewardModel& model, const ValuedRows& rows, std::size_t first,
                                       std::size_t n, const std::uint32_t* best, const GreedyRows& out) {
    std::vector<double> scratch(model.dim + 1);
    for (std::size_t i = first; i < first + n; ++i) {
        const double* x = rows.X + i * model.dim;
        const std::uint32_t arm = best[i - first];
        double said = arm == undecided ? 0.0 : predicted(model, x, arm);
        out.best[i] = arm == undecided ? -1 : std::int64_t{arm};
        const bool same = out.best[i] == rows.arms[i];
        if (same && rows.learned[i]) said = without(said, rows.rewards[i], leverage(model, x, arm, scratch.data()));
        out.direct[i] = said;
        out.played[i] = same ? said : 0.0;
    }
}

ARMLET_DISPATCH(predict_greedy,
                (const RewardModel& model, const ValuedRows& rows, std::size_t first, std::size_t n,
                 const std::uint32_t* best, const GreedyRows& out),
                (model, rows, first, n, best, out))

ARMLET_INLINE void gram_body(const double* F, const double* G, std::size_t n, double* out) {
    double sums[n_features][n_features] = {};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t a = 0; a < n_features; ++a) {
            const double value = F[i * n_features + a];
            for (std::size_t b = 0; b < n_features; ++b) sums[a][b] += value * G[i * n_features + b];
        }
    std::copy(&sums[0][0], &sums[0][0] + n_features * n_features, out);
}

// Features of up to `some` rows, n_columns apart: those that every log has and the reward, then those of exploring.
constexpr std::size_t some = 32;

ARMLET_INLINE void fill_features(const EvaluatedRows& rows, std::size_t first, std::size_t n, double most,
                                 double shrink, double* out) {
    double w[some], less[some];
    for (std::size_t i = 0; i < n; ++i) {
        w[i] = rows.pi[first + i] / rows.chance[first + i];
        less[i] = shrink * w[i] / (w[i] * w[i] + shrink);
    }
    for (std::size_t i = 0; i < n; ++i, out += n_columns) {
        const double r = rows.rewards[first + i], direct = rows.direct[first + i], off = r - rows.model[first + i];
        const double wq = w[i] * off;
        out[0] = 1.0;
        out[1] = w[i];
        out[2] = w[i] * r;
        out[3] = direct;
        out[4] = wq;
        out[5] = w[i] <= most ? direct + wq : direct;
        out[6] = direct + less[i] * off;
        out[reward_column] = r;
    }
}

ARMLET_INLINE void fill_exploring(const EvaluatedRows& rows, std::size_t first, std::size_t n, double* out) {
    for (std::size_t i = first; i < first + n; ++i, out += n_columns) {
        const double r = rows.rewards[i], direct = out[3], off = r - rows.model[i], h = rows.h[i], x = rows.explored[i];
        const double v = x * (rows.pi[i] / rows.given[i]);
        out[8] = h;
        out[9] = h * (direct + out[4]);
        out[10] = x;
        out[11] = v;
        out[12] = v * r;
        out[13] = x * direct + v * off;
    }
}

// Whether no row explored or has a weight for it: then those features are zeros, and so are their sums.
ARMLET_INLINE bool is_plain_log(const EvaluatedRows& rows, std::size_t first, std::size_t n) {
    bool none = true;
    for (std::size_t i = first; i < first + n; ++i) none &= rows.h[i] == 0.0 && rows.explored[i] == 0.0;
    return none;
}

// Four rows of the sums, eight columns of each, in registers while n rows of features go by.
ARMLET_INLINE void add_tile(const double* F, std::size_t n, std::size_t left, std::size_t top, double* sums) {
    double* to = sums + left * n_columns + top;
    Half a0 = load_half(to), a1 = load_half(to + half);
    Half b0 = load_half(to + n_columns), b1 = load_half(to + n_columns + half);
    Half c0 = load_half(to + 2 * n_columns), c1 = load_half(to + 2 * n_columns + half);
    Half d0 = load_half(to + 3 * n_columns), d1 = load_half(to + 3 * n_columns + half);
    for (std::size_t r = 0; r < n; ++r, F += n_columns) {
        const Half low = load_half(F + top), high = load_half(F + top + half);
        a0 += F[left] * low, a1 += F[left] * high;
        b0 += F[left + 1] * low, b1 += F[left + 1] * high;
        c0 += F[left + 2] * low, c1 += F[left + 2] * high;
        d0 += F[left + 3] * low, d1 += F[left + 3] * high;
    }
    store_half(to, a0), store_half(to + half, a1);
    store_half(to + n_columns, b0), store_half(to + n_columns + half, b1);
    store_half(to + 2 * n_columns, c0), store_half(to + 2 * n_columns + half, c1);
    store_half(to + 3 * n_columns, d0), store_half(to + 3 * n_columns + half, d1);
}

ARMLET_INLINE void sum_features_body(const EvaluatedRows& rows, double most, double shrink, double* sums,
                                     double* largest) {
    double F[some * n_columns] = {};
    std::fill(sums, sums + n_columns * n_columns, 0.0);
    *largest = 0.0;
    for (std::size_t first = 0; first < rows.n; first += some) {
        const std::size_t n = std::min(some, rows.n - first);
        fill_features(rows, first, n, most, shrink, F);
        const std::size_t columns = is_plain_log(rows, first, n) ? lanes : n_columns;
        if (columns == n_columns) fill_exploring(rows, first, n, F);
        for (std::size_t i = 0; i < n; ++i)
            if (const double w = F[i * n_columns + 1]; !(w <= *largest)) *largest = w;
        for (std::size_t left = 0; left < columns; left += half)
            for (std::size_t top = left / lanes * lanes; top < columns; top += lanes) add_tile(F, n, left, top, sums);
    }
    for (std::size_t a = 0; a < n_columns; ++a)
        for (std::size_t b = 0; b < a; ++b) sums[a * n_columns + b] = sums[b * n_columns + a];
}

ARMLET_INLINE void sum_moments_body(const double* X, std::size_t n, std::size_t d, const double* origin, double* sums) {
    double* __restrict first = sums, * __restrict second = sums + d;
    std::fill(sums, sums + 2 * d, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < d; ++j) {
            const double value = X[i * d + j] - origin[j];
            first[j] += value;
            second[j] += value * value;
        }
}

}  // namespace

ARMLET_DISPATCH(sum_moments, (const double* X, std::size_t n, std::size_t d, const double* origin, double* sums),
                (X, n, d, origin, sums))
ARMLET_DISPATCH(sum_features, (const EvaluatedRows& rows, double most, double shrink, double* sums, double* largest),
                (rows, most, shrink, sums, largest))
ARMLET_DISPATCH(predict_played,
                (const RewardModel& model, const double* X, const std::int64_t* arms, const double* rewards,
                 const bool* learned, std::size_t n, double* out),
                (model, X, arms, rewards, learned, n, out))
ARMLET_DISPATCH(gram, (const double* F, const double* G, std::size_t n, double* out), (F, G, n, out))

void predict_chosen(const RewardModel& model, const double* X, const std::int64_t* chosen, const PlayedRows& rows,
                    double* out) {
    for (std::size_t i = 0; i < rows.n; ++i)
        out[i] = chosen[i] == rows.arms[i] ? rows.said[i]
                                           : predicted(model, X + i * model.dim, static_cast<std::size_t>(chosen[i]));
}

namespace {

// The best arm in float64 where no other comes so close that rounding could decide. `scores` holds `width` numbers.
std::uint32_t clear_best(const Estimates& estimates, Arms eligible, const double* x, double longest, double* scores) {
    estimates.scores(x, scores);
    double top = -INFINITY, second = -INFINITY, square = 0.0;
    std::uint32_t best = undecided;
    for (const auto arm : eligible) {
        if (scores[arm] > top) {
            second = top, top = scores[arm], best = arm;
        } else if (!(scores[arm] <= second)) {
            second = scores[arm];
        }
    }
    for (std::size_t j = 0; j < estimates.dim; ++j) square += x[j] * x[j];
    const double doubt = 8.0 * static_cast<double>(estimates.dim) * 0x1p-52 * std::sqrt(square) * longest;
    return top - second > doubt && square <= 1e80 ? best : undecided;  // not if anything is no number
}

}  // namespace

void value_greedy(const Estimates& estimates, Arms eligible, const RewardModel& model, const ValuedRows& rows,
                  const GreedyRows& out) {
    constexpr std::size_t chunk = 512;
    std::uint32_t best[chunk];
    std::vector<double> scores(estimates.width);
    const BatchArgmax argmax(estimates, eligible);
    for (std::size_t first = 0; first < rows.n; first += chunk) {
        const std::size_t n = std::min(chunk, rows.n - first);
        argmax(rows.X + first * model.dim, n, best);
        for (std::size_t i = 0; i < n; ++i)
            if (best[i] == undecided)
                best[i] =
                    clear_best(estimates, eligible, rows.X + (first + i) * model.dim, argmax.longest(), scores.data());
        predict_greedy(model, rows, first, n, best, out);
    }
}

void predict_law(const RewardModel& model, const double* X, const double* P, const PlayedRows& rows, double* out) {
    for (std::size_t i = 0; i < rows.n; ++i) {
        const auto played = static_cast<std::size_t>(rows.arms[i]);
        double total = 0.0;
        for (std::size_t a = 0; a < model.n_arms; ++a)
            if (const double chance = P[i * model.n_arms + a]; chance != 0.0)
                total += chance * (a == played ? rows.said[i] : predicted(model, X + i * model.dim, a));
        out[i] = total;
    }
}

void row_features(const EvaluatedRows& rows, double most, double shrink, double* out) {
    double F[some * n_columns];
    for (std::size_t first = 0; first < rows.n; first += some) {
        const std::size_t n = std::min(some, rows.n - first);
        fill_features(rows, first, n, most, shrink, F);
        fill_exploring(rows, first, n, F);
        for (const double* f = F; f < F + n * n_columns; f += n_columns, out += n_features) {
            std::copy_n(f, reward_column, out);
            std::copy_n(f + reward_column + 1, n_features - reward_column, out + reward_column);
        }
    }
}

}  // namespace armlet
