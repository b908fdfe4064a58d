// What some arms of a model know, kept while a batch is learned that may be given up.
#pragma once
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "rules/rules.hpp"

namespace armlet {

class Undo {
  public:
    // What was solved is kept if refusals are to be expected, since some rows correct others: that may empty any arm.
    // After an interruption it is solved again.
    enum class Solved { again, kept };

    Undo(const Model& model, std::vector<std::uint32_t> arms, Solved solved) : model_(model), arms_(std::move(arms)) {
        if (!model.has_sums()) return;
        Statistics& sums = model.sums();
        const bool fades = sums.discount().is_on();
        if (fades || solved == Solved::kept) {  // then a row may change all arms
            arms_.resize(sums.n_arms());
            std::iota(arms_.begin(), arms_.end(), 0u);
        }
        if (fades) {
            clock_ = sums.clock();
            squares_.assign(sums.squares().begin(), sums.squares().end());
        }
        for (const auto arm : arms_) {
            kept_.emplace_back(sums.record(arm).begin(), sums.record(arm).end());
            if (sums.n_outcomes() == 0) continue;
            outcomes_.emplace_back(sums.outcome_record(arm).begin(), sums.outcome_record(arm).end());
            outcome_units_ = sums.outcomes().values();
        }
        units_ = sums.units().values();
        ridge_ = sums.found_ridge();
        lost_digits_.emplace(sums.lost_digits());
        if (model.is<AutoTunedStatistics>()) tuner_ = model.as<AutoTunedStatistics>().tuner;
        if (model.is<LazyStatistics>() && solved == Solved::kept && !clock_) {
            model.as<LazyStatistics>().refresh();
            solved_ = model.as<LazyStatistics>().solved_values();
            solved_outcomes_ = model.as<LazyStatistics>().solved_outcomes();
        }
    }

    void restore() const {
        if (!model_.has_sums()) return;
        Statistics& sums = model_.sums();
        if (clock_) sums.restore_clock(*clock_);
        const std::size_t n = squares_.empty() ? 0 : squares_.size() / arms_.size();
        for (std::size_t arm = 0; arm < arms_.size() && n > 0; ++arm)
            sums.restore_squares(arm, std::span(squares_).subspan(arm * n, n));
        for (std::size_t i = 0; i < arms_.size(); ++i) {
            if (sums.n_outcomes() > 0) sums.restore_outcomes(arms_[i], outcomes_[i]);
            sums.restore(arms_[i], kept_[i]);
        }
        sums.restore_units(units_);
        if (sums.finds_ridge()) sums.restore_ridge(ridge_[0], ridge_[1]);
        if (sums.n_outcomes() > 0 && !outcome_units_.empty()) sums.restore_outcome_units(outcome_units_);
        sums.restore_lost_digits(*lost_digits_);
        if (tuner_) model_.as<AutoTunedStatistics>().tuner = *tuner_;
        if (solved_.empty()) return;
        model_.as<LazyStatistics>().restore_solved(solved_);
        if (!solved_outcomes_.empty()) model_.as<LazyStatistics>().restore_solved_outcomes(solved_outcomes_);
    }

  private:
    const Model& model_;
    std::vector<std::uint32_t> arms_;        // each once
    std::vector<std::vector<double>> kept_;  // their records
    std::vector<double> units_;              // that they are in
    std::array<double, 2> ridge_{};
    std::optional<LostDigits> lost_digits_;
    std::optional<Tuner> tuner_;
    std::optional<Discount::Tick> clock_;  // of rows that fade
    std::vector<double> squares_;
    std::vector<double> solved_;                 // what was solved of all arms, for how many rows it was
    std::vector<std::vector<double>> outcomes_;  // as kept_, where there are several
    std::vector<double> outcome_units_, solved_outcomes_;
};

}  // namespace armlet
