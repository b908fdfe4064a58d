// Features that change while a bandit runs: how the context of a decision from before is carried to those of now.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

// Where each feature of now was before.
struct Columns {
    std::vector<std::int64_t> sources;  // (d,): its place among those before; -1 if it is new
    std::vector<double> fills;          // (d,): what all contexts from before have there, if it is new

    void carry(const double* x, double* out) const {
        for (std::size_t j = 0; j < sources.size(); ++j) out[j] = sources[j] < 0 ? fills[j] : x[sources[j]];
    }
    // This change, and then another.
    Columns then(const Columns& next) const {
        Columns out = next;
        for (std::size_t j = 0; j < out.sources.size(); ++j) {
            if (next.sources[j] < 0) continue;
            const auto before = static_cast<std::size_t>(next.sources[j]);
            out.sources[j] = sources[before], out.fills[j] = fills[before];
        }
        return out;
    }
};

// Names the features of now, and those that were left. All of a process have different names but for those of copies.
class FeatureHistory {
  public:
    Word id() const { return id_; }
    // How a context is carried to the features of now, if its own were left; else null.
    const Columns* since(Word id) const {
        if (id == id_ || past_.empty()) return nullptr;
        const auto found = past_.find(id);
        return found == past_.end() ? nullptr : &found->second;
    }
    // Whether a decision of another bandit in this process may be about features that were left.
    bool is_unknown(Word id) const { return id != 0 && id != id_ && !past_.empty() && !past_.contains(id); }

    void leave(const Columns& columns) {
        for (auto& [id, before] : past_) before = before.then(columns);
        past_.emplace(id_, columns);
        id_ = ++last_;
    }
    // What another with the same features has left.
    void know(const FeatureHistory& other) { past_.insert(other.past_.begin(), other.past_.end()); }

  private:
    inline static Word last_ = 0;  // under the interpreter lock
    Word id_ = ++last_;            // 0 is the name of no features: that of a decision read from a record
    std::map<Word, Columns> past_;
};

}  // namespace armlet
