#include "actions/blake2b.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace armlet {

namespace {

using Word64 = std::uint64_t;
constexpr std::size_t block_bytes = 128;

constexpr std::array<Word64, 8> start = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                         0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                         0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr std::array<std::array<std::uint8_t, 16>, 10> orders = {
    {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
     {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
     {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
     {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
     {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
     {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
     {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
     {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
     {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
     {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}}};

Word64 word_at(const char* bytes) {
    Word64 out = 0;
    for (int i = 7; i >= 0; --i) out = out << 8 | static_cast<std::uint8_t>(bytes[i]);
    return out;
}

void mix(std::array<Word64, 16>& v, std::size_t a, std::size_t b, std::size_t c, std::size_t d, Word64 x, Word64 y) {
    v[a] += v[b] + x, v[d] = std::rotr(v[d] ^ v[a], 32);
    v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 24);
    v[a] += v[b] + y, v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 63);
}

void compress(std::array<Word64, 8>& h, const char* block, Word64 bytes, bool is_last) {
    std::array<Word64, 16> m, v;
    for (std::size_t i = 0; i < 16; ++i) m[i] = word_at(block + 8 * i);
    for (std::size_t i = 0; i < 8; ++i) v[i] = h[i], v[i + 8] = start[i];
    v[12] ^= bytes;
    if (is_last) v[14] = ~v[14];
#pragma GCC unroll 12
    for (std::size_t round = 0; round < 12; ++round) {
        const auto& s = orders[round % 10];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i) mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i)
            mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
    }
    for (std::size_t i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[i + 8];
}

}  // namespace

std::uint64_t blake2b_8(std::string_view data) {
    std::array<Word64, 8> h = start;
    h[0] ^= 0x01010000 ^ 8;  // no key, one leaf, eight bytes
    std::size_t at = 0;
    for (; data.size() - at > block_bytes; at += block_bytes) compress(h, data.data() + at, at + block_bytes, false);
    std::array<char, block_bytes> last{};
    std::ranges::copy(data.substr(at), last.begin());
    compress(h, last.data(), data.size(), true);
    return h[0];
}

}  // namespace armlet
