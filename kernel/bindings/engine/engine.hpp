// The part of a bandit that every decision passes through: clock, arms, coins, estimates.
#pragma once
#include <memory>
#include <optional>

#include "bindings/engine/arm_table.hpp"
#include "bindings/engine/decisions.hpp"
#include "bindings/engine/python_policy.hpp"
#include "bindings/engine/recording.hpp"
#include "bindings/engine/streams.hpp"
#include "bindings/engine/turns.hpp"
#include "bindings/feature_history.hpp"
#include "rules/rules.hpp"
#include "state/digits.hpp"

namespace armlet {

// What the bandit knows of rewards before it sees any.
struct RewardRange {
    double low, high;
};

// Whether a change is to be made, or only to be refused if it would be: what is recorded before it is made must be
// sure to succeed.
enum class Act { perform, rehearse };

// Columns of a log; a row that replaces nothing has NaN there.
struct LoggedRows {
    nb::handle X;
    const nb::list& arms;
    nb::handle steps, rewards, weights, explored, propensities, tags, replaces;
};

// What a bandit goes on with: another policy, other features or another range of rewards, and all that stays.
struct Replacement {
    nb::object policy, rule, read_context;
    nb::handle features;
    std::optional<RewardRange> range;
    std::optional<Columns> columns;  // of other features
    nb::callable renew;              // from the state to the one to go on with
    nb::callable fields;             // what a recorder receives
    nb::callable settle;             // is called when it is done, before anybody else has a turn
};

using Names = std::shared_ptr<const std::vector<nb::object>>;
// Of features, if no code of a subclass can change them; else none, and dicts are for Python to read.
Names names_of(nb::handle features, std::size_t dim);

// The sums that a state holds, where it is made of sums.
Model model_in(nb::handle state);

class Engine {
  public:
    // A policy with a compiled rule runs here; any other is asked in Python.
    // Contexts by name are read here where `features` names them, by `read_context` elsewhere.
    Engine(nb::object policy, nb::object rule, nb::object state, nb::list labels, nb::handle seed,
           nb::object read_context, nb::handle features, double sign, bool normalize, std::optional<RewardRange> range);

    // ---- one step
    // At the given step, which must lie ahead, or at the next one.
    // `probabilities` is "all", or none if only that of the arm played is wanted; `propensity` is "marginal" if that is
    // to be over all coins, as it is for a recorder.
    nb::object decide(nb::handle x, nb::handle eligible, nb::handle probabilities, nb::handle propensity,
                      std::optional<Word> at = std::nullopt);
    // The weight may be missing.
    void learn(nb::handle decision, nb::handle reward, nb::handle weight);
    void correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward);
    void forget(nb::handle decision, nb::handle reward);
    // Its reward is no longer waited for.
    void expire(nb::handle decision);
    // A decision of this arm, made elsewhere, waits for its reward.
    void begin_decision(nb::handle label, bool explored);

    // ---- many at once
    nb::object decide_many(nb::handle X, nb::handle eligible, std::optional<Word> first, nb::handle propensity);
    void learn_many(const nb::list& decisions, nb::handle rewards, nb::handle weights);
    void learn_rows(nb::handle X, const nb::list& arms, nb::handle rewards, nb::handle weights, nb::handle explored,
                    Word steps);
    void learn_logged(const LoggedRows& given);
    // At the given step, or at the next one.
    Array<double> probabilities(nb::handle X, std::optional<Word> step, nb::handle eligible);
    Array<double> scaled(nb::handle X) const;
    // Labels, which of them may be played, theta_hat and the units that it is in, all of one moment.
    nb::tuple view(nb::handle eligible);

    // ---- arms
    void add_arm(nb::object label);
    void remove_arm(nb::handle label);
    void set_active(nb::handle label, bool active);
    nb::list labels() const { return arms_.labels(); }
    ArmSet arm_set(nb::handle labels) const;
    nb::list retired() const { return arms_.retired(); }

    // ---- the whole
    void advance(Word steps);
    void advance_to(Word step);
    void reseed(nb::handle seed);
    void know(nb::handle seed);  // decisions made with it may be learned here
    // Clock, labels, those retired, a copy of the state, the seed and other known seeds, of one moment.
    nb::object snapshot();
    void replace(const Replacement& next);
    // It is a copy of another.
    void continue_lives(const Engine& other) { arms_.continue_lives(other.arms_), history_ = other.history_; }
    // Its decisions may be learned here, those from before its features were replaced too.
    void know_features(const Engine& other) { history_.know(other.history_); }
    // Takes over another state of the same arms, which stands for this many steps more.
    void restore(nb::object other, const nb::list& labels, Word steps);
    // Adds another bandit's state, arms, clock and, without a recorder, streams. `fields` gives what one receives.
    void merge(nb::object other, const nb::list& labels, const nb::list& retired, Word steps, const nb::list& seeds,
               const nb::callable& fields);
    // From now on a recorder receives every change.
    void attach(nb::object recording) { recording_.emplace(std::move(recording), t); }

