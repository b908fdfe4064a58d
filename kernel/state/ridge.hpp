// The ridge of (shift I + A) theta = b, the paper's (lambda_n I + A / n) theta = b / n multiplied by n.
#pragma once
#include <cmath>

namespace armlet {

struct Ridge {
    enum class Kind { paper, inverse_n, constant };
    Kind kind = Kind::paper;
    double value = 1.0;  // of a constant ridge

    double shift(double n) const {
        if (kind == Kind::paper) return std::sqrt(n);  // n lambda_n with lambda_n = 1 / sqrt(n)
        if (kind == Kind::inverse_n) return 1.0;       // n lambda_n with lambda_n = 1 / n
        return value;
    }
};

}  // namespace armlet
