// Keys of items that were folded into the sums: their rows cannot be told from those of the same action since.
#pragma once
#include <cstddef>
#include <deque>
#include <unordered_set>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

class FoldedKeys {
  public:
    explicit FoldedKeys(std::size_t most) : most_(most) {}

    bool contains(Word key) const { return known_.contains(key); }
    // In the order in which they were folded first.
    std::vector<Word> list() const { return {order_.begin(), order_.end()}; }

    // Drops the oldest one beyond `most`.
    void add(Word key) {
        if (!known_.insert(key).second) return;
        order_.push_back(key);
        if (order_.size() <= most_) return;
        known_.erase(order_.front());
        order_.pop_front();
    }
    void clear() { order_.clear(), known_.clear(); }

  private:
    std::size_t most_;
    std::deque<Word> order_;
    std::unordered_set<Word> known_;
};

}  // namespace armlet
