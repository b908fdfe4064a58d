"""How tests are run: examples in a folder of their own, and on several workers what is made once in one place.

With `-n` of pytest-xdist, the tests of one file stay together, so that what they share is made once; so do all that
look at the reproduction of the paper, wherever they are. Files marked `spread` share nothing, so that their tests are
dealt out one by one.
"""

from __future__ import annotations

import pytest

collect_ignore = ["docs/conf.py", "docs/hooks/mathml.py"]  # for Sphinx, which only `make site` installs


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):  # only they pay for a folder
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests must run on one worker."""
    for item in items:
        if "reproduction" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("reproduction"))
        elif item.get_closest_marker("spread") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
