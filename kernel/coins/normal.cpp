#include "coins/normal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "linear/elementary.hpp"
#include "linear/simd.hpp"

namespace armlet {

namespace {

// (n0 + n1 r + ... + n7 r^7) / (1 + d1 r + ... + d7 r^7)
using Coefficients = std::array<double, 8>;

double ratio(const Coefficients& n, const Coefficients& d, double r) {
    double top = n[7], bottom = d[7];
    for (int k = 6; k >= 0; --k) top = top * r + n[k], bottom = bottom * r + d[k];
    return top / bottom;
}

constexpr Coefficients middle_top = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr Coefficients middle_bottom = {1.0,
                                        4.2313330701600911252e+1,
                                        6.8718700749205790830e+2,
                                        5.3941960214247511077e+3,
                                        2.1213794301586595867e+4,
                                        3.9307895800092710610e+4,
                                        2.8729085735721942674e+4,
                                        5.2264952788528545610e+3};
constexpr Coefficients near_top = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients near_bottom = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
constexpr Coefficients far_top = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                  2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients far_bottom = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};

}  // namespace

double normal_quantile(double u) {
    const double q = u - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(middle_top, middle_bottom, 0.180625 - q * q);
    const double r = std::sqrt(-elementary::log(q < 0.0 ? u : 1.0 - u));
    const double z = r <= 5.0 ? ratio(near_top, near_bottom, r - 1.6) : ratio(far_top, far_bottom, r - 5.0);
    return q < 0.0 ? -z : z;
}

void draw_normals(Word pick, Word tie, std::span<double> z) {
    std::array<Word, 4> words{};
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (i % 4 == 0) words = philox({pick, tie}, {i / 4, 0, 0, 0});
        // 52 bits and a half: never 0 or 1, and exact
        z[i] = normal_quantile((static_cast<double>(words[i % 4] >> 12) + 0.5) * 0x1p-52);
    }
}

namespace {

constexpr double reach = 6.75;  // what a normal does beyond so many deviations (7e-12) is left out

// Arms this many deviations of the difference below another one (2e-13) are left out.
constexpr double hopeless = 7.25;

constexpr double lowest = -std::numeric_limits<double>::infinity();

struct Arm {
    double mean, deviation, precision;
    std::size_t place;
    double chance = 0.0;

    double end() const { return mean + reach * deviation; }
};

// The distribution function and the density at points of [-reach, reach], 1 / 64 apart.
struct NormalTable {
    static constexpr double per_unit = 64.0;
    static constexpr std::size_t size = static_cast<std::size_t>(2.0 * reach * per_unit) + 1;
    std::array<double, size> cdf, density;

    NormalTable() {
        for (std::size_t i = 0; i < size; ++i) {
            const double u = static_cast<double>(i) * (1.0 / per_unit) - reach;
            cdf[i] = 0.5 * elementary::erfc(-u / std::numbers::sqrt2);
            density[i] = elementary::exp(-0.5 * u * u) / std::sqrt(2.0 * std::numbers::pi);
        }
        cdf.back() = 1.0, density.back() = 0.0;  // beyond: surely below
    }
};

const NormalTable table;

// Arms in columns, padded to whole vectors with arms that are surely below.
struct Columns {
    std::vector<double> mean, precision, ratio, chance;
    std::vector<double> ends;  // of the arms alone

