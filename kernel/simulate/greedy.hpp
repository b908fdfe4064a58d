// What Algorithm 1 plays between two explorations in an environment that is a table: looked up, since the estimates
// stand.
#pragma once
#include <cstdint>
#include <vector>

#include "rules/choice.hpp"
#include "simulate/environment.hpp"

namespace armlet {

enum class Foresight {
    nothing_lost,  // in any context
    by_context,    // each context has its loss
    none           // a loss depends on how a tie is broken
};

class Greedy {
  public:
    Greedy(const Environment& environment, Statistics& statistics);

    double loss(std::size_t i, std::size_t arm) const { return losses_[i * arms_.size() + arm]; }

    // Something is learned about the arm.
    void look_again_at(std::size_t arm);

    // One of the arms that share the first place in context i, by the coins.
    std::uint32_t play(std::size_t i, Word bits) {
        refresh();
        return tied_arm(row(i), arms_, best_[i], bits);
    }

    // The arms that share the first place in context i.
    std::vector<std::uint32_t> tied(std::size_t i) const;

    // The contexts in which the arm to play is, or may be, not the best in truth.
    const std::vector<std::uint32_t>& costly() {
        refresh();
        return costly_;
    }

    // What can be said about losses before contexts are known and ties broken.
    Foresight foresight() {
        refresh();
        return foresight_;
    }

    // (M,): what is lost in each context, where ties do not matter.
    const double* losses() const { return known_.data(); }

  private:
    void refresh() {
        if (!changed_.empty()) look_again();
    }
    void look_again();
    void look_in_new_units();
    Foresight foresee() const;
    void rescore(std::uint32_t arm);
    const double* row(std::size_t i) const { return scores_.data() + i * arms_.size(); }
    bool ties(std::size_t i, std::uint32_t arm) const { return row(i)[arm] == best_[i].score; }

    const Environment& environment_;
    Statistics& statistics_;
    std::vector<double> losses_;                 // (M, K)
    std::vector<double> scores_;                 // (M, K)
    std::vector<double> known_;                  // (M,): what the first of the best arms loses
    std::vector<std::uint32_t> arms_, changed_;  // all of them, and those learned about since they were scored
    std::vector<std::uint8_t> has_changed_;      // whether an arm is among the changed
    std::vector<Best> best_;                     // (M,)
    std::vector<std::uint32_t> costly_;
    std::vector<double> views_;  // (M, D): contexts in standard units, if units are free
    std::int64_t renewals_ = 0;  // of the units that they are in
    Foresight foresight_ = Foresight::none;
};

}  // namespace armlet
