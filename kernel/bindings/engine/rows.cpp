// Many contexts to decide or to read about, in slices.
#include <algorithm>

#include "bindings/engine/batch_turn.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/engine/slices.hpp"
#include "rules/batch.hpp"

namespace armlet {

namespace {

using Purpose = Turns::Whole::Purpose;

// The decisions of a batch as it is made; nobody gets any of them if it fails.
class Begun {
  public:
    explicit Begun(const Model& model) : model_(model) {}
    Begun(const Begun&) = delete;
    ~Begun() {
        for (const auto arm : arms_) model_.sums().end_decision(arm);
    }
    void add(std::uint32_t arm) {
        arms_.push_back(arm);
        model_.sums().begin_decision(arm);
    }
    void keep() { arms_.clear(); }

  private:
    const Model& model_;
    std::vector<std::uint32_t> arms_;
};

// What they cost, also.
class Spent {
  public:
    Spent(std::optional<Spending>& spending, const std::optional<Outcomes>& outcomes)
        : spending_(spending), outcomes_(outcomes) {}
    Spent(const Spent&) = delete;
    ~Spent() {
        for (const auto arm : arms_) spending_->undo(arm, *outcomes_);
    }
    void add(std::uint32_t arm) {
        if (!spending_) return;
        arms_.push_back(arm);
        spending_->begin(arm, *outcomes_);
    }
    void keep() { arms_.clear(); }

  private:
    std::optional<Spending>& spending_;
    const std::optional<Outcomes>& outcomes_;
    std::vector<std::uint32_t> arms_;
};

}  // namespace

// ---- deciding

// One theta for all rows, so that most of the work is done without the interpreter lock.
template <typename When>
void Engine::choose_rows(const When& when, const double* X, Arms eligible, Decisions& out) const {
    const Statistics& all = model_.sums();
    const Estimates live = all.estimates();
    const std::vector<double> theta(live.theta, live.theta + live.dim * live.width);  // others may learn meanwhile
    const Estimates frozen{theta.data(), live.dim, live.width};
    const Units units = all.units();  // also
    const Seed seed = streams_.own();
    const BatchArgmax argmax(frozen, eligible);
    const std::size_t slice = std::max<std::size_t>(64, (std::size_t{1} << 24) / (live.dim * live.width));
    std::vector<std::uint32_t> best(std::min(slice, out.size()));
    std::vector<double> scratch(frozen.width), views(units.is_free() ? best.size() * live.dim : 0);
    for (std::size_t begin = 0; begin < out.size(); begin += slice) {
        if (begin > 0) Slices::let_others_run();
        nb::gil_scoped_release release;
        const std::size_t rows = std::min(slice, out.size() - begin);
        const double* seen = X + begin * dim_;
        if (units.is_free()) {
            for (std::size_t i = 0; i < rows; ++i) units.view(seen + i * dim_, views.data() + i * live.dim);
            seen = views.data();
        }
        argmax(seen, rows, best.data());
        for (std::size_t i = 0; i < rows; ++i) {
            const Word step = out.before + begin + i + 1;
            const Coins coins = toss(seed, step);
            const double* x = seen + i * live.dim;
            out.note(begin + i, best[i] == undecided
                                    ? armlet::decide(frozen, when, step, x, coins, eligible, scratch.data())
                                    : decide_known(when, step, coins, eligible, best[i]));
        }
    }
}

// As `decide` would, one after the other: each finds those before it under way.
void Engine::choose_rows_in_slices(const double* X, Arms eligible, Propensities wanted,
                                   const std::optional<Outcomes::Dial>& dial, Decisions& out) {
    Slices slices;
    Begun begun(model_);
    Spent spent(spending_, outcomes_);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Word step = out.before + i + 1;
        const Coins coins = toss(streams_.own(), step);
        weigh(model_, dial, price_now());  // others may have decided meanwhile
        const Choice choice = armlet::decide(*rule_, model_, step, X + i * dim_, coins, eligible, scratch_, wanted);
        out.note(i, choice);
        if (is_counted(choice.explored)) begun.add(choice.arm);
        spent.add(choice.arm);
        if (slices.pause()) check_state();
    }
    begun.keep();
    spent.keep();
}

// A refusal gives the steps back; an interrupted batch has used them.
void Engine::ask_rows(const double* X, Arms eligible, Word before, Decisions& out) {
    Begun begun(model_);
    try {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Word step = out.before + i + 1;
            const Coins coins = toss(streams_.own(), step);
            const Choice choice = python_policy_->decide(step, X + i * dim_, coins, eligible, arms_.size());
            out.note(i, choice);
            if (is_counted(choice.explored)) begun.add(choice.arm);
        }
        begun.keep();
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_Exception)) t = before;
        throw;
    }
}

