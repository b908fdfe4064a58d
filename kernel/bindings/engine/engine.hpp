// The part of a bandit that every decision passes through: clock, arms, coins, estimates.
#pragma once
#include <chrono>
#include <memory>
#include <optional>

#include "bindings/budget/spending.hpp"
#include "bindings/engine/arm_table.hpp"
#include "bindings/engine/decisions.hpp"
#include "bindings/engine/python_policy.hpp"
#include "bindings/engine/streams.hpp"
#include "bindings/engine/turns.hpp"
#include "bindings/epochs/epoch.hpp"
#include "bindings/feature_history.hpp"
#include "bindings/log/recording.hpp"
#include "bindings/outcomes/outcomes.hpp"
#include "rules/rules.hpp"
#include "state/digits/digits.hpp"

namespace armlet {

// What the bandit knows of rewards before it sees any.
struct RewardRange {
    double low, high;
};

// The ranges of features: a context outside is read by Python, which refuses or clips it.
struct FeatureBounds {
    std::vector<double> low, high;
    bool hold(const double* x) const {
        bool inside = true;
        for (std::size_t j = 0; j < low.size(); ++j) inside &= x[j] >= low[j] && x[j] <= high[j];
        return inside;
    }
    bool operator==(const FeatureBounds&) const = default;
};

// Whether a change is to be made, or only to be refused if it would be: what is recorded before it is made must be
// sure to succeed.
enum class Act { perform, rehearse };

// Whether weights are lowered by the price of a budget, as those of decisions are.
enum class Price { charged, left_out };

// What a caller asks of one decision, as it was given: at the step `at`, which must lie ahead, or at the next one.
// `probabilities` is "all", or none if only that of the arm played is wanted; `propensity` is "marginal" if that is to
// be over all coins, as it is for a recorder; `weights` are of outcomes.
struct Asked {
    nb::handle x, eligible = Py_None, probabilities = Py_None, propensity = Py_None, weights = Py_None;
    std::optional<Word> at = std::nullopt;
    UnitGiven unit = {};
    std::optional<std::int32_t> minutes = std::nullopt;  // since 1970, checked: when it is made
};

// Columns of a log; a row that replaces nothing has NaN there.
struct LoggedRows {
    nb::handle X;
    const nb::list& arms;
    nb::handle steps, rewards, weights, explored, propensities, tags, replaces;
};

// What a bandit goes on with: another policy, other features or other ranges, and all that stays.
struct Replacement {
    nb::object policy, rule, read_context;
    nb::handle features;
    std::optional<RewardRange> range;
    nb::handle outcomes;  // none if there is one reward
    nb::handle budget;    // none if there is none; what was spent of one before stays spent
    std::optional<FeatureBounds> bounds;
    std::optional<Columns> columns;  // of other features
    nb::callable renew;              // from the state to the one to go on with
    nb::callable fields;             // what a recorder receives
    nb::handle values;               // attributes that are set with it
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
           nb::object read_context, nb::handle features, double sign, bool normalize, std::optional<RewardRange> range,
           nb::handle outcomes, nb::handle budget, std::optional<FeatureBounds> bounds);

    // ---- one step
    nb::object decide(const Asked& asked);
    // The weight may be missing.
    void learn(nb::handle decision, nb::handle reward, nb::handle weight);
    void correct(nb::handle decision, nb::handle old_reward, nb::handle new_reward);
    void forget(nb::handle decision, nb::handle reward);
    // Arms that have lost digits since the last call, with rows that were taken back.
    LostDigits::News take_lost();
    // What these arms had learned is gone: it cannot be taken back.
    void end_lives(const std::vector<std::size_t>& arms) {
        for (const auto arm : arms) arms_.end_life(arm);
    }
    // Its reward is no longer waited for.
    void expire(nb::handle decision);
    // What counts as its cost in the budget, whatever is learned.
    void bill(nb::handle decision, nb::handle cost);
    // A decision of this arm, made elsewhere, waits for its reward.
    void begin_decision(nb::handle label, bool explored);
    // When the next decision is made, in minutes since 1970, for a policy that forgets by time.
    void tell_time(std::int64_t minutes);
    // Refuses a caller's `at` that is far from the latest; in minutes else.
    std::int32_t check_at(std::int64_t minutes, nb::handle at) const;
    // It is now this time, however far that is from the latest.
    void set_time(std::int64_t minutes);
    // It is no earlier: rows of that time were checked when they were recorded.
    void reach_time(std::int64_t minutes);

