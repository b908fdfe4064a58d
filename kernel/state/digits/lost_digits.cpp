#include "state/digits/lost_digits.hpp"

#include <algorithm>
#include <cmath>

namespace armlet {

namespace {

constexpr double few = 1.5;            // of a weight, below which there is one row
constexpr double near_share = 0.0625;  // of a squared origin, up to which a squared mean about it is near
constexpr double coarse = 0x1p-8;      // widths, which rest on squared weights, need two digits less than estimates

constexpr double rounding = 0x1p-45;   // of what a column held: a variance below is none
constexpr double remainder = 0x1p-40;  // of what a row held besides: what is left has fewer than four digits

// Of all columns, n first: what the rows of an arm, or of all arms, hold.
std::vector<ColumnSums> columns(const Sums& sums, const Units& units, std::span<const std::size_t> arms) {
    const std::size_t dim = units.dim(), first = units.is_free() ? 1 : 0;
    std::vector<ColumnSums> out(LostDigits::features + dim);
    for (const auto arm : arms) {
        const auto record = sums.record(arm);
        const double *A = sums.A(arm), *diagonal = A + (first ? sums.dim() : 0);
        for (auto& one : out) one.n += record[0];
        out[LostDigits::reward].sum += first ? record[1] : 0.0;
        out[LostDigits::reward].square += record[2];
        for (std::size_t j = 0; j < dim; diagonal += dim - j, ++j) {
            out[LostDigits::features + j].sum += first ? A[1 + j] : 0.0;
            out[LostDigits::features + j].square += *diagonal;
        }
    }
    return out;
}

// The sum of squared weights of an arm. As given, where no column counts rows, it follows from the largest column.
double squared_weights(const Sums& sums, const Units& units, std::size_t arm) {
    const double *A = sums.A(arm), *squares = sums.squares(arm).data();
    std::size_t place = 0, largest = 0;
    for (std::size_t j = 0; j < sums.dim() && !units.is_free(); place += sums.dim() - j, ++j)
        if (A[place] > A[largest]) largest = place;
    return A[largest] > 0.0 ? sums.n(arm) * (squares[largest] / A[largest]) : 0.0;
}

// Quick, and true wherever something is lost.
bool may_lose(const Units& units, const TakenRow& taken) {
    const std::size_t size = taken.x ? units.size() : 0;
    const auto is_large = [&](double value) { return taken.weight * (value * value) > LostDigits::reported; };
    return taken.weight * taken.weight > LostDigits::reported || is_large(taken.reward) ||
           std::any_of(taken.x, taken.x + size, is_large) ||
           std::any_of(units.origin().begin(), units.origin().end(), [](double one) { return one != 0.0; });
}

}  // namespace

double ColumnSums::taken(double value, double weight) const {
    const double delta = value - sum / n;
    return weight * std::min(value * value, delta * delta);
}

bool ColumnSums::is_far_from(double origin) const {
    const double mean = sum / n;
    return origin != 0.0 && mean * mean > near_share * (origin * origin);
}

double ColumnSums::variance(double origin, double weight) const {
    const double mean = sum / n, value = mean + origin;
    return std::max(n < few * weight ? value * value : square / n - mean * mean, 1.0);
}

std::optional<double> ColumnSums::constant(double value, double weight) const {
    const double mean = sum / n, found = square / n - mean * mean;
    const double held = square + weight * (value * value), more = taken(value, weight);
    const bool is_last = more > rounding * held, seems_to_vary = found > 0.5 * rounding * (square / n);
    if (!(is_last || seems_to_vary) || n * found > rounding * held + remainder * more) return std::nullopt;
    return std::fabs(sum) > remainder * (weight * std::fabs(value)) ? mean : 0.0;
}

ConstantColumns constant_columns(const Sums& sums, const TakenRow& taken) {
    std::vector<ColumnSums> left(sums.dim());
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm) {
        const double *A = sums.A(arm), *diagonal = A;
        for (std::size_t j = 0; j < sums.dim(); diagonal += sums.dim() - j, ++j) {
            left[j].n += sums.n(arm);
            left[j].sum += A[j];
            left[j].square += *diagonal;
        }
    }
    ConstantColumns out;
    for (std::size_t j = 1; j < sums.dim() && left[j].n > 0.0; ++j)
        if (const auto value = left[j].constant(taken.x[j], taken.weight))
            out.columns.push_back(j), out.values.push_back(*value);
    return out;
}

// In units as given there is no origin, no mean, and nothing that arms share.
std::vector<std::size_t> LostDigits::find(const Sums& sums, const Units& units, const TakenRow& taken) {
    const std::size_t dim = units.dim(), first = units.is_free() ? 1 : 0;
    std::vector<std::size_t> arms, lost;
    if (!may_lose(units, taken)) return lost;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm)
        if (arm == taken.arm || (first && sums.n(arm) > 0.0)) arms.push_back(arm);
    const std::vector<ColumnSums> all = columns(sums, units, arms);
    std::vector<double> origin = units.origin();
    origin.resize(1 + dim);
    for (const auto arm : arms) {
        const bool is_taken = arm == taken.arm;
        const std::vector<ColumnSums> own = columns(sums, units, std::span(&arm, 1));
        std::vector<double> found(features + dim);
        if (is_taken && taken.x) found[n] = taken.weight / std::max(own[n].n, 1.0);
        if (is_taken && taken.x && own[n].n > 0.0 && sums.keeps_squares())
            found[n] = std::max(
                found[n], coarse * (taken.weight * taken.weight) / std::max(squared_weights(sums, units, arm), 1.0));
        for (std::size_t c = reward; c < features + dim && own[n].n > 0.0; ++c) {
            const double zero = origin[c - reward];
            double size = !units.is_given() && all[c].is_far_from(zero) ? own[c].square : 0.0;
            if (is_taken && c == reward) size += all[c].taken(taken.reward, taken.weight);
            if (is_taken && c > reward && taken.x) size += all[c].taken(taken.x[first + c - features], taken.weight);
            found[c] = size / (std::max(own[c].n, 1.0) * all[c].variance(zero, taken.weight));
        }
        const double most = *std::max_element(found.begin(), found.end());
        if (most > reported) report(sums.n_arms(), arm, found);
        if (most > emptied) lost.push_back(arm);
    }
    news_.emptied.insert(news_.emptied.end(), lost.begin(), lost.end());
    return lost;
}

double LostDigits::digits_of(double factor) {
    return factor > reported ? std::min(std::log10(factor), most_digits) : 0.0;
}

void LostDigits::report(std::size_t n_arms, std::size_t arm, std::span<const double> found) {
    digits_.resize(n_arms * found.size());
    double* to = digits_.data() + arm * found.size();
    for (std::size_t c = 0; c < found.size(); ++c) to[c] = std::max(to[c], digits_of(found[c]));
    news_.arms.push_back(arm);
}

void LostDigits::append_arm(std::size_t dim) {
    if (!digits_.empty()) digits_.resize(digits_.size() + features + dim);
}

void LostDigits::erase_arm(std::size_t arm, std::size_t dim) {
    news_ = {};
    if (digits_.empty()) return;
    const auto begin = digits_.begin() + static_cast<std::ptrdiff_t>(arm * (features + dim));
    digits_.erase(begin, begin + static_cast<std::ptrdiff_t>(features + dim));
}

}  // namespace armlet