// As `decide` would, one after the other. Nobody else has a turn meanwhile, so that a batch that fails takes the epochs
// that it began with it; an interrupted one has used its steps.
void Engine::choose_rows_of_units(const double* X, Arms eligible, Propensities wanted,
                                  const std::vector<UnitGiven>& units, const std::optional<Outcomes::Dial>& dial,
                                  Word before, Decisions& out) {
    const auto epoch = epochs_.current;
    const auto spending = spending_;
    Begun begun(model_);
    Slices slices;
    try {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Word step = out.before + i + 1;
            const bool has_unit = units[i].is_any();
            if (auto next = has_unit ? new_epoch(units[i], step) : std::nullopt) epochs_.current = std::move(next);
            const Basis basis =
                has_unit ? epochs_.current->basis(seed_of(streams_.own(), units[i].name)) : basis_at(step);
            weigh(basis.model, dial, basis.price);
            const Choice choice = choose(basis, X + i * dim_, eligible, wanted);
            out.note(i, choice);
            if (has_unit) out.note_unit(i, units[i].name, epochs_.current->number);
            if (is_counted(choice.explored)) begun.add(choice.arm);
            spend(choice.arm);
            slices.pause();
        }
        begun.keep();
    } catch (const nb::python_error& error) {
        epochs_.current = epoch, spending_ = spending;
        if (error.matches(PyExc_Exception)) t = before;
        throw;
    } catch (...) {
        epochs_.current = epoch, spending_ = spending, t = before;
        throw;
    }
}

nb::object Engine::decide_many(nb::handle X, nb::handle eligible, std::optional<Word> first, nb::handle propensity,
                               nb::handle units, nb::handle epoch, nb::handle weights) {
    const Propensities wanted = wanted_propensities(propensity);
    const auto given = units_given(units, epoch);
    if (!recording_) return nb::cast(make_decisions(X, eligible, first, wanted, given, weights));
    const Recording::Locked lock(*recording_);
    const auto spent = spending_;
    const auto under_way = epochs_.current;
    const Word before = t;
    Recording::Record record(*recording_);
    nb::object made;
    try {
        made = nb::cast(make_decisions(X, eligible, first, wanted, given, weights));
    } catch (...) {
        t = before;  // no recorder has received anything
        throw;
    }
    const nb::list& items = nb::cast<Decisions&>(made).items();
    try {
        nb::list many;
        for (nb::handle decision : items) many.append(to_dict(as_decision(decision)));
        record.decisions(made, many);
    } catch (...) {
        for (nb::handle decision : items) expire(as_decision(decision), Act::perform);
        if (!given.empty()) epochs_.current = under_way;
        spending_ = spent;
        if (record.is_of_lines()) t = before;
        throw;
    }
    record.keep();
    return made;
}

Decisions Engine::make_decisions(nb::handle X, nb::handle eligible, std::optional<Word> first, Propensities propensity,
                                 const std::vector<UnitGiven>& units, nb::handle weights) {
    const auto wanted = wanted_of(eligible);
    const auto dial = read_dial(weights);
    const Word features = history_.id(), reading = reading_;
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> given = copy(doubles(X, "X", {rows, dim_}), rows * dim_), scaled;
    check_within(given, rows);
    if (scales_) {
        scaled = given;
        for (std::size_t i = 0; i < rows; ++i) scale(scaled.data() + i * dim_, dim_);
    }
    if (!units.empty() && units.size() != rows)
        fail(PyExc_ValueError, "there are " + std::to_string(units.size()) + " units for " + std::to_string(rows) +
                                   " rows of X; give one for each");
    const BatchTurn<Turns::SameArms> turn(turns_, python_policy_.has_value() || !units.empty(), Purpose::change);
    check_features(reading);
    check_state();
    if (forgets_by_time())
        fail(PyExc_ValueError, quoted(policy) + " forgets by time; decide one by one: decide(x, at=...)");
    const auto arms = arms_.playable(wanted);
    if (spending_ && spending_->is_hard()) spending_->check_affords(arms, rows, *outcomes_);
    const Word before = first ? step_ahead(first) - 1 : t, after = steps_after(before, rows);
    Decisions out(before, streams_.own(), arms_.labels(), arms_.id(), dim_, features, std::move(given),
                  wanted.is_all() ? nb::object() : arms_.labels_of(arms),
                  dial ? outcomes_->named(*dial) : NamedNumbers());
    weigh(model_, dial, price_now());
    const double* contexts = scales_ ? scaled.data() : out.X.data();
    const Word stood = std::exchange(t, after);  // these steps are ours, no matter who decides meanwhile
    if (!units.empty()) {
        choose_rows_of_units(contexts, arms, propensity, units, dial, stood, out);
    } else if (python_policy_) {
        ask_rows(contexts, arms, stood, out);
    } else if (spending_ || model_.sums().discount().is_on()) {  // each may move the price of the next, or time passes
        choose_rows_in_slices(contexts, arms, propensity, dial, out);
    } else if (const auto schedule = schedule_of(*rule_, model_)) {
        model_.sums().refresh();
        choose_rows(*schedule, contexts, arms, out);
    } else if (const auto* constant = std::get_if<ConstantRate>(&*rule_)) {
        model_.sums().refresh();
        choose_rows(*constant, contexts, arms, out);
    } else if (auto exploring = exploring_of(*rule_, model_); exploring && !model_.sums().under_way().is_open()) {
        model_.sums().refresh();
        // copies, since others may learn meanwhile
        const std::vector<double> weights(exploring->exploration_weights.begin(), exploring->exploration_weights.end());
        const std::vector<double> quotas(exploring->quotas.begin(), exploring->quotas.end());
        exploring->exploration_weights = weights, exploring->quotas = quotas;
        choose_rows(*exploring, contexts, arms, out);
    } else {
        choose_rows_in_slices(contexts, arms, propensity, dial, out);
    }
    return out;
}