    // Arms by their ends, the highest first.
    void fill(std::span<const Arm> arms) {
        const std::size_t n = padded(arms.size());
        mean.assign(n, -1e300), precision.assign(n, 1.0), ratio.assign(n, 0.0), chance.assign(n, 0.0);
        for (std::size_t i = 0; i < arms.size(); ++i) mean[i] = arms[i].mean, precision[i] = arms[i].precision;
        ends.clear();
        for (const auto& arm : arms) ends.push_back(arm.end());
    }
};

using Vec = Double8;
typedef int Indices __attribute__((vector_size(lanes * sizeof(int))));

// cdf and density at z in [-reach, reach], by Taylor's series about the nearest point of the table.
ARMLET_INLINE void look_up(Vec z, Vec& cdf, Vec& density) {
    constexpr double sixth = 1.0 / 6.0;
    const auto i = __builtin_convertvector((z + reach) * NormalTable::per_unit + 0.5, Indices);
    const Vec u = __builtin_convertvector(i, Vec) * (1.0 / NormalTable::per_unit) - reach, e = z - u, uu = u * u;
    int at[lanes];
    std::memcpy(at, &i, sizeof at);
    const double *f = table.cdf.data(), *g = table.density.data();
    cdf = Vec{f[at[0]], f[at[1]], f[at[2]], f[at[3]], f[at[4]], f[at[5]], f[at[6]], f[at[7]]};
    density = Vec{g[at[0]], g[at[1]], g[at[2]], g[at[3]], g[at[4]], g[at[5]], g[at[6]], g[at[7]]};
    // density(u + e) / density(u) = 1 + c1 e + c2 e^2 + ... with the Hermite polynomials of u
    const Vec c1 = -u, c2 = 0.5 * (uu - 1.0), c3 = u * (3.0 - uu) * sixth,
              c4 = ((uu - 6.0) * uu + 3.0) * (0.25 * sixth);
    cdf += density * e * (1.0 + e * (0.5 * c1 + e * (2.0 * sixth * c2 + e * (0.25 * c3 + e * (0.2 * c4)))));
    density *= 1.0 + e * (c1 + e * (c2 + e * (c3 + e * c4)));
}

// The probability that all of the first n arms are below u; density over cdf of each in `ratio`.
ARMLET_INLINE double stand_at(const Columns& arms, std::size_t n, double u, double* ratio) {
    Vec all = 1.0 - Vec{};
    for (std::size_t i = 0; i < n; i += lanes) {
        const Vec precision = load<Vec>(arms.precision.data() + i);
        Vec z = (u - load<Vec>(arms.mean.data() + i)) * precision, cdf, density;
        z = z >= -reach ? z : -reach - Vec{};  // NaN as well: what is looked up must lie in the table
        z = z > reach ? reach - Vec{} : z;
        look_up(z, cdf, density);
        store(ratio + i, precision * density / cdf);
        all *= cdf;
    }
    return ((all[0] * all[1]) * (all[2] * all[3])) * ((all[4] * all[5]) * (all[6] * all[7]));
}

// Gauss and Legendre's rule of ten points on [-1, 1], for panels of so many deviations.
constexpr double panel = 1.25;
constexpr std::array<double, 10> nodes = {
    -0.973906528517171720, -0.865063366688984511, -0.679409568299024406, -0.433395394129247191, -0.148874338981631211,
    0.148874338981631211,  0.433395394129247191,  0.679409568299024406,  0.865063366688984511,  0.973906528517171720};
constexpr std::array<double, 10> node_weights = {
    0.066671344308688138, 0.149451349150580593, 0.219086362515982044, 0.269266719309996355, 0.295524224714752870,
    0.295524224714752870, 0.269266719309996355, 0.219086362515982044, 0.149451349150580593, 0.066671344308688138};

// Adds to the chance of each of the first n arms the integral over u - half .. u + half of its density times the
// probability that the others are below.
ARMLET_INLINE void add_panel_body(Columns& arms, std::size_t n, double u, double half) {
    double* ratio = arms.ratio.data();
    // if even at its end all arms are above, nothing is lost with the panel
    if (stand_at(arms, n, u + half, ratio) < 1e-12) return;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
        const double below = stand_at(arms, n, u + half * nodes[k], ratio) * half * node_weights[k];
        for (std::size_t i = 0; i < n; i += lanes)
            store(arms.chance.data() + i, load<Vec>(arms.chance.data() + i) + below * load<Vec>(ratio + i));
    }
}

ARMLET_DISPATCH(add_panel, (Columns & arms, std::size_t n, double u, double half), (arms, n, u, half))

// The same over all of the line by the trapezoidal rule, whose error falls exponentially where both ends fade out.
// Downwards from the end of the highest arm, until hardly ever all arms are below.
ARMLET_INLINE void add_points_body(Columns& arms, double from, double step) {
    double* ratio = arms.ratio.data();
    std::size_t n = 1;
    for (double u = arms.ends[0] - 0.5 * step; u > from; u -= step) {
        while (n < arms.ends.size() && arms.ends[n] > u) ++n;
        const double below = stand_at(arms, padded(n), u, ratio);
        if (below < 1e-13) return;
        for (std::size_t i = 0; i < n; i += lanes)
            store(arms.chance.data() + i, load<Vec>(arms.chance.data() + i) + below * step * load<Vec>(ratio + i));
    }
}

ARMLET_DISPATCH(add_points, (Columns & arms, double from, double step), (arms, from, step))

double below(const Arm& arm, double u) {
    return 0.5 * elementary::erfc((arm.mean - u) * arm.precision / std::numbers::sqrt2);
}

double narrowest(std::span<const Arm> arms) {
    double out = -lowest;
    for (const auto& arm : arms) out = std::min(out, arm.deviation);
    return out;
}

