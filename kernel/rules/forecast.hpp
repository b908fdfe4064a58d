// What exploring is worth: the regret to expect of a choice between two arms, now and with more rows.
#pragma once
#include <cstddef>
#include <span>

namespace armlet {

inline constexpr double look_growth = 1.1;        // rows at a look over rows at the one before
inline constexpr double row_multiple = 1.5;       // of rows, between two predictions
inline constexpr std::size_t row_multiples = 11;  // up to 57 times the rows; beyond, losses fall as their inverse
inline constexpr double candidate_ratio = 1.25;   // between two candidates for p
inline constexpr int forecast_nodes = 24;         // of the integral over what is left of the horizon

// The arm that looks best in one context leads a rival by `lead`, known to within `deviation`.
struct Duel {
    double lead, deviation;

    // E max(0, deviation z - lead) for a standard normal z: what playing the leader loses on average.
    double regret() const;
    // What exploiting still loses when there are `times` as many rows. The true lead is about normal around the
    // estimated one; by then the estimate will have moved by all of that variance but 1 / times, and choices with it.
    double loss(double times) const;
};

// Losses with 1, 1.5, 1.5^2, ... times the rows, read off at any number of times.
double interpolate(std::span<const double> losses, double times);

}  // namespace armlet
