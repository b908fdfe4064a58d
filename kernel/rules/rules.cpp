#include "rules/rules.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "coins/normal.hpp"

namespace armlet {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

Choice play_best(const double* scores, Arms eligible, const Coins& coins) {
    const Best best = best_arm(scores, eligible);
    return {tied_arm(scores, eligible, best, coins.tie), 1.0 / static_cast<double>(best.count), false};
}

void share_among_best(const double* scores, Arms eligible, std::span<double> out) {
    const Best best = best_arm(scores, eligible);
    for (const auto arm : eligible)
        if (scores[arm] == best.score) out[arm] = 1.0 / static_cast<double>(best.count);
}

// The arm that step t is forced to play, if it may be played; otherwise the step is like any other.
std::optional<std::uint32_t> forced_arm(const ForcedSampling& rule, const Model& model, Word t, Arms eligible) {
    const auto arm = rule.turn(t, model.all->n_arms());
    return arm && std::binary_search(eligible.begin(), eligible.end(), *arm) ? arm : std::nullopt;
}

// P(each eligible arm has the highest sample), by its place among the eligible.
std::span<const double> win_chances(const double* means, const double* spreads, Arms eligible, Scratch& scratch) {
    const std::size_t n = eligible.size();
    double *packed = scratch(2, 3 * n), *chances = packed + 2 * n;
    for (std::size_t i = 0; i < n; ++i) packed[i] = means[eligible[i]], packed[n + i] = spreads[eligible[i]];
    win_probabilities({packed, n}, {packed + n, n}, {chances, n});
    return {chances, n};
}

double propensity_of(std::uint32_t arm, std::span<const double> chances, Arms eligible) {
    const auto place = std::lower_bound(eligible.begin(), eligible.end(), arm) - eligible.begin();
    return chances[static_cast<std::size_t>(place)];
}

Schedule in_force(Schedule schedule, const Statistics& all) {
    schedule.blank = !schedule.learn_always && all.is_empty();
    return schedule;
}

// One overload for each rule; what they look at is fresh.
struct Step {
    const Model& model;
    Word t;
    const double* x;
    Arms eligible;
    Scratch& scratch;

    std::size_t width() const { return model.all->width(); }
};

Choice choose(const Schedule& rule, const Step& s, const Coins& coins, Propensities) {
    const Statistics& all = *s.model.all;
    return decide(all.estimates(), in_force(rule, all), s.t, s.x, coins, s.eligible, s.scratch(0, s.width()));
}

Choice choose(const AutoSchedule& rule, const Step& s, const Coins& coins, Propensities wanted) {
    return choose(s.model.tuner->schedule(rule, s.model.all->n_arms()), s, coins, wanted);
}

Choice choose(const Optimism& rule, const Step& s, const Coins& coins, Propensities) {
    double *means = s.scratch(0, s.width()), *scores = s.scratch(1, s.width());
    upper_bounds(rule, *s.model.all, s.x, s.eligible, means, scores);
    return play_best(scores, s.eligible, coins);
}

Choice choose(const Thompson& rule, const Step& s, const Coins& coins, Propensities wanted) {
    const std::size_t n_arms = s.model.all->n_arms();
    double *means = s.scratch(0, s.width()), *spreads = s.scratch(1, n_arms), *z = s.scratch(3, n_arms);
    s.model.all->estimates().scores(s.x, means);
    draw_normals(coins.pick, coins.tie, {z, n_arms});
    if (wanted == Propensities::skipped) {
        samples(rule, *s.model.all, s.t, s.x, s.eligible, means, z, spreads);
        Choice choice = play_best(spreads, s.eligible, coins);
        choice.propensity = unknown;
        return choice;
    }
    deviations(rule, *s.model.all, s.t, s.x, s.eligible, spreads);
    for (const auto arm : s.eligible) z[arm] = means[arm] + spreads[arm] * z[arm];
    Choice choice = play_best(z, s.eligible, coins);
    choice.propensity = propensity_of(choice.arm, win_chances(means, spreads, s.eligible, s.scratch), s.eligible);
    return choice;
}

Choice choose(const ForcedSampling& rule, const Step& s, const Coins& coins, Propensities) {
    if (const auto arm = forced_arm(rule, s.model, s.t, s.eligible)) return {*arm, 1.0, true};
    double* scores = s.scratch(0, s.width());
    kept_scores(rule, *s.model.forced, *s.model.all, s.x, s.eligible, s.scratch(1, s.width()), scores);
    return play_best(scores, s.eligible, coins);
}

void bound_solved(const OptimisticGreedy& rule, const Step& s, double* scores) {
    const Statistics& solved = *s.model.solved;
    leading_bounds(rule, solved, s.x, s.eligible, s.scratch(0, s.width()), s.scratch(2, solved.dim()),
                   s.scratch(3, s.width()), scores);
}

Choice choose(const OptimisticGreedy& rule, const Step& s, const Coins& coins, Propensities) {
    const Schedule schedule = rule.schedule(s.model.all->n_arms());
    double* scores = s.scratch(1, s.width());
    if (!schedule.warming_up(s.t)) bound_solved(rule, s, scores);
    return decide(scores, schedule, s.t, coins, s.eligible);
}

void spread(const Schedule& rule, const Step& s, std::span<double> out) {
    const Statistics& all = *s.model.all;
    probabilities(all.estimates(), in_force(rule, all), s.t, s.x, s.eligible, s.scratch(0, s.width()), out);
}

void spread(const AutoSchedule& rule, const Step& s, std::span<double> out) {
    spread(s.model.tuner->schedule(rule, s.model.all->n_arms()), s, out);
}

void spread(const Optimism& rule, const Step& s, std::span<double> out) {
    double *means = s.scratch(0, s.width()), *scores = s.scratch(1, s.width());
    upper_bounds(rule, *s.model.all, s.x, s.eligible, means, scores);
    share_among_best(scores, s.eligible, out);
}

void spread(const Thompson& rule, const Step& s, std::span<double> out) {
    double *means = s.scratch(0, s.width()), *spreads = s.scratch(1, s.model.all->n_arms());
    s.model.all->estimates().scores(s.x, means);
    deviations(rule, *s.model.all, s.t, s.x, s.eligible, spreads);
    const auto chances = win_chances(means, spreads, s.eligible, s.scratch);
    for (std::size_t i = 0; i < chances.size(); ++i) out[s.eligible[i]] = chances[i];
}

void spread(const ForcedSampling& rule, const Step& s, std::span<double> out) {
    if (const auto arm = forced_arm(rule, s.model, s.t, s.eligible)) return void(out[*arm] = 1.0);
    double* scores = s.scratch(0, s.width());
    kept_scores(rule, *s.model.forced, *s.model.all, s.x, s.eligible, s.scratch(1, s.width()), scores);
    share_among_best(scores, s.eligible, out);
}

void spread(const OptimisticGreedy& rule, const Step& s, std::span<double> out) {
    const Schedule schedule = rule.schedule(s.model.all->n_arms());
    double* scores = s.scratch(1, s.width());
    if (!schedule.warming_up(s.t)) bound_solved(rule, s, scores);
    probabilities(scores, schedule, s.t, s.eligible, out);
}

}  // namespace

