"""The commands `armlet fit`, `summary` and `intervals`: a model file from data, and what it knows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from armlet.bandit import Bandit
from armlet.cli.answer import Answer
from armlet.cli.command import arg, command, engine, level, named_policy, seed
from armlet.cli.sources import ROLES, is_table, roles_of
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.named import parse_named
from armlet.loading import load
from armlet.log.fitting import fit as fit_table
from armlet.log.fitting import is_sums
from armlet.simulation.compare import make_policy

DESIGN = "how arms were chosen: by what learned from rewards (default), by a fixed rule, or at random; for intervals"


@command(
    arg("data", nargs="+", metavar="LOG", help="a table: .csv, .jsonl, ...; or Parquet files, folders, or patterns"),
    named_policy("default: OccasionalOptimism"),
    arg("--explored", metavar="NAME", help="the column that says which rows were played at random"),
    arg("--all-explored", action="store_true", help="all rows were played at random"),
    arg("--design", choices=("adaptive", "fixed", "randomized"), default="adaptive", help=DESIGN),
    arg("--objective", choices=("max", "min"), help="min if rewards are costs; default: max, or what a log says"),
    arg("--normalize", choices=("l2",), help="divide every context by its length"),
    arg("--units", choices=("free", "as given"), help="default: the policy's own"),
    seed("the bandit's coins"),
    *engine("serial"),
    arg("--out", required=True, metavar="FILE", help="the model, such as model.armlet"),
    ROLES,
    options={"explored=True": "--all-explored", "arms": "--arm-names"},
    extras=("pyarrow", "distributed"),
    interrupted="nothing was written",
)
def fit(a: argparse.Namespace) -> Answer:
    r"""Learn from a table, or from Parquet of any size in bounded memory, and write a model.

    examples:
      armlet fit ab.csv --features age,country --arm variant --reward paid --out model.armlet
      armlet fit 'logs/*.parquet' --policy ContextualEpsilonGreedy:p=60 --features age,country \
          --arm ad --reward click --explored random --out model.armlet
      armlet fit compacted.parquet --policy LinUCB:alpha=0.5 --out model.armlet
      armlet fit routed.parquet --features length --outcomes quality=1,cost=-40 --out m.armlet

    Features are numbers, text or dates, and may lack values. A compacted log says itself which column is what. With
    --outcomes the columns of rewards are reward_quality, or quality, and so on; those that are --known need none.
    Training reads no propensities, units and times.

    Where what a policy knows is sums of rows, the model is the same to the last byte on any engine, if the seed is.
    Other policies, and several outcomes, are learned row by row, in order, in this process, and it says so.
    """
    if a.explored is not None and a.all_explored:
        raise InvalidValueError("--explored and --all-explored are both given; give one")
    if not Path(a.out).absolute().parent.is_dir():  # better now than after all was read
        raise FileNotFoundError(f"--out is {a.out}, in a folder that does not exist")
    for path in map(Path, a.data):
        if path.suffix.lower() == ".jsonl" and path.is_file() and not is_table(path):
            text = "{data} is {name}, a log of JSON lines; write it as Parquet first: armlet log compact {name}"
            raise ArgumentError(text, name=path.name)
    bandit = fit_table(
        a.data,
        None if a.policy is None else make_policy(*parse_named(a.policy)),
        explored=True if a.all_explored else a.explored,
        design=a.design,
        objective=a.objective,
        normalize=a.normalize,
        units=a.units,
        seed=a.seed,
        engine=a.engine,
        workers=a.workers,
        **{name: value for name, value in roles_of(a).items() if name not in UNREAD},
    )
    bandit.save(a.out)
    why = "there are several outcomes" if bandit.settings.outcomes else "what it knows is not a sum of rows"
    how = "sums of rows" if is_sums(bandit) else f"row by row, since {why}"
    facts = {"rows": bandit.t, "arms": list(bandit.arms), "dim": bandit.settings.dim, "policy": repr(bandit.policy)}
    facts |= {"model": a.out, "digest": bandit.digest()}
    return Answer(facts, f"{bandit.t:,} rows, {len(bandit.arms)} arms, {bandit.settings.dim} features, {how}: {a.out}")


UNREAD = ("propensity", "time", "unit", "epoch", "eligible")  # by training


READING = (
    arg("model", type=Path, metavar="MODEL", help="a model file, .armlet"),
    arg(
        "--interval",
        choices=["fixed", "anytime"],
        default="fixed",
        help="fixed: for one look that was fixed beforehand (default); anytime: for all looks at once",
    ),
    level(),
    arg(
        "--noise-scale",
        type=float,
        metavar="R",
        help="the scale of noise, for policies that chose their rows by what they learned",
    ),
)


@command(
    *READING,
    arg("--plot", type=Path, metavar="FILE", help="draw the coefficients too: .svg, .png or .pdf"),
    extras=("matplotlib",),
)
def summary(a: argparse.Namespace) -> Answer:
    """Print a model: rows, mean rewards and coefficients by arm, with errors and intervals.

    examples:
      armlet summary model.armlet
      armlet summary model.armlet --interval anytime --plot model.svg
    """
    table = load(a.model, kind=Bandit).inference.summary(**_asked(a))
    if a.plot is not None:
        table.plot().savefig(a.plot)
    return Answer(table)


@command(
    *READING,
)
def intervals(a: argparse.Namespace) -> Answer:
    """Print every coefficient of a model with its interval.

    examples:
      armlet intervals model.armlet
      armlet intervals model.armlet --interval anytime --level 0.9 --json
    """
    return Answer(load(a.model, kind=Bandit).inference.intervals(**_asked(a)))


def _asked(a: argparse.Namespace) -> dict[str, Any]:
    return {"interval": a.interval, "level": a.level, "noise_scale": a.noise_scale}