    // ---- many at once
    // `units` has one, or None, for each row; or it is None. The epoch is for all, as are the weights.
    nb::object decide_many(nb::handle X, nb::handle eligible, std::optional<Word> first, nb::handle propensity,
                           nb::handle units, nb::handle epoch, nb::handle weights);
    void learn_many(const nb::list& decisions, nb::handle rewards, nb::handle weights);
    // `fixed` is the weight of those that no reward chose.
    void learn_rows(nb::handle X, const nb::list& arms, nb::handle rewards, nb::handle weights, nb::handle explored,
                    Word steps, double fixed);
    void learn_logged(const LoggedRows& given);
    // At the given step, or at the next one.
    Array<double> probabilities(nb::handle X, std::optional<Word> step, nb::handle eligible, nb::handle weights);
    Array<double> scaled(nb::handle X) const;
    // Labels, which of them may be played, theta_hat, the units that it is in and what scores leave out, all of one
    // moment.
    nb::tuple view(nb::handle eligible, nb::handle weights, Price price);

    // ---- arms
    void add_arm(nb::object label);
    void remove_arm(nb::handle label);
    void set_active(nb::handle label, bool active);
    nb::list labels() const { return arms_.labels(); }
    ArmSet arm_set(nb::handle labels) const;
    nb::list retired() const { return arms_.retired(); }

    // ---- units
    // How long an epoch is, and the one that is under way, as `epoch_under_way` gives it, or None.
    void set_epochs(std::optional<Word> length, nb::handle under_way);
    // What the decision of a unit at this step, made elsewhere, does if it is the first of its epoch.
    void begin_epoch(Word number, Word step);
    // The number of the epoch that is under way, the step of its first decision and a copy of its state; or None.
    nb::object epoch_under_way() const;
    std::optional<Word> epoch_number() const;

    // ---- the whole
    void advance(Word steps);
    void advance_to(Word step);
    void reseed(nb::handle seed);
    void know(nb::handle seed);  // decisions made with it may be learned here
    // Clock, labels, those retired, a copy of the state, the seed, other known seeds and what was spent, of one moment.
    nb::object snapshot();
    void replace(const Replacement& next);
    // It is a copy of another.
    void continue_lives(const Engine& other) { arms_.continue_lives(other.arms_), history_ = other.history_; }
    // Goes on as another bandit is, but for seeds and recorder, and sets attributes: what a log says after a doubt.
    void become(const Engine& other, nb::handle values);
    // Takes over another state of the same arms, which stands for this many steps more, and its weight of rows that no
    // reward chose, if that is known.
    void restore(nb::object other, const nb::list& labels, Word steps, std::optional<double> fixed);
    // Adds another bandit's state, arms, clock and, without a recorder, streams, as they were of one moment. Its
    // decisions may be learned here, those from before its features were replaced too. `fields` gives what a recorder
    // receives.
    void merge(nb::object other, const nb::list& labels, const nb::list& retired, Word steps, const nb::list& seeds,
               nb::handle spending, const nb::callable& fields, const Engine& from);
    // Price, spend, decisions and costs to come, or none without a budget.
    nb::object spending() const;
    nb::object spending_values() const;
    void restore_spending(nb::handle values);
    // From now on a recorder receives every change.
    void attach(nb::object recording) { recording_.emplace(std::move(recording), t); }

    nb::object policy, state;
    Word t = 0;
    double fixed_rows = 0.0;  // the weight of rows that no reward chose
    nb::object seed() const;

    int traverse(visitproc visit, void* arg) const;
    void clear();

