// Contextual epsilon-greedy by evidence: an arm is explored the more the fewer rows its sums hold, regardless of x.
#pragma once
#include <algorithm>

#include "rules/choice.hpp"

namespace armlet {

// When a step explores and which arm it takes then, as things stand.
struct Exploring {
    std::span<const double> exploration_weights;  // (K,): min(1, exp(1 - n_a / q))
    double q;                                     // rows for each arm that are always explored
    double cap;                                   // explores at most so often by evidence
    double floor;                                 // and so often whatever is known, all eligible arms alike
    // (K,): a q for each arm, if they differ.
    std::span<const double> quotas = {};

    // No arm of q rows has a smaller weight.
    static double least(double q, Word t) { return std::min(1.0, q / static_cast<double>(t)); }
};

// The law of one step over the eligible arms, but for the estimates.
class Law {
  public:
    Law(const Exploring& exploring, Word t, Arms eligible)
        : exploring_(exploring), t_(t), eligible_(eligible), least_(Exploring::least(exploring.q, t)) {
        for (const auto arm : eligible) {
            const double w = weight(arm);
            sum_ += w, lightest_ = std::min(lightest_, w);
        }
        const double by_evidence = std::min(exploring.cap, sum_);
        each_ = exploring.floor > 0.0 ? exploring.floor / static_cast<double>(eligible.size()) : 0.0;
        shared_ = (1.0 - exploring.floor) * by_evidence;
        rate_ = exploring.floor + shared_;
    }

    double rate() const { return rate_; }
    // The probability that the step explores and takes this arm.
    double explored(std::uint32_t arm) const { return share(weight(arm)); }
    double propensity(std::uint32_t arm, std::size_t n_best, bool is_best) const {
        const double chance = explored(arm);
        return is_best ? std::min(1.0, chance + (1.0 - rate_) / static_cast<double>(n_best)) : chance;
    }
    Choice choice(std::uint32_t arm, bool explores, std::size_t n_best, bool is_best) const {
        return {.arm = arm,
                .propensity = propensity(arm, n_best, is_best),
                .explored = explores,
                .exploration_propensity = std::min(1.0, explored(arm) / rate_),
                .exploration_rate = rate_,
                .min_exploration_probability = std::min(1.0, share(lightest_) / rate_),
                .greedy = greedy_at(rate_, is_best)};
    }
    // The first arm at which the running sum of explored() passes the bits' share of the whole.
    std::uint32_t drawn(Word bits) const { return at(fraction(bits)); }
    std::uint32_t at(double share) const {
        double whole = 0.0, running = 0.0;
        for (const auto arm : eligible_) whole += explored(arm);
        const double end = share * whole;
        for (const auto arm : eligible_)
            if ((running += explored(arm)) > end) return arm;
        return eligible_.back();  // the product may round to the whole
    }

  private:
    double share(double weight) const { return each_ + shared_ * (weight / sum_); }
    double weight(std::uint32_t arm) const {
        const auto quotas = exploring_.quotas;
        return std::max(quotas.empty() ? least_ : Exploring::least(quotas[arm], t_),
                        exploring_.exploration_weights[arm]);
    }

    const Exploring& exploring_;
    Word t_;
    Arms eligible_;
    double least_, sum_ = 0.0, lightest_ = std::numeric_limits<double>::infinity(), each_, shared_, rate_;
};

// One step with fresh estimates.
Choice choose_by(const Exploring& exploring, const Statistics& all, const Step& step, const Coins& coins);
void probabilities_by(const Exploring& exploring, const Statistics& all, const Step& step, std::span<double> out);

// Explore with probability min(cap, S), S the sum of w_a = max(min(1, q / t), want_a) over the eligible arms, and then
// arm a with w_a / S; in between the best estimate plays.
struct Evidence {
    using State = Statistics;
    static constexpr const char* works_on = "Statistics";

    double p;  // q times the number of active arms
    double cap, floor;
    bool learn_always;  // from every step, or from explored steps only

    double q(const Statistics& all) const { return p / static_cast<double>(all.n_active()); }
    // Only after refresh(); it looks into the statistics.
    Exploring in_force(const Statistics& all) const { return {all.exploration_weights(), q(all), cap, floor}; }

    void refresh(Statistics& all, Word) const {
        all.refresh();
        refresh_exploration_weights(all);
    }
    void refresh_exploration_weights(Statistics& all) const { all.refresh_exploration_weights(q(all)); }
    Choice choose(const Statistics& all, const Step& step, const Coins& coins) const {
        return choose_by(in_force(all), all, step, coins);
    }
    void probabilities(const Statistics& all, const Step& step, std::span<double> out) const {
        probabilities_by(in_force(all), all, step, out);
    }
    bool learns(bool explored) const { return explored || learn_always; }
    void learn(Statistics& all, const Row& row) const { learn_row(all, row); }
    void correct(Statistics& all, const Row& row, double before) const { correct_row(all, row, before); }
};

// The probability that step t explores, and the arm that it takes then, by a number on [0, 1).
double exploring_rate(const Exploring& exploring, Word t, Arms eligible);
std::uint32_t explored_arm(const Exploring& exploring, Word t, double share, Arms eligible);

// One step, from the scores.
Choice decide(const double* scores, const Exploring& exploring, Word t, const Coins& coins, Arms eligible);

// The same from the estimates; `scratch` holds estimates.width values.
Choice decide(const Estimates& estimates, const Exploring& exploring, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch);

// The same when the best arm is known, and known to be the only one.
Choice decide_known(const Exploring& exploring, Word t, const Coins& coins, Arms eligible, std::uint32_t best);

// The probability of each eligible arm at step t, from the scores; `out` holds a zero for every arm.
void probabilities(const double* scores, const Exploring& exploring, Word t, Arms eligible, std::span<double> out);

}  // namespace armlet
