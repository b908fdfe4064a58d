#include "actions/action_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace armlet {

namespace {

std::atomic<Word> next_id{1};

}  // namespace

ActionRows::ActionRows(std::vector<double> Z, std::vector<Word> keys, std::size_t dz)
    : dz_(dz), Z_(std::move(Z)), keys_(std::move(keys)), id_(next_id++), columns_(dz) {
    places_.reserve(size());
    for (std::size_t row = 0; row < size(); ++row) places_.emplace(keys_[row], static_cast<std::uint32_t>(row));
    measure();
    scale();
}

void ActionRows::measure() {
    const double n = std::max(static_cast<double>(size()), 1.0);
    for (auto& column : columns_) column = {0.0, 0.0, 0.0, 0.0};
    for (std::size_t row = 0; row < size(); ++row)
        for (std::size_t j = 0; j < dz_; ++j) {
            columns_[j].middle += z(row)[j] / n;
            columns_[j].largest = std::max(columns_[j].largest, std::fabs(z(row)[j]));
        }
    for (std::size_t row = 0; row < size(); ++row)
        for (std::size_t j = 0; j < dz_; ++j) {
            const double off = z(row)[j] - columns_[j].middle;
            columns_[j].deviation += off * off / n;
        }
    for (auto& column : columns_) column.deviation = std::sqrt(column.deviation);
}

void ActionRows::scale() {
    scaled_.assign(n_tiles() * tile * dz_, 0.0F);
    squares_.assign(n_tiles() * tile, 0.0F);
    for (std::size_t row = 0; row < size(); ++row) {
        float* to = scaled_.data() + row / tile * tile * dz_ + row % tile;
        double squares = 0.0;
        for (std::size_t j = 0; j < dz_; ++j) {
            Column& column = columns_[j];
            // a deviation that is lost to rounding makes no scale: such a column is the same in all rows, to float64
            const double per = column.deviation > 1e-150 ? 1.0 / column.deviation : 0.0;
            const auto value = static_cast<float>((z(row)[j] - column.middle) * per);
            to[j * tile] = value;
            column.largest_scaled = std::max(column.largest_scaled, std::fabs(static_cast<double>(value)));
            squares += static_cast<double>(value) * static_cast<double>(value);
        }
        squares_[row] = static_cast<float>(squares * (1.0 + 1e-6));
    }
}

std::size_t ActionRows::bytes() const {
    return Z_.capacity() * sizeof(double) + (scaled_.capacity() + squares_.capacity()) * sizeof(float) +
           keys_.capacity() * (sizeof(Word) + 32);
}

}  // namespace armlet
