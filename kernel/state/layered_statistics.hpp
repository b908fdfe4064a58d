// Several sets of statistics about the same arms: of forced and of all rows, or of the rows of each stage.
#pragma once
#include <cstddef>
#include <vector>

#include "state/statistics.hpp"

namespace armlet {

class LayeredStatistics {
  public:
    // Each layer has units of its own.
    LayeredStatistics(std::size_t n_layers, std::size_t n_arms, const Units& units, Ridge ridge) {
        layers_.reserve(n_layers);
        for (std::size_t i = 0; i < n_layers; ++i) layers_.emplace_back(n_arms, units, ridge);
    }

    std::size_t size() const { return layers_.size(); }
    std::size_t n_arms() const { return layers_.front().n_arms(); }
    std::size_t dim() const { return layers_.front().dim(); }
    Statistics& operator[](std::size_t layer) { return layers_[layer]; }
    const Statistics& operator[](std::size_t layer) const { return layers_[layer]; }
    auto begin() { return layers_.begin(); }
    auto begin() const { return layers_.begin(); }
    auto end() { return layers_.end(); }
    auto end() const { return layers_.end(); }

    void append_arm() {
        for (auto& layer : layers_) layer.append_arm();
    }
    void erase_arm(std::size_t arm) {
        for (auto& layer : layers_) layer.erase_arm(arm);
    }
    void renew() {
        for (auto& layer : layers_) layer.renew();
    }
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const auto& layer : layers_) sum += layer.bytes();
        return sum;
    }

  private:
    std::vector<Statistics> layers_;  // as many as at first: references to them last as long as this object
};

// Two layers: the rows that each arm was last solved for, and all of them. What was last solved for depends on the
// order in which rows came, so these do not add up and rows cannot be taken back.
class FrozenStatistics : public LayeredStatistics {
  public:
    FrozenStatistics(std::size_t n_arms, const Units& units, Ridge ridge)
        : LayeredStatistics(2, n_arms, units, ridge) {}

    Statistics& solved() { return (*this)[0]; }
    const Statistics& solved() const { return (*this)[0]; }
    Statistics& all() { return (*this)[1]; }
    const Statistics& all() const { return (*this)[1]; }
};

}  // namespace armlet
