// What is solved from the sums of every arm, when it is asked for: estimates, and what widths are made of.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "linear/coarse.hpp"
#include "linear/simd.hpp"
#include "state/outcomes/outcome_sums.hpp"
#include "state/ridge.hpp"
#include "state/sums.hpp"
#include "state/units.hpp"

namespace armlet {

// theta_hat of all arms, as it scores views of contexts: the arms of one feature side by side: (dim, width), width a
// multiple of the vector.
struct Estimates {
    const double* theta;
    std::size_t dim, width;

    void scores(const double* x, double* out) const { score(theta, x, dim, width, out); }
};

// A theta (n_arms, dim) as `Estimates` have it: the arms of a feature side by side.
inline std::vector<double> by_feature(const double* theta, std::size_t n_arms, std::size_t dim) {
    const std::size_t width = padded(n_arms);
    std::vector<double> out(dim * width);
    for (std::size_t arm = 0; arm < n_arms; ++arm)
        for (std::size_t j = 0; j < dim; ++j) out[j * width + arm] = theta[arm * dim + j];
    return out;
}

// How the noise of an arm is estimated: from all arms alike; or no less than their mean, and more if its own residuals
// say so; or its own, shrunk to what arms have in common as far as they do.
enum class NoiseRule { pool, max, shrunk };

// How large a context is where it is looked at: its first value and the length of the others, or 0 and its length.
struct Extent {
    double first, rest;
};

// A function of the sums, but for `Floor`, on which no decision depends.
class Solved {
  public:
    explicit Solved(Ridge ridge) : ridge_(ridge) {}

    Ridge ridge() const { return ridge_; }
    // Every arm is to be solved again, those without rows too.
    void set_ridge(Ridge ridge) {
        ridge_ = ridge;
        for (std::size_t arm = 0; arm < n_arms_; ++arm) mark(arm), doubt(arm);
    }

    // ---- what is to be solved
    void mark(std::size_t arm) {
        if (is_stale_[arm]) return;
        is_stale_[arm] = 1;
        stale_.push_back(static_cast<std::uint32_t>(arm));
    }
    // Other arms, or other sums of all arms.
    void mark_all(const Sums& sums);
    // Rows were taken back, or sums came from elsewhere: what was proved of the arm is void.
    void doubt(std::size_t arm) {
        if (keeps_factors()) floors_[arm] = {.share = floors_[arm].share, .searched = floors_[arm].searched};
    }
    std::span<const std::uint32_t> stale() const { return stale_; }
    bool is_marked(std::size_t arm) const { return is_stale_[arm] != 0; }
    // Whether there is anything to do for solve().
    bool is_stale() const { return !stale_.empty() || is_noise_stale_; }
    // The arms that have rows are seen in other units: their systems are others, and what was proved of them is void.
    void mark_seen(const Sums& sums);
    // From now on sums are multiplied by `fade`, which was `before` that: every arm that has rows is to be solved
    // again. What was proved holds for as much of it: V is at least fade / before times what it was.
    void set_fade(double fade, double before, const Sums& sums);
    // The same, of sums that were divided by as much.
    void keep_fade(double fade) { fade_ = fade; }
    // Solves the marked arms.
    void solve(const Sums& sums, const Units& units, const OutcomeSums& outcomes);
    // Solves one of them; solve() is still to come.
    void solve_one(std::size_t arm, const Sums& sums, const Units& units, const OutcomeSums& outcomes);

    // ---- several outcomes: all that is found is of sum_j w_j o_j, by weights that may be others at any time
    void open_outcomes(std::size_t n);
    // `offsets` is added to what is expected of each arm, in free units; empty if nothing is.
    void weigh(std::span<const double> weights, std::span<const double> offsets);
    // The same of fits, and of noise: before anybody looks at what is below. Nothing is to be done for one reward.
    void weigh_fits();
    void weigh_noise();
    // How often estimates and noise may have become others.
    std::int64_t changes() const { return solves_ + weighings_; }
    // What was found of each outcome, (K, outcome_value_size()): estimates (n, dim), then sums of products centred,
    // of residuals, and raw.
    std::size_t outcome_value_size() const { return n_outcomes_ * dim_ + 3 * packed_size(n_outcomes_); }
    std::vector<double> outcome_values() const;
    void restore_outcomes(std::span<const double> values);

