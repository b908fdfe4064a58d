#include "actions/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "linear/linear.hpp"

namespace armlet {

namespace {

constexpr std::size_t tile = ActionRows::tile;
constexpr float lowest = -std::numeric_limits<float>::infinity();
constexpr double more = 1.0 + 1e-6;  // than float32's rounding of one number

// Candidates by their bounds, the highest first.
struct Bounded {
    double bound;
    std::uint32_t row;
    bool operator<(const Bounded& other) const { return bound < other.bound; }
};

}  // namespace

PairModel::Rows Highest::sorted() && {
    std::sort(rows_.begin(), rows_.end());
    return std::move(rows_);
}

// A float32 score is off by at most (dz + 8) 2^-24 of the largest sum of sizes, whatever the order of the sum, scaled
// features and v rounded once; float64's own sum, from features that may be far from their origins, by 2^-52 of theirs.
CoarseScorer PairSearch::scorer(const std::vector<double>& v, double largest_intercept, double least_unit) const {
    const std::size_t dx = model_.sums_.terms().dx(), dz = model_.sums_.terms().dz();
    const double *origin = model_.sums_.origin().data() + 1 + dx, *middles = model_.solution_.units.middles.data() + dx;
    CoarseScorer out{std::vector<float>(dz), 0.0F, std::max(largest_intercept, least_unit), v[0], 0.0};
    std::vector<double> scaled(dz);
    double rough = 0.0, fine = std::fabs(v[0]) + largest_intercept;
    for (std::size_t j = 0; j < dz; ++j) {
        const auto& column = asked_.rows.column(j);
        const double slope = v[1 + j] * view_.scales[j];
        scaled[j] = slope * column.deviation;
        out.unit = std::max(out.unit, std::fabs(scaled[j]));
        out.constant += v[1 + j] * (((column.middle - origin[j]) - middles[j]) * view_.scales[j]);
        rough += std::fabs(scaled[j]) * column.largest_scaled;
        fine += std::fabs(slope) * (column.largest + std::fabs(origin[j]) + std::fabs(middles[j]) + 1e-140);
    }
    if (!(out.unit > 0.0)) out.unit = 1.0;
    for (std::size_t j = 0; j < dz; ++j) out.v[j] = static_cast<float>(scaled[j] / out.unit);
    out.ratio = static_cast<float>(model_.known_.unit() / out.unit);
    const double n = static_cast<double>(dz);
    out.error = 1.1 * (n + 8.0) * 0x1p-24 * ((rough + largest_intercept) / out.unit) + 1e-30 +
                (n + 16.0) * 0x1p-51 * (fine / out.unit);
    return out;
}

double PairSearch::exact_score(std::size_t row) {
    model_.view_z(view_, asked_.rows, row, z_.data());
    const double score = model_.score(view_.v.data(), z_.data());
    const auto item = model_.known_.item(row);
    return item == KnownRows::unknown ? score : score + model_.delta(model_.solution_.theta.data(), item, z_.data());
}

double PairSearch::exact_bound(std::size_t row, double unit, Word t) {
    const double score = exact_score(row);
    return score + model_.bonus(model_.width(view_, z_.data(), model_.known_.item(row)), unit, t);
}

// Rows whose score is within two errors of the highest one.
std::vector<PairSearch::Candidate> PairSearch::find_candidates(const CoarseScorer& scorer) const {
    const ActionRows& rows = asked_.rows;
    std::vector<Candidate> found;
    const auto reach = static_cast<float>(2.0 * scorer.error * more);
    float best = lowest, scores[tile], top;
    for (std::size_t number = 0; number < rows.n_tiles(); ++number) {
        score_tile(rows.scaled(number), scorer.v.data(), rows.dz(), model_.known_.offsets(number), scorer.ratio, scores,
                   &top);
        if (top < best - reach) continue;
        const std::size_t first = number * tile, there = std::min(tile, rows.size() - first);
        for (std::size_t r = 0; r < there; ++r) {
            if (scores[r] < best - reach || !asked_.allows(first + r)) continue;
            found.push_back({scores[r], static_cast<std::uint32_t>(first + r)});
            best = std::max(best, scores[r]);
        }
    }
    std::erase_if(found, [&](const Candidate& one) { return one.score < best - reach; });
    return found;
}

PairModel::Rows PairSearch::highest_scores() {
    const CoarseScorer coarse = scorer(view_.v, model_.known_.largest(), 0.0);
    Highest highest;
    if (coarse.is_usable()) {
        for (const auto& [score, row] : find_candidates(coarse)) highest.offer(row, exact_score(row));
    } else {
        for (std::size_t row = 0; row < asked_.rows.size(); ++row)
            if (asked_.allows(row)) highest.offer(row, exact_score(row));
    }
    return std::move(highest).sorted();
}

std::vector<double> PairSearch::columns(const double* x) const {
    const PairTerms& terms = model_.sums_.terms();
    const std::size_t dx = terms.dx(), dz = terms.dz(), d = terms.size();
    const double *origin = model_.sums_.origin().data() + 1 + dx, *middles = model_.solution_.units.middles.data() + dx;
    std::vector<double> out((1 + dz) * d), z(1 + dz);
    z[0] = 1.0;
    for (std::size_t j = 0; j < dz; ++j)
        z[1 + j] = ((asked_.rows.column(j).middle - origin[j]) - middles[j]) * view_.scales[j];
    terms.spread(x, z.data(), out.data());
    for (std::size_t k = 0; k < d; ++k) {
        const std::size_t j = terms.j(k);
        if (j > 0) out[j * d + k] = x[terms.i(k)] * (view_.scales[j - 1] * asked_.rows.column(j - 1).deviation);
    }
    return out;
}

// As if no row were known.
void PairSearch::bound_squares_of_all(const CoarseScorer& scorer, Bounds& all, float& top) {
    const ActionRows& rows = asked_.rows;
    const PairSolution& at = model_.solution_;
    const std::size_t dz = rows.dz(), m = 1 + dz;
    std::vector<double> M(packed_size(m));
    add_gram(at.L.data(), at.inverse.data(), at.rows, at.theta.size(), columns(view_.x.data()), m, M);
    const QuadraticBound bound = bound_quadratic(M, m);
    std::vector<float> u(dz);
    double slack = std::fabs(bound.u[0]);
    for (std::size_t j = 0; j < dz; ++j) {
        u[j] = static_cast<float>(bound.u[1 + j]);
        slack += std::fabs(bound.u[1 + j]) * rows.column(j).largest_scaled;
    }
    base_ = model_.sums_.has_intercepts() ? static_cast<float>(more / model_.sums_.kappa()) : 0.0F;
    const WidthBound coarse{.base = base_,
                            .flat = static_cast<float>(bound.flat * more),
                            .steep = static_cast<float>(bound.steep * more),
                            .slack = static_cast<float>(1.1 * static_cast<double>(dz + 8) * 0x1p-24 * slack)};
    float ones[tile], leading[tile], unused;
    std::fill_n(ones, tile, 1.0F);
    for (std::size_t number = 0; number < rows.n_tiles(); ++number) {
        const std::size_t first = number * tile;
        score_tile(rows.scaled(number), scorer.v.data(), dz, model_.known_.offsets(number), scorer.ratio,
                   all.scores.data() + first, &unused);
        score_tile(rows.scaled(number), u.data(), dz, ones, static_cast<float>(bound.u[0]), leading, &unused);
        bound_squares(coarse, leading, rows.squares(number), tile, all.squares.data() + first, &top);
    }
}

// (e_1 (x) z, ..., e_dx (x) z) has squared widths whose sum is z'Gz, and so bounds what the distance of a context from
// those that an item was played in can add. It is the same until the next solve.
const QuadraticBound& PairSearch::contexts() const {
    ContextBound& kept = model_.contexts_;
    const std::size_t dx = model_.sums_.terms().dx(), m = 1 + asked_.rows.dz();
    const PairSolution& at = model_.solution_;
    if (kept.version == at.version && kept.rows == asked_.rows.id() && kept.scales == view_.scales) return kept.bound;
    std::vector<double> G(packed_size(m)), x(1 + dx);
    for (std::size_t i = 1; i <= dx; ++i) {
        std::fill(x.begin(), x.end(), 0.0);
        x[i] = 1.0;
        add_gram(at.L.data(), at.inverse.data(), at.rows, at.theta.size(), columns(x.data()), m, G);
    }
    kept = {at.version, asked_.rows.id(), view_.scales, bound_quadratic(G, m)};
    return kept.bound;
}

// z'Gz, at most.
double PairSearch::context_square(std::size_t row) const {
    const QuadraticBound& bound = contexts();
    double norm = 1.0, leading = bound.u[0];
    for (std::size_t j = 0; j < asked_.rows.dz(); ++j) {
        const auto& column = asked_.rows.column(j);
        const double scaled =
            column.deviation > 1e-150 ? (asked_.rows.z(row)[j] - column.middle) / column.deviation : 0.0;
        norm += scaled * scaled, leading += bound.u[1 + j] * scaled;
    }
    return (bound.flat * norm + bound.steep * leading * leading) * more;
}

// Of a known row f = kappa / (n + kappa) phi(x, z) + n / (n + kappa) (0, x - mean of x) (x) z.
float PairSearch::known_square(std::size_t row, float before, double own) {
    const auto item = model_.known_.item(row);
    const double n = model_.sums_.items()[item].n, kappa = model_.sums_.kappa();
    model_.view_sums(item, sums_.data());
    double far = 0.0;
    for (std::size_t i = 1; i < sums_.size(); ++i) {
        const double off = view_.x[i] - sums_[i] / n;
        far += off * off;
    }
    const double near = std::max(static_cast<double>(before - base_), 0.0) + 3e-7 * static_cast<double>(before);
    const double width = (kappa * std::sqrt(near) + n * std::sqrt(far * own)) / (n + kappa);
    return static_cast<float>((width * width + 1.0 / (n + kappa)) * more);
}

// First by what needs no features: z'Gz is at most its largest eigenvalue times |z|^2. Returns the highest square.
float PairSearch::bound_squares_of_known(Bounds& all) {
    const auto& known = model_.known_.rows();
    unknown_.resize(known.size());
    if (known.empty()) return 0.0F;
    const QuadraticBound& bound = contexts();
    float top = 0.0F;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const std::size_t row = known[i];
        const double norm = 1.0 + static_cast<double>(asked_.rows.squares(row / tile)[row % tile]);
        unknown_[i] = all.squares[row];
        all.squares[row] = known_square(row, unknown_[i], (bound.flat + bound.steep) * norm * more);
        top = std::max(top, all.squares[row]);
    }
    return top;
}

