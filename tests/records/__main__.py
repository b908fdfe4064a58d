"""Write records, or compare with them."""

from __future__ import annotations

import sys
import time

from records.parts import PARTS
from records.record import DATA, differences, leave, write


def main(arguments: list[str]) -> int:
    """Do it for all parts, or for those that are named."""
    verb, names = (arguments or [""])[0], arguments[1:] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if verb not in ("write", "check") or unknown:
        print(f"usage: python -m records write|check [PART ...]; parts: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names:
        began = time.process_time()
        if verb == "write":
            new = leave(PARTS[name])
            texts = PARTS[name].make()
            write(texts)
            result = f"{len(texts)} texts in {DATA}" + (f", and new: {', '.join(new)}" if new else "")
        else:
            lines = differences(PARTS[name])
            print(*lines, sep="\n", end="\n" if lines else "")
            failed += bool(lines)
            result = "differs" if lines else "as on record"
        print(f"{name}: {result}, {time.process_time() - began:.1f} s of CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
