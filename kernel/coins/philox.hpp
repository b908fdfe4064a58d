// Counter-based randomness: Philox4x64-10 (Salmon et al. 2011), the same bits as numpy.random.Philox.
#pragma once
#include <array>
#include <cstdint>

namespace armlet {

using Word = std::uint64_t;

struct Seed {
    Word low = 0, high = 0;
};

inline Word high_half(Word a, Word b) { return static_cast<Word>((static_cast<unsigned __int128>(a) * b) >> 64); }

inline std::array<Word, 4> philox(Seed key, std::array<Word, 4> c) {
    for (int round = 0; round < 10; ++round) {
        const auto first = static_cast<unsigned __int128>(0xD2E7470EE14C6C93u) * c[0];
        const auto second = static_cast<unsigned __int128>(0xCA5A826395121157u) * c[2];
        c = {static_cast<Word>(second >> 64) ^ c[1] ^ key.low, static_cast<Word>(second),
             static_cast<Word>(first >> 64) ^ c[3] ^ key.high, static_cast<Word>(first)};
        key = {key.low + 0x9E3779B97F4A7C15u, key.high + 0xBB67AE8584CAA73Bu};
    }
    return c;
}

// Uniform on [0, 1) from 53 of 64 random bits, as a signed number: processors convert those in one instruction.
inline double fraction(Word bits) { return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53; }

// All the randomness of step t.
struct Coins {
    double coin;  // uniform on [0, 1)
    Word pick, tie, mark;
};

inline Coins toss(Seed seed, Word t) {
    const auto words = philox(seed, {t, 0, 0, 0});
    return {fraction(words[0]), words[1], words[2], words[3]};
}

// One of 0..n-1 from 64 random bits; off uniform by less than n / 2^64.
inline std::size_t below(Word bits, std::size_t n) { return static_cast<std::size_t>(high_half(bits, n)); }

}  // namespace armlet
