#include "rules/evidence.hpp"

#include "rules/under_way.hpp"

namespace armlet {

namespace {

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

// What the best arm of a step that does not explore has the highest of.
const double* greedy_scores(const Statistics& all, const Step& step) {
    double* scores = step.scratch(0, all.width());
    all.estimates().scores(view(all, step), scores);
    if (all.under_way().any()) skip_silent(all, step.eligible, scores);
    return scores;
}

}  // namespace

double exploring_rate(const Exploring& exploring, Word t, Arms eligible) { return Law(exploring, t, eligible).rate(); }

std::uint32_t explored_arm(const Exploring& exploring, Word t, double share, Arms eligible) {
    return Law(exploring, t, eligible).at(share);
}

Choice decide(const double* scores, const Exploring& exploring, Word t, const Coins& coins, Arms eligible) {
    const Law law(exploring, t, eligible);
    const Best best = best_arm(scores, eligible);
    const bool explores = coins.coin < law.rate();
    const auto arm = explores ? law.drawn(coins.pick) : tied_arm(scores, eligible, best, coins.tie);
    return law.choice(arm, explores, best.count, scores[arm] == best.score);
}

Choice decide(const Estimates& estimates, const Exploring& exploring, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch) {
    estimates.scores(x, scratch);
    return decide(scratch, exploring, t, coins, eligible);
}

Choice decide_known(const Exploring& exploring, Word t, const Coins& coins, Arms eligible, std::uint32_t best) {
    const Law law(exploring, t, eligible);
    const bool explores = coins.coin < law.rate();
    const auto arm = explores ? law.drawn(coins.pick) : best;
    return law.choice(arm, explores, 1, arm == best);
}

void probabilities(const double* scores, const Exploring& exploring, Word t, Arms eligible, std::span<double> out) {
    const Law law(exploring, t, eligible);
    const Best best = best_arm(scores, eligible);
    for (const auto arm : eligible) out[arm] = law.propensity(arm, best.count, scores[arm] == best.score);
}

Choice choose_by(const Exploring& exploring, const Statistics& all, const Step& step, const Coins& coins) {
    return decide(greedy_scores(all, step), exploring, step.t, coins, step.eligible);
}

void probabilities_by(const Exploring& exploring, const Statistics& all, const Step& step, std::span<double> out) {
    probabilities(greedy_scores(all, step), exploring, step.t, step.eligible, out);
}

}  // namespace armlet
