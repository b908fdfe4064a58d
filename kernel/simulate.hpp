// Algorithm 1 in worlds that are tables: step by step, or in jumps from one exploration to the next.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "epsilon_greedy.hpp"

namespace armlet {

enum class Noise { none, proportional, gaussian, bernoulli };

// Finitely many contexts, their chances, and the mean reward of every arm in each.
struct World {
    std::span<const double> contexts;  // (M, d)
    std::span<const double> chances;   // (M,)
    std::span<const double> means;     // (M, K)
    Noise noise;
    double scale;
    std::size_t n_contexts, n_arms, dim;

    const double* context(std::size_t i) const { return contexts.data() + i * dim; }
    double mean(std::size_t i, std::size_t arm) const { return means[i * n_arms + arm]; }
    // A reward from two uniform numbers in [0, 1).
    double reward(std::size_t i, std::size_t arm, double u, double v) const;
};

// What a run came to at each checkpoint.
struct Curve {
    std::vector<double> regret;     // expected loss so far
    std::vector<double> exploring;  // the part of it paid on explored steps
    std::vector<double> explored;   // how many steps explored
};

struct Run {
    Schedule schedule;
    Word horizon;
    std::span<const std::int64_t> checkpoints;  // ascending, the last at most the horizon
};

// Every step drawn. Context and noise of step t are functions of (world seed, t), whatever the policy does, so policies
// can be compared on the same draws. Cost O(T) plus a solve for each exploration.
Curve simulate_steps(const World& world, Statistics& statistics, const Run& run, Seed world_seed, Seed policy_seed);

// Where the numbers of the event-driven simulation come from.
class Sampler {
  public:
    virtual ~Sampler() = default;
    virtual double uniform() = 0;  // on [0, 1)
    // counts[i] of n independent draws fall to i with the given chances
    virtual void multinomial(std::int64_t n, std::span<const double> chances, std::span<std::int64_t> counts) = 0;
};

// The same law, in jumps: between two explorations the policy is a fixed map from contexts to arms, so only how often
// each context came matters. Cost O(p log(T / p)) explorations, whatever T.
Curve simulate_events(const World& world, Statistics& statistics, const Run& run, Sampler& sampler);

}  // namespace armlet
