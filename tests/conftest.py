"""What several tests look at, made once: the paper's evaluation as `make run` makes it."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

import armlet
from armlet import _kernel
from armlet.paper import EXPERIMENTS
from armlet.paper.experiment import SEED
from armlet.paper.reproduce import reproduce
from support import examples, kept

TIMED = ("theorem-1", "contextual-ucb", "leaderboard")

examples.load_profile()


@pytest.fixture(scope="session")
def reproduction(pytestconfig: pytest.Config) -> Path:
    """Give the folder of a quick reproduction with the published seed, without the experiments that measure time.

    It lies in pytest's cache, so `--cache-clear` makes it anew; so does any change of a source or of the kernel.
    """
    sources = [*Path(armlet.__file__).parent.rglob("*.py"), Path(str(_kernel.__file__))]
    return kept.keep(pytestconfig.cache.mkdir("reproduction"), kept.digest(sources, SEED, TIMED), _reproduce)


def _reproduce(folder: Path) -> None:
    names = [name for name in EXPERIMENTS if name not in TIMED]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = reproduce(names, "quick", SEED, folder, workers=2)
    assert code == 0, printed.getvalue()
