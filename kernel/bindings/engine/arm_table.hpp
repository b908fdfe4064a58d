// The arms of a bandit by name: labels outside, indices 0..K-1 inside.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/choice.hpp"

namespace armlet {

namespace nb = nanobind;

// What a label is looked up by: a str or int proper, so that no code of a subclass runs in the middle of a look-up.
nb::object key_of(nb::handle label);
// The labels that a caller gave as `eligible`, ready to be looked up; nothing for None.
using Keys = std::optional<std::vector<nb::object>>;
Keys keys_of(nb::handle eligible);

// Labels that were looked up beforehand, so that many decisions need not.
struct ArmSet {
    Word table;  // names the table in which the arms have these indices
    std::vector<std::uint32_t> arms;
    std::vector<nb::object> keys;  // for any other table
};

// What a caller gave as `eligible`: nothing, labels, a boolean for each arm, or a set.
struct Wanted {
    Keys keys;
    std::optional<std::vector<bool>> mask;
    nb::object owner;  // keeps the set
    const ArmSet* set = nullptr;

    bool is_all() const { return !keys && !mask && !set; }
};
Wanted wanted_of(nb::handle eligible);

class ArmTable {
  public:
    explicit ArmTable(const nb::list& labels);

    std::size_t size() const { return is_active_.size(); }
    nb::list labels() const;
    nb::object label(std::size_t arm) const { return labels_[arm]; }
    nb::object labels_of(Arms arms) const;  // as a tuple
    nb::list retired() const;
    std::optional<std::uint32_t> find(const nb::object& key) const;
    std::uint32_t at(const nb::object& key) const;  // or KeyError

    Arms active() const { return active_; }
    bool is_active(std::size_t arm) const { return is_active_[arm] != 0; }
    bool is_last_active(std::size_t arm) const { return is_active(arm) && active_.size() == 1; }
    // The indices of those that may be played, ascending, among the eligible if these are named; ValueError if there is
    // none.
    std::vector<std::uint32_t> playable(const Wanted& eligible) const;
    ArmSet look_up(std::vector<nb::object> keys) const;

    void add(nb::object label);
    void remove(std::size_t arm);
    void set_active(std::size_t arm, bool active);

    // Names this assignment of indices; a removal makes another.
    Word id() const { return id_; }
    // Names one life of an arm: added again, it has another.
    Word life(std::size_t arm) const { return lives_[arm]; }
    void end_life(std::size_t arm);
    bool has_ended(Word life) const { return ended_.contains(life); }
    void continue_lives(const ArmTable& other) { lives_ = other.lives_, ended_ = other.ended_; }

    int traverse(visitproc visit, void* arg) const;
    void clear();

  private:
    void index();

    nb::list labels_;
    nb::dict index_;
    std::vector<std::uint8_t> is_active_;
    std::vector<std::uint32_t> active_;
    std::vector<Word> lives_;
    std::set<Word> ended_;
    Word id_ = 0;
};

}  // namespace armlet
