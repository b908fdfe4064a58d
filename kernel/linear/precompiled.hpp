// Of the standard library, what the numerics include most: compiled once for all of them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>