    // ---- what is kept
    void keep_factors();
    bool keeps_factors() const { return !log_determinants_.empty(); }
    // Rounded factors as well, from which widths are bounded.
    void keep_coarse();
    // V^-1 (A2 + penalties) V^-1 as well, and widths by it: the variance of an estimate whose rows are weighted.
    void keep_spreads();
    bool keeps_spreads() const { return !spreads_.empty(); }
    // Residuals count what an estimate is penalised for, and so take no freedom: where slopes are as the ridge has it,
    // their mean is the noise.
    void keep_penalties() { is_penalised_ = true; }

    // ---- what was found, while no arm is marked
    std::size_t width() const { return padded(n_arms_); }
    Estimates estimates() const { return {theta_.data(), dim_, width()}; }
    void widths(std::span<const std::uint32_t> arms, const double* x, double* out) const;
    const double* factor(std::size_t arm) const { return factors_.data() + arm * factor_size(dim_); }
    // With the constant solved, the other values are x - x_0 c for a c of length `lean`.
    double widest(std::size_t arm, Extent x) const {
        const Floor& floor = floors_[arm];
        const double others = (x.rest + x.first * floor.lean) * floor.residual_bound;
        if (x.first == 0.0) return others;
        const double own = x.first * floor.first;
        return (1.0 + 1e-9) * std::sqrt(own * own + others * others);
    }
    double residual_bound(std::size_t arm) const { return floors_[arm].residual_bound; }
    bool keeps_coarse() const { return coarse_.is_open(); }
    void width_bounds(std::span<const std::uint32_t> arms, const double* x, double* out) const {
        coarse_.bounds(arms, factors_.data(), x, out);
    }
    double noise() const { return noise_; }
    double typical_noise() const { return typical_noise_; }
    // What the noise of each arm is taken to be; `out` has a place for every arm.
    void deviations(NoiseRule kind, std::vector<double>& out) const;
    // n at the arm's last solve.
    double n(std::size_t arm) const { return fits_[arm].n; }
    // (K, 3): n, the squared residuals, and the freedom that they have, of every arm.
    std::vector<double> fits() const;
    // What rows have told about the arm since, as they are gained: a sum of squared widths.
    double gained(std::size_t arm) const { return fits_[arm].gained; }
    void gain(std::size_t arm, double square) { fits_[arm].gained += square; }
    // The root of the mean squared reward over that of the mean squared length of contexts: how large an estimate may
    // be.
    double typical_norm() const;
    // How often anything was solved.
    std::int64_t solves() const { return solves_; }
    std::span<const double> log_determinants() const { return log_determinants_; }

    // ---- what was found, for a state that keeps it, since it was solved for fewer rows than there are
    // (K, value_size()), with factors kept.
    std::size_t value_size() const { return n_facts + dim_ + factor_size(dim_); }
    std::vector<double> values() const;
    void restore(std::span<const double> values, const Units& units);
    static constexpr std::size_t n_facts = 7;  // what is kept of an arm before its estimate and its factor

    std::size_t bytes() const;

  private:
    // What is proved about the smallest eigenvalue of V_a, in free units of what its constant leaves (the Schur
    // complement): contexts for which an arm is played lie on one side, where constant and features go together. Rows
    // only raise it; rows taken back, sums from elsewhere or other units void the proof. No decision depends on it,
    // only how soon it is found.
    struct Floor {
        double value = 0.0;     // at most the eigenvalue; 0 if nothing is proved
        double checked = 0.0;   // n at the last proof
        double share = 0.0;     // value / n then, even if it is void: a good guess
        double searched = 0.0;  // n when it was last looked for from above
        double residual_bound = 0.0;
        double first = 0.0, lean = 0.0;  // of the constant: the width of 1, and by how much the other values then move
    };

