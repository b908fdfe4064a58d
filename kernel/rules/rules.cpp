#include "rules/rules.hpp"

#include <algorithm>
#include <numeric>

namespace armlet {

std::optional<Schedule> schedule_of(const Rule& rule, const Model& model) {
    return with_state(rule, model, []<typename R>(const R& one, const auto& state) -> std::optional<Schedule> {
        if constexpr (GoesByTheClock<R>) return one.in_force(state);
        return std::nullopt;
    });
}

std::optional<Exploring> exploring_of(const Rule& rule, const Model& model) {
    return with_state(rule, model, []<typename R>(const R& one, auto& state) -> std::optional<Exploring> {
        if constexpr (GoesByEvidence<R>) {
            one.refresh_exploration_weights(state);
            return one.in_force(state);
        }
        return std::nullopt;
    });
}

// As of this step; where time is told with decisions, the teller has looked already.
void look(const Model& model, Word t) {
    Statistics& all = model.sums();
    if (all.discount().is_on() && !all.discount().is_by_time()) all.look({t});
}

Choice decide(const Rule& rule, const Model& model, Word t, const double* x, const Coins& coins, Arms eligible,
              Scratch& scratch, Propensities wanted) {
    return with_state(rule, model, [&](const auto& one, auto& state) {
        const Step step{t, x, eligible, scratch, wanted};
        look(model, t);
        one.refresh(state, t);
        if constexpr (requires { one.refresh_bounds(state, step, coins); }) one.refresh_bounds(state, step, coins);
        return one.choose(state, step, coins);
    });
}

void probabilities(const Rule& rule, const Model& model, Word t, const double* x, Arms eligible, Scratch& scratch,
                   std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    with_state(rule, model, [&](const auto& one, auto& state) {
        look(model, t);
        one.refresh(state, t);
        if constexpr (requires { one.refresh_bounds(state); }) one.refresh_bounds(state);
        one.probabilities(state, {t, x, eligible, scratch}, out);
    });
}

bool learns(const Rule& rule, bool explored) {
    return std::visit([=](const auto& one) { return one.learns(explored); }, rule);
}

void learn(const Rule& rule, const Model& model, const Row& row) {
    with_state(rule, model, [&](const auto& one, auto& state) {
        if (one.learns(row.explored)) one.learn(state, row);
    });
}

void correct_reward(const Rule& rule, const Model& model, const Row& row, double before) {
    with_state(rule, model, [&](const auto& one, auto& state) {
        if (one.learns(row.explored)) one.correct(state, row, before);
    });
}

Trace run(const Rule& rule, const Model& model, Seed seed, Word start, const double* contexts, const double* rewards,
          std::size_t steps, Propensities wanted) {
    const std::size_t n_arms = model.sums().n_arms(), dim = model.sums().dim();
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