    nb::object policy, state;
    Word t = 0;
    nb::object seed() const;

    int traverse(visitproc visit, void* arg) const;
    void clear();

  private:
    // The one place where the bandit changes: without a recorder at once; with one, under its lock, the change is
    // rehearsed, recorded as `kind` with what `fields` gives, and then made. Nothing that is refused is recorded, and
    // nothing that could not be recorded is done.
    template <typename Fields, typename Make>
    void change(const char* kind, Fields&& fields, Make&& make) {
        if (!recording_) return make(Act::perform);
        const Recording::Locked lock(*recording_);
        make(Act::rehearse);
        recording_->on_event(kind, fields());
        make(Act::perform);
    }
    // The same for decisions, which are made first: one that could not be recorded is expired, since nobody gets it.
    nb::object make_decision(nb::handle x, nb::handle eligible, nb::handle probabilities, Propensities wanted,
                             std::optional<Word> at);
    Decisions make_decisions(nb::handle X, nb::handle eligible, std::optional<Word> first, Propensities wanted);
    Propensities wanted_propensities(nb::handle propensity) const;
    void expire(Decision& decision, Act act);
    // What a recorder receives of a decision: its id; and its record, unless it received that before.
    nb::dict recorded(const Decision& decision) const;

    void read(nb::handle x, double* out, std::size_t width) const;
    const double* seen(const double* x);  // as the policy sees it: scaled, if the bandit scales
    void scale(double* x, std::size_t width) const;
    const double* carried_context(const Decision& decision);  // as features are now
    void check_features(Word before) const;                   // nobody has replaced them since a context was read
    double read_reward(nb::handle value) const;
    void check_reward(double reward) const;
    void watch(const double* x, std::size_t dim, double reward);  // warns of rows that teach nothing, or badly
    std::size_t watched_width(const Decision& d) const { return history_.since(d.features) ? 0 : d.dim(); }
    Word steps_after(Word step, std::size_t n) const;
    Word next_steps(std::size_t n) const { return steps_after(t, n); }
    Word step_ahead(std::optional<Word> at) const;
    void check_alive() const;
    void check_state() const;
    void tell_state();  // which arms are active
    std::optional<Turns::Whole> decide_turn();
    std::optional<Turns::Whole> learn_turn();

    std::uint32_t locate(const Decision& decision) const;  // the index of its arm, or why it cannot be learned
    std::optional<std::uint32_t> arm_of(const Decision& decision) const;  // if it was not removed
    // A decision that explored, or did not, has a reward to come: it counts if it is going to be a row.
    bool is_counted(bool explored) const { return model_.has_sums() && (explored || learns_always_); }
    void begin(std::uint32_t arm, bool explored) { is_counted(explored) ? model_.all().begin_decision(arm) : void(); }
    void end(std::uint32_t arm, bool explored) { is_counted(explored) ? model_.all().end_decision(arm) : void(); }
    void note_learned(Decision& decision, std::uint32_t arm, double reward, double weight);
    void check_known(const Decision& decision) const;
    void check_learnable(const Decision& decision) const;
    void check_can_take_back(const Decision& decision, std::uint32_t arm, const char* verb) const;
    void check_held(std::uint32_t arm, bool explored, double weight, const char* verb) const;
    void update(const Event& event);
    Event event_of(const Decision& decision, std::uint32_t arm, double reward, double weight,
                   std::optional<double> replaces);
    void rehearse(const Event& event) const;

    enum class Source { own, elsewhere };    // of rows: decisions of this bandit, or of somebody else
    enum class Refusals { none, possible };  // of rows, once others have been learned
    template <typename When>
    void choose_rows(const When& when, const double* X, Arms eligible, Decisions& out) const;
    void choose_rows_in_slices(const double* X, Arms eligible, Propensities wanted, Decisions& out);
    void ask_rows(const double* X, Arms eligible, Word before, Decisions& out);
    template <typename Learn>
    void learn_all(std::size_t rows, const std::vector<std::uint32_t>& arms, Learn&& learn, Source source,
                   Refusals refusals = Refusals::none);
    template <typename Get>
    void rehearse_all(std::size_t rows, Get&& event_at) const;

    std::optional<Rule> rule_;
    Model model_;                                // what the rule works on, or the sums of a policy in Python, if any
    std::optional<PythonPolicy> python_policy_;  // where there is no rule
    ArmTable arms_;
    Streams streams_;
    nb::object read_context_;
    // of features in order, if dicts are read by them; shared with who reads one while they are replaced
    Names names_;
    FeatureHistory history_;
    double sign_;  // -1 where the user's rewards are costs
    bool scales_;
    std::optional<RewardRange> range_;
    std::size_t dim_;
    bool learns_always_;
    Turns turns_;
    Scratch scratch_;
    std::vector<double> scaled_, carried_;  // one context
    SameRewards rewards_;
    std::optional<DigitWatch> digits_;    // in units as given
    std::optional<Recording> recording_;  // of a bandit with a log
};

}  // namespace armlet
