#include "state/row_sums.hpp"

#include <algorithm>
#include <cstring>

#include "linear/half.hpp"
#include "linear/linear.hpp"

namespace armlet {

namespace {

typedef long long Truth __attribute__((vector_size(half * sizeof(double))));

ARMLET_INLINE void are_within_body(const double* values, std::size_t n, double most, bool* answer) {
    const std::size_t whole = n / half * half;
    const Half high = most - Half{}, low = -high;
    Truth all = {-1, -1, -1, -1};
    for (std::size_t i = 0; i < whole; i += half) {
        const Half v = load_half(values + i);
        all &= (v <= high) & (v >= low);
    }
    bool within = (all[0] & all[1] & all[2] & all[3]) != 0;
    for (std::size_t i = whole; i < n; ++i) within &= values[i] <= most && values[i] >= -most;
    *answer = within;
}

ARMLET_DISPATCH(are_within, (const double* values, std::size_t n, double most, bool* answer), (values, n, most, answer))

constexpr std::size_t strip = 4;  // columns of A in registers at a time, eight rows of each

// tile[c][i] = the sum of row[left + c] w row[top + i] over n rows; without weights, w is 1.
template <bool Weighted>
ARMLET_INLINE void sum_tile(const double* rows, const double* weights, std::size_t n, std::size_t width,
                            std::size_t left, std::size_t top, double (*tile)[lanes]) {
    Half a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
    for (std::size_t r = 0; r < n; ++r) {
        const double* row = rows + r * width;
        Half low = load_half(row + top), high = load_half(row + top + half);
        if constexpr (Weighted) low = weights[r] * low, high = weights[r] * high;
        a0 += row[left] * low, a1 += row[left] * high;
        b0 += row[left + 1] * low, b1 += row[left + 1] * high;
        c0 += row[left + 2] * low, c1 += row[left + 2] * high;
        d0 += row[left + 3] * low, d1 += row[left + 3] * high;
    }
    const Half all[] = {a0, a1, b0, b1, c0, c1, d0, d1};
    std::memcpy(tile, all, sizeof all);
}

// out[i] = the sum of pays[r] row[top + i] over n rows, of sixteen values.
ARMLET_INLINE void sum_strip(const double* rows, const double* pays, std::size_t n, std::size_t width, std::size_t top,
                             double* out) {
    Half a = {}, b = {}, c = {}, d = {};
    for (std::size_t r = 0; r < n; ++r) {
        const double* row = rows + r * width + top;
        a += pays[r] * load_half(row), b += pays[r] * load_half(row + half);
        c += pays[r] * load_half(row + 2 * half), d += pays[r] * load_half(row + 3 * half);
    }
    const Half all[] = {a, b, c, d};
    std::memcpy(out, all, sizeof all);
}

// b and A, which follow one another, plus the sums of w r y and w y y' over n rows; `pays` are w r.
template <bool Weighted>
ARMLET_INLINE void add_block_of(double* b, const double* rows, const double* weights, const double* pays, std::size_t n,
                                std::size_t d, std::size_t width) {
    for (std::size_t top = 0; top < d; top += 2 * lanes) {
        double sums[2 * lanes];
        sum_strip(rows, pays, n, width, top, sums);
        for (std::size_t i = top; i < std::min(top + 2 * lanes, d); ++i) b[i] += sums[i - top];
    }
    double* A = b + d;
    for (std::size_t left = 0; left < d; left += strip)
        for (std::size_t top = left / lanes * lanes; top < d; top += lanes) {
            double tile[strip][lanes];
            sum_tile<Weighted>(rows, weights, n, width, left, top, tile);
            for (std::size_t k = left; k < std::min(left + strip, d); ++k) {
                double* to = A + k * d - k * (k + 1) / 2;  // where row 0 of column k would be
                for (std::size_t i = std::max(k, top); i < std::min(top + lanes, d); ++i)
                    to[i] += tile[k - left][i - top];
            }
        }
}

ARMLET_INLINE void add_block_body(double* b, const double* rows, const double* weights, const double* pays,
                                  std::size_t n, std::size_t d, std::size_t width) {
    if (weights)
        add_block_of<true>(b, rows, weights, pays, n, d, width);
    else
        add_block_of<false>(b, rows, weights, pays, n, d, width);
}

ARMLET_DISPATCH(add_block,
                (double* b, const double* rows, const double* weights, const double* pays, std::size_t n, std::size_t d,
                 std::size_t width),
                (b, rows, weights, pays, n, d, width))

}  // namespace

bool all_within(const double* values, std::size_t n, double most) {
    bool answer = false;
    are_within(values, n, most, &answer);
    return answer;
}

RowSums::RowSums(double* records, std::size_t n_arms, std::size_t dim, const double* origin)
    : records_(records),
      dim_(dim),
      size_(origin ? dim + 1 : dim),
      width_(padded(size_, 2 * lanes)),
      // blocks should fit into the first cache, and those of all arms into some MB, however many arms there are
      block_(std::clamp<std::size_t>((std::size_t{1} << 19) / (n_arms * width_), 8, 64)),
      origin_(origin),
      rows_(n_arms * block_ * width_),
      pays_(n_arms * 3 * block_),
      waits_(n_arms),
      turned_(chunk * dim) {}

void RowSums::add(const Grid& x, const std::int64_t* arms, const double* rewards, const double* weights,
                  std::size_t n) {
    is_weighted_ = weights != nullptr;
    for (std::size_t first = 0; first < n; first += chunk) {
        const std::size_t rows = std::min(chunk, n - first);
        const double* from = x.rows ? x.rows + first * dim_ : turn(x, first, rows);
        for (std::size_t i = first; i < first + rows; ++i, from += dim_)
            if (arms[i] >= 0) put(static_cast<std::size_t>(arms[i]), from, rewards[i], weights ? weights[i] : 1.0);
    }
    for (std::size_t arm = 0; arm < waits_.size(); ++arm) settle(arm);
}

// A line of the cache holds as many values of a column: it is read once.
const double* RowSums::turn(const Grid& x, std::size_t first, std::size_t rows) {
    for (std::size_t j = 0; j < dim_; ++j)
        for (std::size_t i = 0; i < rows; ++i) turned_[i * dim_ + j] = x.columns[j][first + i];
    return turned_.data();
}

void RowSums::put(std::size_t arm, const double* x, double reward, double weight) {
    double* y = rows_.data() + (arm * block_ + waits_[arm]) * width_;
    double* pay = pays_.data() + 3 * arm * block_ + waits_[arm];
    if (origin_) {
        *y++ = 1.0, reward -= origin_[0];
        for (std::size_t j = 0; j < dim_; ++j) y[j] = x[j] - origin_[1 + j];
    } else {
        std::copy_n(x, dim_, y);
    }
    pay[0] = weight, pay[block_] = reward, pay[2 * block_] = weight * reward;
    if (++waits_[arm] == block_) settle(arm);
}

void RowSums::settle(std::size_t arm) {
    const std::size_t n = waits_[arm];
    if (n == 0) return;
    waits_[arm] = 0;
    const double *weights = pays_.data() + 3 * arm * block_, *rewards = weights + block_, *pays = rewards + block_;
    double* record = records_ + arm * (3 + size_ + packed_size(size_));
    double count = 0.0, sum = 0.0, squares = 0.0;
    for (std::size_t r = 0; r < n; ++r) count += weights[r], sum += pays[r], squares += pays[r] * rewards[r];
    record[0] += count, record[1] += sum, record[2] += squares;
    const double* rows = rows_.data() + arm * block_ * width_;
    add_block(record + 3, rows, is_weighted_ ? weights : nullptr, pays, n, size_, width_);
}

}  // namespace armlet
