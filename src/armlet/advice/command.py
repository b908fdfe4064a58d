"""The command `armlet advise`: from what is known of a problem to advice in words, as JSON and as one HTML page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.advice import Advice, Prior, advise
from armlet.advice.ask import Money, place_of
from armlet.advice.pilot import Pilot, SourceLike, notes_on
from armlet.environments import ENVIRONMENTS, Environment
from armlet.errors import InvalidValueError
from armlet.inputs.encoder import Encoder
from armlet.inputs.named import parse_named
from armlet.inputs.settings import Objective
from armlet.inputs.table import Table
from armlet.parallel import Progress
from armlet.report.plots import require_matplotlib
from armlet.simulation.compare import make_environment
from armlet.types import Arm

ENDINGS: Final = (".html", ".json", ".csv", ".png", ".svg")  # of what an advice saves itself as
LONGEST_UNIT: Final = 20  # next to the axis of a figure on a phone

LAW, TABLE, GUESSED = "--environment", "--log", "--arms, --dim and --effect"
GUESS: Final = ("arms", "dim", "effect", "noise", "mean", "clicks")
LOG: Final = ("features", "arm", "reward", "propensity", "arm_names", "current")
KINDS: Final = {LAW: ("environment",), TABLE: ("log", *LOG), GUESSED: GUESS}
EXAMPLES: Final = {
    LAW: "armlet advise --horizon 100k --environment FigureA",
    TABLE: "armlet advise --horizon 100k --log pilot.csv --features age,country --arm ad --reward click",
    GUESSED: "armlet advise --horizon 100k --arms 5 --dim 8 --effect 0.005..0.02 --clicks 0.02..0.05 --unit clicks",
}
ABOUT: Final = {
    "environment": f"one of {', '.join(ENVIRONMENTS)}",
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
    value: float | None
    currency: str | None
    current: Arm | None
    seed: int
    problems: int | None
    runs: int | None
    line: str  # that was typed
    out: Path | None
    notes: tuple[str, ...] = ()  # on how a log was read


def read_request(options: Mapping[str, Any]) -> Request:
    """Turn what the command line says into a request, or say what is wrong with it."""
    _check_complete(options)
    _check_money(options)
    source, notes = _source(options)
    return Request(
        source=source,
        horizon=options["horizon"] or options["per_day"] * options["days"],
        per_day=options["per_day"],
        unit=_unit(options["unit"]),
        objective=options["objective"] or "max",
        value=options["value"],
        currency=options["currency"],
        current=_current(options["current"], source),
        seed=options["seed"],
        problems=options["problems"],
        runs=options["runs"],
        line=options["line"],
        out=None if options["out"] is None else _target(Path(options["out"])),
        notes=notes,
    )


def ask(request: Request, progress: Progress) -> Advice:
    """Simulate, telling how far it is."""
    advice = advise(
        request.source,
        horizon=request.horizon,
        seed=request.seed,
        problems=request.problems,
        runs=request.runs,
        unit=request.unit,
        objective=request.objective,
        value=request.value,
        currency=request.currency,
        current=request.current,
        per_day=request.per_day,
        progress=progress,
    )
    return dataclasses.replace(advice, command=request.line, notes=(*request.notes, *advice.notes))


def _check_complete(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together, and name all that is missing at once."""
    horizon, days, kinds = options["horizon"], options["days"], _kinds(options)
    for name in ("horizon", "per_day", "days"):
        if options[name] is not None and options[name] < 1:
            raise InvalidValueError(f"{_option(name)} is {options[name]}; give 1 or more")
    if horizon is not None and days is not None:
        raise InvalidValueError(f"--horizon is {horizon} but --days is {days} too; give one of them")
    if len(kinds) > 1:
        clashing = " and ".join(
            _option(next(name for name in KINDS[kind] if options[name] is not None)) for kind in kinds
        )
        raise InvalidValueError(f"{clashing} do not go together; give one of {'; '.join(KINDS)}")
    missing = _missing_traffic(options)
    missing += _missing_source(options, kinds[0]) if kinds else [f"what is known (one of {'; '.join(KINDS)})"]
    missing += _missing_money(options)
    if missing:
        example = EXAMPLES[kinds[0] if kinds else GUESSED]
        raise InvalidValueError(f"missing: {'; '.join(missing)}; for example: {example}")


