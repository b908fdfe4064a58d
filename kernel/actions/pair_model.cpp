#include "actions/pair_model.hpp"

#include <algorithm>
#include <cmath>

#include "linear/elementary.hpp"
#include "linear/linear.hpp"

namespace armlet {

namespace {

constexpr double least_square = 1e-120;

}  // namespace

PairModel::PairModel(PairTerms terms, bool intercepts, std::size_t kept) : sums_(std::move(terms), intercepts, kept) {
    reset();
}

void PairModel::reset() {
    const PairTerms& terms = sums_.terms();
    since_ = weighed_ = 0, is_behind_ = false;
    for (std::size_t group = 0; group < n_ridge_groups; ++group)
        ridges_[group] = first_ridge(terms.begin(group + 1) - terms.begin(group));
    find_solution();
}

void PairModel::catch_up() {
    is_behind_ = false;
    weigh();
    find_solution();
}

void PairModel::add(const PairRow& row) {
    refresh();
    sums_.add(row);
    const auto most = static_cast<std::int64_t>(std::max<std::size_t>(16, sums_.terms().size() / 8));
    const bool is_due = ++since_ >= std::min(std::max<std::int64_t>(sums_.rows() / 64, 1), most);
    if (is_due || (!has_varied() && sums_.variance() > 0.0)) solve();
}

void PairModel::remove(const PairRow& row) {
    sums_.remove(row);
    if (sums_.rows() == 0) return reset();
    renew();
}

void PairModel::correct(const PairRow& row, double next) {
    sums_.correct(row, next);
    if (sums_.rows() == 0) return reset();
    renew();
}

// Items are folded in by the kappa of the rows before.
void PairModel::merge(const PairModel& other) {
    refresh();
    sums_.merge(other.sums_);
    if (!sums_.is_empty()) renew();
}

void PairModel::subtract(const PairModel& base) {
    sums_.subtract(base.sums_);
    renew();
}

void PairModel::solve() {
    if (sums_.rows() >= 2 * weighed_) weigh();
    find_solution();
}

void PairModel::weigh() {
    weighed_ = sums_.rows();
    weigh_evidence(sums_, ridges_.data());
}

void PairModel::find_solution() {
    const std::size_t d = sums_.terms().size();
    solution_.units = sums_.units();
    PairSystem system = sums_.system(solution_.units);
    const auto ridge = ridge_diagonal(sums_, ridges_.data());
    for (std::size_t k = 0, at = 0; k < d; at += d - k, ++k) system.A[at] += ridge[k];
    const Factor f = factorise(system.A.data(), 0.0, 0.0, d);
    solution_.L.assign(f.M, f.M + f.rows * d);
    solution_.inverse.assign(f.inverse, f.inverse + d);
    solution_.rows = f.rows;
    std::vector<double>& theta = solution_.theta = system.b;
    forward_substitute(f.M, f.inverse, f.rows, d, theta.data());
    double explained = 0.0;
    for (const double one : theta) explained += one * one;
    back_substitute(f.M, f.inverse, f.rows, d, theta.data());
    const double left = std::max(system.squares - explained, 0.0) + system.variance;
    solution_.sigma = system.variance > 0.0 ? std::sqrt(left / sums_.n()) : 0.0;
    if (!has_varied()) {  // rewards that are all the same leave no slopes, where rounding would
        std::fill(theta.begin(), theta.end(), 0.0);
        theta[0] = sums_.mean();
    }
    ++solution_.version;
    since_ = 0;
}

// A feature of actions that has not varied among learned rows is measured by what is allowed, about the value it had.
PairView PairModel::view(const PairQuestion& asked, const double* theta) const {
    const std::size_t dx = sums_.terms().dx(), dz = sums_.terms().dz();
    const auto& [middles, scales] = solution_.units;
    const double* origin = sums_.origin().data() + 1;
    PairView out{std::vector<double>(dx + 1, 1.0),
                 {scales.begin() + static_cast<std::ptrdiff_t>(dx), scales.end()},
                 std::vector<double>(dz + 1)};
    for (std::size_t j = 0; j < dx; ++j) out.x[1 + j] = ((asked.x[j] - origin[j]) - middles[j]) * scales[j];
    for (std::size_t j = 0; j < dz; ++j) {
        if (out.scales[j] > 0.0) continue;
        double sum = 0.0, count = 0.0;
        for (std::size_t row = 0; row < asked.rows.size(); ++row)
            if (asked.allows(row)) {
                const double off = (asked.rows.z(row)[j] - origin[dx + j]) - middles[dx + j];
                sum += off * off, count += 1.0;
            }
        const double square = count > 0.0 ? sum / count : 0.0;
        out.scales[j] = square > least_square ? 1.0 / std::sqrt(square) : 0.0;
    }
    sums_.terms().project(theta, out.x.data(), out.v.data());
    return out;
}

void PairModel::view_z(const PairView& view, const ActionRows& rows, std::size_t row, double* z) const {
    const std::size_t dx = sums_.terms().dx(), dz = sums_.terms().dz();
    const double *origin = sums_.origin().data() + 1 + dx, *middles = solution_.units.middles.data() + dx;
    z[0] = 1.0;
    for (std::size_t j = 0; j < dz; ++j) z[1 + j] = ((rows.z(row)[j] - origin[j]) - middles[j]) * view.scales[j];
}

void PairModel::view_sums(std::uint32_t item, double* sums) const {
    const auto& [middles, scales] = solution_.units;
    const double n = sums_.items()[item].n;
    sums[0] = n;
    for (std::size_t j = 0; j < sums_.terms().dx(); ++j)
        sums[1 + j] = (sums_.items().u(item)[j] - middles[j] * n) * scales[j];
}

double PairModel::score(const double* v, const double* z) const {
    double sum = 0.0;
    for (std::size_t j = 0; j <= sums_.terms().dz(); ++j) sum += z[j] * v[j];
    return sum;
}

double PairModel::delta(const double* theta, std::uint32_t item, const double* z) const {
    if (!has_varied()) return 0.0;
    thread_local std::vector<double> own, v;
    own.resize(1 + sums_.terms().dx()), v.resize(1 + sums_.terms().dz());
    view_sums(item, own.data());
    sums_.terms().project(theta, own.data(), v.data());
    return (sums_.items()[item].y - score(v.data(), z)) / (sums_.items()[item].n + sums_.kappa());
}

double PairModel::width(const PairView& view, const double* z, std::uint32_t item) const {
    const PairTerms& terms = sums_.terms();
    thread_local std::vector<double> x, y;
    x = view.x;
    y.assign(padded(terms.size()), 0.0);
    double own = sums_.has_intercepts() ? 1.0 / sums_.kappa() : 0.0;
    if (item != KnownRows::unknown) {
        own = 1.0 / (sums_.items()[item].n + sums_.kappa());
        view_sums(item, x.data());
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = view.x[i] - x[i] * own;
    }
    terms.spread(x.data(), z, y.data());
    forward_substitute(solution_.L.data(), solution_.inverse.data(), solution_.rows, terms.size(), y.data());
    double columns[lanes] = {}, total = 0.0;
    for (std::size_t k = 0; k < y.size(); k += lanes)
        for (std::size_t c = 0; c < lanes; ++c) columns[c] += y[k + c] * y[k + c];
    for (const double column : columns) total += column;
    return std::min(std::sqrt(total + own), beyond_any);
}

double PairModel::bonus(double width, double unit, Word t) const {
    const double D = static_cast<double>(sums_.terms().size());
    return unit * (width * std::sqrt(2.0 * elementary::log(1.0 + static_cast<double>(t) * (width * width) / D)));
}

void PairModel::refresh_known(const ActionRows& rows) {
    const std::vector<double> none(sums_.terms().dx());
    PairView plain{{},
                   {solution_.units.scales.begin() + static_cast<std::ptrdiff_t>(sums_.terms().dx()),
                    solution_.units.scales.end()},
                   {}};
    std::vector<double> z(1 + sums_.terms().dz());
    known_.refresh(sums_, rows, solution_.version, [&](std::uint32_t item, std::size_t row) {
        view_z(plain, rows, row, z.data());
        return delta(solution_.theta.data(), item, z.data());
    });
}

std::vector<double> PairModel::estimates(const PairQuestion& asked) {
    refresh();
    refresh_known(asked.rows);
    const PairView at = view(asked, solution_.theta.data());
    std::vector<double> out(asked.rows.size()), z(1 + sums_.terms().dz());
    for (std::size_t row = 0; row < out.size(); ++row) {
        view_z(at, asked.rows, row, z.data());
        out[row] = score(at.v.data(), z.data());
        if (const auto item = known_.item(row); item != KnownRows::unknown)
            out[row] += delta(solution_.theta.data(), item, z.data());
        out[row] += sums_.origin()[0];
    }
    return out;
}

std::vector<double> PairModel::widths(const PairQuestion& asked) {
    refresh();
    refresh_known(asked.rows);
    const PairView at = view(asked, solution_.theta.data());
    std::vector<double> out(asked.rows.size()), z(1 + sums_.terms().dz());
    for (std::size_t row = 0; row < out.size(); ++row) {
        view_z(at, asked.rows, row, z.data());
        out[row] = width(at, z.data(), known_.item(row));
    }
    return out;
}

PairModel::State PairModel::state() const { return {sums_.state(), since_, weighed_, ridges_, solution_}; }

void PairModel::restore(const State& state) {
    sums_.restore(state.sums);
    since_ = state.since, weighed_ = state.weighed, ridges_ = state.ridges, is_behind_ = false;
    const Word version = solution_.version;
    solution_ = state.solution;
    solution_.version = version + 1;
    known_.drop();
}

}  // namespace armlet
