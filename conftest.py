"""How tests are run: examples in a folder of their own, and on several workers what is made once in one place.

With `-n` of pytest-xdist, the tests of one file stay together, so that what they share is made once; so do all that
look at the reproduction of the paper, wherever they are. Files marked `spread` share nothing, so that their tests are
dealt out one by one.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests must run on one worker."""
    for item in items:
        if "reproduction" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("reproduction"))
        elif item.get_closest_marker("spread") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
