"""A fuzzer of calls, kernel objects, model files, stores and threads: `python -m fuzz --help`, from the folder `tests`.

Every case is a function of its number, so a fault is found again with `python -m fuzz <kind> --case <number>`. What the
library may answer to nonsense is in `faults.py`; anything else, a crash or a
sanitizer's report included, is a fault.
`make sanitize` plays a million calls and a hundred thousand damaged files on a kernel built with sanitizers.
"""
