"""Vowpal Wabbit as the bake-off has it: the settings, and one table played in an environment of its own.

The grid is that of Bietti, Agarwal and Langford (*A Contextual Bandit Bake-off*, JMLR 22, 2021; `run_vw_job.py` of
their code): nine learning rates, and three ways to estimate costs where a method has a choice. RegCB has three values
of its mellowness, too; 0.001 is what the authors settled on, 0.1 what the program comes with. SquareCB came later and
has the rates alone. Costs are 0 for the right class and 1 for others, as `--cbify` has it; their second encoding, -1
and 0, is tried for RegCB, and so are features with mean 0 and standard deviation 1 over the whole table, which a
learner could not know.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from armlet.datasets import DatasetTable, cache_folder
from armlet.types import Float64, Int64
from armlet_lab.contests import vowpal_worker
from armlet_lab.contests.rival import Features, RivalError, Setting, ask, wrong
from armlet_lab.runner.venvs import Recipe, environment

VERSION: Final = "9.11.9"
RECIPE: Final = Recipe(name="vowpalwabbit", requires=(f"vowpalwabbit=={VERSION}",))
RATES: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TYPES: Final = ("dr", "ips", "mtr")
REWARDS: Final = "--loss0 -1 --loss1 0 --cb_min_cost -1 --cb_max_cost 0"


def _grid(
    label: str, options: Iterable[str], types: Sequence[str] = ("mtr",), features: Features = "raw"
) -> tuple[Setting, ...]:
    tried = [f"{each} --cb_type {kind} -l {rate}" for each in options for kind in types for rate in RATES]
    return tuple(Setting(f"{label}: {each}", each, features) for each in tried)


_MELLOW: Final = tuple(f"--regcbopt --mellowness {mellowness}" for mellowness in (0.1, 0.01, 0.001))
_SETTLED: Final = _MELLOW[-1]

USUAL: Final = (
    Setting("VW RegCB-opt", _SETTLED),
    Setting("VW RegCB-opt, standardised", _SETTLED, "standardised"),
    Setting("VW RegCB-opt, costs -1 and 0", f"{_SETTLED} {REWARDS}"),
    Setting("VW RegCB-opt, mellowness 0.1", "--regcbopt"),
    Setting("VW SquareCB", "--squarecb"),
    Setting("VW epsilon 0.05", "--epsilon 0.05"),
    Setting("VW greedy", "--epsilon 0"),
    Setting("VW cover 4", "--cover 4"),
)
"""All with the learning rate that it comes with; the first is the rival that our policies are held against."""

GROUPS: Final[dict[str, tuple[Setting, ...]]] = {
    "usual": USUAL,
    "regcb": _grid("VW RegCB-opt", _MELLOW),
    "regcb-standardised": _grid("VW RegCB-opt, standardised", _MELLOW, features="standardised"),
    "regcb-rewards": _grid("VW RegCB-opt, costs -1 and 0", [f"{each} {REWARDS}" for each in _MELLOW]),
    "squarecb": _grid("VW SquareCB", ["--squarecb"]),
    "epsilon": _grid("VW epsilon 0.05", ["--epsilon 0.05"], TYPES),
    "greedy": _grid("VW greedy", ["--epsilon 0"], TYPES),
    "cover": _grid("VW cover 4", ["--cover 4"], TYPES),
}
"""What one worker plays at a time; all but the first are for hindsight."""


def prepare(tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the Python that has Vowpal Wabbit, installed now if it is not there."""
    place = cache_folder() / "environments" / f"vowpalwabbit-{VERSION}-{RECIPE.fingerprint[:8]}"
    return environment(RECIPE, place, tell).python


def mistakes(table: DatasetTable, order: Int64, settings: Sequence[Setting], *, seed: int) -> list[Float64]:
    """Play settings on rows in an order; return 1 for each wrong choice and 0 for each right one."""
    frame = f"--cbify {table.n_arms} --cb_explore_adf --random_seed {seed} -b 24"
    with tempfile.TemporaryDirectory() as folder:
        files = {each.features: _write(Path(folder), table, order, each) for each in settings}
        asked = [[files[each.features], f"{frame} {each.options}"] for each in settings]
        answers = ask("Vowpal Wabbit", prepare(), vowpal_worker.__file__, asked)
    return [wrong("Vowpal Wabbit", table, table.y[order] + 1, answer) for answer in answers]


def choices(X: Float64, costs: Float64, options: str, *, seed: int) -> Int64:
    """Play rows whose costs are all known, (n, K), one revealed for each choice; return the arms, counted from 0."""
    frame = f"--cbify {costs.shape[1]} --cbify_cs --cb_explore_adf --random_seed {seed} -b 24"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        path.write_text("".join(lines_with_costs(X, costs)))
        (answer,) = ask("Vowpal Wabbit", prepare(), vowpal_worker.__file__, [[str(path), f"{frame} {options}"]])
    if len(answer) != len(X):
        raise RivalError(f"Vowpal Wabbit chose {len(answer)} times for {len(X)} rows")
    return np.array(answer, dtype=np.int64) - 1


def _write(folder: Path, table: DatasetTable, order: Int64, setting: Setting) -> str:
    path = folder / f"{setting.features}.vw"
    path.write_text("".join(lines(setting.contexts(table)[order], table.y[order])))
    return str(path)


def lines(X: Float64, y: Int64) -> Iterable[str]:
    """Write rows as Vowpal Wabbit reads them: the class counted from 1, then all that is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> [line.strip() for line in lines(np.array([[1.5, 0.0], [0.0, -2.0]]), np.array([0, 2]))]
    ['1 | f0:1.5', '3 | f1:-2']
    """
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        words = " ".join(f"f{index}:{value:.9g}" for index, value in enumerate(x) if value)
        yield f"{label + 1} | {words}\n"


def lines_with_costs(X: Float64, costs: Float64) -> Iterable[str]:
    """Write rows as Vowpal Wabbit reads those whose costs are all known.

    Examples
    --------
    >>> [line.strip() for line in lines_with_costs(np.array([[1.5, 0.0]]), np.array([[0.25, 1.0]]))]
    ['1:0.25 2:1 | f0:1.5']
    """
    for line, row in zip(lines(X, np.zeros(len(X), dtype=np.int64)), costs.tolist(), strict=True):
        labels = " ".join(f"{arm}:{cost:.9g}" for arm, cost in enumerate(row, start=1))
        yield f"{labels} {line.partition(' ')[2]}"
