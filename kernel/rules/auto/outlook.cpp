#include "rules/auto/outlook.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear/elementary.hpp"
#include "linear/widths.hpp"
#include "rules/auto/forecast.hpp"
#include "rules/under_way.hpp"

namespace armlet {

namespace {

constexpr double alike = 0x1p-46;  // of the squares of rewards: all that differ by less are the same
constexpr double finest = 0x1p20;  // shares are whole multiples of its inverse, so that no last bit decides
constexpr double coarse = 0x1p10;  // also p
constexpr double prior = 4.0;      // rows that all arms' noise counts for in that of one

// The arms that may be played, in standard units; without those of which nothing has come back yet, since a look would
// explore them until something has.
struct Known {
    std::vector<std::size_t> arms;
    std::vector<double> counts;            // (K,)
    std::vector<double> means, variances;  // (m, K): z'theta_hat, and how well it is known
    double n = 0.0, noise = 0.0;
    bool is_blank = true;  // all rewards are the same so far: nothing tells the arms apart, nothing is lost by trying
};

// The residual sum of squares of an arm. (diag(penalty) + A) theta = b, so it is sum r^2 - theta'(b + penalty theta).
double left_over(std::span<const double> theta, std::span<const double> b, double shift, double squares) {
    double left = squares - theta[0] * (b[0] + theta[0]);
    for (std::size_t j = 1; j < theta.size(); ++j) left -= theta[j] * (b[j] + shift * theta[j]);
    return std::max(left, 0.0);
}

// Residuals and squares of rewards of every arm, about its estimate and about the mean of all.
struct Fits {
    std::vector<double> left, squares;  // (K,)
};

// Makes variances of what are squared widths. An arm is as noisy as its own rewards say, with some rows of all arms';
// and a direction of which nothing was seen is as uncertain as its rewards are, not more.
void scale_variances(Known& known, const Fits& fits, double rank, double spread) {
    const std::size_t K = known.arms.size(), m = known.variances.size() / K;
    const double common = known.noise * known.noise;
    for (std::size_t a = 0; a < K; ++a) {
        const double n = known.counts[a], freedom = std::max(n - std::min(rank, n), 0.25 * n);
        const double own = (fits.left[a] + prior * common) / (freedom + prior);
        const double most = (std::max(fits.squares[a], 0.0) + prior * spread) / (n + prior);
        for (std::size_t i = 0; i < m; ++i) {
            double& v = known.variances[i * K + a];
            v = std::min(own * v, most);
        }
    }
}

Known know(Statistics& sums, std::span<const double> sample) {
    sums.refresh();
    const Units& units = sums.units();
    const Estimates estimates = sums.estimates();
    const std::size_t d = sums.dim(), size = sums.view_size(), m = sample.size() / d;
    Known known;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm)
        if (sums.is_active(arm) && !is_silent(sums, static_cast<std::uint32_t>(arm))) known.arms.push_back(arm);
    const std::size_t K = known.arms.size();
    if (K < 2) return known;
    known.means.assign(m * K, 0.0), known.variances.resize(m * K);
    std::vector<double> views(m * size), theta(size), b(size), A(packed_size(size)), factor(factor_size(size)),
        none(size);
    for (std::size_t i = 0; i < m; ++i) units.view(sample.data() + i * d, views.data() + i * size);
    double left = 0.0, squares = 0.0, raw = 0.0;
    Fits fits;
    for (std::size_t a = 0; a < K; ++a) {
        const auto record = sums.record(known.arms[a]);
        units.standardise(record.data() + 3 + size, record.data() + 3, A.data(), b.data());
        for (std::size_t j = 0; j < size; ++j) theta[j] = estimates.theta[j * estimates.width + known.arms[a]];
        const double centred = units.centred_squares(record), n = record[0];
        fits.left.push_back(left_over(theta, b, sums.ridge().shift(std::max(n, 1.0)), centred));
        fits.squares.push_back(centred);
        left += fits.left[a], squares += centred, raw += record[2], known.n += n, known.counts.push_back(n);
        // not the ridge that estimates: sqrt(n) of Algorithm 1 is far more than is known
        solve_and_keep(A.data(), 1.0, size, {b.data(), none.data(), 1}, factor.data());
        const double* kept = factor.data();
        for (std::size_t i = 0; i < m; ++i) {
            const double* z = views.data() + i * size;
            double width;
            find_widths(&kept, 1, z, size, &width);
            for (std::size_t j = 0; j < size; ++j) known.means[i * K + a] += z[j] * theta[j];
            known.variances[i * K + a] = width * width;
        }
    }
    const auto rank = static_cast<double>(units.rank());
    const double lost = static_cast<double>(K) * rank;  // at most: a ridge takes fewer
    known.noise = std::sqrt(left / std::max(known.n - lost, 0.25 * known.n));
    known.is_blank = !(squares > alike * raw);
    scale_variances(known, fits, rank, std::max(squares, 0.0) / known.n);
    return known;
}

// The best arm of a context against its most dangerous rival: the one whose being better would cost most.
struct Match {
    std::size_t best = 0, rival = 0;
    Duel duel{0.0, 0.0};
};

// What is known of every arm by the duels of the sample.
struct Stakes {
    std::vector<Match> matches;  // (m,)
    std::vector<double> gaps;    // (K,): what each arm loses against the best, on average
    std::vector<double> doubts;  // (K,): what it may lose that it is not played, or that it is
};

Stakes weigh(const Known& known) {
    const std::size_t K = known.arms.size(), m = known.means.size() / K;
    Stakes out{std::vector<Match>(m), std::vector<double>(K), std::vector<double>(K)};
    for (std::size_t i = 0; i < m; ++i) {
        const double *means = known.means.data() + i * K, *variances = known.variances.data() + i * K;
        Match& match = out.matches[i];
        match.best = static_cast<std::size_t>(std::max_element(means, means + K) - means);
        double most = -1.0;
        for (std::size_t a = 0; a < K; ++a) {
            if (a == match.best) continue;
            const double lead = means[match.best] - means[a];
            const Duel duel{lead, std::sqrt(variances[a] + variances[match.best])};
            const double regret = duel.regret();
            out.gaps[a] += lead / static_cast<double>(m);
            out.doubts[a] += regret, out.doubts[match.best] += regret;
            if (regret > most) most = regret, match.rival = a, match.duel = duel;
        }
    }
    return out;
}

// Rows of an arm are worth the root of what is in doubt about it; a part is shared alike, so that no arm is given up.
std::vector<double> shares_of(const Stakes& stakes, double even) {
    const auto K = static_cast<double>(stakes.doubts.size());
    double total = 0.0;
    for (const double doubt : stakes.doubts) total += std::sqrt(doubt);
    std::vector<double> out;
    for (const double doubt : stakes.doubts) {
        const double own = total > 0.0 ? std::sqrt(doubt) / total : 1.0 / K;
        out.push_back(std::round(finest * ((1.0 - even) * own + even / K)) / finest);
    }
    return out;
}

// How many times faster than all rows those grow that decide: the leaders' and their rivals', by what they stand to
// lose.
double speed_of(const Stakes& stakes, const Known& known, std::span<const double> shares) {
    double now = 0.0, faster = 0.0;
    const auto growth = [&](std::size_t a) { return shares[a] * known.n / std::max(known.counts[a], 1.0); };
    for (const Match& match : stakes.matches) {
        const double loss = match.duel.loss(1.0);
        now += loss, faster += loss * (0.5 * (growth(match.best) + growth(match.rival)));
    }
    return now > 0.0 ? faster / now : 1.0;
}

// Where exploring stands.
struct Stand {
    double t, n, n_arms, horizon, speed;
};

// The regret to expect from now to the horizon with a given p: exploring costs the gap, exploiting what the rows of its
// time leave.
double future(const Outlook& seen, const Stand& now, double p) {
    double cost = 0.0, t = now.t, rows = now.n, rate = 1.0;
    const double full = p * (1.0 + elementary::log(now.n_arms)) - now.n;  // rows that every step explores for
    if (full > 0.0) {
        const double end = std::min(t + full, now.horizon);
        cost += seen.gap * (end - t), rows += end - t, t = end;
    } else {
        rate = std::min(1.0, std::max(p / t, now.n_arms * elementary::exp(1.0 - now.n / p)));
    }
    if (t >= now.horizon) return cost;
    const double first = std::min(t, p / rate), span = elementary::log((first + (now.horizon - t)) / first);
    const double step = span / (forecast_nodes - 1);
    double area = 0.0;
    for (int k = 0; k < forecast_nodes; ++k) {  // over log tau
        const double exploiting = std::max(0.0, first * elementary::exp(k * step) - p);
        const double times = 1.0 + now.speed * ((rows + p * k * step) - now.n) / now.n;
        const double loss = interpolate(seen.losses, times) * exploiting;
        area += k == 0 || k == forecast_nodes - 1 ? 0.5 * loss : loss;
    }
    return cost + seen.gap * p * span + area * step;
}

double best_p(const Outlook& seen, const Stand& now, double most) {
    double best = 0.0, least = std::numeric_limits<double>::infinity();
    for (double p = now.n_arms; p <= most * now.horizon; p *= candidate_ratio)
        if (const double cost = future(seen, now, p); cost < least) least = cost, best = p;
    return best;
}

}  // namespace