// A bonus is no more than the width times this, for widths up to the root of the highest square.
double PairSearch::height(float top, double unit, Word t) const {
    const double width = std::sqrt(std::max(static_cast<double>(top), 1e-30)) * more;
    return model_.bonus(width, unit, t) / width * more;
}

void PairSearch::bound_all(const CoarseScorer& scorer, double unit, Word t, Bounds& all) {
    float top = 0.0F;
    bound_squares_of_all(scorer, all, top);
    const float top_known = bound_squares_of_known(all);
    add_widths(all.scores.data(), all.squares.data(), static_cast<float>(height(top, unit, t) / scorer.unit),
               all.scores.size(), all.bounds.data());
    const auto known_height = static_cast<float>(height(top_known, unit, t) / scorer.unit);
    for (const auto row : model_.known_.rows())
        all.bounds[row] = all.scores[row] + known_height * std::sqrt(all.squares[row]);
}

// With the row's own logarithm, and a known row's own features; in real units, without the scores' constant.
double PairSearch::refined_bound(std::size_t row, const Bounds& all, double unit, Word t) {
    float square = all.squares[row];
    if (model_.known_.item(row) != KnownRows::unknown)
        square = std::min(square, known_square(row, unknown_[model_.known_.place(row)], context_square(row)));
    return model_.bonus(std::sqrt(static_cast<double>(square)) * more, unit, t) * more;
}

