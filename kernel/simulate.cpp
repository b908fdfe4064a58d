#include "simulate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace armlet {

namespace {

// The losses of a world and, while estimates stand, the best arms of each context.
class Greedy {
  public:
    Greedy(const World& world, Statistics& statistics)
        : world_(world),
          statistics_(statistics),
          losses_(world.losses()),
          scores_(world.means.size()),
          arms_(world.n_arms),
          has_changed_(world.n_arms, 1),
          best_(world.n_contexts) {
        std::iota(arms_.begin(), arms_.end(), 0u);
        changed_ = arms_;
    }

    double loss(std::size_t i, std::size_t arm) const { return losses_[i * world_.n_arms + arm]; }

    void learn(std::size_t i, std::size_t arm, double reward) {
        statistics_.add(arm, world_.context(i), reward, 1.0);
        if (has_changed_[arm]) return;  // a long warm-up learns much and looks at nothing
        has_changed_[arm] = 1;
        changed_.push_back(static_cast<std::uint32_t>(arm));
    }

    // One of the arms that share the first place in context i, by the coins.
    std::uint32_t play(std::size_t i, Word bits) {
        refresh();
        return best_[i].count == 1 ? best_[i].first : tied(i)[below(bits, best_[i].count)];
    }

    // The arms that share the first place in context i.
    std::vector<std::uint32_t> tied(std::size_t i) const {
        std::vector<std::uint32_t> out;
        for (const auto arm : arms_)
            if (scores_[i * arms_.size() + arm] == best_[i].score) out.push_back(arm);
        return out;
    }

    // The contexts in which the arm to play is, or may be, not the best in truth.
    const std::vector<std::uint32_t>& costly() {
        refresh();
        return costly_;
    }

  private:
    void refresh() {
        if (changed_.empty()) return;
        statistics_.refresh();
        for (const auto arm : changed_) rescore(arm), has_changed_[arm] = 0;
        changed_.clear();
        costly_.clear();
        for (std::size_t i = 0; i < best_.size(); ++i) {
            best_[i] = best_arm(scores_.data() + i * arms_.size(), arms_);
            if (best_[i].count > 1 || loss(i, best_[i].first) > 0.0) costly_.push_back(static_cast<std::uint32_t>(i));
        }
    }

    // x' theta of one arm in every context, summed in the order in which decisions sum it.
    void rescore(std::uint32_t arm) {
        const Estimates estimates = statistics_.estimates();
        for (std::size_t i = 0; i < best_.size(); ++i) {
            double sum = 0.0;
            for (std::size_t j = 0; j < world_.dim; ++j)
                sum += world_.context(i)[j] * estimates.theta[j * estimates.width + arm];
            scores_[i * arms_.size() + arm] = sum;
        }
    }

    const World& world_;
    Statistics& statistics_;
    std::vector<double> losses_;  // (M, K)
    std::vector<double> scores_;  // (M, K)
    std::vector<std::uint32_t> arms_, changed_, costly_;
    std::vector<std::uint8_t> has_changed_;  // whether an arm is among the changed
    std::vector<Best> best_;
};

std::uint32_t choose(Greedy& greedy, const Schedule& schedule, Word t, std::size_t i, const Coins& coins,
                     std::size_t n_arms, bool& explored) {
    explored = schedule.warming_up(t) || coins.coin < schedule.rate(t);
    if (explored && schedule.warming_up(t) && schedule.round_robin) return static_cast<std::uint32_t>(t % n_arms);
    if (explored) return static_cast<std::uint32_t>(below(coins.pick, n_arms));
    return greedy.play(i, coins.tie);
}

}  // namespace

namespace {

// Between two explorations the estimates stand, so each context's best arms are looked up.
Curve simulate_schedule(const World& world, Statistics& statistics, const Schedule& schedule, const Run& run,
                        Seed world_seed, Seed policy_seed) {
    Greedy greedy(world, statistics);
    Ledger ledger(run.checkpoints);
    ContextStream contexts(world, world_seed);
    for (Word t = 1; t <= run.horizon; ++t) {
        const std::size_t i = contexts(t);
        bool explored = false;
        const auto arm = choose(greedy, schedule, t, i, toss(policy_seed, t), world.n_arms, explored);
        ledger.pay(greedy.loss(i, arm), explored);
        if (schedule.learns(explored)) greedy.learn(i, arm, noisy_reward(world, world_seed, t, i, arm));
        ledger.reach(t);
    }
    return std::move(ledger.curve);
}

}  // namespace

