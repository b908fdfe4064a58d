// Finitely many draws from the posterior, and the actions that win in each.
//
// Draws are functions of the coins of a step. Given theta, the intercept of an item is one more normal, of its key:
// rows without a known intercept have one too, and float32 with the edges of 1024 bins of its word leaves out what
// cannot win.
#include <algorithm>
#include <array>
#include <cmath>

#include "actions/search.hpp"
#include "coins/normal.hpp"
#include "linear/linear.hpp"

namespace armlet {

namespace {

constexpr std::size_t tile = ActionRows::tile, n_bins = 1024, in_block = 4;

double to_normal(Word word) { return normal_quantile((static_cast<double>(word >> 12) + 0.5) * 0x1p-52); }

// Words of four draws.
std::array<Word, in_block> words_of(const Coins& coins, Word key, std::size_t block) {
    return philox({coins.pick, coins.tie}, {key, block, 1, 0});
}

// The least and the highest normal of each bin of words, in float32 and beyond its rounding.
struct Bins {
    std::array<float, n_bins> low, high;

    Bins() {
        for (std::size_t i = 0; i < n_bins; ++i) {
            const Word first = static_cast<Word>(i) << 54, last = first + ((Word{1} << 54) - 1);
            low[i] = static_cast<float>(to_normal(first) - 1e-5);
            high[i] = static_cast<float>(to_normal(last) + 1e-5);
        }
    }
};

const Bins bins;

struct Draw {
    std::vector<double> theta;
    PairView view;
    CoarseScorer coarse;
    float spread, reach;  // of unknown intercepts; what float32 may be wrong by
    float least;          // at least this is the highest value
    Highest highest;
    std::vector<std::pair<float, std::uint32_t>> found;
    double length;  // of theta
};

// A row whose value is the score, give or take the reach, plus the spread times a normal; in units of its draw.
struct Offer {
    std::uint32_t row;
    float score, spread, reach;
};

ARMLET_INLINE void find_dot_body(const double* x, const double* y, std::size_t n, double* out) {
    double sums[lanes] = {};
    const std::size_t whole = n / lanes * lanes;
    for (std::size_t k = 0; k < whole; k += lanes)
        for (std::size_t c = 0; c < lanes; ++c) sums[c] += x[k + c] * y[k + c];
    *out = 0.0;
    for (const double sum : sums) *out += sum;
    for (std::size_t k = whole; k < n; ++k) *out += x[k] * y[k];
}

ARMLET_DISPATCH(find_dot, (const double* x, const double* y, std::size_t n, double* out), (x, y, n, out))

double dot(const std::vector<double>& x, const std::vector<double>& y) {
    double out;
    find_dot(x.data(), y.data(), x.size(), &out);
    return out;
}

double length(const std::vector<double>& x) { return std::sqrt(dot(x, x)); }

}  // namespace

// All draws of one question.
class PairDraws {
  public:
    PairDraws(PairModel& model, const PairQuestion& asked, const Coins& coins, double unit)
        : model_(model), asked_(asked), coins_(coins), unit_(unit), z_(1 + asked.rows.dz()) {}

    std::vector<PairModel::Rows> winners(std::size_t n) {
        if (n == 0) return {};
        open(n);
        if (std::all_of(draws_.begin(), draws_.end(), [](const Draw& one) { return one.coarse.is_usable(); }))
            bound_known(), scan();
        else
            take_all();
        std::vector<PairModel::Rows> out;
        for (std::size_t j = 0; j < n; ++j) out.push_back(settle(j));
        return out;
    }

  private:
    void open(std::size_t n) {
        const PairSolution& at = model_.solution_;
        const std::size_t d = at.theta.size();
        std::vector<double> normals(n * d);
        draw_normals(coins_.pick, coins_.tie, normals);
        const double own = has_intercepts() ? unit_ / std::sqrt(model_.sums_.kappa()) : 0.0;
        const PairView view = model_.view(asked_, at.theta.data());
        const PairSearch search(model_, asked_, view);
        for (std::size_t j = 0; j < n; ++j) {
            Draw draw{.theta = {normals.begin() + static_cast<std::ptrdiff_t>(j * d),
                                normals.begin() + static_cast<std::ptrdiff_t>((j + 1) * d)},
                      .view = view,
                      .coarse = {},
                      .spread = 0.0F,
                      .reach = 0.0F,
                      .least = -INFINITY,
                      .highest = {},
                      .found = {},
                      .length = 0.0};
            back_substitute(at.L.data(), at.inverse.data(), at.rows, d, draw.theta.data());
            for (std::size_t k = 0; k < d; ++k) draw.theta[k] = at.theta[k] + unit_ * draw.theta[k];
            model_.sums_.terms().project(draw.theta.data(), draw.view.x.data(), draw.view.v.data());
            draw.coarse = search.scorer(draw.view.v, 0.0, own);
            draw.spread = static_cast<float>(own / draw.coarse.unit);
            // normals are below 9, and four roundings are of bins
            draw.reach = static_cast<float>((draw.coarse.error + 40.0 * 0x1p-23 * own / draw.coarse.unit) * 1.01);
            draw.length = length(draw.theta);
            draws_.push_back(std::move(draw));
        }
    }

    bool has_intercepts() const { return model_.sums_.has_intercepts(); }

