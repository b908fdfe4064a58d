"""What several tests look at, made once: the paper's evaluation as `make run` makes it."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from pathlib import Path

import pytest

import armlet
import armlet_lab
from armlet import _kernel
from armlet_lab.experiments import EXPERIMENTS
from armlet_lab.runner.experiment import SEED
from armlet_lab.runner.reproduce import reproduce
from support import examples, kept

TIMED = ("theorem-1", "contextual-ucb", "leaderboard")
"""Experiments that measure time."""

LIGHT = ("fig-a", "fig-b", "section-4-1", "merge")
"""Those that take a sixth of the time of all others together, and have half of their claims."""

examples.load_profile()


@pytest.fixture(scope="session")
def reproduction(pytestconfig: pytest.Config) -> Path:
    """Return the folder of a quick reproduction with the published seed, of the light experiments.

    It lies in pytest's cache, so `--cache-clear` makes it again; so does any change of a source or of the kernel.
    """
    return _kept(pytestconfig, "reproduction", LIGHT)


@pytest.fixture(scope="session")
def whole_reproduction(pytestconfig: pytest.Config) -> Path:
    """Return the folder of one that leaves out only what measures time: for long tests."""
    return _kept(pytestconfig, "whole-reproduction", tuple(name for name in EXPERIMENTS if name not in TIMED))


def _kept(config: pytest.Config, name: str, experiments: tuple[str, ...]) -> Path:
    packages = [Path(str(package.__file__)).parent for package in (armlet, armlet_lab)]
    sources = [*(path for package in packages for path in package.rglob("*.py")), Path(str(_kernel.__file__))]
    made_from = kept.digest(sources, SEED, experiments)
    return kept.keep(config.cache.mkdir(name), made_from, partial(_reproduce, experiments))


def _reproduce(experiments: tuple[str, ...], folder: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = reproduce(experiments, "quick", SEED, folder, workers=2)
    assert code == 0, printed.getvalue()
