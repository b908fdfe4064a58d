// A rule that learns from rows which another has played (Li et al. 2011): it waits for those that it would have played.
#pragma once
#include <cstdint>
#include <vector>

#include "rules/rules.hpp"

namespace armlet {

struct PlayedRows {
    const double* contexts;    // (n, dim)
    const std::int64_t* arms;  // (n): what was played
    const double* rewards;     // (n): what it paid
    const bool* eligible;      // (n, n_arms): what might have been played; null if all might
    std::size_t n;
};

struct Accepted {
    std::vector<std::int64_t> rows;
    std::vector<std::uint8_t> explored;  // by the rule that learns
};

// Step `start` + 1 is decided with the coins of that step for row after row, until the arm is the one that was played;
// then it is learned, and the next step begins. Cost O(n) decisions.
Accepted replay(const Rule& rule, const Model& model, Seed seed, Word start, const PlayedRows& played);

}  // namespace armlet
