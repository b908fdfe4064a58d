// Events as lines of JSON.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

namespace armlet {

namespace nb = nanobind;

// Appends a whole line of a log, which carries on the check value of the line before; gives its own. No Python code
// runs.
std::uint32_t write_line(std::string& out, long long seq, const char* kind, long long at, nb::dict fields,
                         std::uint32_t crc);

}  // namespace armlet
