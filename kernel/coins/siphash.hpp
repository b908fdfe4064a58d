// Names to keys: SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012), keyed by a seed, so that nobody
// without the seed can tell which coins a name has, or find two names that have the same.
#pragma once
#include <bit>
#include <cstddef>
#include <string_view>

#include "coins/philox.hpp"

namespace armlet {

class SipHash {
  public:
    explicit SipHash(Seed key)
        : v_{key.low ^ 0x736F6D6570736575u, key.high ^ 0x646F72616E646F6Du ^ 0xEE, key.low ^ 0x6C7967656E657261u,
             key.high ^ 0x7465646279746573u} {}

    Seed operator()(std::string_view text) {
        std::size_t at = 0;
        for (; at + 8 <= text.size(); at += 8) absorb(word(text.substr(at, 8)));
        absorb(word(text.substr(at)) | static_cast<Word>(text.size()) << 56);
        v_[2] ^= 0xEE;
        const Word low = squeeze();
        v_[1] ^= 0xDD;
        return {low, squeeze()};
    }

  private:
    // Up to eight bytes, the first one lowest.
    static Word word(std::string_view bytes) {
        Word out = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            out |= static_cast<Word>(static_cast<unsigned char>(bytes[i])) << (8 * i);
        return out;
    }
    void mix(int rounds) {
        for (int i = 0; i < rounds; ++i) {
            v_[0] += v_[1], v_[1] = std::rotl(v_[1], 13) ^ v_[0], v_[0] = std::rotl(v_[0], 32);
            v_[2] += v_[3], v_[3] = std::rotl(v_[3], 16) ^ v_[2];
            v_[0] += v_[3], v_[3] = std::rotl(v_[3], 21) ^ v_[0];
            v_[2] += v_[1], v_[1] = std::rotl(v_[1], 17) ^ v_[2], v_[2] = std::rotl(v_[2], 32);
        }
    }
    void absorb(Word m) { v_[3] ^= m, mix(2), v_[0] ^= m; }
    Word squeeze() { return mix(4), v_[0] ^ v_[1] ^ v_[2] ^ v_[3]; }

    std::array<Word, 4> v_;
};

// The key of a unit's coins: those of its epochs are toss(unit_seed, epoch).
inline Seed unit_seed(Seed seed, std::string_view unit) { return SipHash(seed)(unit); }

}  // namespace armlet