  private:
    // The one place where the bandit changes: without a recorder at once; with one, under its lock, the change is
    // rehearsed, recorded as `kind` with what `fields` gives, and then made. Nothing that is refused is recorded, and
    // nothing that could not be recorded is done. Between record and change no code of Python runs, but for `check` of
    // a policy: what it does to a state, a rehearsal has done to a copy.
    template <typename Fields, typename Make>
    void change(const char* kind, Fields&& fields, Make&& make) {
        if (!recording_) return make(Act::perform);
        const Recording::Locked lock(*recording_);
        const Rehearsal rehearsal(rehearsed_);
        Recording::Record record(*recording_);
        make(Act::rehearse);
        record.change(kind, fields());
        make(Act::perform);
        record.keep();
    }
    // Drops the state that a rehearsal has made, used or not.
    class Rehearsal {
      public:
        explicit Rehearsal(nb::object& state) : state_(state) { state_.reset(); }
        ~Rehearsal() { state_.reset(); }
        Rehearsal(const Rehearsal&) = delete;

      private:
        nb::object& state_;
    };
    // Goes on with the state of the rehearsal if there is one, as there is of a policy in Python with a recorder.
    bool take_rehearsed();
    void go_on_with(nb::object next);
    // Whether the state is one of Python's, whose methods may be interrupted.
    bool has_python_state() const { return python_policy_ && !model_.has_sums(); }
    // The same for decisions, which are made first: one that could not be recorded is expired, since nobody gets it.
    nb::object make_decision(const Asked& asked, Propensities wanted);
    Decisions make_decisions(nb::handle X, nb::handle eligible, std::optional<Word> first, Propensities wanted,
                             const std::vector<UnitGiven>& units, nb::handle weights);
    // The epoch that a unit's decision at this step begins, if it is the first one there.
    std::optional<Epoch> new_epoch(const UnitGiven& unit, Word step) const;
    Basis basis_at(Word step) const { return {model_, python_policy_, step, toss(streams_.own(), step), price_now()}; }
    Choice choose(const Basis& basis, const double* x, Arms eligible, Propensities wanted);
    Propensities wanted_propensities(nb::handle propensity) const;
    bool forgets_by_time() const { return model_.has_sums() && model_.sums().discount().is_by_time(); }
    // The time that is named, or was told, as of which all is looked at from now on; 0 for a policy that needs none.
    std::int32_t take_time(std::optional<std::int32_t> named);
    // ---- clocks of a policy that forgets by time: moments.cpp
    void check_time(std::int64_t minutes) const;
    std::int64_t latest_time() const;
    double half_lives_ahead(std::int64_t minutes) const;  // of the latest
    void check_moment(const Decision& decision) const;
    void check_moments(std::vector<std::int64_t> tags) const;
    void check_clock(const Statistics& other) const;
    void expire(Decision& decision, Act act);
    // What a recorder receives of a decision: its id; and its record, unless it received that before.
    nb::dict recorded(const Decision& decision) const;

    void read(nb::handle x, double* out, std::size_t width) const;
    // As the policy sees it: scaled, if the bandit scales.
    const double* seen(const double* x) { return scales_ ? scaled_copy(x) : x; }
    const double* scaled_copy(const double* x);
    void scale(double* x, std::size_t width) const;
    const double* carried_context(const Decision& decision);  // as features are now
    void check_features(Word before) const;  // neither they nor their ranges were replaced since a context was read
    void check_within(const std::vector<double>& X, std::size_t rows) const;
    void check_reward(double reward) const {
        if (range_ && !(reward >= range_->low && reward <= range_->high)) refuse_reward(reward);
    }
    [[noreturn]] void refuse_reward(double reward) const;
    // Warns of rows that teach nothing, or badly.
    void watch(const double* x, std::size_t dim, double reward);
    bool is_watching() const { return !outcomes_ && (rewards_.is_open() || (digits_ && digits_->is_open())); }
    std::size_t watched_width(const Decision& d) const { return history_.since(d.features) ? 0 : d.dim(); }
    Word steps_after(Word step, std::size_t n) const;
    Word next_steps(std::size_t n) const { return steps_after(t, n); }
    Word step_ahead(std::optional<Word> at) const;
    void check_alive() const;
    void check_state() const {
        if (model_.has_sums() && model_.sums().n_arms() != arms_.size()) refuse_state(model_.sums());
    }
    [[noreturn]] void refuse_state(const Statistics& sums) const;
    void tell_state();  // which arms are active
    struct Turn {
        Turn() : uncollected(std::in_place) {}  // of a compiled policy
        explicit Turn(Turns& turns) : whole(std::in_place, turns, Turns::Whole::Purpose::change) {}  // of one in Python
        std::optional<Turns::Whole> whole;
        std::optional<Uncollected> uncollected;
    };
    Turn decide_turn();
    Turn learn_turn();

