// Every compiled rule behind one `decide`, and the loop that plays any of them.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "rules/epsilon_greedy.hpp"
#include "rules/forced_sampling.hpp"
#include "rules/optimism.hpp"
#include "rules/optimistic_greedy.hpp"
#include "rules/thompson.hpp"
#include "rules/tuner.hpp"
#include "state/layers.hpp"

namespace armlet {

using Rule = std::variant<Schedule, Optimism, Thompson, ForcedSampling, OptimisticGreedy, AutoSchedule>;

// What a rule looks at and learns into.
struct Model {
    Statistics* all;               // of all rows that the rule learns from
    Statistics* forced = nullptr;  // of forced rows alone, for forced sampling
    Statistics* solved = nullptr;  // of the rows that estimates are from, for rules that solve rarely
    Tuner* tuner = nullptr;        // for a p that sets itself
};

// Layer 0 has the forced rows, layer 1 all of them.
inline Model model_of(Layers& layers) { return {&layers[1], &layers[0]}; }
// Layer 0 has the rows that were solved for, layer 1 all of them.
inline Model model_of(Snapshots& layers) { return {&layers[1], nullptr, &layers[0]}; }
inline Model model_of(Statistics& statistics) { return {&statistics}; }
inline Model model_of(Tuned& tuned) { return {&tuned, nullptr, nullptr, &tuned.tuner}; }

// Room to work in, kept from one decision to the next.
class Scratch {
  public:
    double* operator()(std::size_t i, std::size_t size) {
        if (rows_[i].size() < size) rows_[i].resize(size);
        return rows_[i].data();
    }

  private:
    std::vector<double> rows_[4];
};

// Thompson sampling takes longer for its propensities than for its choices; `skipped` ones are NaN.
enum class Propensities { exact, skipped };

// When the rule explores as things stand, if it is one of those that do so by the clock.
std::optional<Schedule> schedule_of(const Rule& rule, const Model& model);

// Brings what the rule will look at up to date; `decide` and `probabilities` do it themselves.
void refresh(const Rule& rule, const Model& model, Word t);

Choice decide(const Rule& rule, const Model& model, Word t, const double* x, const Coins& coins, Arms eligible,
              Scratch& scratch, Propensities wanted = Propensities::exact);

// The probability of each arm at step t; `out` holds one value per arm, eligible or not.
void probabilities(const Rule& rule, const Model& model, Word t, const double* x, Arms eligible, Scratch& scratch,
                   std::span<double> out);

// One row to learn; a negative weight takes it back.
struct Row {
    std::uint32_t arm;
    const double* x;
    double reward, weight;
    bool explored;
    Word t;  // the step that it is of
};

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
