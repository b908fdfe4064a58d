#include "simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "simulate/greedy.hpp"
#include "simulate/pace.hpp"

namespace armlet {

namespace {

// Which of some steps in a row explore, and their contexts if anybody asks. No step's numbers wait for those of
// another, so the processor draws several at once.
class Draws {
  public:
    static constexpr std::size_t most = 256;  // steps; a multiple of 4

    Draws(const Environment& environment, Seed environment_seed, Seed policy_seed)
        : alias_(environment.chances), environment_seed_(environment_seed), policy_seed_(policy_seed) {}

    // Steps first .. first + n - 1, where first - 1 is a multiple of 4.
    void draw(const Pace& pace, Word first, std::size_t n) {
        first_ = first, n_ = n, has_contexts_ = false;
        toss_from(pace, 0);
    }

    // The pace has changed: tosses again from place k on. The coins are the same, what they mean is not.
    void toss_from(const Pace& pace, std::size_t k) {
        if (k >= n_) return;
        const double highest = pace.rate(first_ + k);  // rates fall: few steps need another
        if (highest >= 1.0 && pace.rate(first_ + n_ - 1) >= 1.0)
            return void(std::fill_n(explored_.begin() + k, n_ - k, 1));
        for (; k < n_; ++k) {
            const double coin = toss(policy_seed_, first_ + k).coin;
            explored_[k] = coin < highest && coin < pace.rate(first_ + k);
        }
    }

    bool explored(std::size_t k) const { return explored_[k]; }

    // The first place from k on that explores, or `end`.
    std::size_t next_explored(std::size_t k, std::size_t end) const {
        const void* found = std::memchr(explored_.data() + k, 1, end - k);
        return found ? static_cast<const std::uint8_t*>(found) - explored_.data() : end;
    }

    std::span<const std::uint32_t> contexts(std::size_t begin, std::size_t end) {
        if (!has_contexts_) draw_contexts();
        return std::span(contexts_).subspan(begin, end - begin);
    }

  private:
    void draw_contexts() {
        has_contexts_ = true;
        for (std::size_t k = 0; k < n_; k += 4) {
            const auto words = context_words(environment_seed_, first_ + k);
            for (std::size_t j = 0; j < 4; ++j)
                contexts_[k + j] = static_cast<std::uint32_t>(alias_(fraction(words[j])));
        }
    }

    Alias alias_;
    Seed environment_seed_, policy_seed_;
    Word first_ = 1;
    std::size_t n_ = 0;
    bool has_contexts_ = false;
    std::array<std::uint8_t, most> explored_;
    std::array<std::uint32_t, most> contexts_;
};

// Algorithm 1 and its like step by step. Between two explorations the estimates stand, so at most the contexts matter.
class PacedRun {
  public:
    PacedRun(const Environment& environment, const Rule& rule, const Model& model, const Run& run,
             Seed environment_seed, Seed policy_seed)
        : environment_(environment),
          pace_(rule, model),
          environment_seed_(environment_seed),
          policy_seed_(policy_seed),
          greedy_(environment, model.sums()),
          ledger_(run.checkpoints),
          contexts_(environment, environment_seed),
          draws_(environment, environment_seed, policy_seed) {}

    Curve play(Word horizon) {
        for (Word first = 1; first <= horizon; first += Draws::most) {
            const std::size_t n = std::min<Word>(Draws::most, horizon - first + 1);
            draws_.draw(pace_, first, n);
            for (std::size_t k = 0; k < n; ledger_.reach(first + k - 1)) k = advance(first, k, n);
        }
        return std::move(ledger_.curve);
    }

  private:
    // Plays one step or a whole stretch, from place k among the n that were drawn; returns the place after it.
    std::size_t advance(Word first, std::size_t k, std::size_t n) {
        const bool explored = draws_.explored(k), learns = pace_.learns(explored);
        if (learns || greedy_.foresight() == Foresight::none) {
            if (step(first + k, explored, learns)) draws_.toss_from(pace_, k + 1);
            return k + 1;
        }
        const std::size_t end = draws_.next_explored(k, std::min<Word>(n, ledger_.next() - first + 1));
        if (greedy_.foresight() == Foresight::by_context) ledger_.pay_all(greedy_.losses(), draws_.contexts(k, end));
        return end;
    }