// Integrates from `from` up. All arms reach below it, so from there on they only drop out, the highest last; panels are
// as wide as the narrowest arm still in play allows, so deviations may differ by any factor.
void integrate_by_panels(std::span<const Arm> arms, double from, Columns& columns) {
    std::size_t n = arms.size();
    double u = from;
    // an arm is in play for 2 reach / panel = 11 panels of its own width, so all are out by far fewer
    for (std::size_t left = 64 * arms.size(); n > 1; --left) {
        if (left == 0) throw std::domain_error("the deviations of the samples cannot be told from 0 or from infinity");
        const double half = 0.5 * std::min(panel * narrowest(arms.first(n)), arms.front().end() - u);
        add_panel(columns, padded(n), u + half, half);
        u += 2.0 * half;
        while (n > 1 && arms[n - 1].end() <= u) --n;
    }
    if (n == 1) columns.chance[0] += 1.0 - below(arms[0], u);  // nobody else comes this far
}

// Points this far apart leave out less than 1e-10: the maximum of n normals is narrower than each of them.
double spacing(std::span<const Arm> arms) {
    const double n = std::max(3.0, static_cast<double>(arms.size()));
    return 0.4 / std::sqrt(elementary::log(n)) * narrowest(arms);
}

// What is integrated fades out at `from` unless a constant cuts it off there. Then few points will do, if no arm is so
// narrow that it would need them close together everywhere.
void integrate(std::span<Arm> arms, double from, bool fades) {
    constexpr double many = 128.0;
    thread_local Columns columns;
    std::sort(arms.begin(), arms.end(), [](const Arm& a, const Arm& b) { return a.end() > b.end(); });
    columns.fill(arms);
    if (fades && arms.size() > 1 && arms.front().end() - from < many * spacing(arms))
        add_points(columns, from, spacing(arms));
    else
        integrate_by_panels(arms, from, columns);
    for (std::size_t i = 0; i < arms.size(); ++i) arms[i].chance = columns.chance[i];
}

bool is_hopeless(const Arm& arm, const Arm& leader) {
    const double gap = (leader.mean - arm.mean) / hopeless;
    return gap > 0.0 && gap * gap > arm.deviation * arm.deviation + leader.deviation * leader.deviation;
}

// The probability that all arms are below the constant.
double all_below(std::span<const Arm> arms, double constant) {
    double product = 1.0;
    for (const auto& arm : arms) product *= below(arm, constant);
    return product;
}

}  // namespace

void win_probabilities(std::span<const double> means, std::span<const double> deviations, std::span<double> out) {
    for (std::size_t i = 0; i < means.size(); ++i)
        if (!std::isfinite(means[i]) || !std::isfinite(deviations[i]))
            throw std::domain_error("the mean or the deviation of a sample is not a finite number");
    thread_local std::vector<Arm> arms, constants;
    arms.clear(), constants.clear();
    const double top = *std::max_element(means.begin(), means.end());
    const double widest = *std::max_element(deviations.begin(), deviations.end());
    const double scale = widest > 0.0 ? widest : 1.0;
    double constant = lowest, from = lowest;
    Arm leader{lowest, 0.0, 0.0, 0};
    for (std::size_t i = 0; i < means.size(); ++i) {
        const Arm arm{(means[i] - top) / scale, deviations[i] / scale, scale / deviations[i], i};
        if (arm.mean - reach * arm.deviation > from) from = arm.mean - reach * arm.deviation, leader = arm;
        // narrower than the numbers around it can tell
        const bool is_constant = arm.deviation <= std::max(1e-200, 1e-12 * std::fabs(arm.mean));
        (is_constant ? constants : arms).push_back(arm);
        if (is_constant) constant = std::max(constant, arm.mean), from = std::max(from, arm.mean);
    }
    std::erase_if(arms, [&](const Arm& arm) { return arm.end() <= from || is_hopeless(arm, leader); });
    std::erase_if(constants, [&](const Arm& arm) { return arm.mean < constant; });
    const double of_constant = constants.empty() ? 0.0 : all_below(arms, constant);
    integrate(arms, from, constants.empty());
    double total = of_constant;
    for (const auto& arm : arms) total += arm.chance;
    std::fill(out.begin(), out.end(), 0.0);
    for (const auto& arm : arms) out[arm.place] = arm.chance / total;
    for (const auto& arm : constants) out[arm.place] = of_constant / (static_cast<double>(constants.size()) * total);
}

}  // namespace armlet
