// When a rule explores that does not look at x for it, if every arm may be played: until a row that is learned changes
// it.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "rules/rules.hpp"

namespace armlet {

class Pace {
  public:
    // Whether the rule is one: explores regardless of x, and else plays the best estimate.
    static bool exists(const Rule& rule, const Model& model) { return when(rule, model).index() > 0; }

    Pace(const Rule& rule, const Model& model);

    // Whether what exploiting steps see is learned, so that nothing can be jumped over.
    bool learns_always() const;
    bool learns(bool explored) const { return armlet::learns(rule_, explored); }
    // The probability that step t explores; it never rises with t.
    double rate(Word t) const;
    // Whether step t plays arm t mod K.
    bool takes_turns(Word t) const;
    // What step t plays if it explores, by 64 random bits or by a number on [0, 1).
    std::uint32_t explored_arm(Word t, Word bits) const;
    std::uint32_t explored_arm(Word t, double share) const;

    // Returns whether anything of this has changed.
    bool learn(const Row& row);

  private:
    using When = std::variant<std::monostate, Schedule, Exploring>;

    static When when(const Rule& rule, const Model& model);

    const Rule& rule_;
    const Model& model_;
    std::vector<std::uint32_t> every_;
    When when_;
};

}  // namespace armlet
