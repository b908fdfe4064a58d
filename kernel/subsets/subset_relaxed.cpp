// A search by the slope of f, and a bound below f that needs no search.
//
// The slope: with fractional weights of sum n, B = I + A / sqrt(n), y = B^-1 x and z = B^-1 y, f falls with the weight
// of row i by 2 (y'x_i)(z'x_i) / sqrt(n). Rows are sorted by it at the best subset so far and the best prefix is taken:
// a step of Frank-Wolfe for all sizes at once. f is not convex in the weights (t^-2 is not operator convex), so where
// this ends is not proved to be the minimum.
//
// The bound: x'B^-1 x is convex in the weights, and |B^-1 x| >= x'B^-1 x / |x|. For any y at all,
//     x'B^-1 x = max over y of 2 x'y - y'B y >= 2 x'y - |y|^2 - (sum of the m largest (y'x_i)^2) / sqrt(m)
// for every subset of size m, so one look at all rows bounds the subsets of every size. y is improved where the bound
// is lowest, by Frank-Wolfe steps that stay fully corrective: y = B^-1 x for the best mixture of subsets met so far.
#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "linear/elementary.hpp"
#include "linear/linear.hpp"
#include "subsets/subset_search.hpp"

namespace armlet {

namespace {

constexpr double rounding = 1e-9;        // relative, taken off every bound
constexpr double order_error = 0x1p-20;  // rows are sorted by float32 scores
constexpr double every_size = 256.0;     // beyond, sizes are bounded in groups that grow by a hundredth
constexpr double size_growth = 1.01;
constexpr double near_size = 1.1;  // sizes so close share one C until it is as good as it gets
constexpr int mixing_steps = 24;

using Matrix = std::vector<double>;  // packed

double form(const Matrix& M, const std::vector<double>& y) {  // y'M y
    double sum = 0.0;
    const double* at = M.data();
    for (std::size_t k = 0; k < y.size(); ++k) {
        sum += *at++ * y[k] * y[k];
        for (std::size_t i = k + 1; i < y.size(); ++i) sum += 2.0 * *at++ * y[i] * y[k];
    }
    return sum;
}

double sum_of_squares(const double* x, std::size_t d) {
    double sum = 0.0;
    for (std::size_t j = 0; j < d; ++j) sum += x[j] * x[j];
    return sum;
}

Matrix scaled(Matrix M, double by) {
    for (double& v : M) v *= by;
    return M;
}

// A mixture of subsets of size n.
struct Mixture {
    double n;
    Matrix A;
    std::vector<Matrix> vertices;
    std::vector<double> shares;
    double gap = std::numeric_limits<double>::infinity();  // relative, between x'B^-1 x and its bound

    void add(const Matrix& V) {
        vertices.push_back(V);
        shares.push_back(vertices.size() == 1 ? 1.0 : 0.0);
        if (vertices.size() == 1) A = V;
    }

    // Moves shares from the worst vertex in use to the best one, each time as far as x'B^-1 x falls.
    void mix(Width& width) {
        for (int step = 0; step < mixing_steps && vertices.size() > 1; ++step) {
            width(A.data(), n);
            const double g = width.inner();
            std::size_t best = 0, worst = vertices.size();
            std::vector<double> slopes(vertices.size());
            for (std::size_t j = 0; j < vertices.size(); ++j) {
                slopes[j] = form(vertices[j], width.y());
                if (slopes[j] > slopes[best]) best = j;
                if (shares[j] > 0.0 && (worst == vertices.size() || slopes[j] < slopes[worst])) worst = j;
            }
            const double slope = slopes[best] - slopes[worst];
            if (best == worst || slope / std::sqrt(n) <= 1e-4 * g || !shift(width, g, best, worst)) return;
        }
    }

  private:
    bool shift(Width& width, double g, std::size_t best, std::size_t worst) {
        Matrix D(A.size()), M(A.size());
        for (std::size_t i = 0; i < D.size(); ++i) D[i] = vertices[best][i] - vertices[worst][i];
        const auto at = [&](double share) {
            for (std::size_t i = 0; i < D.size(); ++i) M[i] = A[i] + share * D[i];
            width(M.data(), n);
            return width.inner();
        };
        double share = shares[worst], value = at(share);  // all of it, or to where it is lowest
        double low = 0.0, high = share;
        for (int i = 0; i < 12; ++i) {
            const double a = low + (high - low) * 0.382, b = low + (high - low) * 0.618, fa = at(a), fb = at(b);
            (fa < fb ? high : low) = fa < fb ? b : a;
            if (std::min(fa, fb) < value) value = std::min(fa, fb), share = fa < fb ? a : b;
        }
        if (!(value < g)) return false;
        at(share);
        A = M, shares[best] += share;
        shares[worst] = share == shares[worst] ? 0.0 : shares[worst] - share;
        return true;
    }
};

class Relaxation {
  public:
    Relaxation(const Past& past, const double* x)
        : past_(past),
          columns_(past),
          width_(x, past.dim),
          V_(packed_size(past.dim)),
          length_(std::sqrt(sum_of_squares(x, past.dim))) {
        const double total = past.total();
        for (double m = 1.0; m <= total; m = m < every_size ? m + 1.0 : std::floor(m * size_growth))
            sizes_.push_back(m);
        if (sizes_.back() < total) sizes_.push_back(total);
        bounds_.assign(sizes_.size(), 0.0);
    }

