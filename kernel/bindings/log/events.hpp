// Events of a log in columns, as Arrow lays them out: read from lines of JSON, and written as lines again.
//
// Only decisions and plain rewards have columns, spelled as Armlet spells them. Whatever else a line may be is not for
// this reader: it stops there, and Python's reader, the exact one, takes that line or says what is wrong with it.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace armlet {

namespace nb = nanobind;

// The different values of a column by their JSON: a text, or a whole number of at most 18 digits.
class Dictionary {
  public:
    // The place of a value; none if its spelling is for another reader.
    std::optional<std::int32_t> place(std::string_view json);
    nb::list values() const;  // as Python has them

  private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
    };
    std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> places_;
    std::vector<std::string> values_;
};

enum class EventKind : std::int8_t { other, decide, learn };

// The columns of a block of events. A list has its values between two offsets; numbers that are null are NaN, truths,
// places in a dictionary and epochs -1.
struct EventColumns {
    std::vector<std::int8_t> kind;          // of every event
    std::vector<std::int64_t> at, ends{0};  // when; and where its line begins and ends, counted from the first
    std::vector<std::uint32_t> crc;         // its check value
    // ---- of every decision
    std::vector<std::int64_t> t, tag, epoch, n_actions;
    std::vector<std::uint64_t> mark;
    std::vector<double> x, z;  // (m, dim), (m, action_dim); zeros where they are null
    std::vector<std::int8_t> has_x, has_z, explored, optimistic, greedy;
    std::vector<std::int32_t> arm, design, unit, event, actions;
    std::vector<double> propensity, exploration_rate, exploration_propensity, min_exploration_probability;
    std::vector<std::int64_t> eligible_ends{0}, support_ends{0}, probabilities_ends{0};
    std::vector<std::int32_t> eligible, support;
    std::vector<double> support_chances, probabilities;
    // ---- of every reward
    std::vector<std::int64_t> learn_t;
    std::vector<std::uint64_t> learn_mark;
    std::vector<double> reward, weight;
    // ---- dictionaries
    Dictionary labels, texts;
};

class Scanner;

class EventReader {
  public:
    // Takes lines from `begin` on until one is for another reader, not at its end, or there are `most` events; gives
    // where that is.
    std::size_t read(nb::bytes data, std::size_t begin, std::size_t most);
    // Has an event, whose line is so long.
    void note(EventKind kind, std::int64_t at, std::size_t size, std::uint32_t own);
    nb::dict take();  // the columns so far, of which it keeps none
    std::size_t size() const { return columns_.kind.size(); }

    std::int64_t seq = 0;          // of the next event
    std::uint32_t crc = 0;         // of the last line
    std::int64_t dim = -1;         // of contexts; no line is read while it is -1
    std::int64_t action_dim = -1;  // of actions; -1 in a log of arms

  private:
    // A decision that is being read, but for its lists.
    struct Decision {
        std::int64_t t, tag, epoch = -1, n_actions = 0;
        std::uint64_t mark;
        std::int8_t has_x = 0, has_z = 0, explored, optimistic, greedy;
        std::int32_t arm, design = -1, unit = -1, event = -1, actions = -1;
        double propensity, exploration_rate, exploration_propensity, min_exploration_probability;
    };
    bool read_line(std::string_view line);
    bool read_decision(Scanner& in);
    bool read_reward(Scanner& in);
    static bool read_numbers(Scanner& in, std::vector<double>& out, std::int64_t width, std::int8_t& has);
    bool is_possible(const Decision& made) const;
    void add(const Decision& made);

    EventColumns columns_;
    std::vector<double> x_, z_, chances_, probabilities_;  // the lists of the decision that is being read
    std::vector<std::int32_t> eligible_, support_;
};

}  // namespace armlet
