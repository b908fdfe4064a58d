// Which rows of a table are items with an intercept of their own, kept from one decision to the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "actions/action_rows.hpp"
#include "actions/pair_sums.hpp"

namespace armlet {

class KnownRows {
  public:
    static constexpr std::uint32_t unknown = Items::none;

    // The estimated intercept of an item, whose features a row has.
    using Delta = std::function<double(std::uint32_t item, std::size_t row)>;

    // Brings what is kept up to date with the items; `version` tells solutions apart.
    void refresh(PairSums& sums, const ActionRows& rows, Word version, const Delta& delta);
    // The table is another one from now on, whichever it is.
    void drop() { id_ = 0; }

    // Rows that are items, and for each row of the table its item.
    const std::vector<std::uint32_t>& rows() const { return known_; }
    std::uint32_t item(std::size_t row) const { return items_[row]; }
    // Where a known row is among those.
    std::size_t place(std::size_t row) const { return places_[row]; }
    // Intercepts of all rows in tiles, 0 where unknown, in units of `unit`; the largest by size.
    const float* offsets(std::size_t number) const { return offsets_.data() + number * ActionRows::tile; }
    double unit() const { return unit_; }
    double largest() const { return largest_; }

  private:
    void look_up(const PairSums& sums, const ActionRows& rows);
    void look_up_again(const PairSums& sums, const ActionRows& rows, const std::vector<Word>& keys, const Delta& delta);
    void set(std::uint32_t row, std::uint32_t item);
    void measure(const Delta& delta);

    Word id_ = 0, version_ = 0;
    std::vector<std::uint32_t> known_, items_, places_;  // places: of a row within those known
    std::vector<float> offsets_;
    double unit_ = 1.0, largest_ = 0.0;
};

}  // namespace armlet
