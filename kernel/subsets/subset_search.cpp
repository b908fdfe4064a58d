#include "subsets/subset_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "linear/linear.hpp"

namespace armlet {

namespace {

constexpr std::size_t every_place = 64;    // of a prefix
constexpr double prefix_growth = 1.05;     // beyond them
constexpr double many_growth = 1.1;        // of many rows
constexpr double hopeless = 1.5;           // times the best f: it hardly falls again after a quarter of many rows
constexpr double same_length = 1e-6;       // relative
constexpr std::size_t most_idle = 2;       // steps along slopes that gain next to nothing
constexpr double idle_gain = 1e-3;         // relative
constexpr std::size_t long_history = 256;  // rows
constexpr double greedy_growth = 0.5;      // of what is chosen, beyond the first 64 rows
constexpr std::size_t many_rows = 1000, many_steps = 12;  // along slopes
constexpr std::size_t few_rows = 24;                      // so few that every exchange can be tried
constexpr std::size_t most_moves = 40;
constexpr double least_gain = 1e-12;  // relative: below it rounding could go round in circles
constexpr double nothing = std::numeric_limits<double>::infinity();

// f of the subset from its definition, so that what is reported owes nothing to sums on the way.
Subset finish(const Past& past, const double* x, Weights weights) {
    Subset found;
    found.value = width_of(past, weights, x);
    found.weights = std::move(weights);
    return found;
}

// Among many rows it does not matter which of two nearly equal ones comes first.
int rough_bits(const Past& past) { return past.size > many_rows ? 10 : 0; }

// The next prefix to evaluate: every one at first, then some.
std::size_t next_place(std::size_t place, bool is_many) {
    const std::size_t every = is_many ? every_place / 4 : every_place;
    const double growth = is_many ? many_growth : prefix_growth;
    return place < every ? place + 1
                         : std::max(place + 1, static_cast<std::size_t>(static_cast<double>(place) * growth));
}

// The best prefix of one order.
struct Prefix {
    double value = nothing;  // f
    std::size_t places = 0;
    double n = 0.0;
    std::vector<double> A;
};

Prefix best_prefix(const Past& past, const double* x, const Order& order) {
    Width width(x, past.dim);
    Sum sum(past.dim);
    Prefix best;
    double n = 0.0;
    std::size_t next = 1;
    for (std::size_t place = 1; place <= past.size; ++place) {
        const std::size_t i = order[place - 1];
        sum.add(past.row(i), past.counts[i]);
        n += past.counts[i];
        if (place < next && place < past.size) continue;
        const double f = width(sum.A().data(), n);
        if (f < best.value) best.value = f, best.places = place, best.n = n, best.A = sum.A();
        if (past.size > many_rows && place > past.size / 4 && f > hopeless * best.value) break;
        next = next_place(place, past.size > long_history);
    }
    return best;
}

Weights take_first(const Past& past, const Order& order, std::size_t places) {
    Weights weights(past.size);
    for (std::size_t place = 0; place < places; ++place) weights[order[place]] = past.counts[order[place]];
    return weights;
}

// For every row, -f after adding it once to the subset with A and n.
void score_additions(const Past& past, Width& width, const std::vector<double>& A, double n,
                     std::vector<double>& scores) {
    const std::size_t d = past.dim;
    const double scale = 1.0 / std::sqrt(n + 1.0), f = width(A.data(), n + 1.0);
    width.find_z();
    std::vector<double> row(d), u(d);
    for (std::size_t i = 0; i < past.size; ++i) {
        std::copy_n(past.row(i), d, row.data());
        width.solve(row, u);  // (B + s x x')^-1 = B^-1 - s u u' / (1 + s q), with u = B^-1 x and q = x'u
        const double a = dot(row.data(), width.y().data(), d), b = dot(row.data(), width.z().data(), d);
        const double share = scale / (1.0 + scale * dot(row.data(), u.data(), d));
        scores[i] = -(f - 2.0 * share * a * b + share * share * a * a * dot(u.data(), u.data(), d));
    }
}

// All ways to count the rows from one on, given A and n of those before it: nothing is ever taken off a sum again, so
// nothing is left behind by rounding.
class Enumeration {
  public:
    Enumeration(const Past& past, const double* x)
        : past_(past),
          width_(x, past.dim),
          A_(past.size + 1, std::vector<double>(packed_size(past.dim))),
          weights_(past.size) {}

    Weights best() {
        visit(0, 0.0);
        return best_;
    }

  private:
    void visit(std::size_t i, double n) {
        if (i == past_.size) {
            const double f = n > 0.0 ? width_(A_[i].data(), n) : nothing;
            if (f < value_) value_ = f, best_ = weights_;
            return;
        }
        A_[i + 1] = A_[i];
        for (double w = 0.0; w <= past_.counts[i]; ++w) {
            if (w > 0.0) add_outer(A_[i + 1].data(), past_.row(i), 1.0, past_.dim);
            weights_[i] = w;
            visit(i + 1, n + w);
        }
    }

