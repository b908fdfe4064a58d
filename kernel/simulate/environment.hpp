// Environments that are tables, and the parts that every simulation in one is made of.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "coins/philox.hpp"

namespace armlet {

enum class Noise { none, proportional, gaussian, bernoulli };

// Finitely many contexts, their chances, and the mean reward of every arm in each.
struct Environment {
    std::span<const double> contexts;  // (M, d)
    std::span<const double> chances;   // (M,)
    std::span<const double> means;     // (M, K)
    Noise noise;
    double scale;
    std::size_t n_contexts, n_arms, dim;

    const double* context(std::size_t i) const { return contexts.data() + i * dim; }
    double mean(std::size_t i, std::size_t arm) const { return means[i * n_arms + arm]; }
    // A reward from two uniform numbers in [0, 1).
    double reward(std::size_t i, std::size_t arm, double u, double v) const;
    // (M, K): what each arm loses in each context.
    std::vector<double> losses() const;
};

// What a run came to at each checkpoint.
struct Curve {
    std::vector<double> regret;     // expected loss so far
    std::vector<double> exploring;  // the part of it paid on explored steps
    std::vector<double> explored;   // how many steps explored
};

// Draws an index with given chances from one word (Walker 1977, Vose 1991).
class Alias {
  public:
    explicit Alias(std::span<const double> chances);

    std::size_t operator()(double u) const {
        const double place = u * static_cast<double>(keep_.size());
        const auto i = std::min(static_cast<std::int64_t>(place), static_cast<std::int64_t>(keep_.size()) - 1);
        return even_ || place - static_cast<double>(i) < keep_[i] ? i : other_[i];
    }

  private:
    std::vector<double> keep_;
    std::vector<std::size_t> other_;
    bool even_;  // all equally likely: no second look
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

    // What steps that did not explore lost in their contexts, added one after the other.
    void pay_all(const double* losses, std::span<const std::uint32_t> contexts) {
        double regret = regret_;  // in a register
        for (const auto i : contexts) regret += losses[i];
        regret_ = regret;
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

// What the contexts of step t and its neighbours are made of: steps 1 to 4 share a block of the environment's stream,
// and so on.
inline std::array<Word, 4> context_words(Seed seed, Word t) { return philox(seed, {(t - 1) / 4, 1, 0, 0}); }

// The context of step t.
class ContextStream {
  public:
    ContextStream(const Environment& environment, Seed seed) : alias_(environment.chances), seed_(seed) {}

    std::size_t operator()(Word t) {
        const Word block = (t - 1) / 4;
        if (block != block_) words_ = context_words(seed_, t), block_ = block;
        return alias_(fraction(words_[(t - 1) % 4]));
    }

  private:
    Alias alias_;
    Seed seed_;
    Word block_ = UINT64_MAX;
    std::array<Word, 4> words_{};
};

// The reward of step t, a function of (environment seed, t, arm) in context i.
double noisy_reward(const Environment& environment, Seed seed, Word t, std::size_t i, std::size_t arm);

}  // namespace armlet
