#include "state/units.hpp"

#include <algorithm>
#include <cmath>

#include "linear/simd.hpp"

namespace armlet {

namespace {

constexpr double ordinary = 1024.0;      // values up to this size have their origin at zero
constexpr double growth = 0.1;           // of the rows, from one snapshot to the next
constexpr std::size_t many = 64;         // values, from which on all arms take long to solve
constexpr double rounding = 0x1p-46;     // 64 units in the last place: a variance below is none
constexpr double least_square = 1e-120;  // and one below this has lost its digits, or its x could overflow
constexpr double far = 64.0;             // squared deviations from the mean, within which nothing is unheard of
constexpr double least_gain = 3.0;       // what one row must add to a variance, as a multiple of it
constexpr double least_share = 0.25;     // of what an arm knows about a feature, from which one row counts as much

// Zero if what is left of the mean square is rounding.
double deviation_of(double square, double mean) {
    const double variance = square - mean * mean;
    return variance > rounding * square && variance > least_square ? std::sqrt(variance) : 0.0;
}

ARMLET_INLINE void any_beyond_body(const double* y, const double* m, const double* limits, std::size_t d,
                                   bool* answer) {
    std::size_t beyond = 0;
    for (std::size_t j = 0; j < d; ++j) beyond += (y[j] - m[j]) * (y[j] - m[j]) > limits[j];
    *answer = beyond > 0;
}

ARMLET_DISPATCH(any_beyond, (const double* y, const double* m, const double* limits, std::size_t d, bool* answer),
                (y, m, limits, d, answer))

ARMLET_INLINE void shift_body(const double* x, const double* origin, std::size_t d, double* out) {
    for (std::size_t j = 0; j < d; ++j) out[j] = x[j] - origin[j];
}

ARMLET_DISPATCH(shift, (const double* x, const double* origin, std::size_t d, double* out), (x, origin, d, out))

ARMLET_INLINE void look_body(const double* x, const double* origin, const double* m, const double* t, std::size_t d,
                             double* out) {
    for (std::size_t j = 0; j < d; ++j) out[j] = ((x[j] - origin[j]) - m[j]) * t[j];
}

ARMLET_DISPATCH(look,
                (const double* x, const double* origin, const double* m, const double* t, std::size_t d, double* out),
                (x, origin, m, t, d, out))

// With S what V leaves of the features once the constant is solved, and x~ what x leaves: x'V^-1 x >= x~_j^2 / S_jj for
// every j. The penalty of the constant is 1.
ARMLET_INLINE void any_leverage_body(const double* y, const double* first, const double* squares, const double* m,
                                     const double* t, double shift, std::size_t size, bool* answer) {
    const double n = first[0], own = n + 1.0;
    std::size_t large = 0;
    for (std::size_t j = 1; j < size; ++j) {
        const double centred = first[j] - m[j] * n, sum = centred * t[j], lean = sum / own;
        const double V = (((squares[j] - m[j] * first[j]) - m[j] * centred) * t[j]) * t[j] + shift;
        const double left = (y[j] - m[j]) * t[j] - lean;
        large += left * left > least_share * (V - lean * sum);
    }
    *answer = large > 0;
}

ARMLET_DISPATCH(any_leverage,
                (const double* y, const double* first, const double* squares, const double* m, const double* t,
                 double shift, std::size_t size, bool* answer),
                (y, first, squares, m, t, shift, size, answer))

// Column k from its diagonal down: (A_ik - m_k A_i0 - m_i (A_k0 - m_k A_00)) t_k t_i, with y_0 = 1.
ARMLET_INLINE void standardise_matrix_body(const double* A, const double* m, const double* t, std::size_t size,
                                           double* out) {
    const double* first = A;
    for (std::size_t k = 0; k < size; ++k) {
        const double mk = m[k], tk = t[k], ck = first[k] - mk * first[0];
        const std::size_t length = size - k;
        const double *sums = first + k, *means = m + k, *scales = t + k;
        for (std::size_t i = 0; i < length; ++i) out[i] = (((A[i] - mk * sums[i]) - means[i] * ck) * tk) * scales[i];
        A += length, out += length;
    }
}

ARMLET_DISPATCH(standardise_matrix, (const double* A, const double* m, const double* t, std::size_t size, double* out),
                (A, m, t, size, out))

}  // namespace

Units::Units(Kind kind, std::size_t dim, std::span<const double> origin)
    : size_(kind == Kind::free ? dim + 1 : dim), is_given_(!origin.empty()), rank_(size_) {
    if (kind == Kind::as_given) return;
    origin_.assign(origin.begin(), origin.end());
    origin_.resize(size_);
    for (auto* part : {&middle_, &spread_, &m_, &t_, &limits_}) part->resize(size_);
    scale();
}

double Units::rounded(double value) {
    if (!(std::fabs(value) > ordinary)) return 0.0;
    int exponent;
    const double fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(fraction * 256.0), exponent - 8);
}

