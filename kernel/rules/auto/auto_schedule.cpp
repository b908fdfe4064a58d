#include "rules/auto/auto_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear/elementary.hpp"
#include "linear/widths.hpp"
#include "rules/auto/forecast.hpp"

namespace armlet {

namespace {

// What is known about one arm: its estimate, and how well it is known.
struct KnownArm {
    std::vector<double> means, variances;  // (m,) each: x' theta_hat, and x' V^-1 x
    double left;                           // residual sum of squares
};

// (shift I + A) theta = b, so the residual sum of squares sum r^2 - 2 theta'b + theta'A theta is
// sum r^2 - theta'b - shift |theta|^2.
KnownArm know(Statistics& sums, std::size_t arm, std::span<const double> sample) {
    const std::size_t d = sums.dim(), m = sample.size() / d;
    const auto record = sums.record(arm);
    const double *b = record.data() + 3, *A = b + d, n = record[0];
    const double shift = n > 0.0 ? sums.ridge().shift(n) : 1.0;
    std::vector<double> theta(d), factor(factor_size(d));
    solve_and_keep(A, shift, d, {b, theta.data(), 1}, factor.data());
    KnownArm known{std::vector<double>(m), std::vector<double>(m), record[2]};
    for (std::size_t j = 0; j < d; ++j) known.left -= theta[j] * (b[j] + shift * theta[j]);
    known.left = std::max(known.left, 0.0);
    const double* kept = factor.data();
    for (std::size_t i = 0; i < m; ++i) {
        const double* x = sample.data() + i * d;
        double width;
        find_widths(&kept, 1, x, d, &width);
        for (std::size_t j = 0; j < d; ++j) known.means[i] += x[j] * theta[j];
        known.variances[i] = width * width;
    }
    return known;
}

// The arm that looks best in one context against the rival whose being better would cost most.
Duel duel(std::span<const KnownArm> arms, std::size_t i, double noise) {
    std::size_t best = 0;
    for (std::size_t a = 1; a < arms.size(); ++a)
        if (arms[a].means[i] > arms[best].means[i]) best = a;
    Duel out{0.0, 0.0};
    double most = -1.0;
    for (std::size_t a = 0; a < arms.size(); ++a) {
        if (a == best) continue;
        const double lead = arms[best].means[i] - arms[a].means[i];
        const double deviation = noise * std::sqrt(arms[a].variances[i] + arms[best].variances[i]);
        if (const Duel one{lead, deviation}; one.regret() > most) most = one.regret(), out = one;
    }
    return out;
}

// The regret to expect from step t to the horizon T with a given p, after n rows: exploring costs the gap, exploiting
// what the rows of its time leave. Rows come at the rate min(1, p / s).
double future(const Prospect& prospect, double p, double t, double n, double T) {
    double cost = 0.0, rows = n;
    if (p > t) {
        const double end = std::min(p, T);
        cost += prospect.gap * (end - t), rows += end - t, t = end;
    }
    if (t >= T) return cost;
    const double span = elementary::log(T / t), step = span / (forecast_nodes - 1);
    double area = 0.0;
    for (int k = 0; k < forecast_nodes; ++k) {  // over log s
        const double s = t * elementary::exp(k * step), exploiting = std::max(0.0, s - p);
        const double loss = interpolate(prospect.losses, (rows + p * k * step) / n) * exploiting;
        area += k == 0 || k == forecast_nodes - 1 ? 0.5 * loss : loss;
    }
    return cost + prospect.gap * p * span + area * step;
}

double best_p(const Prospect& prospect, const AutoSchedule& rule, double n_arms, double t, double n) {
    double best = 0.0, least = std::numeric_limits<double>::infinity();
    for (double p = n_arms; p <= rule.most * rule.horizon; p *= candidate_ratio)
        if (const double cost = future(prospect, p, t, n, rule.horizon); cost < least) least = cost, best = p;
    return best;
}

// All rewards are the same so far: nothing tells the arms apart, and nothing is lost by trying.
bool is_blank(Statistics& sums) {
    double n = 0.0, r = 0.0, rr = 0.0;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm) {
        const auto record = sums.record(arm);
        n += record[0], r += record[1], rr += record[2];
    }
    return n * rr - r * r <= 1e-12 * n * rr;
}

}  // namespace

Prospect look(const AutoSchedule& rule, Statistics& sums, std::span<const double> sample, double t) {
    const std::size_t m = sample.size() / sums.dim(), n_arms = sums.n_arms();
    const double n = rows_of(sums), arms = static_cast<double>(n_arms), d = static_cast<double>(sums.dim());
    Prospect out{0.0, 0.0, std::vector<double>(row_multiples), 0.0};
    t = std::max(t, n);
    if (m == 0 || n_arms < 2 || !(n > 0.0) || t >= rule.horizon) return out;
    if (is_blank(sums)) return out.p = rule.most * rule.horizon, out;
    std::vector<KnownArm> known;
    double left = 0.0;
    for (std::size_t a = 0; a < n_arms; ++a) known.push_back(know(sums, a, sample)), left += known.back().left;
    out.noise = std::sqrt(left / std::max(n - arms * d, 0.25 * n));  // a ridge takes fewer degrees of freedom than K d
    for (std::size_t i = 0; i < m; ++i) {
        const Duel one = duel(known, i, out.noise);
        double best = known[0].means[i], sum = 0.0;
        for (const auto& arm : known) best = std::max(best, arm.means[i]), sum += arm.means[i];
        out.gap += (best - sum / arms + one.loss(1.0)) / static_cast<double>(m);
        double times = 1.0;
        for (auto& loss : out.losses)
            loss += rule.caution * one.loss(times) / static_cast<double>(m), times *= row_multiple;
    }
    out.p = best_p(out, rule, arms, t, n);
    return out;
}

bool AutoSchedule::look_if_due(AutoTunedStatistics& tuned, const double* x, double weight, Word t) const {
    Tuner& tuner = tuned.tuner;
    if (weight < 0.0) tuner.drop(x);
    if (!(weight > 0.0)) return false;
    tuner.keep(x);
    const double n = rows_of(tuned), n_arms = static_cast<double>(tuned.n_arms());
    if (n < std::max(tuner.next(), start * n_arms)) return false;
    tuner.look_at(std::max(n + 1.0, look_growth * n));
    const double before = p(tuned), now = std::max(static_cast<double>(t), n);
    const double wanted = look(*this, tuned, tuner.sample(), now).p;
    // every step may explore up to the next look, but no longer: it may see things differently
    tuner.raise(std::max(before, std::min({wanted, now + tuner.next() - n, most * horizon})));
    return tuner.raised() > before;
}

}  // namespace armlet
