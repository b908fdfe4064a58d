// Searches how often each row should count where rows occurred many times, by a number of evaluations of f that does
// not depend on the counts.
//
// Fractional weights scale: f falls as all of them grow, so at the best ones some row counts as often as it occurred.
// Whole numbers only come close to that, so those next to it are tried too.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "linear/linear.hpp"
#include "subsets/subset_search.hpp"

namespace armlet {

namespace {

constexpr double cheap_subsets = 4096.0;  // so few that trying them all costs no more than a heuristic
constexpr std::size_t few_contexts = 24;  // so few that their counts are changed one by one
constexpr int grid = 32;                  // counts evaluated along an edge, from 1 to all in equal ratios
constexpr int cuts = 24;                  // of the interval around the best of them, golden sections
constexpr int shorter = 16;               // rows left out of the context that is taken whole, to match a ratio better
constexpr double golden = 0.61803398874989485;
constexpr int most_sweeps = 24;  // over the contexts
constexpr double first_ratio = 2.0, last_ratio = 1.01;
constexpr double few_chosen = 512.0;                    // so few that one row more or less matters
constexpr std::size_t single_starts = 4, finished = 3;  // the best of the starts are followed to the end
constexpr std::size_t coarse = 8;    // counts of a context evaluated first, each a quarter of the one before
constexpr double sweep_gain = 1e-4;  // relative: less is not worth another sweep at the same ratio
constexpr double least_gain = 1e-12;

// f for two rows a and b, less a constant, in their plane: a = (a1, 0), b = (b1, b2), x = (u1, u2) and what is across.
class Plane {
  public:
    Plane(const Past& past, const double* x) {
        const std::size_t d = past.dim;
        std::vector<double> e(past.row(0), past.row(0) + d), across(past.row(1), past.row(1) + d);
        a1_ = std::sqrt(dot(e.data(), e.data(), d));
        for (double& v : e) v = a1_ > 0.0 ? v / a1_ : 0.0;
        const double length = std::sqrt(dot(across.data(), across.data(), d));
        b1_ = dot(e.data(), across.data(), d);
        for (std::size_t j = 0; j < d; ++j) across[j] -= b1_ * e[j];
        b2_ = std::sqrt(dot(across.data(), across.data(), d));
        if (b2_ <= 1e-9 * length) b2_ = 0.0;  // the same direction but for rounding
        u1_ = dot(x, e.data(), d), u2_ = b2_ > 0.0 ? dot(x, across.data(), d) / b2_ : 0.0;
    }

    double operator()(double v, double w) {
        ++tried;
        const double n = v + w, s = 1.0 / std::sqrt(n), cross = a1_ * b2_;
        const double p = 1.0 + s * (v * a1_ * a1_ + w * b1_ * b1_), q = s * w * b1_ * b2_, r = 1.0 + s * w * b2_ * b2_;
        const double det = p + r - 1.0 + v * w / n * cross * cross;  // p r - q^2 without its cancellation
        const double y1 = (r * u1_ - q * u2_) / det, y2 = (p * u2_ - q * u1_) / det;
        return y1 * y1 + y2 * y2;
    }

    std::size_t tried = 0;

  private:
    double a1_, b1_, b2_, u1_, u2_;
};

// The best subset of two rows found so far.
struct Pair {
    Plane f;
    double value = INFINITY, v = 0.0, w = 0.0;