def _missing_traffic(options: Mapping[str, Any]) -> list[str]:
    if options["horizon"] is None and options["days"] is None:
        return ["--horizon (how many decisions there will be), or --per-day and --days"]
    if options["horizon"] is None and options["per_day"] is None:
        return ["--per-day (decisions a day), or --horizon in place of --days"]
    return []


def _missing_money(options: Mapping[str, Any]) -> list[str]:
    if options["value"] is not None and options["currency"] is None:
        return ["--currency (of --value, such as EUR)"]
    if options["currency"] is not None and options["value"] is None:
        return ["--value (what one unit of reward is worth, such as 0.30)"]
    return []


def _missing_source(options: Mapping[str, Any], kind: str) -> list[str]:
    needed = {LAW: ("environment",), TABLE: ("log", "features", "arm", "reward"), GUESSED: ("arms", "dim", "effect")}[
        kind
    ]
    missing = [f"{_option(name)} ({ABOUT[name]})" for name in needed if options[name] is None]
    if kind == GUESSED and options["clicks"] is None and options["noise"] is None:
        missing.append("--noise (the standard deviation of a reward), or --clicks if rewards are 0 or 1")
    return missing


def _kinds(options: Mapping[str, Any]) -> list[str]:
    """Return the kinds of knowledge that the options are about."""
    return [kind for kind, names in KINDS.items() if any(options[name] is not None for name in names)]


def _source(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    (kind,) = _kinds(options)
    if kind == TABLE:
        return _pilot(options)
    return _law(options["environment"]) if kind == LAW else _prior(options), ()


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _law(text: str) -> Callable[[np.random.Generator], Environment]:
    """Return an environment's law, which draws other arms every time, with some of its settings fixed."""
    name, settings = parse_named(text)
    make_environment(name, settings, seed=0)  # says what is wrong with the name or a setting

    def draw(rng: np.random.Generator) -> Environment:
        return ENVIRONMENTS[name].draw(rng, **settings)

    draw.__qualname__ = f"{name}.draw" + (f" with {text.partition(':')[2]}" if settings else "")
    return draw


def _prior(options: Mapping[str, Any]) -> Prior:
    if options["clicks"] is not None and options["mean"] is not None:
        raise InvalidValueError(
            "--mean and --clicks do not go together: the share of clicks is a mean; give one of them"
        )
    return Prior(
        n_arms=options["arms"],
        dim=options["dim"],
        effect=options["effect"],
        noise=options["noise"],
        rewards="numbers" if options["clicks"] is None else "clicks",
        mean=options["mean"] if options["clicks"] is None else options["clicks"],
    )


def _pilot(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    named = {name: options[name] for name in ("features", "arm", "reward", "propensity")}
    encoder = Encoder(list(options["features"]), other="refuse", missing="flag")
    table = Table(options["log"], **named, arms=options["arm_names"], encoder=encoder)
    return Pilot.from_table(table), notes_on(table)


def _current(word: str | None, source: SourceLike) -> Arm | None:
    """Return the arm that is played today, as the log names arms."""
    named = [arm for arm in getattr(source, "arm_names", ()) if str(arm) == word]
    if word is None or named:
        return named[0] if named else None
    place_of(word, source)  # which refuses it
    return word


def _check_money(options: Mapping[str, Any]) -> None:
    """Refuse a value or a currency that makes no sense before anything is computed."""
    if options["value"] is not None:
        Money.check(options["value"], options["currency"], ("--value", "--currency"))


def _unit(word: str) -> str:
    if not 1 <= len(word) <= LONGEST_UNIT:
        raise InvalidValueError(f"--unit is {word!r}; give a word of at most {LONGEST_UNIT} letters, such as clicks")
    return word


def _target(path: Path) -> Path:
    """Refuse a page that could not be written before anything is computed."""
    require_matplotlib()
    if not path.is_dir() and path.suffix.lower() not in ENDINGS:
        raise InvalidValueError(f"--out is {path}; give a name that ends in {', '.join(ENDINGS)}")
    if path.is_dir():
        raise IsADirectoryError(f"--out is {path}, a directory; add a file name, such as advice.html")
    return path
