// What some arms of a model know, kept while a batch is learned that may be given up.
#pragma once
#include <optional>
#include <vector>

#include "rules/rules.hpp"

namespace armlet {

class Undo {
  public:
    Undo(const Model& model, std::vector<std::uint32_t> arms) : model_(model), arms_(std::move(arms)) {
        for (Statistics* sums : {model.all, model.forced, model.solved})
            for (const auto arm : arms_)
                if (sums) kept_.emplace_back(sums->record(arm).begin(), sums->record(arm).end());
        if (model.tuner) tuner_ = *model.tuner;
    }

    void restore() const {
        auto record = kept_.begin();
        for (Statistics* sums : {model_.all, model_.forced, model_.solved})
            for (const auto arm : arms_)
                if (sums) sums->restore(arm, *record++);
        if (tuner_) *model_.tuner = *tuner_;
    }

  private:
    const Model& model_;
    std::vector<std::uint32_t> arms_;        // each once
    std::vector<std::vector<double>> kept_;  // their records, one after the other
    std::optional<Tuner> tuner_;
};

}  // namespace armlet
