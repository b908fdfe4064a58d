"""The command `armlet advise`: from what is known of a problem to advice in words, as JSON and as a page."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from armlet.advice import Advice, Prior, advise, page, words
from armlet.advice.logs import read_pilot
from armlet.advice.sources import SourceLike
from armlet.disk import write_atomically
from armlet.environments import ENVIRONMENTS, World
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.settings import Objective
from armlet.log.tables import Roles
from armlet.parallel.progress import reporter
from armlet.report.pictures import require_matplotlib
from armlet.simulation.named import make_world, parse_settings

OPTIONS: Final = {
    "n_arms": "--arms",
    "arm_names": "--arm-names",
    "base_rate": "--clicks",
    **{name: f"--{name}" for name in ("log", "features", "arm", "reward", "propensity")},
}
"""What the command line calls the library's arguments."""

LONGEST_UNIT: Final = 20  # beside the axis of a figure on a phone

LAW, TABLE, GUESSED = "--world", "--log", "--arms, --dim and --effect"
GUESS: Final = ("arms", "dim", "effect", "noise", "level", "clicks")
LOG: Final = ("features", "arm", "reward", "propensity", "arm_names", "objective")
KINDS: Final = {LAW: ("world", "world_set"), TABLE: ("log", *LOG), GUESSED: GUESS}
ABOUT: Final = {
    "world": f"one of {', '.join(ENVIRONMENTS)}",
    "log": "a table of earlier decisions",
    "features": "its columns that make a context",
    "arm": "the column of what was played",
    "reward": "the column of what it paid",
    "arms": "how many",
    "dim": "values in a context",
    "effect": "what random play loses a decision",
}
"""What the arguments are that cannot be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for."""

    source: SourceLike
    horizon: int
    per_day: int | None
    unit: str
    objective: Objective
    seed: int
    problems: int | None
    runs: int | None
    form: Literal["words", "json"]
    out: Path | None
    notes: tuple[str, ...] = ()  # on how a log was read


def read_request(options: Mapping[str, Any]) -> Request:
    """Turn what the command line says into a request, or say what is wrong with it."""
    _check_complete(options)
    source, notes = _source(options)
    return Request(
        source=source,
        horizon=options["horizon"] or options["per_day"] * options["days"],
        per_day=options["per_day"],
        unit=_unit(options["unit"]),
        objective=options["objective"] or "max",
        seed=options["seed"],
        problems=options["problems"],
        runs=options["runs"],
        form="json" if options["json"] else "words",
        out=None if options["out"] is None else _target(Path(options["out"])),
        notes=notes,
    )


def ask(request: Request) -> Advice:
    """Simulate, telling on stderr how far it is."""
    advice = advise(
        request.source,
        horizon=request.horizon,
        seed=request.seed,
        problems=request.problems,
        runs=request.runs,
        unit=request.unit,
        objective=request.objective,
        progress=reporter("percent"),
    )
    return dataclasses.replace(advice, notes=(*request.notes, *advice.notes))


def tell(request: Request, advice: Advice) -> None:
    """Print the advice, and write its page if there is to be one."""
    if request.form == "json":
        print(json.dumps(to_json(advice, request.per_day), indent=2, allow_nan=False))
    else:
        print(*advice.lines(request.per_day), sep="\n")
    if request.out is not None:
        html = page.render(advice, per_day=request.per_day, seed=request.seed)
        request.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(request.out, [html.encode()])
        print(f"Page: {request.out}", file=sys.stderr if request.form == "json" else sys.stdout)


def to_json(advice: Advice, per_day: int | None) -> dict[str, Any]:
    """Give the advice as JSON can hold it; with traffic, also the day on which the best arm is found."""
    if per_day is None:
        return advice.to_json()
    day = None if advice.found_by is None else words.day(advice.found_by, per_day)
    return {**advice.to_json(), "per_day": per_day, "found_by_day": day}


