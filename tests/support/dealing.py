"""Which tests go to a worker together: those of a file, unless it is marked `spread`.

pytest-xdist's own groups travel as a suffix of the test's name, which pytest 9.2 no longer lets it write; it then deals
every test out alone and says nothing (pytest-dev/pytest-xdist#1386). Files are read here instead, where tests are dealt
out: there only names of tests are known.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

SPREAD = re.compile(r"^pytestmark = .*\bpytest\.mark\.spread\b", re.MULTILINE)


@cache
def is_spread(path: Path) -> bool:
    return path.suffix == ".py" and SPREAD.search(path.read_text()) is not None


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Deals out whole files, and single tests of those that are marked."""

    def _split_scope(self, nodeid: str) -> str:
        name = nodeid.partition("::")[0]
        return nodeid if is_spread(self.config.rootpath / name) else name
