#include "rules/log_bonus.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "linear/elementary.hpp"
#include "rules/best_first.hpp"
#include "rules/under_way.hpp"

namespace armlet {

namespace {

// A little more than log(v), v >= 1, from its bits: log2(1 + f) <= f + 0.0861 for 0 <= f < 1.
double log_above(double v) {
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(v) - std::bit_cast<std::uint64_t>(1.0));
    return std::min(v - 1.0, 0.6931471806 * (static_cast<double>(bits) * 0x1p-52 + 0.0861));
}

constexpr std::size_t worth_asking = 64;  // values, below which a width is sooner finished than given up

constexpr double none = -std::numeric_limits<double>::infinity();

// The arm that leads regardless of its width, or the number of arms: its estimate is above all other bounds.
std::size_t sure_leader(const double* means, const double* bounds, Arms eligible, std::size_t n_arms) {
    double first = none, second = none;  // of the bounds
    std::size_t leader = n_arms;
    for (const auto arm : eligible) {
        if (bounds[arm] > first)
            second = first, first = bounds[arm], leader = arm;
        else
            second = std::max(second, bounds[arm]);
    }
    return leader < n_arms && means[leader] > second ? leader : n_arms;
}

// How many steps tell something by now: of rows that fade no more than are left of them.
double time_of(const Statistics& all, Word t) {
    const double time = static_cast<double>(t);
    if (!all.discount().is_on()) return time;
    double rows = 0.0, waits = 0.0;
    for (std::size_t arm = 0; arm < all.n_arms(); ++arm) rows += all.count(arm), waits += all.under_way()[arm];
    return std::min(time, rows + waits + 1.0);
}

// What is added to the estimates of a step, exactly or from above.
class Bonus {
  public:
    // `shrink` is null where nothing is under way.
    Bonus(const LogBonus& rule, const LazyStatistics& all, Word t, const double* means, const double* shrink)
        : width_scale_(rule.width_scale), means_(means), shrink_(shrink), sigma_(all.deviations()) {
        const double ways = static_cast<double>(all.n_active()) * static_cast<double>(all.units().rank());
        const double time = time_of(all, t), root = std::sqrt(all.ridge().value);
        even_ = time / ways;
        if (!all.units().is_free()) bias_ = root * (rule.proved ? rule.theta_norm : all.typical_norm());
        if (!rule.proved) return;
        noise_scale_ = rule.noise_scale, log_determinants_ = all.log_determinants();
        const double chances = static_cast<double>(all.n_arms()) * (time * (time + 1.0));
        log_chances_ = 2.0 * elementary::log(chances);
        none_ = static_cast<double>(all.view_size()) * elementary::log(all.ridge().value);
    }

    double score(std::uint32_t arm, double width) const {
        if (!log_determinants_.empty()) return means_[arm] + radius(arm) * width;
        if (shrink_) width *= shrink_[arm];
        const double log = elementary::log(1.0 + even_ * (width * width));
        return means_[arm] + width_scale_ * sigma_[arm] * width * std::sqrt(2.0 * log) + bias_ * width;
    }
    // No lower than the score of any width up to this one.
    double bound(std::uint32_t arm, double widest) const {
        if (!(widest < beyond_any)) return std::numeric_limits<double>::infinity();
        if (!log_determinants_.empty()) return means_[arm] + (1.0 + 1e-9) * radius(arm) * widest;
        if (shrink_) widest *= shrink_[arm];
        const double log = log_above(1.0 + even_ * (widest * widest));
        const double bonus = width_scale_ * sigma_[arm] * widest * std::sqrt(2.0 * log) + bias_ * widest;
        return means_[arm] + (1.0 + 1e-9) * bonus;
    }

  private:
    double width_scale_;
    const double *means_, *shrink_;
    // |theta_hat - theta| in the norm of V exceeds it with probability 1 / (K t (t + 1)) at most, at any time.
    double radius(std::uint32_t arm) const {
        const double volume = std::max(log_determinants_[arm] - none_, 0.0);
        return noise_scale_ * std::sqrt(volume + log_chances_) + bias_;
    }

