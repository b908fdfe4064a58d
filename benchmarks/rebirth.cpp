// The policies of rebirth.py, compiled when it runs: optimism with restarts of arms that changed, and D-LinUCB.
//
// An arm's sums are n, A = sum x x', b = sum r x, sum r^2. Matrices are (d, d) in row order.
// A step of optimism is O(K d^2), of D-LinUCB O(K d^3); a test of an arm is O(blocks d^3), at a closed block of 16
// rows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using Vector = std::vector<double>;

namespace {

double dot(const double* a, const double* b, int d) {
    double sum = 0.0;
    for (int i = 0; i < d; ++i) sum += a[i] * b[i];
    return sum;
}

Vector product(const Vector& M, const double* v, int d) {
    Vector out(d);
    for (int i = 0; i < d; ++i) out[i] = dot(&M[i * d], v, d);
    return out;
}

double quadratic(const Vector& M, const double* v, int d) {
    double sum = 0.0;
    for (int i = 0; i < d; ++i) sum += v[i] * dot(&M[i * d], v, d);
    return sum;
}

/// The lower Cholesky factor L of M + ridge I.
void factor(const Vector& M, double ridge, int d, Vector& L) {
    for (int i = 0; i < d; ++i) {
        for (int j = 0; j <= i; ++j) {
            const double rest = M[i * d + j] + (i == j ? ridge : 0.0) - dot(&L[i * d], &L[j * d], j);
            L[i * d + j] = i == j ? std::sqrt(rest) : rest / L[j * d + j];
        }
    }
}

/// (L L')^-1 v.
Vector solve(const Vector& L, Vector v, int d) {
    for (int i = 0; i < d; ++i) v[i] = (v[i] - dot(&L[i * d], v.data(), i)) / L[i * d + i];
    for (int i = d - 1; i >= 0; --i) {
        v[i] /= L[i * d + i];
        for (int j = 0; j < i; ++j) v[j] -= L[i * d + j] * v[i];
    }
    return v;
}

Vector inverse(const Vector& M, double ridge, int d) {
    Vector L(d * d), out(d * d), unit(d);
    factor(M, ridge, d, L);
    for (int i = 0; i < d; ++i) {
        std::fill(unit.begin(), unit.end(), 0.0);
        unit[i] = 1.0;
        const Vector row = solve(L, unit, d);
        std::copy(row.begin(), row.end(), &out[i * d]);
    }
    return out;
}

struct Sums {
    std::int64_t rows = 0;
    double n = 0.0, rr = 0.0;  // n: rows by what they weigh
    Vector A, b;

    explicit Sums(int d) : A(d * d), b(d) {}

    void add(const double* x, double r, int d) {
        ++rows;
        n += 1.0;
        rr += r * r;
        for (int i = 0; i < d; ++i) {
            b[i] += r * x[i];
            for (int j = 0; j < d; ++j) A[i * d + j] += x[i] * x[j];
        }
    }

    void add(const Sums& other, int sign = 1) {
        rows += sign * other.rows;
        n += sign * other.n;
        rr += sign * other.rr;
        for (std::size_t i = 0; i < A.size(); ++i) A[i] += sign * other.A[i];
        for (std::size_t i = 0; i < b.size(); ++i) b[i] += sign * other.b[i];
    }

    void scale(double by) {
        n *= by;
        rr *= by;
        for (double& each : A) each *= by;
        for (double& each : b) each *= by;
    }

    double squared_residuals(const Vector& theta, int d) const {
        return std::max(rr - 2.0 * dot(theta.data(), b.data(), d) + quadratic(A, theta.data(), d), 0.0);
    }
};

/// Whose noise a test divides by: that of all arms, the arm's own, or that of each of the two fits.
enum class Noise : int { pool = 0, own = 1, sides = 2 };

}  // namespace

extern "C" struct Steps {
    std::int64_t n;         // T
    std::int32_t n_arms;    // K
    std::int32_t dim;       // d
    std::int64_t delay;     // steps until a reward is learned
    const double* x;        // (T, d)
    const double* mu;       // (T, K)
    const double* sd;       // (T, K)
    const double* normals;  // (T,)
    const double* coins;    // (T, 2): whether a step explores, and what breaks ties
};

extern "C" struct Restarts {
    double threshold;    // h; 0 for no restarts
    double neglect;      // tau; 0 for none
    std::int32_t noise;  // Noise
};

extern "C" struct Discount {
    double gamma;        // 1 for LinUCB
    double alpha;        // what widths are multiplied by
    std::int32_t paper;  // whether widths are those of D-LinUCB, sqrt(x' V^-1 V~ V^-1 x), or sqrt(x' V^-1 x)
};

extern "C" struct Played {
    double regret;
    std::int64_t restarts;
};

