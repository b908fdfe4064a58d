// The streams of coins behind the decisions that a bandit may learn from, each named by its seed.
#pragma once
#include <algorithm>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

inline bool operator==(Seed one, Seed other) { return one.low == other.low && one.high == other.high; }

class Streams {
  public:
    explicit Streams(Seed own) : own_(own) {}

    Seed own() const { return own_; }
    const std::vector<Seed>& others() const { return others_; }
    bool knows(Seed stream) const {
        return stream == own_ || std::find(others_.begin(), others_.end(), stream) != others_.end();
    }
    // The one whose coins have this mark at step t, if any.
    const Seed* marked(Word t, Word mark) const {
        if (toss(own_, t).mark == mark) return &own_;
        for (const Seed& stream : others_)
            if (toss(stream, t).mark == mark) return &stream;
        return nullptr;
    }

    void add(Seed stream) {
        if (!knows(stream)) others_.push_back(stream);
    }
    // From now on the coins of another; decisions of the one before stay known.
    void change(Seed next) {
        others_.push_back(own_);
        own_ = next;
    }

  private:
    Seed own_;
    std::vector<Seed> others_;
};

}  // namespace armlet