    std::span<const double> sigma_;
    double even_;         // of the rows, that each value of each arm would have
    double bias_ = 0.0;   // sqrt(ridge) |theta|
    double noise_scale_;  // and what follows: of proved bounds
    std::span<const double> log_determinants_;
    double log_chances_, none_;
};

// The highest of the scores, where these are bounds so far.
void settle_bonuses(const LazyStatistics& all, const double* z, Arms eligible, const Bonus& bonus, double* scores) {
    settle_scores(
        all, z, eligible, scores, [&](std::uint32_t arm) { return scores[arm]; },
        [&](std::uint32_t) { return all.view_size() >= worth_asking; },
        [&](std::uint32_t arm, double width) { return bonus.score(arm, width); }, 1);
}

// The arms among these that may have a score as high as the best; the others' become minus infinity.
void keep_rivals(std::vector<std::uint32_t>& arms, double best, double* scores) {
    std::erase_if(arms, [=](std::uint32_t arm) {
        const bool is_out = scores[arm] < best;
        if (is_out) scores[arm] = none;
        return is_out;
    });
}

// The same: the width of the arm with the highest bound first, then closer bounds of those that may be as high as it.
void settle_coarsely(const LazyStatistics& all, const double* z, const Step& step, const Bonus& bonus, double* scores) {
    thread_local std::vector<std::uint32_t> rivals;
    const std::uint32_t leader = best_arm(scores, step.eligible).first;
    double width, *widest = step.scratch(2, all.width());
    all.widths({&leader, 1}, z, &width);
    const double best = bonus.score(leader, width);
    rivals.assign(step.eligible.begin(), step.eligible.end());
    std::erase(rivals, leader);
    keep_rivals(rivals, best, scores);
    all.width_bounds(rivals, z, widest);
    for (const auto arm : rivals) scores[arm] = std::min(scores[arm], bonus.bound(arm, widest[arm]));
    keep_rivals(rivals, best, scores);
    settle_bonuses(all, z, rivals, bonus, scores);
    scores[leader] = best;
}

// How many arms share the lead of one kind of step, and whether this arm is one of them.
struct Lead {
    std::size_t count;
    bool has;
};

Lead lead_of(const double* scores, const Best& best, std::uint32_t arm) {
    return {best.count, scores[arm] == best.score};
}

// The probability of an arm over the coin, `share` of the steps that do not explore being optimistic.
double over_both(const Law& law, std::uint32_t arm, Lead greedy, Lead optimistic, double share) {
    if (greedy.has == optimistic.has && greedy.count == optimistic.count)
        return law.propensity(arm, greedy.count, greedy.has);
    const double rest = 1.0 - law.rate();
    double chance = law.explored(arm);
    if (greedy.has) chance += rest * (1.0 - share) / static_cast<double>(greedy.count);
    if (optimistic.has) chance += rest * share / static_cast<double>(optimistic.count);
    return std::min(1.0, chance);
}

}  // namespace

const double* LogBonus::upper_bounds(const LazyStatistics& all, const Step& step) const {
    double *means = step.scratch(0, all.width()), *scores = step.scratch(1, all.width());
    const double* z = view(all, step);
    const Extent extent = extent_of(all, z);
    all.estimates().scores(z, means);
    const double* shrink = proved
                               ? nullptr
                               : count_to_come(
                                     all, step.eligible, 0.0, [&](std::uint32_t arm) { return all.deviations()[arm]; },
                                     means, step.scratch(3, all.width()));
    const Bonus bonus(*this, all, step.t, means, shrink);
    for (const auto arm : step.eligible) scores[arm] = bonus.bound(arm, all.widest(arm, extent));
    if (const std::size_t leader = sure_leader(means, scores, step.eligible, all.n_arms()); leader < all.n_arms()) {
        for (const auto arm : step.eligible) scores[arm] = arm == leader ? means[arm] : none;
        return scores;
    }
    if (all.keeps_coarse())
        settle_coarsely(all, z, step, bonus, scores);
    else
        settle_bonuses(all, z, step.eligible, bonus, scores);
    return scores;
}

const double* LogBonus::greedy_scores(const LazyStatistics& all, const Step& step) const {
    double* out = step.scratch(1, all.width());
    all.estimates().scores(view(all, step), out);
    if (!proved && all.under_way().any()) skip_silent(all, step.eligible, out);
    return out;
}

bool LogBonus::may_look_up(const LazyStatistics& all, const Step& step, const Coins& coins) const {
    if (step.wanted == Propensities::exact || share >= 1.0) return true;
    const double rate = Law(exploring(all), step.t, step.eligible).rate();
    return coins.coin >= rate && coins.coin < rate + (1.0 - rate) * share;
}

Choice LogBonus::choose(const LazyStatistics& all, const Step& step, const Coins& coins) const {
    const Exploring when = exploring(all);
    const Law law(when, step.t, step.eligible);
    const bool explores = coins.coin < law.rate();
    const bool optimistic = !explores && coins.coin < law.rate() + (1.0 - law.rate()) * share;
    const bool looks_up = optimistic || share >= 1.0;
    const double* scores = this->scores(all, step, looks_up);
    const Best best = best_arm(scores, step.eligible);
    const auto arm = explores ? law.drawn(coins.pick) : tied_arm(scores, step.eligible, best, coins.tie);
    const Lead own = lead_of(scores, best, arm);
    Choice choice = law.choice(arm, explores, own.count, own.has);
    choice.optimistic = optimistic;
    if (!has_two_kinds(law)) return choice;
    if (step.wanted != Propensities::exact) return choice.marginal = false, choice;
    const double* others = this->scores(all, step, !looks_up);
    const Lead other = lead_of(others, best_arm(others, step.eligible), arm);
    choice.propensity = over_both(law, arm, looks_up ? other : own, looks_up ? own : other, share);
    choice.greedy = greedy_at(law.rate(), own.has || other.has);
    return choice;
}

void LogBonus::probabilities(const LazyStatistics& all, const Step& step, std::span<double> out) const {
    const Exploring when = exploring(all);
    if (share >= 1.0) return armlet::probabilities(upper_bounds(all, step), when, step.t, step.eligible, out);
    const Law law(when, step.t, step.eligible);
    const double* scores = greedy_scores(all, step);
    const Best greedy = best_arm(scores, step.eligible);
    for (const auto arm : step.eligible) out[arm] = scores[arm] == greedy.score;  // room for what is needed below
    if (has_two_kinds(law)) scores = upper_bounds(all, step);
    const Best best = best_arm(scores, step.eligible);
    for (const auto arm : step.eligible)
        out[arm] = over_both(law, arm, {greedy.count, out[arm] == 1.0}, lead_of(scores, best, arm), share);
}

}  // namespace armlet
