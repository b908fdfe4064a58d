"""How tests are run: examples in a folder of their own, and on several workers what is made once in one place.

With `-n` of pytest-xdist, the tests of one file stay together, so that what they share is made once; so do all that
look at the reproduction of the paper, wherever they are. Files marked `spread` share nothing, so that their tests are
dealt out one by one.
"""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices of tests are small: threads would wait for each other

collect_ignore = ["docs/conf.py", "docs/hooks/mathml.py"]  # for Sphinx, which only `make site` installs


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):  # only they pay for a folder
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests must run on one worker, and begin with what takes longest in one piece.

    That is the paper's evaluation, then whole files, then what is dealt out one by one: workers end together.
    """
    items.sort(key=_turn)
    for item in items:
        if made := _reproductions(item):
            item.add_marker(pytest.mark.xdist_group(made[0]))
        elif item.get_closest_marker("spread") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _turn(item: pytest.Item) -> int:
    if _reproductions(item):
        return 0
    return 1 if item.get_closest_marker("spread") is None else 2


def _reproductions(item: pytest.Item) -> list[str]:
    return [name for name in getattr(item, "fixturenames", ()) if name.endswith("reproduction")]