Outlook look(const Lookout& how, AutoTunedStatistics& tuned, double t) {
    Outlook out;
    out.losses.resize(row_multiples);
    const std::vector<double> sample = tuned.tuner.sample();
    if (sample.empty()) return out;
    const Known known = know(tuned, sample);
    if (known.arms.size() < 2) return out;
    t = std::max(t, known.n);
    const double horizon = how.steps(t, tuned.life(t));
    if (!(known.n > 0.0) || t >= horizon) return out;
    // an arm that rests has a share of middle size, for when it comes back
    out.shares.assign(tuned.n_arms(), 1.0 / static_cast<double>(known.arms.size()));
    if (known.is_blank) return out.is_blank = true, out.p = how.most * horizon, out;
    const Stakes stakes = weigh(known);
    const std::vector<double> shares = shares_of(stakes, how.even);
    const auto m = static_cast<double>(stakes.matches.size());
    out.noise = known.noise;
    for (const Match& match : stakes.matches) {
        out.gap += match.duel.loss(1.0) / m;
        double times = 1.0;
        for (auto& loss : out.losses) loss += how.caution * match.duel.loss(times) / m, times *= row_multiple;
    }
    for (std::size_t a = 0; a < shares.size(); ++a)
        out.gap += shares[a] * stakes.gaps[a], out.shares[known.arms[a]] = shares[a];
    const Stand now{t, known.n, static_cast<double>(known.arms.size()), horizon, speed_of(stakes, known, shares)};
    out.p = best_p(out, now, how.most);
    return out;
}

double soon(double wanted, double rows, double n_arms, double t) {
    const double late = wanted > 0.0 ? std::max(0.0, elementary::log(t / wanted)) : 0.0;
    return std::floor(coarse * (rows / (1.0 + elementary::log(n_arms) + late))) / coarse;
}

}  // namespace armlet
