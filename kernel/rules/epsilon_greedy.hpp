// Contextual epsilon-greedy: one decision of Algorithm 1.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "coins/philox.hpp"
#include "state/statistics.hpp"

namespace armlet {

// When to explore, and which steps to learn from.
struct Schedule {
    double p;           // explore step t with probability p / t; infinite: always
    bool round_robin;   // the first ceil(p) steps: arm t mod K, or uniform
    bool learn_always;  // from every step, or (Algorithm 1) from explored steps only
    // No arm has a row, and only explored steps are learned: all arms tie whatever x is, so every step explores.
    bool blank = false;

    bool warming_up(Word t) const { return static_cast<double>(t) - 1.0 < p; }  // t <= ceil(p)
    double rate(Word t) const { return blank || warming_up(t) ? 1.0 : p / static_cast<double>(t); }
    bool learns(bool explored) const { return explored || learn_always; }
};

struct Choice {
    std::uint32_t arm;
    double propensity;
    bool explored;
    std::int32_t tag = 0;  // what a policy in Python wants to find again when the reward comes
};

using Arms = std::span<const std::uint32_t>;  // the indices that may be played, ascending

// The best of the eligible arms and how many share the first place.
struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::uint32_t first = 0;
    std::size_t count = 0;
};

Best best_arm(const double* scores, Arms eligible);

// The one of the tied best arms that the coins point at.
std::uint32_t tied_arm(const double* scores, Arms eligible, const Best& best, Word bits);

// One step of Algorithm 1. The estimates are not looked at while `schedule.warming_up(t)`.
// `scratch` holds estimates.width values.
Choice decide(const Estimates& estimates, const Schedule& schedule, Word t, const double* x, const Coins& coins,
              Arms eligible, double* scratch);

// The same with the scores at hand, whatever they are; they are not looked at while `schedule.warming_up(t)`.
Choice decide(const double* scores, const Schedule& schedule, Word t, const Coins& coins, Arms eligible);

// The same when the best arm is known, and known to be the only one.
Choice decide_known(const Schedule& schedule, Word t, const Coins& coins, Arms eligible, std::uint32_t best);

// The probability of each arm at step t; `out` holds one value per arm, eligible or not.
void probabilities(const Estimates& estimates, const Schedule& schedule, Word t, const double* x, Arms eligible,
                   double* scratch, std::span<double> out);
void probabilities(const double* scores, const Schedule& schedule, Word t, Arms eligible, std::span<double> out);

}  // namespace armlet
