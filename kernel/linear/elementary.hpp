// exp, log and erfc as fixed sequences of IEEE operations, so that they have the same bits everywhere: no two
// libraries' agree to the last one. armlet/reference/elementary.py has the same in Python.
#pragma once

namespace armlet::elementary {

// Within 2 units of the last place; 0 below -700, infinite above 709.78.
double exp(double u);

// Within 4 units of the last place.
double log(double v);

// 1 - erf(x), within 6 units of the last place; 0 above 26.4.
double erfc(double x);

}  // namespace armlet::elementary
