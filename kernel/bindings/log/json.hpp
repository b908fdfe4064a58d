// Events as lines of JSON.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace armlet {

namespace nb = nanobind;

// Appends a whole line of a log, which carries on the check value of the line before; gives its own. No Python code
// runs.
std::uint32_t write_line(std::string& out, long long seq, const char* kind, long long at, nb::dict fields,
                         std::uint32_t crc);

constexpr std::size_t most_digits = 34;
// Writes the shortest digits that read back as the same finite float, and never as an integer; gives how many.
std::size_t write_number(char* digits, double given);
// As zlib has it, carried on from another one.
std::uint32_t crc32(std::string_view data, std::uint32_t crc);

}  // namespace armlet
