// Several outcomes of every row: what they are called, how they weigh, which are learned, and the prices of the others.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "bindings/engine/decision.hpp"

namespace armlet {

class Outcomes {
  public:
    // The weights of one decision: of outcomes that are learned, and of those that are known.
    struct Dial {
        Values learned, known;
    };

    // (names, weights, prices, ranges): every name and its usual weight, in order; by name of an outcome that is known,
    // its price of every label; by name of one that is learned, (lowest, highest).
    explicit Outcomes(nb::handle given);

    // Where an outcome is: whether it is learned, and its place among those of its kind.
    struct Place {
        bool is_learned;
        std::size_t index;
    };
    Place place(nb::handle name) const { return *find(name); }  // of one that there is

    std::size_t n_learned() const { return learned_.size(); }
    // The reward of a row: its learned outcomes by their usual weights.
    double reward(std::span<const double> learned) const;
    // Learned outcomes from a mapping by name; NaN where there is none.
    Values read(nb::handle given, const char* argument) const;
    // What a decision has of them.
    Values so_far(const Decision& decision) const;
    bool is_in_range(std::size_t j, double value) const {
        return !learned_[j].has_range || (value >= learned_[j].low && value <= learned_[j].high);
    }
    void check_range(std::size_t j, double value) const;
    // By name, without those that are NaN.
    nb::dict write(std::span<const double> learned) const { return by_name(learned_names_, learned); }
    NamedNumbers named(std::span<const double> learned) const {
        return {learned_names_, {learned.begin(), learned.end()}};
    }
    const nb::object& name(std::size_t j) const { return learned_[j].name; }

    const Dial& usual() const { return usual_; }
    // The usual weights, but for those that are given.
    Dial read_dial(nb::handle weights) const;
    NamedNumbers named(const Dial& dial) const;

    // Looks up the prices of these arms.
    void take_prices(const nb::list& labels);
    void check_price(nb::handle key) const;  // there is one of that arm
    // The k-th known outcome of an arm.
    double price(std::size_t k, std::size_t arm) const { return prices_[k][arm]; }
    // What known outcomes of an arm are worth by the usual weights.
    double worth_of_known(std::size_t arm) const;
    // What known outcomes add to each arm; empty if there are none.
    std::vector<double> offsets(const Dial& dial) const;

    int traverse(visitproc visit, void* arg) const;

  private:
    struct Learned {
        nb::object name;
        bool has_range = false;
        double low = 0.0, high = 0.0;
    };

    std::optional<Place> find(nb::handle name) const;
    [[noreturn]] void refuse(nb::handle name, nb::handle given, const char* argument) const;

    template <typename Put>
    bool read_plain(nb::handle given, Put&& put) const;

    std::vector<nb::object> names_;         // of all, in order
    nb::object all_names_, learned_names_;  // tuples, which decisions share
    std::vector<Place> places_;
    std::vector<Learned> learned_;
    std::vector<nb::object> known_;
    std::vector<nb::dict> price_lists_;        // of each known outcome, by label
    std::vector<std::vector<double>> prices_;  // of each known outcome, by arm
    Dial usual_;
};

}  // namespace armlet
