// Many contexts at once, in slices.
#include <algorithm>

#include "bindings/engine/engine.hpp"
#include "bindings/engine/slices.hpp"
#include "bindings/engine/undo.hpp"
#include "rules/batch.hpp"

namespace armlet {

namespace {

std::vector<double> copy(const double* values, std::size_t n) { return {values, values + n}; }

std::vector<std::uint32_t> each_once(std::vector<std::uint32_t> arms) {
    std::sort(arms.begin(), arms.end());
    arms.erase(std::unique(arms.begin(), arms.end()), arms.end());
    return arms;
}

// The turn of a batch: a policy in Python has the bandit to itself, a compiled one shares it between slices.
template <typename Shared>
struct BatchTurn {
    BatchTurn(Turns& turns, bool is_asked, Turns::Whole::Purpose purpose) {
        if (is_asked)
            whole.emplace(turns, purpose);
        else
            shared.emplace(turns);
    }
    std::optional<Turns::Whole> whole;
    std::optional<Shared> shared;
};

using Purpose = Turns::Whole::Purpose;

}  // namespace

// ---- deciding

// One theta for all rows, so that most of the work is done without the interpreter lock.
template <typename When>
void Engine::choose_rows(const When& when, const double* X, Arms eligible, Decisions& out) const {
    const Estimates live = statistics_->estimates();
    const std::vector<double> theta(live.theta, live.theta + live.dim * live.width);  // others may learn meanwhile
    const Estimates frozen{theta.data(), live.dim, live.width};
    const Units units = statistics_->units();  // likewise
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

void Engine::choose_rows_in_slices(const double* X, Arms eligible, Decisions& out) {
    Slices slices;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Word step = out.before + i + 1;
        const Coins coins = toss(streams_.own(), step);
        out.note(i, armlet::decide(*rule_, model_, step, X + i * dim_, coins, eligible, scratch_));
        if (slices.pause()) check_state();
    }
}

// A refusal gives the steps back; an interrupted batch has used them.
void Engine::ask_rows(const double* X, Arms eligible, Word before, Decisions& out) {
    try {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Word step = out.before + i + 1;
            const Coins coins = toss(streams_.own(), step);
            out.note(i, asked_->decide(step, X + i * dim_, coins, eligible, arms_.size()));
        }
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_Exception)) t = before;
        throw;
    }
}

Decisions Engine::decide_many(nb::handle X, nb::handle eligible, std::optional<Word> first) {
    const auto keys = keys_of(eligible);
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> given = copy(doubles(X, "X", {rows, dim_}), rows * dim_), scaled;
    if (scales_) {
        scaled = given;
        for (std::size_t i = 0; i < rows; ++i) scale(scaled.data() + i * dim_);
    }
    const BatchTurn<Turns::SameArms> turn(turns_, asked_.has_value(), Purpose::change);
    check_state();
    const auto arms = arms_.playable(keys);
    const Word before = first ? step_ahead(first) - 1 : t, after = steps_after(before, rows);
    Decisions out(before, streams_.own(), arms_.labels(), arms_.id(), dim_, std::move(given),
                  keys ? arms_.labels_of(arms) : nb::object());
    const double* contexts = scales_ ? scaled.data() : out.X.data();
    const Word stood = std::exchange(t, after);  // these steps are ours, whoever decides meanwhile
    if (asked_) {
        ask_rows(contexts, arms, stood, out);
    } else if (const auto schedule = schedule_of(*rule_, model_)) {
        statistics_->refresh();
        choose_rows(*schedule, contexts, arms, out);
    } else if (auto exploring = exploring_of(*rule_, model_)) {
        statistics_->refresh();
        const std::vector<double> wants(exploring->wants.begin(),
                                        exploring->wants.end());  // others may learn meanwhile
        const std::vector<double> quotas(exploring->quotas.begin(), exploring->quotas.end());
        exploring->wants = wants, exploring->quotas = quotas;
        choose_rows(*exploring, contexts, arms, out);
    } else {
        choose_rows_in_slices(contexts, arms, out);
    }
    return out;
}