def explain(error: Exception) -> str:
    """Say what was wrong, calling arguments what the command line calls them.

    Examples
    --------
    >>> explain(ArgumentError("{n_arms} is {value}; give whole numbers of at least 2", value=1))
    '--arms is 1; give whole numbers of at least 2'
    """
    return error.told(OPTIONS) if isinstance(error, ArgumentError) else str(error)


def _check_complete(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together, and name all that is missing at once."""
    horizon, days, kinds = options["horizon"], options["days"], _kinds(options)
    for name in ("horizon", "per_day", "days"):
        if options[name] is not None and options[name] < 1:
            raise InvalidValueError(f"{_option(name)} is {options[name]}; give 1 or more")
    if horizon is not None and days is not None:
        raise InvalidValueError(f"--horizon is {horizon} but --days is {days} too; give one of them")
    if len(kinds) > 1:
        found = " and ".join(_option(next(name for name in KINDS[kind] if options[name])) for kind in kinds)
        raise InvalidValueError(f"{found} do not go together; give one of {'; '.join(KINDS)}")
    missing = _missing_traffic(options)
    missing += _missing_source(options, kinds[0]) if kinds else [f"what is known (one of {'; '.join(KINDS)})"]
    if missing:
        raise InvalidValueError(f"missing: {'; '.join(missing)}")


def _missing_traffic(options: Mapping[str, Any]) -> list[str]:
    if options["horizon"] is None and options["days"] is None:
        return ["--horizon (how many decisions there will be), or --per-day and --days"]
    if options["horizon"] is None and options["per_day"] is None:
        return ["--per-day (decisions a day), or --horizon in place of --days"]
    return []


def _missing_source(options: Mapping[str, Any], kind: str) -> list[str]:
    needed = {LAW: ("world",), TABLE: ("log", "features", "arm", "reward"), GUESSED: ("arms", "dim", "effect")}[kind]
    missing = [f"{_option(name)} ({ABOUT[name]})" for name in needed if options[name] is None]
    if kind == GUESSED and options["clicks"] is None and options["noise"] is None:
        missing.append("--noise (the standard deviation of a reward), or --clicks if rewards are 0 or 1")
    return missing


def _kinds(options: Mapping[str, Any]) -> list[str]:
    """Give the kinds of knowledge that the options are about."""
    return [kind for kind, names in KINDS.items() if any(options[name] for name in names)]


def _source(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    (kind,) = _kinds(options)
    if kind == TABLE:
        return _pilot(options)
    return _law(options["world"], options["world_set"]) if kind == LAW else _prior(options), ()


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _law(name: str, pairs: list[str]) -> Callable[[np.random.Generator], World]:
    """Give a world's law, which draws other arms every time, with some of its settings fixed."""
    settings = parse_settings(pairs)
    make_world(name, settings, seed=0)  # says what is wrong with the name or a setting

    def draw(rng: np.random.Generator) -> World:
        return ENVIRONMENTS[name].draw(rng, **settings)

    draw.__qualname__ = f"{name}.draw" + (f" with {', '.join(pairs)}" if pairs else "")
    return draw


def _prior(options: Mapping[str, Any]) -> Prior:
    if options["clicks"] is not None and options["level"] is not None:
        raise InvalidValueError(
            "--level and --clicks do not go together: the share of clicks is a level; give one of them"
        )
    return Prior(
        n_arms=options["arms"],
        dim=options["dim"],
        effect=options["effect"],
        noise=options["noise"],
        rewards="numbers" if options["clicks"] is None else "clicks",
        base_rate=options["level"] if options["clicks"] is None else options["clicks"],
    )


def _pilot(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    named = {name: options[name] for name in LOG if name != "objective"}
    return read_pilot(options["log"], Roles(**named))


def _unit(word: str) -> str:
    if not 1 <= len(word) <= LONGEST_UNIT:
        raise InvalidValueError(f"--unit is {word!r}; give a word of at most {LONGEST_UNIT} letters, such as clicks")
    return word


def _target(path: Path) -> Path:
    """Refuse a page that could not be written before anything is computed."""
    require_matplotlib()
    if path.is_dir():
        raise IsADirectoryError(f"--out is {path}, a directory; add a file name, such as advice.html")
    return path
