// What some arms of a model know, kept while a batch is learned that may be given up.
#pragma once
#include <optional>
#include <vector>

#include "rules/rules.hpp"

namespace armlet {

class Undo {
  public:
    // What was solved is kept if refusals are to be expected; after an interruption it is solved again.
    enum class Solved { again, kept };

    Undo(const Model& model, std::vector<std::uint32_t> arms, Solved solved) : model_(model), arms_(std::move(arms)) {
        for (Statistics* sums : {model.all, model.forced, model.solved})
            for (const auto arm : arms_)
                if (sums) kept_.emplace_back(sums->record(arm).begin(), sums->record(arm).end());
        for (const Statistics* sums : {model.all, model.forced, model.solved})
            if (sums) units_.push_back(sums->units().values());
        if (model.tuner) tuner_ = *model.tuner;
        if (const auto* paced = std::get_if<Paced*>(&model.state); paced && solved == Solved::kept) {
            (*paced)->refresh();
            solved_ = (*paced)->solved_values();
        }
    }

    void restore() const {
        auto record = kept_.begin();
        for (Statistics* sums : {model_.all, model_.forced, model_.solved})
            for (const auto arm : arms_)
                if (sums) sums->restore(arm, *record++);
        auto units = units_.begin();
        for (Statistics* sums : {model_.all, model_.forced, model_.solved})
            if (sums) sums->restore_units(*units++);
        if (tuner_) *model_.tuner = *tuner_;
        if (!solved_.empty()) model_.as<Paced>().restore_solved(solved_);
    }

  private:
    const Model& model_;
    std::vector<std::uint32_t> arms_;         // each once
    std::vector<std::vector<double>> kept_;   // their records, one after the other
    std::vector<std::vector<double>> units_;  // that they are in
    std::optional<Tuner> tuner_;
    std::vector<double> solved_;  // what was solved of all arms, for how many rows it was
};

}  // namespace armlet