    std::uint32_t locate(const Decision& decision) const;  // the index of its arm, or why it cannot be learned
    std::optional<std::uint32_t> arm_of(const Decision& decision) const;  // if it was not removed
    // A decision that explored, or did not, has a reward to come: it counts if it is going to be a row.
    bool is_counted(bool explored) const { return model_.has_sums() && (explored || learns_always_); }
    void begin(std::uint32_t arm, bool explored) { is_counted(explored) ? model_.sums().begin_decision(arm) : void(); }
    void end(std::uint32_t arm, bool explored) { is_counted(explored) ? model_.sums().end_decision(arm) : void(); }
    void note_learned(Decision& decision, std::uint32_t arm, std::span<const double> parts, double weight);

    // ---- several outcomes: outcomes.cpp
    // A policy in Python has no use for them.
    static void check_takes(nb::handle outcomes, nb::handle policy, const std::optional<Rule>& rule);
    void take_outcomes();  // how they weigh, and the prices of arms
    std::optional<Outcomes::Dial> read_dial(nb::handle weights) const;
    // From now on; by the usual weights if there is no dial.
    // The price is that of now, or the one that a unit meets.
    void weigh(const Model& model, const std::optional<Outcomes::Dial>& dial, double price);
    nb::tuple view_weighed(nb::object labels, nb::object playable, const std::optional<Outcomes::Dial>& dial,
                           Price price);

    // ---- a reward has parts: one, which is the reward itself, or outcomes. NaN where one has not come: rewards.cpp
    std::size_t n_values() const { return outcomes_ ? outcomes_->n_learned() : 1; }
    Values read_parts(nb::handle given, const char* argument) const;
    void check_range(std::size_t j, double value) const;
    void check_ranges(const Values& parts, double outside) const {
        outcomes_ ? check_outcome_ranges(parts, outside) : check_reward(parts[0]);
    }
    void check_outcome_ranges(const Values& parts, double outside) const;
    Values parts_of(const Decision& decision) const;
    Values with_parts(const Decision& decision, const Values& parts) const;
    Values corrected(const Decision& decision, const Values& from, const Values& to) const;
    double weight_of(const Decision& decision, nb::handle weight) const {
        return weight.is_valid() || outcomes_ ? read_part_weight(decision, weight) : 1.0;
    }
    double read_part_weight(const Decision& decision, nb::handle weight) const;
    double worth(std::span<const double> parts) const { return outcomes_ ? outcomes_->reward(parts) : parts[0]; }
    nb::object written(std::span<const double> parts) const;
    void keep_parts(Decision& decision, std::span<const double> parts) const;
    [[noreturn]] void refuse_parts(const Decision& decision, const Values& parts, const char* argument) const;
    // Rewards of n rows: their numbers, or (n, n_values()) of outcomes; checked.
    const double* rewards_of_rows(nb::handle rewards, const char* argument, std::size_t n) const;
    std::vector<double> read_rewards(nb::handle rewards, const char* argument, std::size_t n) const;
    void set_reward(Event& event, const double* values, const double* before = nullptr) const;
    nb::object reward_columns(const std::vector<double>& values) const;  // as a recorder receives them