    void attempt(double first, double second) {
        if (first + second < 1.0) return;
        const double at = f(first, second);
        if (at < value) value = at, v = first, w = second;
    }
};

// The fractional weight of the other row, at most `most`, that minimises f.
template <class F>
double best_weight(F&& f, double most) {
    std::array<double, grid + 2> at{};  // 0, 1, ..., most
    for (int j = 0; j <= grid; ++j)
        at[static_cast<std::size_t>(j) + 1] =
            most <= grid ? std::min<double>(j + 1, most) : std::pow(most, j / double(grid));
    std::size_t best = 0;
    double value = f(0.0);
    for (std::size_t j = 1; j < at.size(); ++j)
        if (const double here = f(at[j]); here < value) value = here, best = j;
    double low = at[best > 0 ? best - 1 : 0], high = at[std::min(best + 1, at.size() - 1)], w = at[best];
    for (int cut = 0; cut < cuts && high - low > 1e-3; ++cut) {
        const double one = high - golden * (high - low), other = low + golden * (high - low);
        const double f_one = f(one), f_other = f(other);
        if (std::min(f_one, f_other) < value) value = std::min(f_one, f_other), w = f_one < f_other ? one : other;
        (f_one < f_other ? high : low) = f_one < f_other ? other : one;
    }
    return w;
}

// All of one row, or nearly, and the best count of the other, in whole numbers.
template <class Attempt, class F>
void search_edge(double whole, double most, Attempt&& attempt, F&& f) {
    const double ratio = best_weight(f, most) / whole;
    attempt(whole, 0.0), attempt(whole, most);
    for (int k = 0; k < shorter && whole - k >= 0.0; ++k)
        for (const double more : {0.0, 1.0}) attempt(whole - k, std::min(most, std::floor(ratio * (whole - k)) + more));
}

Subset search_two(const Past& past, const double* x) {
    Pair best{Plane(past, x)};
    const double all = past.counts[0], others = past.counts[1];
    Subset found;
    found.exact = count_subsets(past) <= cheap_subsets;
    if (found.exact) {
        for (double v = 0.0; v <= all; ++v)
            for (double w = 0.0; w <= others; ++w) best.attempt(v, w);
    } else {
        search_edge(
            all, others, [&](double v, double w) { best.attempt(v, w); }, [&](double w) { return best.f(all, w); });
        search_edge(
            others, all, [&](double w, double v) { best.attempt(v, w); }, [&](double v) { return best.f(v, others); });
    }
    found.weights = {best.v, best.w}, found.tried = best.f.tried;
    found.value = width_of(past, found.weights, x);
    return found;
}

// Changes one count at a time, alone or with all others in proportion, in ratios that shrink once nothing is gained.
// Counts are fractional until they are rounded.
class Counting {
  public:
    Counting(const Past& past, const double* x, Weights start)
        : past_(&past), width_(x, past.dim), A_(packed_size(past.dim)), weights_(std::move(start)) {
        evaluate();
    }

    void leap() {
        for (std::size_t i = 0; i < past_->size; ++i) {
            std::array<double, coarse> tos{};
            for (std::size_t j = 0; j < coarse; ++j)
                tos[j] = past_->counts[i] * std::exp2(-2.0 * static_cast<double>(j));
            change(i, tos);
        }
    }

    void descend() {
        double ratio = first_ratio;
        for (int sweep = 0; sweep < most_sweeps && ratio > last_ratio; ++sweep) {
            const double before = value_;
            for (std::size_t i = 0; i < past_->size; ++i) {
                const double w = weights_[i], up = w > 0.0 ? w * ratio : past_->counts[i] * (ratio - 1.0) / 16.0;
                change(i, std::array{0.0, w / ratio, up});
            }
            if (!(value_ < before * (1.0 - sweep_gain))) ratio = std::sqrt(ratio);
        }
    }

    // To whole numbers, each then one more or less where that helps.
    void round() {
        for (double& w : weights_) w = std::round(w);
        if (!(std::accumulate(weights_.begin(), weights_.end(), 0.0) > 0.0)) weights_[0] = 1.0;
        evaluate();
        for (int sweep = 0; sweep < 2; ++sweep)
            for (std::size_t i = 0; i < past_->size; ++i) {
                set_aside(i);
                const double w = weights_[i];
                for (const double to : {w - 1.0, w + 1.0}) attempt(i, to, 1.0);
            }
    }

    const Weights& weights() const { return weights_; }
    double value() const { return value_; }
    std::size_t tried() const { return tried_; }

  private:
    void evaluate() {
        ++tried_;
        value_ = width_(gram(*past_, weights_).data(), std::accumulate(weights_.begin(), weights_.end(), 0.0));
    }