    // The size of the lowest bound, and what it says about f.
    std::pair<double, double> lowest() const {
        const auto at = std::min_element(bounds_.begin(), bounds_.end());
        const double g = std::max(*at, 0.0) / length_;
        return {sizes_[static_cast<std::size_t>(at - bounds_.begin())], g * g};
    }

    // One look at all rows to raise the bound of size m; false if nothing more is to be gained there.
    bool raise(double m, double precision) {
        Mixture* mixture = find(m, precision);
        if (mixture == nullptr) return false;
        mixture->mix(width_);
        look(width_(mixture->A.data(), mixture->n));
        find_vertex(mixture->n);
        mixture->gap = (form(V_, y_) - form(mixture->A, y_)) / std::sqrt(mixture->n) / inner_;
        mixture->add(V_);
        return true;
    }

  private:
    // The mixture to work on for size m: one near it that can still be improved, or a new one.
    Mixture* find(double m, double precision) {
        Mixture* nearest = nullptr;
        for (Mixture& one : mixtures_) {
            if (one.n == m && one.gap <= precision) return nullptr;
            if (nearest == nullptr ||
                std::fabs(elementary::log(one.n / m)) < std::fabs(elementary::log(nearest->n / m)))
                nearest = &one;
        }
        if (nearest != nullptr && nearest->gap > precision && nearest->n < m * near_size && m < nearest->n * near_size)
            return nearest;
        Mixture made{m, nearest == nullptr ? Matrix(V_.size()) : scaled(nearest->A, m / nearest->n), {}, {}};
        if (nearest != nullptr && nearest->n >= m)  // smaller shares of the same rows
            for (std::size_t j = 0; j < nearest->vertices.size(); ++j)
                if (nearest->shares[j] > 0.0) {
                    made.vertices.push_back(scaled(nearest->vertices[j], m / nearest->n));
                    made.shares.push_back(nearest->shares[j]);
                }
        mixtures_.push_back(std::move(made));
        return &mixtures_.back();
    }

    // Bounds for all sizes from y.
    void look(double f) {
        y_ = width_.y(), inner_ = width_.inner();
        columns_.dot(y_, scores_);
        for (double& v : scores_) v *= v;
        order_(scores_);
        double sum = 0.0, taken = 0.0;
        std::size_t place = 0;
        for (std::size_t g = 0; g < sizes_.size(); ++g) {
            for (; place < past_.size && taken + past_.counts[order_[place]] <= sizes_[g]; ++place) {
                const std::size_t i = order_[place];
                sum += past_.counts[i] * scores_[i], taken += past_.counts[i];
            }
            const double rest = place < past_.size ? (sizes_[g] - taken) * scores_[order_[place]] : 0.0;
            const double smallest = g == 0 ? 1.0 : sizes_[g - 1] + 1.0;
            const double most = (sum + rest) * (1.0 + order_error) / std::sqrt(smallest);
            bounds_[g] = std::max(bounds_[g], 2.0 * inner_ * (1.0 - rounding) - f - most);
        }
    }

    // The subset of size n that lowers x'B^-1 x most, to first order.
    void find_vertex(double n) {
        std::fill(V_.begin(), V_.end(), 0.0);
        for (std::size_t place = 0; place < past_.size && n > 0.0; ++place) {  // counts may not add up to the last bit
            const double w = std::min(n, past_.counts[order_[place]]);
            add_outer(V_.data(), past_.row(order_[place]), w, past_.dim);
            n -= w;
        }
    }

    const Past& past_;
    const Columns columns_;
    Width width_;
    Order order_;
    std::vector<double> sizes_, bounds_;  // of sizes above the one before up to this
    std::list<Mixture> mixtures_;
    Matrix V_;
    std::vector<double> scores_, y_;
    double inner_ = 0.0, length_;  // x'y, |x|
};

}  // namespace

Subset search_relaxed(const Past& past, const double* x) {
    Subset best = search_prefixes(past, x);
    follow_slopes(past, x, best, 4);
    polish(past, x, best);
    if (past.size > 64) return best;
    Subset other = search_greedily(past, x);
    return other.value < best.value ? other : best;
}

double find_bound(const Past& past, const double* x, double enough, double precision, std::size_t looks) {
    if (!(sum_of_squares(x, past.dim) > 0.0)) return 0.0;
    Relaxation relaxation(past, x);
    for (std::size_t k = 0; k < looks; ++k) {
        const auto [m, bound] = relaxation.lowest();
        if (bound >= enough || !relaxation.raise(m, precision)) break;
    }
    return relaxation.lowest().second;
}

}  // namespace armlet