    // Returns whether the pace has changed.
    bool step(Word t, bool explored, bool learns) {
        const std::size_t i = contexts_(t), arm = choose(t, i, explored);
        ledger_.pay(greedy_.loss(i, arm), explored);
        if (!learns) return false;
        const double reward = noisy_reward(environment_, environment_seed_, t, i, arm);
        greedy_.look_again_at(arm);
        return pace_.learn({static_cast<std::uint32_t>(arm), environment_.context(i), reward, 1.0, explored, t});
    }

    std::size_t choose(Word t, std::size_t i, bool explored) {
        const Coins coins = toss(policy_seed_, t);
        return explored ? pace_.explored_arm(t, coins.pick) : greedy_.play(i, coins.tie);
    }

    const Environment& environment_;
    Pace pace_;
    Seed environment_seed_, policy_seed_;
    Greedy greedy_;
    Ledger ledger_;
    ContextStream contexts_;
    Draws draws_;
};

}  // namespace

Curve simulate_steps(const Environment& environment, const Model& model, const Rule& rule, const Run& run,
                     Seed environment_seed, Seed policy_seed) {
    // by evidence every row that is learned changes the pace: not worth the while if that is every step
    if (schedule_of(rule, model) || (Pace::exists(rule, model) && !learns(rule, false)))
        return PacedRun(environment, rule, model, run, environment_seed, policy_seed).play(run.horizon);
    const auto losses = environment.losses();
    std::vector<std::uint32_t> every(environment.n_arms);
    std::iota(every.begin(), every.end(), 0u);
    Ledger ledger(run.checkpoints);
    ContextStream contexts(environment, environment_seed);
    Scratch scratch;
    for (Word t = 1; t <= run.horizon; ++t) {
        const std::size_t i = contexts(t);
        const double* x = environment.context(i);
        const Coins coins = toss(policy_seed, t);
        const Choice choice = decide(rule, model, t, x, coins, every, scratch, Propensities::skipped);
        ledger.pay(losses[i * environment.n_arms + choice.arm], choice.explored);
        const double reward = noisy_reward(environment, environment_seed, t, i, choice.arm);
        learn(rule, model, {choice.arm, x, reward, 1.0, choice.explored, t});
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
void exploit(const Environment& environment, Greedy& greedy, Ledger& ledger, Sampler& sampler, Word first, Word last) {
    if (first > last) return;
    const auto& costly = greedy.costly();
    if (costly.empty()) return ledger.reach(last);
    std::vector<double> chances;
    for (const auto i : costly) chances.push_back(environment.chances[i]);
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

// The first step after t that explores, or beyond the horizon, drawn by thinning: rates fall, so candidates of the rate
// at t + 1 are kept with the probability that rates have fallen to, and each candidate is the start of a tighter bound.
Word next_exploration(const Pace& pace, Word t, Word horizon, Sampler& sampler) {
    while (t < horizon) {
        const double bound = pace.rate(t + 1);
        if (bound >= 1.0) return t + 1;
        // a rate of almost 0 makes it infinite, or 0 / 0
        const double jump = std::max(0.0, std::floor(std::log1p(-sampler.uniform()) / std::log1p(-bound)));
        if (jump >= static_cast<double>(horizon - t)) return horizon + 1;
        const Word candidate = t + 1 + static_cast<Word>(jump);
        if (sampler.uniform() * bound < pace.rate(candidate)) return candidate;
        t = candidate;
    }
    return horizon + 1;
}

}  // namespace

Curve simulate_events(const Environment& environment, const Model& model, const Rule& rule, const Run& run,
                      Sampler& sampler) {
    Greedy greedy(environment, model.sums());
    Pace pace(rule, model);
    Ledger ledger(run.checkpoints);
    const Alias draw(environment.chances);
    for (Word t = 0; t < run.horizon;) {
        const Word event = next_exploration(pace, t, run.horizon, sampler);
        exploit(environment, greedy, ledger, sampler, t + 1, std::min(event - 1, run.horizon));
        if (event > run.horizon) break;
        const std::size_t i = draw(sampler.uniform());
        const std::size_t arm =
            pace.takes_turns(event) ? event % environment.n_arms : pace.explored_arm(event, sampler.uniform());
        ledger.pay(greedy.loss(i, arm), true);
        const double v = sampler.uniform(), reward = environment.reward(i, arm, sampler.uniform(), v);
        greedy.look_again_at(arm);
        pace.learn({static_cast<std::uint32_t>(arm), environment.context(i), reward, 1.0, true, event});
        ledger.reach(event);
        t = event;
    }
    return std::move(ledger.curve);
}

}  // namespace armlet