Curve simulate_steps(const World& world, const Model& model, const Rule& rule, const Run& run, Seed world_seed,
                     Seed policy_seed) {
    if (const auto* schedule = std::get_if<Schedule>(&rule))
        return simulate_schedule(world, *model.all, *schedule, run, world_seed, policy_seed);
    const auto losses = world.losses();
    std::vector<std::uint32_t> every(world.n_arms);
    std::iota(every.begin(), every.end(), 0u);
    Ledger ledger(run.checkpoints);
    ContextStream contexts(world, world_seed);
    Scratch scratch;
    for (Word t = 1; t <= run.horizon; ++t) {
        const std::size_t i = contexts(t);
        const double* x = world.context(i);
        const Coins coins = toss(policy_seed, t);
        const Choice choice = decide(rule, model, t, x, coins, every, scratch, Propensities::skipped);
        ledger.pay(losses[i * world.n_arms + choice.arm], choice.explored);
        const double reward = noisy_reward(world, world_seed, t, i, choice.arm);
        learn(rule, model, {choice.arm, x, reward, 1.0, choice.explored});
        ledger.reach(t);
    }
    return std::move(ledger.curve);
}

namespace {

// Adds what `count` plays in context i lose, shared out among the arms that tie.
void lose(Greedy& greedy, Ledger& ledger, Sampler& sampler, std::size_t i, std::int64_t count) {
    if (count == 0) return;
    const auto arms = greedy.tied(i);
    std::vector<std::int64_t> shares(arms.size(), count);
    if (arms.size() > 1)
        sampler.multinomial(count, std::vector<double>(arms.size(), 1.0 / static_cast<double>(arms.size())), shares);
    for (std::size_t k = 0; k < arms.size(); ++k)
        ledger.pay(static_cast<double>(shares[k]) * greedy.loss(i, arms[k]), false);
}

// The exploiting steps first..last. Contexts in which the right arm is played cost nothing, however often they come.
void exploit(const World& world, Greedy& greedy, Ledger& ledger, Sampler& sampler, Word first, Word last) {
    if (first > last) return;
    const auto& costly = greedy.costly();
    if (costly.empty()) return ledger.reach(last);
    std::vector<double> chances;
    for (const auto i : costly) chances.push_back(world.chances[i]);
    chances.push_back(std::max(0.0, 1.0 - std::accumulate(chances.begin(), chances.end(), 0.0)));
    std::vector<std::int64_t> counts(chances.size());
    while (first <= last) {
        const Word until = std::min(last, ledger.next());
        sampler.multinomial(static_cast<std::int64_t>(until - first + 1), chances, counts);
        for (std::size_t k = 0; k < costly.size(); ++k) lose(greedy, ledger, sampler, costly[k], counts[k]);
        ledger.reach(until);
        first = until + 1;
    }
}

// The first step after t that explores, or beyond the horizon. P(none up to s) = (1 - p / (t + 1)) ... (1 - p / s), a
// ratio of gamma functions, drawn by thinning: p / u falls, so candidates of the rate p / (t + 1) are kept with
// probability (t + 1) / u, and each candidate is the start of a tighter bound.
Word next_exploration(const Schedule& schedule, Word t, Word horizon, Sampler& sampler) {
    while (t < horizon) {
        const double bound = schedule.rate(t + 1);
        if (bound >= 1.0) return t + 1;
        const double jump = std::floor(std::log1p(-sampler.uniform()) / std::log1p(-bound));
        if (jump >= static_cast<double>(horizon - t)) return horizon + 1;
        const Word candidate = t + 1 + static_cast<Word>(jump);
        if (sampler.uniform() * bound < schedule.rate(candidate)) return candidate;
        t = candidate;
    }
    return horizon + 1;
}

}  // namespace

Curve simulate_events(const World& world, Statistics& statistics, const Schedule& schedule, const Run& run,
                      Sampler& sampler) {
    Greedy greedy(world, statistics);
    Ledger ledger(run.checkpoints);
    const Alias draw(world.chances);
    const auto n_arms = static_cast<double>(world.n_arms);
    for (Word t = 0; t < run.horizon;) {
        const Word event = next_exploration(schedule, t, run.horizon, sampler);
        exploit(world, greedy, ledger, sampler, t + 1, std::min(event - 1, run.horizon));
        if (event > run.horizon) break;
        const std::size_t i = draw(sampler.uniform());
        const bool turn = schedule.round_robin && schedule.warming_up(event);
        const auto arm = turn ? event % world.n_arms : static_cast<std::size_t>(sampler.uniform() * n_arms);
        ledger.pay(greedy.loss(i, arm), true);
        greedy.learn(i, arm, world.reward(i, arm, sampler.uniform(), sampler.uniform()));
        ledger.reach(event);
        t = event;
    }
    return std::move(ledger.curve);
}

}  // namespace armlet
