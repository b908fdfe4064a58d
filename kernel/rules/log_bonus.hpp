// Optimism by a coin, with a bonus that grows with the logarithm of time, and exploring by evidence.
#pragma once
#include "rules/evidence.hpp"
#include "state/lazy_statistics.hpp"

namespace armlet {

// Explore what lacks rows; else, on a share of the steps, play the highest
// z'theta_a + c sigma_a w_a sqrt(2 log(1 + t w_a^2 / (K D))), w_a the width of arm a at z and D the values of z that
// vary; on the others the highest estimate. One coin decides, and nobody without the seed can tell it beforehand:
// explore below e, be optimistic below e + (1 - e) share, e the probability that the step explores.
//
// A step looks for the candidate that it plays, or for the highest estimate if it explores. Its propensity is as if
// every step were of its kind, unless the one over the coin is wanted: then it looks for both.
//
// With m_a decisions of arm a under way, exploring counts n_a + m_a rows and w_a^2 is (n_a + 1) / (n_a + 1 + e_a) of
// what it was, e_a the rows that they still stand for. An arm of which nothing has come back (n_a = 0) has no estimate:
// the others' highest estimate plays, if there is one, and under optimism its own lies sigma_a e_a / (e_a + 1) below
// the mean of all rewards, or below the highest estimate of the others where that is lower.
//
// In units as given the ridge pulls estimates towards zero, which is no mean of anything: w_a sqrt(ridge) |theta| is
// added, |theta| as large as rewards over contexts.
//
// Proved bounds are z'theta_a + w_a (sigma sqrt(log det(V_a / ridge) + 2 log(K t (t + 1))) + sqrt(ridge) |theta|),
// and nothing that is under way counts.
struct LogBonus {
    using State = LazyStatistics;
    static constexpr const char* works_on = "LazyStatistics statistics";
    static constexpr bool needs_widths = true;

    double p;            // of exploring by evidence; 0: a tenth of the active arms
    double share;        // of the steps that are optimistic
    double width_scale;  // c
    NoiseRule noise;     // sigma_a
    double cap;          // on the rate of exploring by evidence
    double floor;        // a share of all steps that explores whatever is known
    bool proved;         // whether bounds hold whatever happens: radius times w_a, of the two that follow
    double noise_scale;  // sigma: rewards are sub-gaussian with it
    double theta_norm;   // no estimate's target is longer

    double q(const LazyStatistics& all) const { return p > 0.0 ? p / static_cast<double>(all.n_active()) : 0.1; }
    // Only after refresh(); it looks into the statistics.
    Exploring exploring(const LazyStatistics& all) const { return {all.exploration_weights(), q(all), cap, floor}; }

    void refresh(LazyStatistics& all, Word) const {
        all.refresh();
        all.refresh_exploration_weights(q(all));
    }
    // Before a step that may look for upper bounds: under other weights of outcomes noise is another at every step.
    void refresh_bounds(LazyStatistics& all) const { all.refresh_deviations(noise); }
    void refresh_bounds(LazyStatistics& all, const Step& step, const Coins& coins) const {
        if (all.n_outcomes() == 0 || may_look_up(all, step, coins)) refresh_bounds(all);
    }
    Choice choose(const LazyStatistics& all, const Step& step, const Coins& coins) const;
    void probabilities(const LazyStatistics& all, const Step& step, std::span<double> out) const;
    bool learns(bool) const { return true; }
    void learn(LazyStatistics& all, const Row& row) const { learn_row(all, row); }
    void correct(LazyStatistics& all, const Row& row, double before) const { correct_row(all, row, before); }

    // The upper bound of each eligible arm that can have the highest, minus infinity for the rest; of an arm that leads
    // with any width, its estimate.
    const double* upper_bounds(const LazyStatistics& all, const Step& step) const;

  private:
    bool may_look_up(const LazyStatistics& all, const Step& step, const Coins& coins) const;
    // What a greedy step plays the highest of.
    const double* greedy_scores(const LazyStatistics& all, const Step& step) const;
    // Of a step of this kind.
    const double* scores(const LazyStatistics& all, const Step& step, bool optimistic) const {
        return optimistic ? upper_bounds(all, step) : greedy_scores(all, step);
    }
    // Whether both kinds of steps are possible, so that two arms may be.
    bool has_two_kinds(const Law& law) const { return share < 1.0 && law.rate() < 1.0; }
};

}  // namespace armlet
