// What every rule is asked with, and what it answers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "coins/philox.hpp"
#include "state/statistics.hpp"

namespace armlet {

using Arms = std::span<const std::uint32_t>;  // the indices that may be played, ascending

struct Choice {
    std::uint32_t arm;
    double propensity;
    bool explored;
    std::int32_t tag = 0;  // what a policy in Python wants to find again when the reward comes
    // The probability of the arm given that the step explores; NaN if the policy has no such thing.
    double exploration_propensity = std::numeric_limits<double>::quiet_NaN();
    double exploration_rate = std::numeric_limits<double>::quiet_NaN();  // that the step explores; also
    double min_exploration_probability =
        std::numeric_limits<double>::quiet_NaN();  // of the eligible arms, given that it explores; also
    // Whether an explored arm is one of those that look best; a step that is sure to explore does not look.
    enum class Greedy : std::int8_t { unknown, no, yes } greedy = Greedy::unknown;
    bool optimistic = false;  // the coin made it a step that plays the highest bound; no such step explores
    bool marginal = true;     // the propensity is over all coins, not given what kind of step the coin made it
};

// What is known of the arm of a step that explores at this rate.
inline Choice::Greedy greedy_at(double rate, bool is_best) {
    if (!(rate < 1.0)) return Choice::Greedy::unknown;
    return is_best ? Choice::Greedy::yes : Choice::Greedy::no;
}

// The arm whose turn it is, whatever the context.
inline Choice forced_choice(std::uint32_t arm, std::size_t n_eligible) {
    return {.arm = arm,
            .propensity = 1.0,
            .explored = true,
            .exploration_propensity = 1.0,
            .exploration_rate = 1.0,
            .min_exploration_probability = n_eligible == 1 ? 1.0 : 0.0};
}

// The best of the eligible arms and how many share the first place.
struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::uint32_t first = 0;
    std::size_t count = 0;
};

inline Best best_arm(const double* scores, Arms eligible) {
    Best best{.first = eligible.front()};
    for (const auto arm : eligible) {
        if (scores[arm] > best.score)
            best = {scores[arm], arm, 1};
        else if (scores[arm] == best.score && best.count++ == 0)  // minus infinity
            best.first = arm;
    }
    return best;
}

// The one of the tied best arms that the coins point at.
inline std::uint32_t tied_arm(const double* scores, Arms eligible, const Best& best, Word bits) {
    if (best.count == 1) return best.first;
    std::size_t skip = below(bits, best.count);
    for (const auto arm : eligible)
        if (scores[arm] == best.score && skip-- == 0) return arm;
    return best.first;
}

// One of the best arms.
inline Choice play_best(const double* scores, Arms eligible, const Coins& coins) {
    const Best best = best_arm(scores, eligible);
    return {tied_arm(scores, eligible, best, coins.tie), 1.0 / static_cast<double>(best.count), false};
}

// The probability of each of the best arms.
inline void share_among_best(const double* scores, Arms eligible, std::span<double> out) {
    const Best best = best_arm(scores, eligible);
    for (const auto arm : eligible)
        if (scores[arm] == best.score) out[arm] = 1.0 / static_cast<double>(best.count);
}

// Room to work in, kept from one decision to the next.
class Scratch {
  public:
    double* operator()(std::size_t i, std::size_t size) {
        if (rows_[i].size() < size) rows_[i].resize(size);
        return rows_[i].data();
    }

  private:
    std::vector<double> rows_[6];
};

// What a propensity is to be: over all coins; or, where the coin says which of two candidates a step looks for, given
// that; or nothing that anybody looks at. Thompson sampling takes longer for it than for its choices: NaN if `skipped`.
enum class Propensities { exact, conditional, skipped };

// One step to decide.
struct Step {
    Word t;
    const double* x;
    Arms eligible;
    Scratch& scratch;
    Propensities wanted = Propensities::exact;
};

// The context of a step as these sums look at it, until another is asked for.
inline const double* view(const Statistics& sums, const Step& step) {
    return sums.view(step.x, sums.units().is_free() ? step.scratch(4, sums.view_size()) : nullptr);
}

// One row to learn; a negative weight takes it back.
struct Row {
    std::uint32_t arm;
    const double* x;
    double reward, weight;
    bool explored;
    Word t;                            // the step that it is of
    const double* outcomes = nullptr;  // where there are several, of which the reward is a sum
    const double* outcomes_before = nullptr;
    std::int32_t tag = 0;  // of the decision
};

inline void learn_row(Statistics& sums, const Row& row) {
    sums.add(row.arm, row.x, row.reward, row.weight, row.outcomes, {row.t, row.tag});
}
// The row stays, its reward was `before`.
inline void correct_row(Statistics& sums, const Row& row, double before) {
    sums.correct(row.arm, row.x, {before, row.reward, row.outcomes_before, row.outcomes}, row.weight, {row.t, row.tag});
}

}  // namespace armlet