const double* Units::row(const double* x, double* out) const {
    if (!is_free()) return x;
    out[0] = 1.0;
    shift(x, origin_.data() + 1, size_ - 1, out + 1);
    return out;
}

const double* Units::view(const double* x, double* out) const {
    if (!is_free()) return x;
    out[0] = 1.0;
    look(x, origin_.data() + 1, m_.data() + 1, t_.data() + 1, size_ - 1, out + 1);
    return out;
}

void Units::set_origin(const double* x, double r) {
    if (is_given_) return;
    origin_[0] = rounded(r);
    for (std::size_t j = 1; j < size_; ++j) origin_[j] = rounded(x[j - 1]);
}

void Units::set_origin(const Units& other) {
    if (!is_given_) origin_ = other.origin_;
}

std::vector<double> Units::moved(const Units& other) const {
    std::vector<double> out(size_);
    for (std::size_t j = 1; j < size_; ++j) out[j] = other.origin_[j] - origin_[j];
    return out;
}

// With y = y' + shift of the features and r = r' + shift of rewards.
void Units::rebase(std::span<double> record, const Units& other) const {
    if (!is_free() || has_origin_of(other)) return;
    const std::vector<double> moved = this->moved(other);
    const double raised = other.origin_[0] - origin_[0], n = record[0], sum_r = record[1];
    double *b = record.data() + 3, *first = b + size_, *A = first;
    // A_i0 are still to be read by the columns after: they come last
    for (std::size_t k = 1; k < size_; ++k) {
        A += size_ - k + 1;
        for (std::size_t i = k; i < size_; ++i) A[i - k] += moved[k] * first[i] + moved[i] * (first[k] + moved[k] * n);
    }
    for (std::size_t j = 1; j < size_; ++j) {
        b[j] += moved[j] * sum_r;
        first[j] += moved[j] * n;
        b[j] += raised * first[j];
    }
    record[2] += raised * (2.0 * sum_r + raised * n);
    record[1] += raised * n;
    b[0] += raised * n;
}

void Units::scale() {
    m_[0] = 0.0, t_[0] = 1.0, rank_ = 1;
    for (std::size_t j = 1; j < size_; ++j) {
        m_[j] = middle_[j];
        t_[j] = spread_[j] > 0.0 ? 1.0 / spread_[j] : 0.0;
        rank_ += spread_[j] > 0.0;
        const double mean_square = m_[j] * m_[j], variance = spread_[j] * spread_[j];
        limits_[j] = spread_[j] > 0.0 ? far * variance : std::max(rounding * mean_square, least_square);
    }
}

bool Units::is_far(const double* row) const {
    if (!is_free()) return false;
    bool answer;
    any_beyond(row + 1, m_.data() + 1, limits_.data() + 1, size_ - 1, &answer);
    return answer;
}

