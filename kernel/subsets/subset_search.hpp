// Searches for the subset of an arm's past with the smallest f: exact, by the slope of f, and by counts; and the steps
// that they share.
#pragma once
#include "subsets/subset.hpp"

namespace armlet {

// How many subsets there are, as a floating-point number, the empty one included.
double count_subsets(const Past& past);

// All subsets, one by one: O(subsets d^3).
Subset search_exactly(const Past& past, const double* x);

// A start. Rows by |x'x_i| and by |cos(x, x_i)|: the best of those that take all rows up to some place of either order.
// Every place up to 64, then places that grow by a twentieth. Of more than 256 rows every place up to 16, then places
// that grow by a tenth; of more than 1000, after a quarter of the rows, only while f is below 1.5 times the best.
Subset search_prefixes(const Past& past, const double* x);

// Changes the subset while that lowers f. Up to 24 rows: any row more, less or for another, O(rows^2 d^3) a move. Up to
// 1000: by the slope of f, the best ones more or the worst ones less. Beyond: nothing.
void polish(const Past& past, const double* x, Subset& best);

// The slope: with fractional weights of sum n, B = I + A / sqrt(n), y = B^-1 x and z = B^-1 y, f falls with the weight
// of row i by 2 (y'x_i)(z'x_i) / sqrt(n). Sorts rows by it and takes the best prefix, a step of Frank-Wolfe for all
// sizes at once, then again at a mixture of what was and what was taken. f is not convex in the weights (t^-2 is not
// operator convex), so where this ends is not proved to be the minimum. 12 times, or `few_steps` times for more than
// 1000 rows; of more than 64 rows until two steps gain next to nothing.
void follow_slopes(const Past& past, const double* x, Subset& best, std::size_t few_steps);

// How often each row should count, where rows occurred many times. One row: all of it, which is the minimum. At most
// 4096 subsets: all of them. Two rows: all of one, or nearly, and some of the other, on a grid of 33 counts refined
// around the best. At most 24 rows: changes one count at a time, from several starts. More rows: as `search_relaxed`.
// Up to 24 rows the number of subsets evaluated, `tried`, is bounded regardless of the counts.
Subset search_counts(const Past& past, const double* x);

// The best prefix, improved by `follow_slopes` and `polish`; of at most 64 rows the greedy one if that is better: the
// row that makes f smallest is added, again and again.
Subset search_relaxed(const Past& past, const double* x);

}  // namespace armlet
