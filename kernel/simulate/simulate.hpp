// Rules in environments that are tables: step by step, or Algorithm 1 in jumps from one exploration to the next.
#pragma once
#include <cstdint>
#include <span>

#include "rules/rules.hpp"
#include "simulate/environment.hpp"

namespace armlet {

struct Run {
    Word horizon;
    std::span<const std::int64_t> checkpoints;  // ascending, the last at most the horizon
};

// Every step drawn. Context and noise of step t are functions of (environment seed, t), whatever the policy does, so
// policies can be compared on the same draws. Cost O(T) decisions plus a solve for each step learned from. Propensities
// are skipped.
Curve simulate_steps(const Environment& environment, const Model& model, const Rule& rule, const Run& run,
                     Seed environment_seed, Seed policy_seed);

// Where the numbers of the event-driven simulation come from.
class Sampler {
  public:
    virtual ~Sampler() = default;
    virtual double uniform() = 0;  // on [0, 1)
    // counts[i] of n independent draws fall to i with the given chances
    virtual void multinomial(std::int64_t n, std::span<const double> chances, std::span<std::int64_t> counts) = 0;
};

// The same law, in jumps: between two explorations the policy is a fixed map from contexts to arms, so only how often
// each context came matters. Cost O(p log(T / p)) explorations, regardless of T.
// The rule goes by the clock, and learns from explored steps only.
Curve simulate_events(const Environment& environment, const Model& model, const Rule& rule, const Run& run,
                      Sampler& sampler);

}  // namespace armlet
