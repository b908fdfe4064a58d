#include <algorithm>
#include <cmath>
#include <numeric>

#include "linear/linear.hpp"
#include "subsets/subset_search.hpp"

namespace armlet {

namespace {

constexpr std::size_t few_rows = 24;       // so few that every exchange can be tried
constexpr std::size_t long_history = 256;  // rows, of which fewer rounds are worth their while
constexpr std::size_t many_rows = 1000;    // beyond, single rows hardly matter
constexpr std::size_t sweeps = 40;
constexpr double least_gain = 1e-12;  // relative: below it rounding could go round in circles

// The subset at hand, and moves away from it.
class Sweep {
  public:
    Sweep(const Past& past, const double* x, Subset& best)
        : past_(past), best_(best), width_(x, past.dim), A_(gram(past, best.weights)), trial_(A_.size()) {
        n_ = std::accumulate(best.weights.begin(), best.weights.end(), 0.0);
    }

    // Tries `more` of row i and `less` of row j; either may be 0.
    void attempt(std::size_t i, double more, std::size_t j, double less) {
        const double n = n_ + more - less;
        if (n < 1.0 || best_.weights[i] + more > past_.counts[i] || best_.weights[j] < less) return;
        trial_ = A_;
        if (more > 0.0) add_outer(trial_.data(), past_.row(i), more, past_.dim);
        if (less > 0.0) add_outer(trial_.data(), past_.row(j), -less, past_.dim);
        const double f = width_(trial_.data(), n);
        if (f < value_) value_ = f, move_ = {i, j, more, less};
    }

    // Makes the best move, if it gains anything.
    bool move() {
        if (!(value_ < best_.value * (1.0 - least_gain))) return false;
        best_.weights[move_.i] += move_.more, best_.weights[move_.j] -= move_.less;
        n_ += move_.more - move_.less;
        A_ = gram(past_, best_.weights);
        best_.value = value_ = width_(A_.data(), n_);
        return true;
    }

    void start() { value_ = best_.value; }

  private:
    struct Move {
        std::size_t i, j;
        double more, less;
    };
    const Past& past_;
    Subset& best_;
    Width width_;
    std::vector<double> A_, trial_;
    double n_, value_ = 0.0;
    Move move_{};
};

// Steps double, or grow faster where there would be more than 13 of them.
double growth(double most) { return std::max(2.0, std::ceil(std::pow(most, 1.0 / 12.0))); }

void exchange(const Past& past, const double* x, Subset& best) {
    Sweep sweep(past, x, best);
    for (std::size_t round = 0; round < sweeps; ++round) {
        sweep.start();
        for (std::size_t i = 0; i < past.size; ++i) {
            for (double step = 1.0; step <= past.counts[i]; step *= growth(past.counts[i])) {
                sweep.attempt(i, step, i, 0.0);
                sweep.attempt(i, 0.0, i, step);
            }
            for (std::size_t j = 0; j < past.size; ++j)
                if (j != i) {
                    const double most = std::min(past.counts[i], past.counts[j]);
                    for (double step = 1.0; step <= most; step *= growth(most)) sweep.attempt(i, step, j, step);
                }
        }
        if (!sweep.move()) return;
    }
}

// The subset with `change` more rows, the best ones, or that many fewer, without the worst ones.
Weights shifted(const Past& past, const Weights& weights, const std::vector<double>& slopes, double change) {
    std::vector<double> room(past.size), scores(slopes);
    Order order;
    for (std::size_t i = 0; i < past.size; ++i) {
        room[i] = change > 0.0 ? past.counts[i] - weights[i] : weights[i];
        if (change < 0.0) scores[i] = -scores[i];
    }
    Weights out = weights;
    order(scores);
    const Weights moved = order.take(room.data(), std::fabs(change));
    for (std::size_t i = 0; i < past.size; ++i) out[i] += change > 0.0 ? moved[i] : -moved[i];
    return out;
}

void shift(const Past& past, const double* x, Subset& best) {
    Columns columns(past);
    const double total = past.total();
    std::vector<double> slopes;
    Width width(x, past.dim);
    const std::size_t rounds = past.size > long_history ? 2 : 4;
    for (std::size_t round = 0; round < rounds; ++round) {
        const double n = std::accumulate(best.weights.begin(), best.weights.end(), 0.0);
        width(gram(past, best.weights).data(), n);
        columns.slopes(width, slopes);
        const Subset before = best;
        for (const double change : {1.0, std::ceil(n / 64.0), std::ceil(n / 8.0)})
            for (const double sign : {1.0, -1.0}) {
                if (n + sign * change < 1.0 || n + sign * change > total) continue;
                Weights trial = shifted(past, before.weights, slopes, sign * change);
                const double f = width_of(past, trial, x);
                if (f < best.value * (1.0 - least_gain)) best.value = f, best.weights = std::move(trial);
            }
        if (!(best.value < before.value)) return;
    }
}

}  // namespace

void polish(const Past& past, const double* x, Subset& best) {
    if (past.size <= few_rows)
        exchange(past, x, best);
    else if (past.size <= many_rows)
        shift(past, x, best);
}

}  // namespace armlet
