#include "simulate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace armlet {

double World::reward(std::size_t i, std::size_t arm, double u, double v) const {
    const double mu = mean(i, arm);
    switch (noise) {
        case Noise::proportional:
            return mu * (1.0 + scale * (2.0 * u - 1.0));
        case Noise::gaussian:
            return mu + scale * std::sqrt(-2.0 * std::log1p(-u)) * std::cos(2.0 * std::numbers::pi * v);
        case Noise::bernoulli:
            return u < mu ? 1.0 : 0.0;
        case Noise::none:
            break;
    }
    return mu;
}

namespace {

double fraction(Word bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Draws an index with given chances from one word (Walker 1977, Vose 1991).
class Alias {
  public:
    explicit Alias(std::span<const double> chances) : keep_(chances.size()), other_(chances.size()) {
        const auto n = static_cast<double>(chances.size());
        std::vector<std::size_t> small, large;
        for (std::size_t i = 0; i < chances.size(); ++i) {
            keep_[i] = chances[i] * n, other_[i] = i;
            (keep_[i] < 1.0 ? small : large).push_back(i);
        }
        while (!small.empty() && !large.empty()) {
            const std::size_t poor = small.back(), rich = large.back();
            small.pop_back();
            other_[poor] = rich;
            keep_[rich] -= 1.0 - keep_[poor];
            if (keep_[rich] < 1.0) large.pop_back(), small.push_back(rich);
        }
        for (const auto i : small) keep_[i] = 1.0;  // rounding left them over
    }

    std::size_t operator()(double u) const {
        const double place = u * static_cast<double>(keep_.size());
        const auto i = std::min(static_cast<std::size_t>(place), keep_.size() - 1);
        return place - static_cast<double>(i) < keep_[i] ? i : other_[i];
    }

  private:
    std::vector<double> keep_;
    std::vector<std::size_t> other_;
};

// The losses of a world and, while estimates stand, the best arms of each context.
class Greedy {
  public:
    Greedy(const World& world, Statistics& statistics)
        : world_(world),
          statistics_(statistics),
          losses_(world.means.size()),
          scores_(world.means.size()),
          arms_(world.n_arms),
          best_(world.n_contexts) {
        std::iota(arms_.begin(), arms_.end(), 0u);
        changed_ = arms_;
        for (std::size_t i = 0; i < world.n_contexts; ++i) {
            const auto row = world.means.subspan(i * world.n_arms, world.n_arms);
            const double top = *std::max_element(row.begin(), row.end());
            for (std::size_t a = 0; a < world.n_arms; ++a) losses_[i * world.n_arms + a] = top - row[a];
        }
    }

    double loss(std::size_t i, std::size_t arm) const { return losses_[i * world_.n_arms + arm]; }

    void learn(std::size_t i, std::size_t arm, double reward) {
        statistics_.add(arm, world_.context(i), reward, 1.0);
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
        for (const auto arm : changed_) rescore(arm);
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
    std::vector<Best> best_;
};

// Running totals, written down at the checkpoints.
class Ledger {
  public:
    explicit Ledger(std::span<const std::int64_t> checkpoints) : checkpoints_(checkpoints) {
        curve.regret.reserve(checkpoints.size());
    }

    void pay(double loss, bool explored) {
        regret_ += loss;
        if (explored) exploring_ += loss, explored_ += 1.0;
    }

    // The first checkpoint not yet written down, or beyond any step.
    Word next() const {
        const std::size_t done = curve.regret.size();
        return done < checkpoints_.size() ? static_cast<Word>(checkpoints_[done]) : UINT64_MAX;
    }

    void reach(Word t) {
        while (next() <= t) {
            curve.regret.push_back(regret_);
            curve.exploring.push_back(exploring_);
            curve.explored.push_back(explored_);
        }
    }

    Curve curve;

  private:
    std::span<const std::int64_t> checkpoints_;
    double regret_ = 0.0, exploring_ = 0.0, explored_ = 0.0;
};

// The context of step t. Four steps share a block of the world's stream.
class ContextStream {
  public:
    ContextStream(const World& world, Seed seed) : alias_(world.chances), seed_(seed) {}

    std::size_t operator()(Word t) {
        const Word block = (t - 1) / 4;
        if (block != block_) words_ = philox(seed_, {block, 1, 0, 0}), block_ = block;
        return alias_(fraction(words_[(t - 1) % 4]));
    }

  private:
    Alias alias_;
    Seed seed_;
    Word block_ = UINT64_MAX;
    std::array<Word, 4> words_{};
};

double noisy_reward(const World& world, Seed seed, Word t, std::size_t i, std::size_t arm) {
    const auto words = philox(seed, {t, 2, arm, 0});
    return world.reward(i, arm, fraction(words[0]), fraction(words[1]));
}

std::uint32_t choose(Greedy& greedy, const Schedule& schedule, Word t, std::size_t i, const Coins& coins,
                     std::size_t n_arms, bool& explored) {
    explored = schedule.warming_up(t) || coins.coin < schedule.rate(t);
    if (explored && schedule.warming_up(t) && schedule.round_robin) return static_cast<std::uint32_t>(t % n_arms);
    if (explored) return static_cast<std::uint32_t>(below(coins.pick, n_arms));
    return greedy.play(i, coins.tie);
}

}  // namespace

Curve simulate_steps(const World& world, Statistics& statistics, const Run& run, Seed world_seed, Seed policy_seed) {
    Greedy greedy(world, statistics);
    Ledger ledger(run.checkpoints);
    ContextStream contexts(world, world_seed);
    for (Word t = 1; t <= run.horizon; ++t) {
        const std::size_t i = contexts(t);
        bool explored = false;
        const auto arm = choose(greedy, run.schedule, t, i, toss(policy_seed, t), world.n_arms, explored);
        ledger.pay(greedy.loss(i, arm), explored);
        if (run.schedule.learns(explored)) greedy.learn(i, arm, noisy_reward(world, world_seed, t, i, arm));
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

Curve simulate_events(const World& world, Statistics& statistics, const Run& run, Sampler& sampler) {
    Greedy greedy(world, statistics);
    Ledger ledger(run.checkpoints);
    const Alias draw(world.chances);
    const auto n_arms = static_cast<double>(world.n_arms);
    for (Word t = 0; t < run.horizon;) {
        const Word event = next_exploration(run.schedule, t, run.horizon, sampler);
        exploit(world, greedy, ledger, sampler, t + 1, std::min(event - 1, run.horizon));
        if (event > run.horizon) break;
        const std::size_t i = draw(sampler.uniform());
        const bool turn = run.schedule.round_robin && run.schedule.warming_up(event);
        const auto arm = turn ? event % world.n_arms : static_cast<std::size_t>(sampler.uniform() * n_arms);
        ledger.pay(greedy.loss(i, arm), true);
        greedy.learn(i, arm, world.reward(i, arm, sampler.uniform(), sampler.uniform()));
        ledger.reach(event);
        t = event;
    }
    return std::move(ledger.curve);
}

}  // namespace armlet
