#include "actions/items.hpp"

#include <algorithm>
#include <utility>

namespace armlet {

std::uint32_t Items::open(Word key, const double* z) {
    std::uint32_t at = static_cast<std::uint32_t>(items_.size());
    if (free_.empty()) {
        items_.emplace_back();
        numbers_.resize(numbers_.size() + dx_ + dz_);
    } else {
        at = free_.back();
        free_.pop_back();
    }
    items_[at] = {.key = key, .rows = 0, .n = 0.0, .y = 0.0, .before = none, .after = none};
    std::fill_n(u(at), dx_, 0.0);
    std::copy_n(z, dz_, this->z(at));
    places_.emplace(key, at);
    link_last(at);
    return at;
}

void Items::move_last(std::uint32_t at) {
    if (at == last_) return;
    unlink(at);
    link_last(at);
}

void Items::close(std::uint32_t at) {
    unlink(at);
    places_.erase(items_[at].key);
    free_.push_back(at);
}

void Items::clear() {
    places_.clear(), items_.clear(), numbers_.clear(), free_.clear();
    first_ = last_ = none;
}

void Items::link_last(std::uint32_t at) {
    items_[at].before = last_, items_[at].after = none;
    (last_ == none ? first_ : items_[last_].after) = at;
    last_ = at;
}

void Items::unlink(std::uint32_t at) {
    const auto [before, after] = std::pair(items_[at].before, items_[at].after);
    (before == none ? first_ : items_[before].after) = after;
    (after == none ? last_ : items_[after].before) = before;
}

}  // namespace armlet
