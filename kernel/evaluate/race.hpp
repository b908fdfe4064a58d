// Many linear policies, or many dials of them, valued by the same rows: what a block of rows adds to the sums of each.
// Memory O(n (d + K)) beside the sums: nothing is kept for a row and a policy. Sums run over rows in their order, so
// that the reference in numpy gives the same bits.
#pragma once
#include <cstddef>

#include "evaluate/agreement.hpp"

namespace armlet {

// What the sequences of a race are given of n rows.
struct RacedRows {
    const double* below;  // w u: what a policy earns that plays the arm that was played, as a share of the range
    const double* above;  // w (1 - u)
    const bool* certain;  // no other arm could have been played
    std::size_t before;   // rows that came earlier
};

// sums (4, J): totals and squares of `below`, then of `above`, as `Sums` of inference/sequences.py has them; rows are
// added. known[j] becomes false where policy j plays another arm in a row that is certain. Policies have one outcome.
void race(const LoggedRows& rows, const RacedRows& raced, const LinearPolicies& policies, double* sums, bool* known);

struct Columns {
    const double* values;  // (n, width)
    std::size_t width;     // in whole vectors
};

// sums (J, D, width): over the rows where policy j under dial k, weights (D, m), plays the arm that was played.
void sum_agreeing(const LoggedRows& rows, const LinearPolicies& policies, const double* dials, std::size_t n_dials,
                  const Columns& columns, double* sums);

}  // namespace armlet
