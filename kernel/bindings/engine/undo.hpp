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
        const bool fades = model.has_sums() && model.all().discount().is_on();
        if (!model.sums().empty() && (fades || solved == Solved::kept)) {  // then a row may change all arms
            arms_.resize(model.sums().front()->n_arms());
            std::iota(arms_.begin(), arms_.end(), 0u);
        }
        if (fades) {
            clock_ = model.all().clock();
            squares_.assign(model.all().squares().begin(), model.all().squares().end());
        }
        for (Statistics* sums : model.sums()) {
            for (const auto arm : arms_) {
                kept_.emplace_back(sums->record(arm).begin(), sums->record(arm).end());
                if (sums->n_outcomes() == 0) continue;
                outcomes_.emplace_back(sums->outcome_record(arm).begin(), sums->outcome_record(arm).end());
                outcome_units_ = sums->outcomes().values();
            }
            units_.push_back(sums->units().values());
            ridges_.push_back(sums->found_ridge());
            lost_digits_.push_back(sums->lost_digits());
        }
        if (model.is<AutoTunedStatistics>()) tuner_ = model.as<AutoTunedStatistics>().tuner;
        if (model.is<LazyStatistics>() && solved == Solved::kept && !clock_) {
            model.as<LazyStatistics>().refresh();
            solved_ = model.as<LazyStatistics>().solved_values();
            solved_outcomes_ = model.as<LazyStatistics>().solved_outcomes();
        }
    }

    void restore() const {
        if (clock_) model_.all().restore_clock(*clock_);
        const std::size_t n = squares_.empty() ? 0 : squares_.size() / arms_.size();
        for (std::size_t arm = 0; arm < arms_.size() && n > 0; ++arm)
            model_.all().restore_squares(arm, std::span(squares_).subspan(arm * n, n));
        auto record = kept_.begin();
        auto outcomes = outcomes_.begin();
        for (Statistics* sums : model_.sums())
            for (const auto arm : arms_) {
                if (sums->n_outcomes() > 0) sums->restore_outcomes(arm, *outcomes++);
                sums->restore(arm, *record++);
            }
        auto units = units_.begin();
        for (Statistics* sums : model_.sums()) sums->restore_units(*units++);
        auto ridge = ridges_.begin();
        for (Statistics* sums : model_.sums())
            if (const auto [value, rows] = *ridge++; sums->finds_ridge()) sums->restore_ridge(value, rows);
        for (Statistics* sums : model_.sums())
            if (sums->n_outcomes() > 0 && !outcome_units_.empty()) sums->restore_outcome_units(outcome_units_);
        auto lost = lost_digits_.begin();
        for (Statistics* sums : model_.sums()) sums->restore_lost_digits(*lost++);
        if (tuner_) model_.as<AutoTunedStatistics>().tuner = *tuner_;
        if (solved_.empty()) return;
        model_.as<LazyStatistics>().restore_solved(solved_);
        if (!solved_outcomes_.empty()) model_.as<LazyStatistics>().restore_solved_outcomes(solved_outcomes_);
    }

  private:
    const Model& model_;
    std::vector<std::uint32_t> arms_;         // each once
    std::vector<std::vector<double>> kept_;   // their records, one after the other
    std::vector<std::vector<double>> units_;  // that they are in
    std::vector<std::array<double, 2>> ridges_;
    std::vector<LostDigits> lost_digits_;
    std::optional<Tuner> tuner_;
    std::optional<Discount::Tick> clock_;  // of rows that fade
    std::vector<double> squares_;
    std::vector<double> solved_;                 // what was solved of all arms, for how many rows it was
    std::vector<std::vector<double>> outcomes_;  // as kept_, where there are several
    std::vector<double> outcome_units_, solved_outcomes_;
};

}  // namespace armlet
