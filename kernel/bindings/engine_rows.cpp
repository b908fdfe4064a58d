// Many contexts at once.
#include <algorithm>

#include "binding.hpp"
#include "engine.hpp"
#include "rules/batch.hpp"

namespace armlet {

void Engine::choose_rows(const Schedule& schedule, Word before, const double* X, std::size_t rows, Arms eligible,
                         Decisions& out) const {
    const Estimates live = statistics_->estimates();
    const std::vector<double> theta(live.theta, live.theta + live.dim * live.width);  // others may learn meanwhile
    const Estimates frozen{theta.data(), live.dim, live.width};
    const Seed seed = seed_;
    nb::gil_scoped_release release;
    std::vector<std::uint32_t> best(rows);
    std::vector<double> scratch(frozen.width);
    BatchArgmax(frozen, eligible)(X, rows, best.data());
    for (std::size_t i = 0; i < rows; ++i) {
        const Word step = before + i + 1;
        const Coins coins = toss(seed, step);
        out.note(i, best[i] == undecided
                        ? armlet::decide(frozen, schedule, step, X + i * dim_, coins, eligible, scratch.data())
                        : decide_known(schedule, step, coins, eligible, best[i]));
    }
}

Decisions Engine::decide_many(nb::handle X, nb::handle eligible) {
    const std::size_t rows = count_rows(X, "X", dim_);
    const double* data = doubles(X, "X", {rows, dim_});
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    const auto arms = eligible.is_none() ? active_ : subset(eligible);
    Decisions out(t, seed_, labels(), table_, dim_, std::vector<double>(data, data + rows * dim_));
    if (const auto schedule = rule_ ? schedule_of(*rule_, model_) : std::nullopt) {
        statistics_->refresh();
        t += rows;  // these steps are ours, whoever decides meanwhile
        choose_rows(*schedule, out.before, out.X.data(), rows, arms, out);
        return out;
    }
    for (std::size_t i = 0; i < rows; ++i) {
        const Word step = t + i + 1;
        const double* x = out.X.data() + i * dim_;
        const Coins coins = toss(seed_, step);
        out.note(i, rule_ ? armlet::decide(*rule_, model_, step, x, coins, arms, scratch_) : ask(step, x, coins, arms));
    }
    t += rows;
    return out;
}

void Engine::policy_probabilities(const double* X, std::size_t rows, Word step, Arms eligible, double* out) const {
    const std::size_t n_arms = is_active_.size();
    for (std::size_t i = 0; i < rows; ++i) {
        nb::object row = policy.attr("probabilities")(state, step, copy_row(X + i * dim_, dim_), mask_of(eligible));
        std::copy_n(doubles(row, "probabilities", {n_arms}), n_arms, out + i * n_arms);
    }
}

Array<double> Engine::probabilities(nb::handle X, Word step, nb::handle eligible) {
    const std::size_t rows = count_rows(X, "X", dim_), n_arms = is_active_.size();
    const double* data = doubles(X, "X", {rows, dim_});
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    const auto arms = eligible.is_none() ? active_ : subset(eligible);
    std::vector<double> out(rows * n_arms);
    if (!rule_)
        policy_probabilities(data, rows, step, arms, out.data());
    else
        for (std::size_t i = 0; i < rows; ++i)
            armlet::probabilities(*rule_, model_, step, data + i * dim_, arms, scratch_,
                                  {out.data() + i * n_arms, n_arms});
    return to_numpy(std::move(out), {rows, n_arms});
}

void Engine::learn_rows(Word table, nb::handle X, nb::handle arms, nb::handle rewards, nb::handle weights,
                        nb::handle explored) {
    const std::size_t rows = count_rows(X, "X", dim_);
    const double *data = doubles(X, "X", {rows, dim_}), *r = doubles(rewards, "rewards", {rows});
    const double* w = doubles(weights, "weights", {rows});
    const std::int64_t* arm = integers(arms, "arms", rows);
    const bool* coin = booleans(explored, "explored", rows);
    std::optional<Turn> turn;
    if (!rule_) turn.emplace(lock_);
    if (table != table_)
        fail(PyExc_ValueError, "an arm was removed while the log was read; nothing was learned, try again");
    for (std::size_t i = 0; i < rows; ++i)
        update({t, static_cast<std::uint32_t>(arm[i]), data + i * dim_, sign_ * r[i], w[i], 1.0, coin[i], 0,
                std::nullopt});
}

Array<double> Engine::normalized(nb::handle X) const {
    const std::size_t rows = count_rows(X, "X", dim_);
    const double* data = doubles(X, "X", {rows, dim_});
    std::vector<double> out(data, data + rows * dim_);
    for (std::size_t i = 0; i < rows; ++i) normalize(out.data() + i * dim_);
    return to_numpy(std::move(out), {rows, dim_});
}

}  // namespace armlet
