"""What several tests look at, made once: the paper's evaluation as `make run` makes it."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from armlet.paper import EXPERIMENTS
from armlet.paper.experiment import SEED
from armlet.paper.reproduce import reproduce

TIMED = ("theorem-1", "contextual-ucb", "leaderboard")


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a quick reproduction with the published seed, without the experiments that measure time."""
    folder = tmp_path_factory.mktemp("reproduction")
    names = [name for name in EXPERIMENTS if name not in TIMED]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = reproduce(names, "quick", SEED, folder, workers=2)
    assert code == 0, printed.getvalue()
    return folder
