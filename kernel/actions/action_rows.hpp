// Actions that can be played, made ready for scoring: features in float64, and in float32 centred and scaled by column.
//
// The float32 copy lies in tiles of 64 rows, the values of a feature side by side. In units of their own deviations no
// value is larger than the root of the number of rows, whatever the features are measured in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

class ActionRows {
  public:
    static constexpr std::size_t tile = 64;
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // Z is (n, dz); keys differ from each other, or `is_unique` says no.
    ActionRows(std::vector<double> Z, std::vector<Word> keys, std::size_t dz);

    std::size_t size() const { return keys_.size(); }
    std::size_t dz() const { return dz_; }
    std::size_t n_tiles() const { return (size() + tile - 1) / tile; }
    bool is_unique() const { return places_.size() == keys_.size(); }
    Word id() const { return id_; }
    std::span<const double> Z() const { return Z_; }
    std::span<const Word> keys() const { return keys_; }
    const double* z(std::size_t row) const { return Z_.data() + row * dz_; }
    std::uint32_t find(Word key) const {
        const auto found = places_.find(key);
        return found == places_.end() ? none : found->second;
    }

    // Of feature j: its mean, deviation and largest size, and the largest size of its float32 copy.
    struct Column {
        double middle, deviation, largest, largest_scaled;
    };
    const Column& column(std::size_t j) const { return columns_[j]; }
    // (dz, 64): the scaled features of 64 rows, zeros after the last.
    const float* scaled(std::size_t number) const { return scaled_.data() + number * dz_ * tile; }
    // At least the sum of squares of each row's scaled features.
    const float* squares(std::size_t number) const { return squares_.data() + number * tile; }
    std::size_t bytes() const;

  private:
    void measure();
    void scale();

    std::size_t dz_;
    std::vector<double> Z_;
    std::vector<Word> keys_;
    Word id_;
    std::unordered_map<Word, std::uint32_t> places_;
    std::vector<Column> columns_;
    std::vector<float> scaled_, squares_;
};

}  // namespace armlet