namespace {

constexpr double RIDGE = 0.3, TEST_RIDGE = 0.05, BONUS_SCALE = 0.7, REMEMBERED = 2000.0;
constexpr int BLOCK_ROWS = 16;

struct Arm {
    Sums all;                  // = the sum of blocks and open
    Sums open;                 // the block under way
    std::vector<Sums> blocks;  // oldest first
    Vector inverse_, theta;
    std::int64_t birth = 0, last = 0, closed = 0;

    explicit Arm(int d) : all(d), open(d), theta(d) { solve(d); }

    void solve(int d) {
        inverse_ = inverse(all.A, RIDGE, d);
        theta = product(inverse_, all.b.data(), d);
    }

    void add(const double* x, double r, int d) {
        all.add(x, r, d);
        open.add(x, r, d);
        const Vector y = product(inverse_, x, d);
        const double by = 1.0 / (1.0 + dot(y.data(), x, d));
        for (int i = 0; i < d; ++i) {
            for (int j = 0; j < d; ++j) inverse_[i * d + j] -= by * y[i] * y[j];
        }
        theta = product(inverse_, all.b.data(), d);
    }

    void scale(double by, int d) {
        all.scale(by);
        open.scale(by);
        for (Sums& block : blocks) block.scale(by);
        solve(d);
    }

    /// Close the open block; of three of one size the two oldest become one.
    void close(int d) {
        blocks.push_back(open);
        open = Sums(d);
        ++closed;
        for (std::size_t i = blocks.size(); i-- > 2;) {
            if (blocks[i].rows != blocks[i - 2].rows) continue;
            blocks[i - 2].add(blocks[i - 1]);
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
    }

    void keep_from(std::size_t first, std::int64_t t, int d) {
        blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(first));
        all = Sums(d);
        for (const Sums& block : blocks) all.add(block);
        birth = t;
        solve(d);
    }
};

/// How far two fits of an arm lie apart: chi-square with d degrees of freedom if nothing changed.
double distance(const Sums& newer, const Sums& older, double pooled, Noise noise, int d) {
    const Vector V1 = inverse(newer.A, TEST_RIDGE, d), V2 = inverse(older.A, TEST_RIDGE, d);
    const Vector theta1 = product(V1, newer.b.data(), d), theta2 = product(V2, older.b.data(), d);
    const auto variance = [&](double squares, double n, double parameters) {
        const double freedom = std::max(n - parameters, n / 4.0);
        return (squares + 4.0 * pooled) / (freedom + 4.0);  // as if four rows more had the noise of all arms
    };
    const double squares1 = newer.squared_residuals(theta1, d), squares2 = older.squared_residuals(theta2, d);
    double s1 = pooled, s2 = pooled;
    if (noise == Noise::own) s1 = s2 = variance(squares1 + squares2, newer.n + older.n, 2.0 * d);
    if (noise == Noise::sides) {
        s1 = variance(squares1, newer.n, d);
        s2 = variance(squares2, older.n, d);
    }
    Vector M(d * d), apart(d), L(d * d);
    for (int i = 0; i < d * d; ++i) M[i] = s1 * V1[i] + s2 * V2[i];
    for (int i = 0; i < d; ++i) apart[i] = theta1[i] - theta2[i];
    factor(M, 0.0, d, L);
    return dot(apart.data(), solve(L, apart, d).data(), d);
}

/// Test every suffix of an arm's blocks against the rest, and keep the one that differs most if it does so enough.
bool restart(Arm& arm, const Restarts& how, double pooled, std::int64_t t, int d) {
    Sums newer(d), older = arm.all;
    double most = 0.0;
    std::size_t first = 0;
    for (std::size_t i = arm.blocks.size(); i-- > 1;) {
        newer.add(arm.blocks[i]);
        older.add(arm.blocks[i], -1);
        const double z = distance(newer, older, pooled, static_cast<Noise>(how.noise), d);
        if (z > most) {
            most = z;
            first = i;
        }
    }
    if (most <= how.threshold) return false;
    arm.keep_from(first, t, d);
    return true;
}

/// The arm with the highest bound; ties go to the first from where the coin starts.
template <class Bound>
int highest(int n_arms, double coin, Bound bound) {
    int best = -1;
    double most = -INFINITY;
    const int start = static_cast<int>(coin * n_arms);
    for (int k = 0; k < n_arms; ++k) {
        const int a = (start + k) % n_arms;
        const double each = bound(a);
        if (each > most) {
            most = each;
            best = a;
        }
    }
    return best;
}

/// The steps' rewards, and what was lost by the arms played.
struct Tape {
    const Steps& steps;
    std::vector<int> arms;
    double regret = 0.0;

    explicit Tape(const Steps& steps_) : steps(steps_), arms(steps_.n) {}