// ---- reading

Array<double> Engine::probabilities(nb::handle X, std::optional<Word> given_step, nb::handle eligible) {
    const auto keys = keys_of(eligible);
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> contexts = copy(doubles(X, "X", {rows, dim_}), rows * dim_);
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(contexts.data() + i * dim_);
    const BatchTurn<Turns::SameArms> turn(turns_, asked_.has_value(), Purpose::look);
    check_state();
    const auto arms = arms_.playable(keys);
    const std::size_t n_arms = arms_.size();
    const Word step = given_step ? *given_step : next_steps(1);
    std::vector<double> out(rows * n_arms);
    Slices slices;
    for (std::size_t i = 0; i < rows; ++i) {
        const double* x = contexts.data() + i * dim_;
        double* row = out.data() + i * n_arms;
        if (asked_)
            asked_->probabilities(step, x, arms, n_arms, row);
        else
            armlet::probabilities(*rule_, model_, step, x, arms, scratch_, {row, n_arms});
        if (slices.pause()) check_state();
    }
    return to_numpy(std::move(out), {rows, n_arms});
}

nb::tuple Engine::view(nb::handle eligible) {
    const auto keys = keys_of(eligible);
    const BatchTurn<Turns::SameArms> turn(turns_, asked_.has_value(), Purpose::look);
    check_state();
    const std::size_t n_arms = arms_.size();
    std::vector<std::uint8_t> mask(n_arms);
    for (const auto arm : arms_.playable(keys)) mask[arm] = 1;
    nb::object labels = arms_.labels(), playable = nb::cast(to_numpy<bool>(std::move(mask), {n_arms}));
    nb::object fitted = nb::hasattr(policy, "fitted") ? policy.attr("fitted")(state) : nb::none();
    if (nb::isinstance<Statistics>(fitted) && nb::cast<Statistics&>(fitted).units().is_free()) {
        const Units units = nb::cast<Statistics&>(fitted).units();
        return nb::make_tuple(labels, playable, fitted.attr("standard_estimates")(), units);
    }
    nb::object theta = policy.attr("estimates")(state);
    if (asked_) asked_->check_estimates(theta, n_arms);
    return nb::make_tuple(labels, playable, theta, nb::none());
}

Array<double> Engine::scaled(nb::handle X) const {
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> out = copy(doubles(X, "X", {rows, dim_}), rows * dim_);
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(out.data() + i * dim_);
    return to_numpy(std::move(out), {rows, dim_});
}

// ---- learning

// All or none. Rows of a compiled rule cannot fail, so what was there is kept only if the batch is long enough to be
// worth slices.
template <typename Learn>
void Engine::learn_all(std::size_t rows, const std::vector<std::uint32_t>& arms, Learn&& learn) {
    if (asked_) {
        nb::object before = state.attr("copy")();
        try {
            for (std::size_t i = 0; i < rows; ++i) learn(i);
        } catch (const nb::python_error&) {
            state.attr("restore_arrays")(before.attr("arrays")());
            throw;
        }
        return;
    }
    const bool is_long = rows * dim_ * dim_ > 1'000'000 || (model_.tuner && rows > 16);
    std::optional<Undo> undo;
    if (is_long) undo.emplace(model_, each_once(arms));
    Slices slices;
    try {
        for (std::size_t i = 0; i < rows; ++i) {
            learn(i);
            if (undo && i + 1 < rows && slices.pause()) check_state();
        }
    } catch (const nb::python_error&) {
        if (undo) undo->restore();
        throw;
    }
}

// A policy in Python may refuse a row only after those before it.
template <typename Get>
void Engine::rehearse_all(std::size_t rows, Get&& event_at) const {
    if (!asked_) return;
    const PythonPolicy rehearsal(policy, state.attr("copy")(), dim_);
    for (std::size_t i = 0; i < rows; ++i) rehearsal.update(event_at(i));
}

