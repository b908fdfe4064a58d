// Many rows to learn, all or none, in slices.
#include <algorithm>

#include "bindings/engine/batch_turn.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/engine/slices.hpp"
#include "bindings/engine/undo.hpp"

namespace armlet {

namespace {

std::vector<std::uint32_t> each_once(std::vector<std::uint32_t> arms) {
    std::sort(arms.begin(), arms.end());
    arms.erase(std::unique(arms.begin(), arms.end()), arms.end());
    return arms;
}

// While many rows come from elsewhere, what is solved for a few of them would be solved again and again: it is once,
// from the sums of all. Rows of its own decisions are learned together as one by one.
class Holding {
  public:
    explicit Holding(const Model& model) : model_(model) {
        if (model_.has_sums()) model_.sums().hold();
    }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    ~Holding() {
        if (model_.has_sums()) model_.sums().let_go();
    }
    void release() {
        if (model_.has_sums()) model_.sums().release();
    }

  private:
    const Model& model_;
};

using Purpose = Turns::Whole::Purpose;

std::vector<nb::object> keys_of_rows(const nb::list& labels, std::size_t rows) {
    std::vector<nb::object> keys;
    for (nb::handle label : labels) keys.push_back(key_of(label));
    if (keys.size() != rows)
        fail(PyExc_ValueError,
             "there are " + std::to_string(keys.size()) + " arms for " + std::to_string(rows) + " rows of X");
    return keys;
}

}  // namespace

// All or none. New rows of a compiled rule cannot fail, so what was there is kept only if some correct others, or the
// batch is long enough to be worth slices.
template <typename Learn>
void Engine::learn_all(std::size_t rows, const std::vector<std::uint32_t>& arms, Learn&& learn, Source source,
                       Refusals refusals) {
    if (take_rehearsed()) return;
    if (python_policy_) {
        nb::object before = state.attr("copy")();
        try {
            for (std::size_t i = 0; i < rows; ++i) learn(i);
        } catch (const nb::python_error&) {
            state.attr("restore_arrays")(before.attr("arrays")());
            throw;
        }
        return;
    }
    const bool is_long = rows * dim_ * dim_ > 1'000'000 || (model_.is<AutoTunedStatistics>() && rows > 16);
    std::optional<Undo> undo;
    if (is_long || refusals == Refusals::possible)
        undo.emplace(model_, each_once(arms),
                     refusals == Refusals::possible ? Undo::Solved::kept : Undo::Solved::again);
    Slices slices;
    std::optional<Holding> holding;
    const bool keeps_order = model_.is<AutoTunedStatistics>();  // of rows
    if (source == Source::elsewhere && rows > 0 && !keeps_order) holding.emplace(model_);
    try {
        for (std::size_t i = 0; i < rows; ++i) {
            learn(i);
            if (is_long && i + 1 < rows && slices.pause()) check_state();
        }
        if (holding) holding->release();
    } catch (const nb::python_error&) {
        if (undo) undo->restore();
        throw;
    }
}

// A policy in Python may refuse a row only after those before it.
template <typename Get>
void Engine::rehearse_all(std::size_t rows, Get&& event_at) {
    if (!python_policy_) return;
    rehearsed_ = state.attr("copy")();
    const PythonPolicy rehearsal(policy, rehearsed_, dim_);
    for (std::size_t i = 0; i < rows; ++i) rehearsal.update(event_at(i));
}

void Engine::learn_many(const nb::list& decisions, nb::handle rewards, nb::handle weights) {
    const std::size_t rows = nb::len(decisions);
    const std::size_t n = n_values();
    const std::vector<double> r = read_rewards(rewards, "rewards", rows);
    const std::vector<double> w = copy(doubles(weights, "weights", {rows}), rows);
    std::vector<Decision*> all;
    for (nb::handle decision : decisions) all.push_back(&as_decision(decision));
    std::vector<Decision*> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        fail("DecisionError", "decisions holds one decision more than once; learn it once");
    for (std::size_t i = 0; i < rows && !outcomes_; ++i) watch(all[i]->x, watched_width(*all[i]), r[i]);
    const auto fields = [&] {
        nb::list many;
        for (std::size_t i = 0; i < rows; ++i) {
            nb::dict out = recorded(*all[i]);
            out["reward"] = written({&r[i * n], n});
            out["weight"] = w[i];
            many.append(out);
        }
        return many;
    };
    change("learn", fields, [&](Act act) {
        const BatchTurn<Turns::Learning> turn(turns_, python_policy_.has_value(), Purpose::change);
        check_state();
        std::vector<std::uint32_t> arms;
        for (std::size_t i = 0; i < rows; ++i) {
            if (all[i]->learned)
                fail("DecisionError", "decision " + all[i]->id() + " in row " + std::to_string(i) +
                                          " was learned already; leave it out");
            if (all[i]->has_outcomes())
                fail("DecisionError", "decision " + all[i]->id() + " in row " + std::to_string(i) +
                                          " has some of its outcomes already; learn the others of it by themselves");
            arms.push_back(locate(*all[i]));
        }
        const auto event_at = [&](std::size_t i) { return event_of(*all[i], arms[i], {&r[i * n], n}, w[i]); };
        if (act == Act::rehearse) return rehearse_all(rows, event_at);
        learn_all(rows, arms, [&](std::size_t i) { update(event_at(i)); }, Source::own);
        for (std::size_t i = 0; i < rows; ++i) {
            count_cost({&r[i * n], n}, *all[i]);
            note_learned(*all[i], arms[i], {&r[i * n], n}, w[i]);
        }
    });
}

// Rows of a log are steps that somebody took: the clock counts them, once all are learned.
void Engine::learn_rows(nb::handle X, const nb::list& labels, nb::handle rewards, nb::handle weights,
                        nb::handle explored, Word steps, double fixed) {
    const Word reading = reading_;
    const std::size_t width = dim_, rows = count_rows(X, "X", width);
    std::vector<double> x = copy(doubles(X, "X", {rows, width}), rows * width);
    check_within(x, rows);
    const std::size_t n = n_values();
    const std::vector<double> r = read_rewards(rewards, "rewards", rows);
    const std::vector<double> w = copy(doubles(weights, "weights", {rows}), rows);
    const bool* flags = booleans(explored, "explored", rows);
    const std::vector<bool> coin(flags, flags + rows);
    const auto keys = keys_of_rows(labels, rows);
    for (std::size_t i = 0; i < rows && !outcomes_; ++i) watch(x.data() + i * width, width, r[i]);
    nb::dict fields;
    if (recording_) {
        fields["X"] = rows_to_list(x, width), fields["arms"] = to_list(keys), fields["rewards"] = reward_columns(r);
        fields["explored"] = to_list(coin), fields["weights"] = to_list(w), fields["steps"] = steps;
    }
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(x.data() + i * width, width);
    change(
        "partial_fit", [&] { return fields; },
        [&](Act act) {
            const BatchTurn<Turns::Learning> turn(turns_, python_policy_.has_value(), Purpose::change);
            check_features(reading);
            check_state();
            std::vector<std::uint32_t> arms;
            for (const auto& key : keys) arms.push_back(arms_.at(key));
            if (forgets_by_time())
                fail(PyExc_ValueError, quoted(policy) +
                                           " forgets by time, and these rows have none; give a table with t, x, arm, "
                                           "reward, propensity, explored and tag, the minutes since 1970");
            next_steps(steps);  // is there room for them?
            const Word before = t;
            const auto step_of = [&](std::size_t row) {  // spread evenly, if they are not one a row
                return before + steps / rows * (row + 1) + steps % rows * (row + 1) / rows;
            };
            const auto event_at = [&](std::size_t i) {
                Event event{step_of(i), arms[i], x.data() + i * dim_, 0.0, w[i], 1.0, coin[i], 0, std::nullopt};
                set_reward(event, &r[i * n]);
                return event;
            };
            if (act == Act::rehearse) return rehearse_all(rows, event_at);
            learn_all(rows, arms, [&](std::size_t i) { update(event_at(i)); }, Source::elsewhere);
            t += std::min(steps, last_step - t);  // others may have decided meanwhile
            fixed_rows += fixed;
        });
}

// What `learn` and `correct` would do with the decisions of a log, one after the other; the clock stays.
void Engine::learn_logged(const LoggedRows& given) {
    const Word reading = reading_;
    const std::size_t width = dim_, rows = count_rows(given.X, "X", width);
    std::vector<double> x = copy(doubles(given.X, "X", {rows, width}), rows * width);
    check_within(x, rows);
    const std::size_t n = n_values();
    const std::vector<double> r = read_rewards(given.rewards, "reward", rows),
                              w = copy(doubles(given.weights, "weight", {rows}), rows),
                              q = copy(doubles(given.propensities, "propensity", {rows}), rows),
                              old = copy(rewards_of_rows(given.replaces, "replaces", rows), rows * n);
    const bool* flags = booleans(given.explored, "explored", rows);
    const std::vector<bool> coin(flags, flags + rows);
    const std::int64_t *t = integers(given.steps, "t", rows), *tags = integers(given.tags, "tag", rows);
    const std::vector<std::int64_t> steps(t, t + rows), tag(tags, tags + rows);
    const auto keys = keys_of_rows(given.arms, rows);
    bool corrects = false;
    for (std::size_t i = 0; i < rows; ++i) {
        if (!std::isnan(old[i * n]))
            corrects = true;
        else if (!outcomes_)
            watch(x.data() + i * width, width, r[i]);
    }
    nb::dict fields;
    if (recording_) {
        nb::dict columns;
        columns["t"] = to_list(steps), columns["x"] = rows_to_list(x, width), columns["arm"] = to_list(keys);
        columns["reward"] = reward_columns(r), columns["propensity"] = to_list(q), columns["explored"] = to_list(coin);
        columns["tag"] = to_list(tag), columns["weight"] = to_list(w);
        columns["replaces"] = reward_columns(old);
        fields["columns"] = columns;
    }
    if (scales_)
        for (std::size_t i = 0; i < rows; ++i) scale(x.data() + i * width, width);
    change(
        "learn_logged", [&] { return fields; },
        [&](Act act) {
            const BatchTurn<Turns::Learning> turn(turns_, python_policy_.has_value(), Purpose::change);
            check_features(reading);
            check_state();
            std::vector<std::uint32_t> arms;
            for (const auto& key : keys) arms.push_back(arms_.at(key));
            if (forgets_by_time() && std::any_of(tag.begin(), tag.end(), [](std::int64_t one) { return one <= 0; }))
                fail(PyExc_ValueError, quoted(policy) +
                                           " forgets by time, and some rows have none; give the column tag, the "
                                           "minutes since 1970 of each decision");
            if (forgets_by_time()) check_moments(tag);
            const auto event_at = [&](std::size_t i) {
                Event event{.t = static_cast<Word>(steps[i]),
                            .arm = arms[i],
                            .x = x.data() + i * dim_,
                            .reward = 0.0,
                            .weight = w[i],
                            .propensity = q[i],
                            .explored = coin[i],
                            .tag = static_cast<std::int32_t>(tag[i]),
                            .replaces = std::nullopt};
                set_reward(event, &r[i * n], std::isnan(old[i * n]) ? nullptr : &old[i * n]);
                return event;
            };
            const auto learn = [&](std::size_t i) {
                const Event event = event_at(i);
                if (event.replaces)
                    check_held(event.arm, event.explored, event.weight, {event.t, event.tag}, "correct");
                update(event);
            };
            const auto refusals = corrects ? Refusals::possible : Refusals::none;
            if (act == Act::perform) return learn_all(rows, arms, learn, Source::own, refusals);
            if (!python_policy_ && !corrects) return;
            // a row may correct one that comes before it, so that nothing short of learning them all will tell
            if (!python_policy_) {
                const Undo undo(model_, each_once(arms), Undo::Solved::kept);
                learn_all(rows, arms, learn, Source::own, refusals);
                return undo.restore();
            }
            struct Back {
                Engine& engine;
                nb::object own;
                ~Back() { engine.go_on_with(own); }
            } back{*this, state};
            nb::object copy = state.attr("copy")();
            go_on_with(copy);
            for (std::size_t i = 0; i < rows; ++i) learn(i);
            rehearsed_ = copy;
        });
}

}  // namespace armlet
