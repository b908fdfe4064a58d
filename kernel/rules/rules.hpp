// The list of compiled rules, every one behind the same few functions, and the loop that plays any of them.
#pragma once
#include <concepts>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "rules/auto/auto_evidence.hpp"
#include "rules/auto/auto_schedule.hpp"
#include "rules/choice.hpp"
#include "rules/constant_rate.hpp"
#include "rules/evidence.hpp"
#include "rules/inverse_gaps.hpp"
#include "rules/log_bonus.hpp"
#include "rules/optimism.hpp"
#include "rules/schedule.hpp"
#include "rules/thompson.hpp"
#include "state/model.hpp"

namespace armlet {

// All that is derived from the list: which types are rules, what they are called, bound, read and played as.
using Rule = std::variant<Schedule, Optimism, Thompson, AutoSchedule, Evidence, AutoEvidence, LogBonus, ConstantRate,
                          InverseGaps>;

// What a rule is. `choose` and `probabilities` find the state refreshed and change nothing; `out` is full of zeros.
template <typename R>
concept IsRule = requires(const R& rule, typename R::State& state, const typename R::State& fresh, const Step& step,
                          const Coins& coins, std::span<double> out, const Row& row, Word t, double before) {
    { R::works_on } -> std::convertible_to<const char*>;
    { rule.refresh(state, t) } -> std::same_as<void>;
    { rule.choose(fresh, step, coins) } -> std::same_as<Choice>;
    { rule.probabilities(fresh, step, out) } -> std::same_as<void>;
    { rule.learns(true) } -> std::same_as<bool>;
    { rule.learn(state, row) } -> std::same_as<void>;
    { rule.correct(state, row, before) } -> std::same_as<void>;
};

// A rule that explores by the clock alone, and else plays the best estimate: it can be simulated in jumps.
template <typename R>
concept GoesByTheClock = requires(const R& rule, const typename R::State& state) {
    { rule.in_force(state) } -> std::same_as<Schedule>;
};

// A rule that explores by the rows of each arm alone, and else plays the best estimate: also.
template <typename R>
concept GoesByEvidence = requires(const R& rule, const typename R::State& state) {
    { rule.in_force(state) } -> std::same_as<Exploring>;
};

// Calls f(rule, its state).
template <typename F>
decltype(auto) with_state(const Rule& rule, const Model& model, F&& f) {
    return std::visit([&]<IsRule R>(const R& one) -> decltype(auto) { return f(one, model.as<typename R::State>()); },
                      rule);
}

// When the rule explores as things stand, if it is one of those that do so by the clock.
std::optional<Schedule> schedule_of(const Rule& rule, const Model& model);

// Also, if it is one of those that do so by evidence. It looks into the statistics, until they change.
std::optional<Exploring> exploring_of(const Rule& rule, const Model& model);

// Where rows fade, what follows is as of this step.
void look(const Model& model, Word t);

Choice decide(const Rule& rule, const Model& model, Word t, const double* x, const Coins& coins, Arms eligible,
              Scratch& scratch, Propensities wanted = Propensities::exact);

// The probability of each arm at step t; `out` holds one value per arm, eligible or not.
void probabilities(const Rule& rule, const Model& model, Word t, const double* x, Arms eligible, Scratch& scratch,
                   std::span<double> out);

bool learns(const Rule& rule, bool explored);
void learn(const Rule& rule, const Model& model, const Row& row);
// The row stays, its reward was `before`.
void correct_reward(const Rule& rule, const Model& model, const Row& row, double before);

struct Trace {
    std::vector<std::int64_t> arms;
    std::vector<double> propensities;
    std::vector<std::uint8_t> explored;
};

// Plays `steps` contexts (steps, dim) with the rewards that each arm would pay (steps, n_arms). Step i is
// t = start + i + 1.
Trace run(const Rule& rule, const Model& model, Seed seed, Word start, const double* contexts, const double* rewards,
          std::size_t steps, Propensities wanted);

}  // namespace armlet
