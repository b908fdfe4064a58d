// BLAKE2b (RFC 7693) with a digest of eight bytes: what the model calls an action. O(bytes).
#pragma once
#include <cstdint>
#include <string_view>

namespace armlet {

// The digest as a little-endian number.
std::uint64_t blake2b_8(std::string_view data);

}  // namespace armlet