    template <std::size_t N>
    void change(std::size_t i, const std::array<double, N>& tos) {
        set_aside(i);
        for (const double to : tos) {
            attempt(i, std::min(to, past_->counts[i]), 1.0);
            double scale = to > 0.0 ? past_->counts[i] / to : INFINITY;  // until some row counts in full
            for (std::size_t j = 0; j < past_->size; ++j)
                if (others_[j] > 0.0) scale = std::min(scale, past_->counts[j] / others_[j]);
            if (scale < INFINITY && scale != 1.0) attempt(i, to, scale);
        }
    }

    void set_aside(std::size_t i) {
        others_ = weights_, others_[i] = 0.0;
        rest_ = gram(*past_, others_), n_ = std::accumulate(others_.begin(), others_.end(), 0.0);
    }

    // `to` of row i with the others as they were set aside, all times `scale`.
    void attempt(std::size_t i, double to, double scale) {
        const double n = (n_ + to) * scale;
        if (to < 0.0 || to * scale > past_->counts[i] * (1.0 + least_gain) || n < 1.0) return;
        A_ = rest_;
        if (to > 0.0) add_outer(A_.data(), past_->row(i), to, past_->dim);
        for (double& v : A_) v *= scale;
        ++tried_;
        const double f = width_(A_.data(), n);
        if (!(f < value_ * (1.0 - least_gain))) return;
        value_ = f, weights_ = others_, weights_[i] = to;
        for (std::size_t j = 0; j < past_->size; ++j) weights_[j] = std::min(weights_[j] * scale, past_->counts[j]);
    }

    const Past* past_;
    Width width_;
    std::vector<double> A_, rest_;
    Weights weights_, others_;
    double value_ = 0.0, n_ = 0.0;
    std::size_t tried_ = 0;
};

// Where to start from: what was found before, all rows, and single rows, those with the smallest f.
std::vector<Weights> starts(const Past& past, const double* x, const Weights& found) {
    std::vector<std::pair<double, std::size_t>> alone(past.size);
    for (std::size_t i = 0; i < past.size; ++i) {
        Weights weights(past.size);
        weights[i] = past.counts[i];
        alone[i] = {width_of(past, weights, x), i};
    }
    std::sort(alone.begin(), alone.end());
    std::vector<Weights> all{found, Weights(past.counts, past.counts + past.size)};
    for (std::size_t k = 0; k < std::min(single_starts, past.size); ++k) {
        all.emplace_back(past.size);
        all.back()[alone[k].second] = past.counts[alone[k].second];
    }
    return all;
}

Subset search_few(const Past& past, const double* x) {
    Subset best = search_prefixes(past, x);
    follow_slopes(past, x, best, 2);
    std::vector<Counting> runs;
    for (const Weights& start : starts(past, x, best.weights)) runs.emplace_back(past, x, start).leap();
    std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.value() < b.value(); });
    for (std::size_t k = 0; k < runs.size(); ++k) {
        if (k < finished) {
            runs[k].descend(), runs[k].round();
            if (runs[k].value() < best.value) best.value = runs[k].value(), best.weights = runs[k].weights();
        }
        best.tried += runs[k].tried();
    }
    if (std::accumulate(best.weights.begin(), best.weights.end(), 0.0) <= few_chosen) polish(past, x, best);
    best.value = width_of(past, best.weights, x);
    return best;
}

Subset take_whole(const Past& past, const double* x) {
    Subset found;
    found.weights.assign(past.counts, past.counts + past.size);
    found.value = width_of(past, found.weights, x);
    found.exact = true, found.tried = 1;
    return found;
}

}  // namespace

Subset search_counts(const Past& past, const double* x) {
    if (past.size == 1) return take_whole(past, x);  // f falls with n
    if (past.size == 2) return search_two(past, x);
    if (count_subsets(past) <= cheap_subsets) return search_exactly(past, x);
    return past.size <= few_contexts ? search_few(past, x) : search_relaxed(past, x);
}

}  // namespace armlet