// Rows are visited by falling bound, until that is below the best exact one.
PairModel::Rows PairSearch::highest_bounds(Word t, double scale, std::size_t& n_widths) {
    const ActionRows& rows = asked_.rows;
    const double unit = scale * model_.solution_.sigma;
    const CoarseScorer coarse = scorer(view_.v, model_.known_.largest(), unit);
    Highest highest;
    n_widths = 0;
    const auto settle = [&](std::size_t row) { ++n_widths, highest.offer(row, exact_bound(row, unit, t)); };
    if (!coarse.is_usable()) {
        for (std::size_t row = 0; row < rows.size(); ++row)
            if (asked_.allows(row)) settle(row);
        return std::move(highest).sorted();
    }
    const std::size_t size = rows.n_tiles() * tile;
    thread_local Bounds all;
    all.scores.resize(size), all.squares.resize(size), all.bounds.resize(size);
    bound_all(coarse, unit, t, all);
    std::size_t first = rows.size();
    for (std::size_t row = 0; row < rows.size(); ++row)
        if (asked_.allows(row) && (first == rows.size() || all.bounds[row] > all.bounds[first])) first = row;
    if (first == rows.size()) return {};
    settle(first);
    // the best exact bound as coarse ones are, and no more than any of them allows for
    const auto least = [&] { return (highest.value() - coarse.constant) / coarse.unit - 4.0 * coarse.error; };
    std::vector<Bounded> heap;
    const double start = least();
    const auto far = static_cast<float>(start - 1e-5 * std::fabs(start));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (all.bounds[row] + 1e-5F * std::fabs(all.bounds[row]) < far || row == first || !asked_.allows(row)) continue;
        const double bound = all.scores[row] + refined_bound(row, all, unit, t) / coarse.unit;
        if (!(bound < start)) heap.push_back({std::isnan(bound) ? INFINITY : bound, static_cast<std::uint32_t>(row)});
    }
    std::make_heap(heap.begin(), heap.end());
    for (; !heap.empty() && !(heap.front().bound < least()); heap.pop_back()) {
        settle(heap.front().row);
        std::pop_heap(heap.begin(), heap.end());
    }
    return std::move(highest).sorted();
}

PairModel::Rows PairModel::greedy(const PairQuestion& asked) {
    refresh();
    refresh_known(asked.rows);
    return PairSearch(*this, asked, view(asked, solution_.theta.data())).highest_scores();
}

PairModel::Rows PairModel::optimistic(const PairQuestion& asked, Word t, double scale) {
    refresh();
    refresh_known(asked.rows);
    return PairSearch(*this, asked, view(asked, solution_.theta.data())).highest_bounds(t, scale, last_exact_widths_);
}

}  // namespace armlet
