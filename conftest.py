"""How tests are run: examples in a folder of their own, and on several workers what is made once in one place.

With `-n` of pytest-xdist, the tests of one file stay together, so that what they share is made once. Files marked
`spread` share nothing, so that their tests are dealt out one by one.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices of tests are small: threads would wait for each other

collect_ignore = ["docs/conf.py", "docs/hooks/mathml.py"]  # for Sphinx, which only `make site` installs


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):  # only they pay for a folder
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest in one piece: the paper's evaluation, then whole files, then single tests.

    So workers end together.
    """
    items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)  # where pytest-xdist is installed
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal tests out by file."""
    from support.dealing import ByFile  # needs pytest-xdist

    return ByFile(config, log) if config.getvalue("dist") == "loadgroup" else None


def _turn(item: pytest.Item) -> int:
    if any(name.endswith("reproduction") for name in getattr(item, "fixturenames", ())):
        return 0
    return 1 if item.get_closest_marker("spread") is None else 2