    // How well an arm's estimate fits its rows.
    struct Fit {
        double n = 0.0, squares = 0.0, residual = 0.0;  // sums of weights, of squared rewards and squared residuals
        double raw = 0.0;                               // squared rewards about the origin
        double trace = 0.0;                             // squared lengths of contexts, in units as given
        double gained = 0.0;                            // since it was solved
    };

    // What is solved for an arm: (shift I + A) theta = b, where `extra` is in A already.
    struct System {
        const double *A, *b;  // b of each outcome, one after the other
        double shift;
        double extra;       // what the first value is penalised beyond `shift`
        bool has_constant;  // as its first value
        double n, squares, raw;
        const double* products = nullptr;  // of outcomes: centred, then raw
        const double* A2 = nullptr;        // without penalties
    };

    std::size_t n_sides() const { return std::max<std::size_t>(n_outcomes_, 1); }
    // Where the estimates of an arm are solved to: its own, or those of its outcomes.
    Sides sides(std::size_t arm, const double* b) {
        double* theta = n_outcomes_ ? thetas_.data() + arm : theta_.data() + arm;
        return {b, theta, width(), n_sides(), dim_ * width()};
    }
    void combine(std::size_t arm);
    void combine_all();
    void measure_products(const System& system, std::size_t arm);
    void allocate_outcomes();
    void allocate_factors();
    void mark_each();
    double freedom(double n) const;
    System system_of(const Sums& sums, const Units& units, const OutcomeSums& outcomes, std::size_t arm) const;
    void solve_arm(const System& system, std::size_t arm);
    void copy_solved(std::size_t from, std::size_t arm);
    void solve_system(std::size_t arm, const double* A, const double* b, double shift);
    void solve_as_unseen(const System& system, std::size_t arm);
    void raise_floor(const System& system, std::size_t arm);
    void take_coarse(const System& system, std::size_t arm);
    void take_spread(const System& system, std::size_t arm);
    double spread_width(std::size_t arm, const double* x) const;
    void prove_floor(const System& system, Floor& floor) const;
    bool exceeds(const System& system, double value) const;
    void measure_fit(const System& system, std::size_t arm);
    void shrink_deviations(double pooled, std::vector<double>& out) const;
    double measured_noise() const;
    double measured_typical_noise() const;

    std::size_t n_arms_ = 0, dim_ = 0;
    std::size_t rank_ = 0;  // of the values of a view, those that are not zero regardless of x
    Ridge ridge_;
    std::vector<double> theta_;
    std::vector<std::uint32_t> stale_;  // arms to solve before the next score
    std::vector<std::uint8_t> is_stale_;
    std::vector<double> factors_, log_determinants_;  // empty unless kept
    CoarseFactors coarse_;                            // also
    std::vector<double> spreads_;                     // (n_arms, packed); also
    double fade_ = 1.0;                               // what sums are multiplied by
    std::vector<Floor> floors_;                       // empty unless factors are kept
    std::vector<Fit> fits_;                           // also
    double noise_ = 1.0, typical_noise_ = 1.0;        // also
    bool is_noise_stale_ = false;                     // some arm was solved since
    bool is_penalised_ = false;
    std::int64_t solves_ = 0, weighings_ = 0;
    std::size_t n_outcomes_ = 0;    // 0: rows have one reward
    std::vector<double> weights_;   // (n_outcomes)
    std::vector<double> offsets_;   // (K,), or empty
    std::vector<double> thetas_;    // (n_outcomes, dim, width)
    std::vector<double> products_;  // (3, pairs, width): centred, of residuals, raw
    bool is_fit_unweighed_ = false, is_noise_unweighed_ = false;
};

}  // namespace armlet
