// The part of a bandit that every decision passes through: clock, labels, coins, estimates.
//
// Each call holds the interpreter lock from its first look at the state to its last change of it, so any number of
// threads may decide and learn at once. Calls into a policy written in Python take turns through a lock of their own.
#pragma once
#include <optional>

#include "decision.hpp"
#include "rules/rules.hpp"

namespace armlet {

// Holds a Python lock while a policy written in Python works on its state.
class Turn {
  public:
    explicit Turn(const nb::object& lock) : lock_(lock) { lock_.attr("acquire")(); }
    ~Turn() { lock_.attr("release")(); }
    Turn(const Turn&) = delete;

  private:
    const nb::object& lock_;
};

inline Array<double> copy_row(const double* x, std::size_t d) { return to_numpy(std::vector<double>(x, x + d), {d}); }

inline nb::list copy_list(const nb::list& list) { return nb::steal<nb::list>(PySequence_List(list.ptr())); }

class Engine {
  public:
    // A policy with a compiled rule runs here; any other is asked in Python.
    Engine(nb::object policy, nb::object rule, nb::object state, nb::list labels, nb::handle seed,
           nb::object read_context, double sign, bool normalize);

    nb::object decide(nb::handle x, nb::handle eligible);
    void learn(nb::handle decision, nb::handle reward, nb::handle weight);  // weight may be missing
    void correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward);
    void forget(nb::handle decision, nb::handle reward);

    Decisions decide_many(nb::handle X, nb::handle eligible);
    Array<double> probabilities(nb::handle X, Word t, nb::handle eligible);
    void learn_rows(Word table, nb::handle X, nb::handle arms, nb::handle rewards, nb::handle weights,
                    nb::handle explored);
    Array<double> normalized(nb::handle X) const;

    void add_arm(nb::object label);
    void remove_arm(std::size_t arm);
    void set_active(std::size_t arm, bool active);
    void advance(Word steps) { t += steps; }

    nb::object policy, state;
    Word t = 0;
    nb::list labels() const { return copy_list(labels_); }
    Array<bool> active() const;
    nb::tuple snapshot() const;
    nb::object estimates() const;
    void restore(nb::object other);
    void merge(nb::object other, const std::vector<std::size_t>& into, Word steps);
    Word table() const { return table_; }
    std::uint32_t locate(const Decision& decision) const;  // the index of its arm, or why it cannot be learned
    nb::object index_of(nb::handle label) const;           // None if there is no such arm

  private:
    // One event as `update` takes it; the reward is in the policy's own sense (more is better).
    struct Row {
        Word t;
        std::uint32_t arm;
        const double* x;
        double reward, weight, propensity;
        bool explored;
        std::int32_t tag;
        std::optional<double> replaces;
    };

    void read(nb::handle x, double* out) const;
    void normalize(double* x) const;
    std::vector<std::uint32_t> subset(nb::handle eligible) const;
    Choice ask(Word step, const double* x, const Coins& coins, Arms eligible) const;
    Array<bool> mask_of(Arms eligible) const;
    void choose_rows(const Schedule& schedule, Word before, const double* X, std::size_t rows, Arms eligible,
                     Decisions& out) const;
    void policy_probabilities(const double* X, std::size_t rows, Word step, Arms eligible, double* out) const;
    void update(const Row& row);
    void update(const Decision& decision, double reward, double weight, std::optional<double> replaces);
    void relabel();

    std::optional<Rule> rule_;
    Model model_;             // what the rule works on
    Statistics* statistics_;  // what can be forgotten from, or null if the state is no sum of rows
    nb::list labels_;
    nb::dict index_;
    std::vector<std::uint8_t> is_active_;
    std::vector<std::uint32_t> active_;
    Word table_ = 0;  // names this table of labels; a removal makes another
    Seed seed_;
    nb::object read_context_;
    double sign_;  // -1 where the user's rewards are costs
    bool normalize_;
    std::size_t dim_;
    bool learns_always_;
    nb::object lock_;
    mutable Scratch scratch_;
};

}  // namespace armlet