    double exact(const Draw& draw, std::size_t j, std::size_t row) {
        model_.view_z(draw.view, asked_.rows, row, z_.data());
        const auto item = model_.known_.item(row);
        double value = model_.score(draw.view.v.data(), z_.data()), n = 0.0;
        if (item != KnownRows::unknown) {
            value += model_.delta(draw.theta.data(), item, z_.data());
            n = model_.sums_.items()[item].n;
        }
        if (!has_intercepts()) return value;
        const Word word = words_of(coins_, asked_.rows.keys()[row], j / in_block)[j % in_block];
        return value + unit_ / std::sqrt(n + model_.sums_.kappa()) * to_normal(word);
    }

    bool is_unknown(std::size_t row) const {
        return asked_.allows(row) && model_.known_.item(row) == KnownRows::unknown;
    }

    // The value of a known row is theta'f plus what does not depend on theta: one product for each draw.
    void bound_known() {
        const PairTerms& terms = model_.sums_.terms();
        const std::size_t d = terms.size();
        std::vector<double> sums(1 + terms.dx()), f(d);
        std::vector<std::uint16_t> bin(draws_.size() * tile);
        for (const auto row : model_.known_.rows()) {
            if (!asked_.allows(row)) continue;
            const auto item = model_.known_.item(row);
            const double share = 1.0 / (model_.sums_.items()[item].n + model_.sums_.kappa());
            model_.view_z(draws_[0].view, asked_.rows, row, z_.data());
            model_.view_sums(item, sums.data());
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = draws_[0].view.x[i] - sums[i] * share;
            terms.spread(sums.data(), z_.data(), f.data());
            find_bins(asked_.rows.keys()[row], bin.data());
            const double size = length(f), spread = unit_ * std::sqrt(share);
            for (std::size_t j = 0; j < draws_.size(); ++j) {
                Draw& draw = draws_[j];
                double value = model_.sums_.items()[item].y * share;
                const double wrong = 1e-10 * (std::fabs(value) + std::fabs(draw.coarse.constant) + draw.length * size);
                value += dot(draw.theta, f) - draw.coarse.constant;
                const double per = 1.0 / draw.coarse.unit;
                const Offer offered{
                    .row = row,
                    .score = static_cast<float>(value * per),
                    .spread = static_cast<float>(spread * per),
                    .reach = static_cast<float>(wrong * per + 1e-6 * (std::fabs(value) + 10.0 * spread) * per)};
                offer(draw, offered, bin[j * tile]);
            }
        }
    }

    void scan() {
        static constexpr float no_offsets[tile] = {};
        const ActionRows& rows = asked_.rows;
        std::vector<std::uint16_t> bin(draws_.size() * tile);
        bool open[tile];
        float scores[tile], top;
        for (std::size_t number = 0; number < rows.n_tiles(); ++number) {
            const std::size_t first = number * tile, there = std::min(tile, rows.size() - first);
            for (std::size_t r = 0; r < there; ++r) {
                open[r] = is_unknown(first + r);
                if (open[r] && has_intercepts()) find_bins(rows.keys()[first + r], bin.data() + r);
            }
            for (std::size_t j = 0; j < draws_.size(); ++j) {
                Draw& draw = draws_[j];
                score_tile(rows.scaled(number), draw.coarse.v.data(), rows.dz(), no_offsets, 0.0F, scores, &top);
                if (top + bins.high.back() * draw.spread + draw.reach < draw.least) continue;
                for (std::size_t r = 0; r < there; ++r)
                    if (open[r])
                        offer(draw, {static_cast<std::uint32_t>(first + r), scores[r], draw.spread, draw.reach},
                              has_intercepts() ? bin[j * tile + r] : n_bins / 2);
            }
        }
    }

    // The bins of one row in every draw, `tile` apart.
    void find_bins(Word key, std::uint16_t* out) const {
        for (std::size_t j = 0; j < draws_.size(); j += in_block) {
            const auto words = words_of(coins_, key, j / in_block);
            for (std::size_t c = j; c < std::min(j + in_block, draws_.size()); ++c)
                out[c * tile] = static_cast<std::uint16_t>(words[c - j] >> 54);
        }
    }

    static void offer(Draw& draw, const Offer& offered, std::size_t bin) {
        const float high = offered.score + bins.high[bin] * offered.spread + offered.reach;
        if (high < draw.least) return;
        draw.found.push_back({high, offered.row});
        draw.least = std::max(draw.least, offered.score + bins.low[bin] * offered.spread - offered.reach);
    }

    void take_all() {
        for (std::size_t row = 0; row < asked_.rows.size(); ++row)
            if (asked_.allows(row))
                for (auto& draw : draws_) draw.found.push_back({INFINITY, static_cast<std::uint32_t>(row)});
    }

    PairModel::Rows settle(std::size_t j) {
        Draw& draw = draws_[j];
        for (const auto& [high, row] : draw.found)
            if (!(high < draw.least)) draw.highest.offer(row, exact(draw, j, row));
        return std::move(draw.highest).sorted();
    }

    PairModel& model_;
    const PairQuestion& asked_;
    const Coins& coins_;
    double unit_;
    std::vector<double> z_;
    std::vector<Draw> draws_;
};

std::vector<PairModel::Rows> PairModel::draws(const PairQuestion& asked, const Coins& coins, std::size_t n, double v) {
    refresh();
    refresh_known(asked.rows);
    return PairDraws(*this, asked, coins, v * solution_.sigma).winners(n);
}

}  // namespace armlet
