#include "simulate/replay.hpp"

#include <numeric>

namespace armlet {

namespace {

// The arms that a row lets play, until another row is asked for.
class Eligible {
  public:
    Eligible(const PlayedRows& played, std::size_t n_arms) : played_(played), n_arms_(n_arms), arms_(n_arms) {
        std::iota(arms_.begin(), arms_.end(), 0u);
    }

    Arms operator()(std::size_t row) {
        if (!played_.eligible) return arms_;
        arms_.clear();
        for (std::size_t a = 0; a < n_arms_; ++a)
            if (played_.eligible[row * n_arms_ + a]) arms_.push_back(static_cast<std::uint32_t>(a));
        return arms_;
    }

  private:
    const PlayedRows& played_;
    std::size_t n_arms_;
    std::vector<std::uint32_t> arms_;
};

}  // namespace

Accepted replay(const Rule& rule, const Model& model, Seed seed, Word start, const PlayedRows& played) {
    const std::size_t dim = model.sums().dim();
    Eligible eligible(played, model.sums().n_arms());
    Scratch scratch;
    Accepted accepted;
    Word t = start + 1;
    Coins coins = toss(seed, t);
    for (std::size_t i = 0; i < played.n; ++i) {
        const double* x = played.contexts + i * dim;
        const Choice choice = decide(rule, model, t, x, coins, eligible(i), scratch, Propensities::skipped);
        if (static_cast<std::int64_t>(choice.arm) != played.arms[i]) continue;
        learn(rule, model, {choice.arm, x, played.rewards[i], 1.0, choice.explored, t});
        accepted.rows.push_back(static_cast<std::int64_t>(i));
        accepted.explored.push_back(choice.explored);
        coins = toss(seed, ++t);
    }
    return accepted;
}

}  // namespace armlet