    const double* x(std::int64_t s) const { return &steps.x[s * steps.dim]; }

    void play(std::int64_t s, int arm) {
        const double* mu = &steps.mu[s * steps.n_arms];
        arms[s] = arm;
        regret += *std::max_element(mu, mu + steps.n_arms) - mu[arm];
    }

    double reward(std::int64_t s) const {
        const std::int64_t at = s * steps.n_arms + arms[s];
        return steps.mu[at] + steps.sd[at] * steps.normals[s];
    }
};

}  // namespace

/// Play the highest x'theta + c sigma w sqrt(2 log(1 + age w^2 / K)), exploring with probability 1/t.
extern "C" void play_optimism(const Steps* steps, const Restarts* how, Played* played) {
    const int K = steps->n_arms, d = steps->dim;
    std::vector<Arm> arms(K, Arm(d));
    Tape tape(*steps);
    double variance = 0.0, learned = 0.0;
    played->restarts = 0;
    for (std::int64_t s = 0; s < steps->n; ++s) {
        const double* x = tape.x(s);
        const auto bound = [&](int a) {
            const Arm& arm = arms[a];
            double w2 = quadratic(arm.inverse_, x, d);
            if (how->neglect > 0.0) {
                const double waited = std::exp(static_cast<double>(s - arm.last) / how->neglect);
                w2 = std::min(w2 * waited, dot(x, x, d) / RIDGE);
            }
            const double age = static_cast<double>(s + 1 - arm.birth);
            const double bonus = std::sqrt(variance * w2 * 2.0 * std::log1p(age * w2 / K));
            return dot(arm.theta.data(), x, d) + BONUS_SCALE * bonus;
        };
        const double* coins = &steps->coins[2 * s];
        const bool explores = coins[0] * static_cast<double>(s + 1) < 1.0;
        tape.play(s, explores ? static_cast<int>(coins[1] * K) : highest(K, coins[1], bound));
        const std::int64_t from = s - steps->delay;
        if (from < 0) continue;
        Arm& arm = arms[tape.arms[from]];
        const double* row = tape.x(from);
        const double r = tape.reward(from);
        if (how->neglect > 0.0) {
            const double pause = std::max(static_cast<double>(s - arm.last) - 1.0, 0.0);
            if (pause > 0.0) arm.scale(std::exp(-pause / how->neglect), d);
            arm.last = s;
        }
        const double error = r - dot(arm.theta.data(), row, d);
        learned = std::min(learned + 1.0, REMEMBERED);
        variance += (error * error / (1.0 + quadratic(arm.inverse_, row, d)) - variance) / learned;
        arm.add(row, r, d);
        if (how->threshold <= 0.0 || arm.open.rows < BLOCK_ROWS) continue;
        arm.close(d);
        const bool tested = arm.blocks.size() < 8 || arm.closed % 3 == 0;
        if (tested && restart(arm, *how, variance, s + 1, d)) ++played->restarts;
    }
    played->regret = tape.regret;
}

/// Play the highest x'theta + alpha w, every row weighing gamma to the power of the steps since.
extern "C" void play_discounted(const Steps* steps, const Discount* how, Played* played) {
    const int K = steps->n_arms, d = steps->dim;
    const double gamma = how->gamma;
    std::vector<Sums> sums(K, Sums(d)), twice(K, Sums(d));  // twice: with gamma^2
    std::vector<Vector> factors(K, Vector(d * d));
    for (int a = 0; a < K; ++a) factor(sums[a].A, 1.0, d, factors[a]);
    Tape tape(*steps);
    for (std::int64_t s = 0; s < steps->n; ++s) {
        const double* x = tape.x(s);
        const auto bound = [&](int a) {
            const Vector y = solve(factors[a], Vector(x, x + d), d);
            double w2 = dot(y.data(), x, d);
            if (how->paper) w2 = quadratic(twice[a].A, y.data(), d) + dot(y.data(), y.data(), d);
            return dot(y.data(), sums[a].b.data(), d) + how->alpha * std::sqrt(w2);
        };
        tape.play(s, highest(K, steps->coins[2 * s + 1], bound));
        const std::int64_t from = s - steps->delay;
        for (int a = 0; a < K && gamma < 1.0; ++a) {
            sums[a].scale(gamma);
            twice[a].scale(gamma * gamma);
        }
        if (from >= 0) {
            sums[tape.arms[from]].add(tape.x(from), tape.reward(from), d);
            twice[tape.arms[from]].add(tape.x(from), tape.reward(from), d);
        }
        for (int a = 0; a < K; ++a) {
            if (gamma < 1.0 || (from >= 0 && a == tape.arms[from])) factor(sums[a].A, 1.0, d, factors[a]);
        }
    }
    played->regret = tape.regret;
    played->restarts = 0;
}
