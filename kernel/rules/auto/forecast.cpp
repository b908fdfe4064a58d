#include "rules/auto/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "linear/elementary.hpp"

namespace armlet {

double Duel::regret() const {
    if (!(deviation > 0.0)) return 0.0;
    const double z = lead / deviation;
    const double density = elementary::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
    return std::max(0.0, deviation * (density - z * 0.5 * elementary::erfc(z / std::numbers::sqrt2)));
}

double Duel::loss(double times) const {
    const Duel later{lead, deviation * std::sqrt(1.0 - 1.0 / times)};
    return std::max(0.0, regret() - later.regret());
}

double interpolate(std::span<const double> losses, double times) {
    const double place = elementary::log(times) / elementary::log(row_multiple);
    const auto last = static_cast<double>(losses.size() - 1);
    if (place >= last) return losses.back() * std::pow(row_multiple, last) / times;
    const auto k = static_cast<std::size_t>(std::max(0.0, place));
    return losses[k] + (place - static_cast<double>(k)) * (losses[k + 1] - losses[k]);
}

}  // namespace armlet