std::optional<Schedule> schedule_of(const Rule& rule, const Model& model) {
    if (const auto* fixed = std::get_if<Schedule>(&rule)) return in_force(*fixed, *model.all);
    if (const auto* tuned = std::get_if<AutoSchedule>(&rule))
        return in_force(model.tuner->schedule(*tuned, model.all->n_arms()), *model.all);
    return std::nullopt;
}

void refresh(const Rule& rule, const Model& model, Word t) {
    if (const auto* one = std::get_if<OptimisticGreedy>(&rule)) {
        model.all->let_rows_wait();
        model.solved->keep_variances();
        if (!one->schedule(model.all->n_arms()).warming_up(t)) model.solved->refresh();
        return;
    }
    if (const auto schedule = schedule_of(rule, model); schedule && schedule->warming_up(t)) return;
    if (std::holds_alternative<Optimism>(rule) || std::holds_alternative<Thompson>(rule)) model.all->keep_factors();
    model.all->refresh();
    if (model.forced) model.forced->refresh();
}

Choice decide(const Rule& rule, const Model& model, Word t, const double* x, const Coins& coins, Arms eligible,
              Scratch& scratch, Propensities wanted) {
    refresh(rule, model, t);
    const Step step{model, t, x, eligible, scratch};
    return std::visit([&](const auto& one) { return choose(one, step, coins, wanted); }, rule);
}

void probabilities(const Rule& rule, const Model& model, Word t, const double* x, Arms eligible, Scratch& scratch,
                   std::span<double> out) {
    refresh(rule, model, t);
    std::fill(out.begin(), out.end(), 0.0);
    const Step step{model, t, x, eligible, scratch};
    std::visit([&](const auto& one) { spread(one, step, out); }, rule);
}

bool learns(const Rule& rule, bool explored) {
    if (std::holds_alternative<AutoSchedule>(rule)) return explored;
    const auto* schedule = std::get_if<Schedule>(&rule);
    return !schedule || schedule->learns(explored);
}

void learn(const Rule& rule, const Model& model, const Row& row) {
    if (!learns(rule, row.explored)) return;
    model.all->add(row.arm, row.x, row.reward, row.weight);
    if (model.forced && row.explored) model.forced->add(row.arm, row.x, row.reward, row.weight);
    if (const auto* tuned = std::get_if<AutoSchedule>(&rule))
        model.tuner->learned(*tuned, *model.all, row.x, row.weight, row.t);
    if (model.solved && is_due(std::get<OptimisticGreedy>(rule), *model.solved, *model.all, row.arm))
        model.solved->follow(row.arm, *model.all);
}

void correct_reward(const Rule& rule, const Model& model, const Row& row, double before) {
    if (!learns(rule, row.explored)) return;
    model.all->correct(row.arm, row.x, before, row.reward, row.weight);
    if (model.forced && row.explored) model.forced->correct(row.arm, row.x, before, row.reward, row.weight);
}

Trace run(const Rule& rule, const Model& model, Seed seed, Word start, const double* contexts, const double* rewards,
          std::size_t steps, Propensities wanted) {
    const std::size_t n_arms = model.all->n_arms(), dim = model.all->dim();
    std::vector<std::uint32_t> every(n_arms);
    std::iota(every.begin(), every.end(), 0u);
    Scratch scratch;
    Trace trace;
    trace.arms.reserve(steps), trace.propensities.reserve(steps), trace.explored.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        const Word t = start + i + 1;
        const double* x = contexts + i * dim;
        const Choice choice = decide(rule, model, t, x, toss(seed, t), every, scratch, wanted);
        learn(rule, model, {choice.arm, x, rewards[i * n_arms + choice.arm], 1.0, choice.explored, t});
        trace.arms.push_back(choice.arm);
        trace.propensities.push_back(choice.propensity);
        trace.explored.push_back(choice.explored);
    }
    return trace;
}

}  // namespace armlet
