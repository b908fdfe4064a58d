// Scores and bounds of 64 rows at a time in float32, which may fuse: their users allow for any rounding.
#pragma once
#include <cstddef>

namespace armlet {

// out[r] = the sum of v_j tile[j][r], plus ratio offsets[r]; *top = the highest of them.
void score_tile(const float* tile, const float* v, std::size_t dz, const float* offsets, float ratio, float* out,
                float* top);

// Of an upper bound of squared widths: base + flat (1 + |z|^2) + steep (|u'z| + slack)^2.
struct WidthBound {
    float base, flat, steep, slack;
};

// squares[r] = the bound, where leading[r] = u'z and norms[r] = |z|^2; *top is raised to the highest.
void bound_squares(const WidthBound& bound, const float* leading, const float* norms, std::size_t n, float* squares,
                   float* top);

// out[r] = scores[r] + height sqrt(squares[r])
void add_widths(const float* scores, const float* squares, float height, std::size_t n, float* out);

}  // namespace armlet
