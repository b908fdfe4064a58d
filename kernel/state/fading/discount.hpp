// How rows fade: each counts half as much with every half-life that has passed since its decision.
//
// Sums are kept as of a whole half-life, the last that has begun, in which a row of now weighs between 1 and 2. To
// bring them to a later one divides them by a power of two, which is exact: they are the same numbers, whenever and in
// however many pieces that is done, and nothing overflows. What is looked at, they are multiplied by what a row of that
// half-life weighs now. The clock of this moves in ticks, 64 to a half-life: a tick takes 1.1 % off all sums alike, so
// that only the ridge weighs a little more, and between two ticks nothing has to be solved again for it. The ages of
// rows are exact.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "coins/philox.hpp"
#include "linear/elementary.hpp"

namespace armlet {

// When a decision was made: its step, and its tag, minutes since 1970 where time is told with it.
struct When {
    Word t = 0;
    std::int32_t tag = 0;
};

class Discount {
  public:
    enum class By { nothing, steps, time };
    using Tick = std::int64_t;

    static constexpr Tick per_half_life = 64;
    static constexpr std::int64_t forever = 200;  // half-lives, after which nothing is left: 2^-200

    Discount() = default;
    // In steps, or in minutes of the time that decisions tell.
    Discount(By by, double half_life) : by_(by), half_life_(half_life) {}

    bool is_on() const { return by_ != By::nothing; }
    bool is_by_time() const { return by_ == By::time; }
    bool operator==(const Discount&) const = default;
    double half_life() const { return half_life_; }

    // In half-lives.
    double time(When when) const {
        constexpr double latest = 0x1p56;
        if (is_by_time()) return static_cast<double>(std::max(when.tag, 0)) / half_life_;
        return std::min(static_cast<double>(when.t) / half_life_, latest);
    }
    // The least minute at which a clock by time stands at this tick.
    std::int64_t minute(Tick tick) const {
        return static_cast<std::int64_t>(std::ceil(static_cast<double>(tick) / per_half_life * half_life_));
    }
    static Tick tick(double time) { return static_cast<Tick>(std::floor(time * static_cast<double>(per_half_life))); }
    static std::int64_t half_lives(Tick tick) { return tick / per_half_life; }

    // What a row of that time weighs in sums as of this half-life.
    static double weight(double time, std::int64_t base) {
        const double whole = std::floor(time);
        return power(time - whole, static_cast<std::int64_t>(whole) - base);
    }
    // What sums as of this half-life are multiplied by, looked at then, or before; never 0.
    static double fade(Tick now, std::int64_t base) {
        const Tick passed = std::min(now - base * per_half_life, forever * per_half_life);
        const std::int64_t whole = passed / per_half_life;
        return power(-static_cast<double>(passed % per_half_life) / static_cast<double>(per_half_life), -whole);
    }

  private:
    // 2^(part + whole), |part| < 1; 0 if that is next to nothing.
    static double power(double part, std::int64_t whole) {
        if (whole < -forever) return 0.0;
        return std::ldexp(elementary::exp(part * 0.6931471805599453), static_cast<int>(std::min(whole, forever)));
    }

    By by_ = By::nothing;
    double half_life_ = 0.0;
};

}  // namespace armlet
