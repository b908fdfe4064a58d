"""Runs of `examples/litellm_router.py`, whole and killed, and what they leave in their stores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import armlet
from armlet.inputs.budget import Spending

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "litellm_router.py")
STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")), EXAMPLE)
REQUESTS = 200


@dataclass(frozen=True)
class Left:
    """What runs have said, and what the store holds when all requests are served."""

    said: Sequence[str]  # a line for each request that was served, and again after a kill
    events: Sequence[Mapping[str, Any]]  # of the log, without the time
    digest: str
    spending: Spending | None


def served(command: Sequence[str], path: Path, kills: Sequence[int] = (), env: Mapping[str, str] | None = None) -> Left:
    """Serve all requests.

    Parameters
    ----------
    command
        What runs the example, but for its arguments.
    kills
        After how many further lines it is killed, each time, by `kill -9`: wherever it is then.
    """
    said: list[str] = []
    for lines in (*kills, None):
        with subprocess.Popen([*command, str(path), str(REQUESTS)], stdout=subprocess.PIPE, text=True, env=env) as one:
            assert one.stdout is not None
            said += islice(one.stdout, lines)
            if lines is not None:
                one.kill()
            said += one.stdout  # what it had said by then
        assert one.returncode == (0 if lines is None else -9)
    with armlet.open_store(path) as store:
        loop = store.loop("models")
        events = [{name: value for name, value in each.items() if name != "at"} for each in loop.log]
        return Left(said[:-1], events, loop.model().digest(), loop.model().budget)