// ---- reading

Array<double> Engine::probabilities(nb::handle X, std::optional<Word> given_step, nb::handle eligible,
                                    nb::handle weights) {
    const auto wanted = wanted_of(eligible);
    const auto dial = read_dial(weights);
    const Word reading = reading_;
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> contexts = copy(doubles(X, "X", {rows, dim_}), rows * dim_);
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(contexts.data() + i * dim_, dim_);
    const BatchTurn<Turns::SameArms> turn(turns_, python_policy_.has_value(), Purpose::look);
    check_features(reading);
    check_state();
    auto arms = arms_.playable(wanted);
    if (auto fewer = affordable(arms)) arms = std::move(*fewer);
    const std::size_t n_arms = arms_.size();
    const Word step = given_step ? *given_step : next_steps(1);
    std::vector<double> out(rows * n_arms);
    Slices slices;
    for (std::size_t i = 0; i < rows; ++i) {
        const double* x = contexts.data() + i * dim_;
        double* row = out.data() + i * n_arms;
        weigh(model_, dial, price_now());  // others may have decided meanwhile
        if (python_policy_)
            python_policy_->probabilities(step, x, arms, n_arms, row);
        else
            armlet::probabilities(*rule_, model_, step, x, arms, scratch_, {row, n_arms});
        if (slices.pause()) check_state();
    }
    return to_numpy(std::move(out), {rows, n_arms});
}

nb::tuple Engine::view(nb::handle eligible, nb::handle weights, Price price) {
    const auto wanted = wanted_of(eligible);
    const auto dial = read_dial(weights);
    const BatchTurn<Turns::SameArms> turn(turns_, python_policy_.has_value(), Purpose::look);
    check_state();
    if (rule_) look(model_, t);
    const std::size_t n_arms = arms_.size();
    std::vector<std::uint8_t> mask(n_arms);
    for (const auto arm : arms_.playable(wanted)) mask[arm] = 1;
    nb::object labels = arms_.labels(), playable = nb::cast(to_numpy<bool>(std::move(mask), {n_arms}));
    nb::object fitted = nb::hasattr(policy, "fitted") ? policy.attr("fitted")(state) : nb::none();
    if (outcomes_) return view_weighed(labels, playable, dial, price);
    if (nb::isinstance<Statistics>(fitted) && nb::cast<Statistics&>(fitted).units().is_free()) {
        const Units units = nb::cast<Statistics&>(fitted).units();
        return nb::make_tuple(labels, playable, fitted.attr("standard_estimates")(), units, units.base());
    }
    nb::object theta = policy.attr("estimates")(state);
    if (python_policy_) python_policy_->check_estimates(theta, n_arms);
    return nb::make_tuple(labels, playable, theta, nb::none(), 0.0);
}

Array<double> Engine::scaled(nb::handle X) const {
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> out = copy(doubles(X, "X", {rows, dim_}), rows * dim_);
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(out.data() + i * dim_, dim_);
    return to_numpy(std::move(out), {rows, dim_});
}

}  // namespace armlet