    const Past& past_;
    Width width_;
    std::vector<std::vector<double>> A_;
    Weights weights_, best_;
    double value_ = nothing;
};

// The subset at hand, and moves away from it.
class Moves {
  public:
    Moves(const Past& past, const double* x, Subset& best)
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
    Moves moves(past, x, best);
    for (std::size_t round = 0; round < most_moves; ++round) {
        moves.start();
        for (std::size_t i = 0; i < past.size; ++i) {
            for (double step = 1.0; step <= past.counts[i]; step *= growth(past.counts[i])) {
                moves.attempt(i, step, i, 0.0);
                moves.attempt(i, 0.0, i, step);
            }
            for (std::size_t j = 0; j < past.size; ++j)
                if (j != i) {
                    const double most = std::min(past.counts[i], past.counts[j]);
                    for (double step = 1.0; step <= most; step *= growth(most)) moves.attempt(i, step, j, step);
                }
        }
        if (!moves.move()) return;
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

// Adds the row that makes f smallest, again and again, keeps the best on the way and improves it by `polish`:
// O(rows d^2) a row. After 64 rows it adds half of what it has at once.
Subset search_greedily(const Past& past, const double* x) {
    Width width(x, past.dim);
    std::vector<double> A(packed_size(past.dim)), scores(past.size), room(past.counts, past.counts + past.size);
    Weights weights(past.size), best;
    Order order;
    const double total = past.total();
    double value = nothing;
    for (double n = 0.0; n < total;) {
        score_additions(past, width, A, n, scores);
        order(scores);
        const double step = n > every_place ? std::max(1.0, std::floor(greedy_growth * n)) : 1.0;
        const Weights added = order.take(room.data(), step);
        const double before = n;
        for (std::size_t i = 0; i < past.size; ++i) {
            if (added[i] <= 0.0) continue;
            add_outer(A.data(), past.row(i), added[i], past.dim);
            weights[i] += added[i], room[i] -= added[i], n += added[i];
        }
        const double f = width(A.data(), n);
        if (f < value) value = f, best = weights;
        if (n == before) break;  // no room is left, or too little to change n
    }
    Subset found = finish(past, x, std::move(best));
    polish(past, x, found);
    return found;
}

}  // namespace

double count_subsets(const Past& past) {
    double subsets = 1.0;
    for (std::size_t i = 0; i < past.size; ++i) subsets *= past.counts[i] + 1.0;
    return subsets;
}

Subset search_exactly(const Past& past, const double* x) {
    Subset found = finish(past, x, Enumeration(past, x).best());
    found.exact = true;
    return found;
}

Subset search_prefixes(const Past& past, const double* x) {
    std::vector<double> similar(past.size), cosine(past.size);
    double shortest = nothing, longest = 0.0;
    for (std::size_t i = 0; i < past.size; ++i) {
        const double length = std::sqrt(dot(past.row(i), past.row(i), past.dim));
        shortest = std::min(shortest, length), longest = std::max(longest, length);
        similar[i] = std::fabs(dot(past.row(i), x, past.dim));
        cosine[i] = length > 0.0 ? similar[i] / length : 0.0;
    }
    Prefix best;
    Order chosen;
    for (const auto* scores : {&similar, &cosine}) {
        if (scores == &cosine && longest <= shortest * (1.0 + same_length)) break;  // the same order
        Order order(rough_bits(past));
        order(*scores);
        Prefix found = best_prefix(past, x, order);
        if (found.value < best.value) best = std::move(found), chosen = std::move(order);
    }
    return finish(past, x, take_first(past, chosen, best.places));
}

void polish(const Past& past, const double* x, Subset& best) {
    if (past.size <= few_rows)
        exchange(past, x, best);
    else if (past.size <= many_rows)
        shift(past, x, best);
}

void follow_slopes(const Past& past, const double* x, Subset& best, std::size_t few_steps) {
    Columns columns(past);
    Width width(x, past.dim);
    std::vector<double> scores, A = gram(past, best.weights);
    double n = std::accumulate(best.weights.begin(), best.weights.end(), 0.0);
    Order order(rough_bits(past));
    const std::size_t steps = past.size > many_rows ? few_steps : many_steps;
    std::size_t idle = 0;
    for (std::size_t step = 0; step < steps && idle < most_idle; ++step) {
        width(A.data(), n);
        columns.slopes(width, scores);
        order(scores);
        const Prefix found = best_prefix(past, x, order);
        const double share = 2.0 / (static_cast<double>(step) + 3.0);  // as usual for Frank-Wolfe without a line search
        for (std::size_t i = 0; i < A.size(); ++i)
            A[i] = found.n * ((1.0 - share) * A[i] / n + share * found.A[i] / found.n);
        n = found.n;
        idle = past.size > every_place && !(found.value < best.value * (1.0 - idle_gain)) ? idle + 1 : 0;
        if (found.value < best.value) best.value = found.value, best.weights = take_first(past, order, found.places);
    }
}

Subset search_relaxed(const Past& past, const double* x) {
    Subset best = search_prefixes(past, x);
    follow_slopes(past, x, best, 4);
    polish(past, x, best);
    if (past.size > every_place) return best;
    Subset other = search_greedily(past, x);
    return other.value < best.value ? other : best;
}

}  // namespace armlet