    // ---- a budget of one of them: spending.cpp
    void take_budget(nb::handle budget);
    double price_now() const { return spending_ ? spending_->pacer().price() : 0.0; }
    void spend(std::uint32_t arm);                    // a decision of this arm was made
    double spent_on(const Decision& decision) const;  // NaN if its cost is to come, or known
    void spend_on(Decision& decision, double cost);
    void count_cost(std::span<const double> parts, Decision& decision) {
        if (spending_) count_cost_of(parts, decision);
    }
    void count_cost_of(std::span<const double> parts, Decision& decision);
    void bill(Decision& decision, double cost);
    void bill_outside(Decision& decision, double cost);  // its range, with a warning
    void warn_of_excess(const Decision& decision, double more) const;
    // The cost among these outcomes, if it lies outside of its range and there is a budget that spends it; else NaN.
    double bill_in(std::span<const double> parts) const { return spending_ ? cost_outside(parts) : NAN; }
    double cost_outside(std::span<const double> parts) const;
    bool is_cost_to_come(const Decision& decision) const;
    // Those of some arms that a hard budget affords.
    std::optional<std::vector<std::uint32_t>> affordable(Arms arms) const;

    void check_known(const Decision& decision) const;
    void check_learnable(const Decision& decision) const;
    void check_can_take_back(const Decision& decision, std::uint32_t arm, const char* verb) const;
    void check_held(std::uint32_t arm, bool explored, double weight, When when, const char* verb) const;
    void update(const Event& event);
    Event event_of(const Decision& decision, std::uint32_t arm, std::span<const double> parts, double weight,
                   const Values* before = nullptr);
    void rehearse(const Event& event);

    enum class Source { own, elsewhere };    // of rows: decisions of this bandit, or of somebody else
    enum class Refusals { none, possible };  // of rows, once others have been learned
    template <typename When>
    void choose_rows(const When& when, const double* X, Arms eligible, Decisions& out) const;
    void choose_rows_in_slices(const double* X, Arms eligible, Propensities wanted,
                               const std::optional<Outcomes::Dial>& dial, Decisions& out);
    void ask_rows(const double* X, Arms eligible, Word before, Decisions& out);
    void choose_rows_of_units(const double* X, Arms eligible, Propensities wanted, const std::vector<UnitGiven>& units,
                              const std::optional<Outcomes::Dial>& dial, Word before, Decisions& out);
    template <typename Learn>
    void learn_all(std::size_t rows, const std::vector<std::uint32_t>& arms, Learn&& learn, Source source,
                   Refusals refusals = Refusals::none);
    template <typename Get>
    void rehearse_all(std::size_t rows, Get&& event_at);

    std::optional<Rule> rule_;
    Model model_;                                // what the rule works on, or the sums of a policy in Python, if any
    std::optional<PythonPolicy> python_policy_;  // where there is no rule
    ArmTable arms_;
    Streams streams_;
    Epochs epochs_;
    nb::object read_context_;
    // of features in order, if dicts are read by them; shared with who reads one while they are replaced
    Names names_;
    FeatureHistory history_;
    double sign_;  // -1 where the user's rewards are costs
    bool scales_;
    std::optional<std::int32_t> told_;  // when the next decision is made
    struct Latest {
        std::int32_t minutes;  // since 1970
        std::chrono::steady_clock::time_point since;
    };
    std::optional<Latest> latest_;  // time that a caller named, and when that was by a clock that is never set
    std::optional<RewardRange> range_;
    std::optional<FeatureBounds> bounds_;
    Word reading_ = 0;                  // how often features or their ranges were replaced
    std::optional<Outcomes> outcomes_;  // where there are several
    std::optional<Spending> spending_;  // where one of them has a budget
    std::size_t dim_;
    bool learns_always_;
    Turns turns_;
    Scratch scratch_;
    std::vector<double> scaled_, carried_;  // one context
    SameRewards rewards_;
    std::optional<DigitWatch> digits_;    // in units as given
    std::optional<Recording> recording_;  // of a bandit with a log
    nb::object rehearsed_;                // a state that the next change goes on with; null but within a call
};

}  // namespace armlet
