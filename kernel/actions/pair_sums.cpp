#include "actions/pair_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actions/evidence.hpp"
#include "linear/linear.hpp"
#include "state/digits/lost_digits.hpp"

namespace armlet {

namespace {

constexpr double rounding = 0x1p-46;        // a variance that is a smaller share of its mean square is none
constexpr double least_square = 1e-120;     // a variance below this has lost its digits
constexpr double ordinary = 1024.0;         // up to this size, four bits are an origin, and beyond eight
constexpr int bits_of_actions = 24;         // their features are those of a catalogue
constexpr std::size_t most_touched = 4096;  // beyond, all are looked up again
constexpr std::size_t folded_per_item = 8;  // keys of folded items that are known, for each that may be kept

// Products are small about such an origin.
double rounded(double value, int bits) {
    int exponent;
    const double fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

// Of a context or a reward: nobody's row can be read off it.
double rough(double value) { return rounded(value, std::fabs(value) > ordinary ? 8 : 4); }

void add_scaled(std::vector<double>& out, const std::vector<double>& values, double sign) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += sign * values[i];
}

}  // namespace

TermSums::TermSums(std::size_t size) : A(packed_size(size)), b(size) {}

void TermSums::clear() {
    std::fill(A.begin(), A.end(), 0.0);
    std::fill(b.begin(), b.end(), 0.0);
    squares = 0.0;
}

void TermSums::add_share(const double* s, double y, double share) {
    add_outer(A.data(), s, share, b.size());
    const double own = share * y;
    for (std::size_t k = 0; k < b.size(); ++k) b[k] += own * s[k];
    squares += own * y;
}

PairSums::PairSums(PairTerms terms, bool intercepts, std::size_t kept)
    : terms_(std::move(terms)),
      intercepts_(intercepts),
      kept_(kept),
      kappa_(first_kappa),
      origin_(1 + terms_.dx() + terms_.dz()),
      moments_(2 * origin_.size()),
      sums_(terms_.size()),
      pulls_(terms_.size()),
      items_(terms_.dx(), terms_.dz()),
      folded_(folded_per_item * kept),
      row_(origin_.size()),
      x_(1 + terms_.dx()),
      z_(1 + terms_.dz()),
      phi_(terms_.size()) {}

void PairSums::clear() {
    rows_ = 0, n_ = 0.0, kappa_ = first_kappa;
    std::fill(origin_.begin(), origin_.end(), 0.0);
    std::fill(moments_.begin(), moments_.end(), 0.0);
    sums_.clear(), pulls_.clear(), items_.clear(), folded_.clear();
    touched_.clear(), all_touched_ = true;
}

bool PairSums::holds(Word key, double weight) const {
    if (rows_ == 0) return false;
    if (!intercepts_) return true;
    const auto at = items_.find(key);
    return at != Items::none && !folded_.contains(key) && !(items_[at].n - weight < -1e-9 * items_[at].n);
}

bool PairSums::is_like(const PairSums& other) const {
    return terms_ == other.terms_ && intercepts_ == other.intercepts_;
}

void PairSums::add(const PairRow& row) {
    if (is_empty()) {
        const std::size_t dx = terms_.dx();
        origin_[0] = rough(row.reward);
        for (std::size_t j = 0; j < dx; ++j) origin_[1 + j] = rough(row.x[j]);
        for (std::size_t j = 0; j < terms_.dz(); ++j) origin_[1 + dx + j] = rounded(row.z[j], bits_of_actions);
    }
    change(row, row.weight, 1);
    fold_oldest();
}

void PairSums::remove(const PairRow& row) {
    if (rows_ == 1) return clear();
    change(row, -row.weight, -1);
    clear_if_lost(row.weight, origin_.size());
    if (rows_ > 0) settle_constants(row.weight);
}

// Of the row at hand, which was taken back: features in which only its rounding varies are brought to one value.
void PairSums::settle_constants(double weight) {
    const std::size_t size = origin_.size(), dx = terms_.dx();
    std::vector<double> middles(size - 1), scales(size - 1, 1.0), ones(size - 1, 1.0);
    for (std::size_t j = 1; j < size && n_ > 0.0; ++j) {
        const auto value = ColumnSums{n_, moments_[j], moments_[size + j]}.constant(row_[j], weight);
        if (!value) continue;
        middles[j - 1] = *value, scales[j - 1] = 0.0;
        moments_[j] = n_ * *value;
        moments_[size + j] = moments_[j] * *value;
        for (auto at = items_.first(); at != Items::none && j <= dx; at = items_.after(at))
            items_.u(at)[j - 1] = items_[at].n * *value;
    }
    if (scales == ones) return;
    std::vector<double> b(terms_.size());
    sums_.A = terms_.map_matrix(sums_.A.data(), middles.data(), scales.data());
    terms_.map(sums_.b.data(), 1, middles.data(), scales.data(), b.data());
    for (double& one : middles) one = -one;
    sums_.A = terms_.map_matrix(sums_.A.data(), middles.data(), ones.data());
    terms_.map(b.data(), 1, middles.data(), ones.data(), sums_.b.data());
    repull();
    all_touched_ = true;
}

void PairSums::correct(const PairRow& row, double next) {
    view(row);
    const double before = row.reward - origin_[0], now = next - origin_[0], more = row.weight * (now - before);
    const double squares = row.weight * (now * now - before * before);
    moments_[0] += more;
    moments_[origin_.size()] += squares;
    for (std::size_t k = 0; k < phi_.size(); ++k) sums_.b[k] += more * phi_[k];
    sums_.squares += squares;
    if (intercepts_) {
        const auto at = items_.find(row.key);
        pull(at, -1.0);
        items_[at].y += more;
        pull(at, 1.0);
        touch(row.key);
    }
    clear_if_lost(row.weight, 1);
}

// So many columns of the row at hand were taken back: all that it has, or its reward.
void PairSums::clear_if_lost(double weight, std::size_t columns) {
    const std::size_t size = origin_.size();
    std::vector<double> found(1 + size);
    if (columns > 1) found[0] = weight / std::max(n_, 1.0);
    for (std::size_t j = 0; j < size && n_ > 0.0; ++j) {
        const ColumnSums own{n_, moments_[j], moments_[size + j]};
        double held = own.is_far_from(origin_[j]) ? own.square : 0.0;
        if (j < columns) held += own.taken(row_[j], weight);
        found[1 + j] = held / (n_ * own.variance(origin_[j], weight));
    }
    const double most = *std::max_element(found.begin(), found.end());
    if (!(most > LostDigits::reported)) return;
    digits_lost_.resize(found.size());
    for (std::size_t c = 0; c < found.size(); ++c)
        digits_lost_[c] = std::max(digits_lost_[c], LostDigits::digits_of(found[c]));
    ++losses_;
    if (most > LostDigits::emptied) clear();
}

// The row from its origins, and its terms.
void PairSums::view(const PairRow& row) {
    const std::size_t dx = terms_.dx(), dz = terms_.dz();
    row_[0] = row.reward - origin_[0];
    x_[0] = z_[0] = 1.0;
    for (std::size_t j = 0; j < dx; ++j) row_[1 + j] = x_[1 + j] = row.x[j] - origin_[1 + j];
    for (std::size_t j = 0; j < dz; ++j) row_[1 + dx + j] = z_[1 + j] = row.z[j] - origin_[1 + dx + j];
    terms_.spread(x_.data(), z_.data(), phi_.data());
}

void PairSums::change(const PairRow& row, double weight, std::int64_t rows) {
    view(row);
    const double r = row_[0], own = weight * r;
    rows_ += rows;
    n_ += weight;
    for (std::size_t j = 0; j < row_.size(); ++j) {
        moments_[j] += weight * row_[j];
        moments_[row_.size() + j] += (weight * row_[j]) * row_[j];
    }
    add_outer(sums_.A.data(), phi_.data(), weight, phi_.size());
    for (std::size_t k = 0; k < phi_.size(); ++k) sums_.b[k] += own * phi_[k];
    sums_.squares += own * r;
    if (intercepts_) change_item(row, weight, rows);
}

void PairSums::change_item(const PairRow& row, double weight, std::int64_t rows) {
    auto at = items_.find(row.key);
    if (at == Items::none)
        at = items_.open(row.key, z_.data() + 1);
    else if (rows > 0)
        items_.move_last(at);
    pull(at, -1.0);
    Item& item = items_[at];
    double* u = items_.u(at);
    item.rows += rows;
    item.n += weight;
    item.y += weight * row_[0];
    for (std::size_t j = 0; j < terms_.dx(); ++j) u[j] += weight * row_[1 + j];
    if (item.rows == 0)
        items_.close(at);
    else
        pull(at, 1.0);
    touch(row.key);
}

const double* PairSums::item_terms(std::uint32_t item) {
    x_[0] = items_[item].n, z_[0] = 1.0;
    std::copy_n(items_.u(item), terms_.dx(), x_.data() + 1);
    std::copy_n(items_.z(item), terms_.dz(), z_.data() + 1);
    terms_.spread(x_.data(), z_.data(), phi_.data());
    return phi_.data();
}

// An item of no weight only stands to be merged.
void PairSums::pull(std::uint32_t item, double sign) {
    const auto& [key, rows, n, y, before, after] = items_[item];
    if (n > 0.0) pulls_.add_share(item_terms(item), y, sign / (n + kappa_));
}

void PairSums::repull() {
    pulls_.clear();
    for (auto at = items_.first(); at != Items::none; at = items_.after(at)) pull(at, 1.0);
}

// What an item's intercept took out of the sums stays out.
void PairSums::fold(std::uint32_t item) {
    const double n = items_[item].n;
    if (n > 0.0) sums_.add_share(item_terms(item), items_[item].y, -1.0 / (n + kappa_));
    pull(item, -1.0);
    touch(items_[item].key);
    folded_.add(items_[item].key);
    items_.close(item);
}

void PairSums::fold_oldest() {
    while (items_.size() > kept_) fold(items_.first());
}

void PairSums::merge(const PairSums& other) {
    if (other.is_empty()) return;
    if (is_empty()) origin_ = other.origin_;
    accumulate(other, 1.0);
    for (const Word key : other.folded_.list()) folded_.add(key);
    fold_oldest();
}

void PairSums::subtract(const PairSums& base) { accumulate(base, -1.0); }

// The other's sums are brought to the own origin first.
void PairSums::accumulate(const PairSums& other, double sign) {
    const std::size_t size = origin_.size();
    std::vector<double> shift(size), moments = other.moments_;
    for (std::size_t j = 0; j < size; ++j) shift[j] = origin_[j] - other.origin_[j];
    TermSums sums = other.sums_;
    if (std::any_of(shift.begin(), shift.end(), [](double one) { return one != 0.0; })) {
        const double d = shift[0], b0 = sums.b[0], n0 = sums.A[0];
        for (std::size_t k = 0; k < terms_.size(); ++k) sums.b[k] -= d * sums.A[k];  // its first column
        sums.squares = (sums.squares - d * b0) - d * (b0 - d * n0);
        for (std::size_t j = 0; j < size; ++j) {
            const double left = moments[j] - shift[j] * other.n_;
            moments[size + j] = (moments[size + j] - shift[j] * moments[j]) - shift[j] * left;
            moments[j] = left;
        }
        const std::vector<double> ones(size - 1, 1.0), b = sums.b;
        sums.A = terms_.map_matrix(sums.A.data(), shift.data() + 1, ones.data());
        terms_.map(b.data(), 1, shift.data() + 1, ones.data(), sums.b.data());
    }
    rows_ += sign > 0.0 ? other.rows_ : -other.rows_;
    n_ += sign * other.n_;
    add_scaled(moments_, moments, sign);
    add_scaled(sums_.A, sums.A, sign);
    add_scaled(sums_.b, sums.b, sign);
    sums_.squares += sign * sums.squares;
    accumulate_items(other, shift, sign);
    repull();
    all_touched_ = true;
}

void PairSums::accumulate_items(const PairSums& other, const std::vector<double>& shift, double sign) {
    const std::size_t dx = terms_.dx(), dz = terms_.dz();
    std::vector<double> z(dz);
    for (auto from = other.items_.first(); from != Items::none; from = other.items_.after(from)) {
        const Item& its = other.items_[from];
        auto at = items_.find(its.key);
        for (std::size_t j = 0; j < dz; ++j) z[j] = other.items_.z(from)[j] - shift[1 + dx + j];
        if (at == Items::none)
            at = items_.open(its.key, z.data());
        else
            items_.move_last(at);
        Item& mine = items_[at];
        mine.rows += sign > 0.0 ? its.rows : -its.rows;
        mine.n += sign * its.n;
        mine.y += sign * (its.y - shift[0] * its.n);
        for (std::size_t j = 0; j < dx; ++j) items_.u(at)[j] += sign * (other.items_.u(from)[j] - shift[1 + j] * its.n);
        // as many rows as the base had may be others: the difference says so
        const bool differs = std::any_of(items_.u(at), items_.u(at) + dx, [](double one) { return one != 0.0; });
        if (mine.rows == 0 && (sign > 0.0 || (mine.n == 0.0 && mine.y == 0.0 && !differs))) items_.close(at);
    }
}

void PairSums::set_kappa(double kappa) {
    kappa_ = kappa;
    repull();
}

StandardUnits PairSums::units() const {
    const std::size_t size = origin_.size();
    StandardUnits out{std::vector<double>(size - 1), std::vector<double>(size - 1)};
    if (!(n_ > 0.0)) return out;
    for (std::size_t j = 1; j < size; ++j) {
        const double mean = moments_[j] / n_, square = moments_[size + j] / n_, variance = square - mean * mean;
        out.middles[j - 1] = mean;
        if (variance > rounding * square && variance > least_square) out.scales[j - 1] = 1.0 / std::sqrt(variance);
    }
    return out;
}

double PairSums::variance() const {
    const double sum = moments_[0], square = moments_[origin_.size()];
    const double found = n_ > 0.0 ? std::max(square - sum * sum / n_, 0.0) : 0.0;
    return found > rounding * square ? found / n_ : 0.0;
}

PairSystem PairSums::system(const StandardUnits& units) const {
    std::vector<double> A = sums_.A, b = sums_.b;
    for (std::size_t k = 0; k < A.size(); ++k) A[k] -= pulls_.A[k];
    for (std::size_t k = 0; k < b.size(); ++k) b[k] -= pulls_.b[k];
    PairSystem out{.A = terms_.map_matrix(A.data(), units.middles.data(), units.scales.data()),
                   .b = std::vector<double>(b.size()),
                   .squares = sums_.squares - pulls_.squares,
                   .n = n_,
                   .variance = variance()};
    terms_.map(b.data(), 1, units.middles.data(), units.scales.data(), out.b.data());
    return out;
}

void PairSums::touch(Word key) {
    if (touched_.size() < most_touched)
        touched_.push_back(key);
    else
        all_touched_ = true;
}

bool PairSums::take_touched(std::vector<Word>& keys) {
    keys.clear();
    keys.swap(touched_);
    return std::exchange(all_touched_, false);
}

PairSums::State PairSums::state() const {
    const auto joined = [](const TermSums& sums) {
        std::vector<double> out = sums.A;
        out.insert(out.end(), sums.b.begin(), sums.b.end());
        out.push_back(sums.squares);
        return out;
    };
    State out{.rows = rows_,
              .origin = origin_,
              .moments = {n_},
              .sums = joined(sums_),
              .pulls = joined(pulls_),
              .keys = {},
              .item_rows = {},
              .items = {},
              .folded = folded_.list(),
              .kappa = kappa_};
    out.moments.insert(out.moments.end(), moments_.begin(), moments_.end());
    for (auto at = items_.first(); at != Items::none; at = items_.after(at)) {
        const Item& item = items_[at];
        out.keys.push_back(item.key);
        out.item_rows.push_back(item.rows);
        out.items.insert(out.items.end(), {item.n, item.y});
        out.items.insert(out.items.end(), items_.u(at), items_.u(at) + terms_.dx() + terms_.dz());
    }
    return out;
}

void PairSums::restore(const State& state) {
    const auto split = [](const std::vector<double>& from, TermSums& to) {
        const auto b = from.begin() + static_cast<std::ptrdiff_t>(to.A.size());
        std::copy(from.begin(), b, to.A.begin());
        std::copy(b, from.end() - 1, to.b.begin());
        to.squares = from.back();
    };
    const std::size_t dx = terms_.dx(), dz = terms_.dz();
    digits_lost_.clear();
    rows_ = state.rows, origin_ = state.origin, n_ = state.moments[0], kappa_ = state.kappa;
    std::copy(state.moments.begin() + 1, state.moments.end(), moments_.begin());
    split(state.sums, sums_), split(state.pulls, pulls_);
    items_.clear();
    for (std::size_t i = 0; i < state.keys.size(); ++i) {
        const double* numbers = state.items.data() + i * (2 + dx + dz);
        const auto at = items_.open(state.keys[i], numbers + 2 + dx);
        items_[at].rows = state.item_rows[i], items_[at].n = numbers[0], items_[at].y = numbers[1];
        std::copy_n(numbers + 2, dx, items_.u(at));
    }
    folded_.clear();
    for (const Word key : state.folded) folded_.add(key);
    all_touched_ = true;
}

}  // namespace armlet