void Engine::learn_many(const nb::list& decisions, nb::handle rewards, nb::handle weights, Act act) {
    const std::size_t rows = nb::len(decisions);
    const std::vector<double> r = copy(doubles(rewards, "rewards", {rows}), rows);
    const std::vector<double> w = copy(doubles(weights, "weights", {rows}), rows);
    std::vector<Decision*> all;
    for (nb::handle decision : decisions) all.push_back(&as_decision(decision));
    for (const double reward : r) check_reward(reward);
    std::vector<Decision*> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        fail("DecisionError", "decisions holds one decision more than once; learn it once");
    for (std::size_t i = 0; i < rows; ++i) watch_digits(all[i]->x, all[i]->dim(), r[i]);
    const BatchTurn<Turns::Learning> turn(turns_, asked_.has_value(), Purpose::change);
    check_state();
    std::vector<std::uint32_t> arms;
    for (std::size_t i = 0; i < rows; ++i) {
        if (all[i]->learned)
            fail("DecisionError",
                 "decision " + all[i]->id() + " in row " + std::to_string(i) + " was learned already; leave it out");
        arms.push_back(locate(*all[i]));
    }
    const auto event_at = [&](std::size_t i) { return event_of(*all[i], arms[i], r[i], w[i], std::nullopt); };
    if (act == Act::rehearse) return rehearse_all(rows, event_at);
    learn_all(rows, arms, [&](std::size_t i) { update(event_at(i)); });
    for (std::size_t i = 0; i < rows; ++i) {
        Decision& d = *all[i];
        d.learned = true, d.reward = r[i], d.weight = w[i], d.life = arms_.life(arms[i]);
    }
}

// Rows of a log are steps that somebody took: the clock counts them, once all are learned.
void Engine::learn_rows(nb::handle X, const nb::list& labels, nb::handle rewards, nb::handle weights,
                        nb::handle explored, Word steps, Act act) {
    const std::size_t rows = count_rows(X, "X", dim_);
    std::vector<double> x = copy(doubles(X, "X", {rows, dim_}), rows * dim_);
    const std::vector<double> r = copy(doubles(rewards, "rewards", {rows}), rows);
    const std::vector<double> w = copy(doubles(weights, "weights", {rows}), rows);
    const bool* flags = booleans(explored, "explored", rows);
    const std::vector<bool> coin(flags, flags + rows);
    std::vector<nb::object> keys;
    for (nb::handle label : labels) keys.push_back(key_of(label));
    if (keys.size() != rows)
        fail(PyExc_ValueError,
             "there are " + std::to_string(keys.size()) + " arms for " + std::to_string(rows) + " rows of X");
    for (const double reward : r) check_reward(reward);
    for (std::size_t i = 0; i < rows; ++i) watch_digits(x.data() + i * dim_, dim_, r[i]);
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(x.data() + i * dim_);
    const BatchTurn<Turns::Learning> turn(turns_, asked_.has_value(), Purpose::change);
    check_state();
    std::vector<std::uint32_t> arms;
    for (const auto& key : keys) arms.push_back(arms_.at(key));
    next_steps(steps);  // is there room for them?
    const Word before = t;
    const auto step_of = [&](std::size_t row) {  // spread evenly, if they are not one a row
        return before + steps / rows * (row + 1) + steps % rows * (row + 1) / rows;
    };
    const auto event_at = [&](std::size_t i) {
        return Event{step_of(i), arms[i], x.data() + i * dim_, sign_ * r[i], w[i], 1.0, coin[i], 0, std::nullopt};
    };
    if (act == Act::rehearse) return rehearse_all(rows, event_at);
    learn_all(rows, arms, [&](std::size_t i) { update(event_at(i)); });
    t += std::min(steps, last_step - t);  // others may have decided meanwhile
}

}  // namespace armlet
