// Items, actions of one label and one z, by the order in which they were learned last.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

// Sums over the rows of one key: how many, their weight and (r - r0).
struct Item {
    Word key;
    std::int64_t rows;
    double n, y;
    std::uint32_t before, after;  // neighbours in the order
};

class Items {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    Items(std::size_t dx, std::size_t dz) : dx_(dx), dz_(dz) {}

    std::size_t size() const { return places_.size(); }
    std::uint32_t find(Word key) const {
        const auto found = places_.find(key);
        return found == places_.end() ? none : found->second;
    }
    // The least recently learned one; none if there are none.
    std::uint32_t first() const { return first_; }
    std::uint32_t after(std::uint32_t at) const { return items_[at].after; }

    Item& operator[](std::uint32_t at) { return items_[at]; }
    const Item& operator[](std::uint32_t at) const { return items_[at]; }
    // Its sum of x and its z, both from their origins.
    double* u(std::uint32_t at) { return numbers_.data() + at * (dx_ + dz_); }
    const double* u(std::uint32_t at) const { return numbers_.data() + at * (dx_ + dz_); }
    double* z(std::uint32_t at) { return u(at) + dx_; }
    const double* z(std::uint32_t at) const { return u(at) + dx_; }

    // A new item without rows, the last in the order.
    std::uint32_t open(Word key, const double* z);
    void move_last(std::uint32_t at);
    void close(std::uint32_t at);
    void clear();

  private:
    void link_last(std::uint32_t at);
    void unlink(std::uint32_t at);

    std::size_t dx_, dz_;
    std::unordered_map<Word, std::uint32_t> places_;
    std::vector<Item> items_;
    std::vector<double> numbers_;
    std::vector<std::uint32_t> free_;
    std::uint32_t first_ = none, last_ = none;
};

}  // namespace armlet
