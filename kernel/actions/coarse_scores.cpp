#include "actions/coarse_scores.hpp"

#include <algorithm>
#include <cmath>

#include "actions/action_rows.hpp"
#include "linear/wide.hpp"

namespace armlet {

namespace {

// As many registers at a time as leave none to memory.
template <std::size_t Width>
ARMLET_INLINE void score_tile_body(const float* tile, const float* v, std::size_t dz, const float* offsets, float ratio,
                                   float* out, float* top) {
    using Floats = typename Wide<Width>::Floats;
    constexpr std::size_t apart = ActionRows::tile, most = Width < 16 ? 8 : 4;
    Floats highest = Floats{} - INFINITY;
    for (std::size_t first = 0; first < apart; first += most * Width) {
        Floats sum[most];
        for (std::size_t c = 0; c < most; ++c) sum[c] = ratio * load_wide<Floats>(offsets + first + c * Width);
        const float* at = tile + first;
        for (std::size_t j = 0; j < dz; ++j, at += apart)
#pragma GCC unroll 8
            for (std::size_t c = 0; c < most; ++c) sum[c] += v[j] * load_wide<Floats>(at + c * Width);
        for (std::size_t c = 0; c < most; ++c) {
            store_wide(out + first + c * Width, sum[c]);
            highest = sum[c] > highest ? sum[c] : highest;
        }
    }
    *top = highest[0];
    for (std::size_t c = 1; c < Width; ++c) *top = std::max(*top, highest[c]);
}

ARMLET_INLINE void bound_squares_body(const WidthBound& bound, const float* leading, const float* norms, std::size_t n,
                                      float* squares, float* top) {
    for (std::size_t r = 0; r < n; ++r) {
        const float size = std::fabs(leading[r]) + bound.slack;
        squares[r] = bound.base + bound.flat * (1.0F + norms[r]) + bound.steep * (size * size);
    }
    for (std::size_t r = 0; r < n; ++r) *top = squares[r] > *top ? squares[r] : *top;
}

ARMLET_INLINE void add_widths_body(const float* scores, const float* squares, float height, std::size_t n, float* out) {
    for (std::size_t r = 0; r < n; ++r) out[r] = scores[r] + height * std::sqrt(squares[r]);
}

}  // namespace

ARMLET_CHOOSE(score_tile,
              (const float* tile, const float* v, std::size_t dz, const float* offsets, float ratio, float* out,
               float* top),
              (tile, v, dz, offsets, ratio, out, top), score_tile_body<4>, score_tile_body<8>, score_tile_body<16>)

ARMLET_DISPATCH(bound_squares,
                (const WidthBound& bound, const float* leading, const float* norms, std::size_t n, float* squares,
                 float* top),
                (bound, leading, norms, n, squares, top))

ARMLET_DISPATCH(add_widths, (const float* scores, const float* squares, float height, std::size_t n, float* out),
                (scores, squares, height, n, out))

}  // namespace armlet