// A row of weight w among n has added w / n (1 - w / n) times its squared distance from the mean before to a variance.
bool Units::leaves(const double* row, double weight, double n) const {
    const double share = weight / n, gain = share * (1.0 - share);
    for (std::size_t j = 1; j < size_; ++j) {
        const double delta = row[j] - m_[j], square = delta * delta, more = gain * square;
        const double variance = spread_[j] * spread_[j], mean = m_[j] + share * delta;
        if (variance > 0.0 ? square > far * variance && more > least_gain * variance
                           : more > 2.0 * rounding * (more + mean * mean) && more > least_square)
            return true;
    }
    return false;
}

bool Units::has_leverage(const double* row, const double* margin, double shift) const {
    if (!is_free()) return false;
    bool answer;
    any_leverage(row, margin + 1, margin + 1 + size_, m_.data(), t_.data(), shift, size_, &answer);
    return answer;
}

// The rows in which steps take as long as solving all arms does.
double Units::worth(std::size_t n_arms) const {
    if (size_ < many) return 0.0;
    const auto d = static_cast<double>(size_), k = static_cast<double>(n_arms);
    return k * (d * d) / (6.0 * (k + d));
}

void Units::renew(const Sums& sums) {
    std::vector<double> first(size_), squares(size_);
    double n = 0.0, r = 0.0, rr = 0.0;
    for (std::size_t arm = 0; arm < sums.n_arms(); ++arm) {
        const double* A = sums.A(arm);
        n += A[0], r += sums.b(arm)[0], rr += sums.sum_rr(arm);
        for (std::size_t j = 1; j < size_; ++j) first[j] += A[j];
        for (std::size_t j = 1; j < size_; ++j) A += size_ - j + 1, squares[j] += *A;
    }
    const bool any = n > 0.0;
    if (!any && !is_given_) std::fill(origin_.begin(), origin_.end(), 0.0);
    first[0] = r, squares[0] = rr;
    for (std::size_t j = 0; j < size_; ++j) {
        middle_[j] = any ? first[j] / n : 0.0;
        spread_[j] = any ? deviation_of(squares[j] / n, middle_[j]) : 0.0;
    }
    left_ = any ? std::max(growth * n, std::min(n, worth(sums.n_arms()))) : 0.0;
    scale();
}

void Units::standardise(const double* A, const double* b, double* A_z, double* b_z) const {
    standardise(A, A_z);
    standardise_side(A, b, middle_[0], b_z);
}

void Units::standardise(const double* A, double* A_z) const { standardise_matrix(A, m_.data(), t_.data(), size_, A_z); }

void Units::standardise_side(const double* A, const double* b, double r0, double* b_z) const {
    const double left = b[0] - r0 * A[0];
    for (std::size_t j = 0; j < size_; ++j) b_z[j] = ((b[j] - r0 * A[j]) - m_[j] * left) * t_[j];
}

double Units::centred_squares(std::span<const double> record) const {
    const double r0 = middle_[0];
    return std::max((record[2] - r0 * record[1]) - r0 * (record[1] - r0 * record[0]), 0.0);
}

double Units::to_user(const double* theta, std::size_t step, double* slopes) const {
    double intercept = base() + theta[0];
    for (std::size_t j = 1; j < size_; ++j) {
        const double slope = theta[j * step] * t_[j];
        slopes[j - 1] = slope;
        intercept -= slope * (m_[j] + origin_[j]);
    }
    return intercept;
}

std::vector<double> Units::values() const {
    std::vector<double> out;
    if (is_free()) out.push_back(left_);
    for (const auto* part : {&origin_, &middle_, &spread_}) out.insert(out.end(), part->begin(), part->end());
    return out;
}

void Units::restore(std::span<const double> values) {
    left_ = values[0];
    values = values.subspan(1);
    for (auto* part : {&origin_, &middle_, &spread_}) {
        std::copy_n(values.begin(), size_, part->begin());
        values = values.subspan(size_);
    }
    scale();
}

std::size_t Units::bytes() const {
    std::size_t numbers = 0;
    for (const auto* part : {&origin_, &middle_, &spread_, &m_, &t_, &limits_}) numbers += part->capacity();
    return numbers * sizeof(double);
}

}  // namespace armlet
