"""The vector instructions that numpy uses on this processor, for NPY_DISABLE_CPU_FEATURES."""

import numpy as np

found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
print(*found)
