#include "actions/known_rows.hpp"

#include <algorithm>
#include <cmath>

namespace armlet {

void KnownRows::refresh(PairSums& sums, const ActionRows& rows, Word version, const Delta& delta) {
    std::vector<Word> touched;
    const bool all = sums.take_touched(touched);
    if (all || id_ != rows.id()) {
        look_up(sums, rows);
        measure(delta);
    } else {
        look_up_again(sums, rows, touched, delta);
        if (version != version_) measure(delta);
    }
    id_ = rows.id(), version_ = version;
}

void KnownRows::look_up(const PairSums& sums, const ActionRows& rows) {
    const Items& items = sums.items();
    known_.clear();
    items_.assign(rows.size(), unknown);
    places_.assign(rows.size(), 0);
    offsets_.assign(rows.n_tiles() * ActionRows::tile, 0.0F);
    if (items.size() < rows.size()) {
        for (auto at = items.first(); at != Items::none; at = items.after(at))
            if (const auto row = rows.find(items[at].key); row != ActionRows::none && items[at].n > 0.0) set(row, at);
    } else {
        for (std::uint32_t row = 0; row < rows.size(); ++row)
            if (const auto at = items.find(rows.keys()[row]); at != Items::none && items[at].n > 0.0) set(row, at);
    }
}

void KnownRows::look_up_again(const PairSums& sums, const ActionRows& rows, const std::vector<Word>& keys,
                              const Delta& delta) {
    const Items& items = sums.items();
    for (const Word key : keys) {
        const auto row = rows.find(key);
        if (row == ActionRows::none) continue;
        const auto at = items.find(key);
        set(row, at != Items::none && items[at].n > 0.0 ? at : unknown);
        const double own = items_[row] == unknown ? 0.0 : delta(items_[row], row);
        offsets_[row] = static_cast<float>(own / unit_);
        largest_ = std::max(largest_, std::fabs(own));
    }
}

void KnownRows::set(std::uint32_t row, std::uint32_t item) {
    const bool was = items_[row] != unknown, is = item != unknown;
    items_[row] = item;
    if (is && !was) {
        places_[row] = static_cast<std::uint32_t>(known_.size());
        known_.push_back(row);
    } else if (was && !is) {
        places_[known_.back()] = places_[row];
        known_[places_[row]] = known_.back();
        known_.pop_back();
    }
}

void KnownRows::measure(const Delta& delta) {
    std::vector<double> own(known_.size());
    largest_ = 0.0;
    for (std::size_t i = 0; i < known_.size(); ++i) {
        own[i] = delta(items_[known_[i]], known_[i]);
        largest_ = std::max(largest_, std::fabs(own[i]));
    }
    unit_ = largest_ > 0.0 ? largest_ : 1.0;
    for (std::size_t i = 0; i < known_.size(); ++i) offsets_[known_[i]] = static_cast<float>(own[i] / unit_);
}

}  // namespace armlet
