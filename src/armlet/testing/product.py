"""The product test: random lives over all pairs of features, each held against what it must equal.

Features are tested one by one elsewhere; here they meet. A case is a function of its number: policies, outcomes, known
prices, budgets, units, discounts, windows and actions are drawn, then calls. Each life is played twice, once durable
with a log, files and restarts, and once in memory; then both answered alike, the log passes its audit, a restart leads
to the same state, sums, decisions and money are those of a plain numpy replay, and every refusal is Armlet's own. About
0.2 s a case.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.cast.model import read_cast
from armlet.errors import ArmletError
from armlet.inputs.budget import Budget
from armlet.log import audit
from armlet.log.replaying import play_all
from armlet.policies import POLICIES
from armlet.policies.discounts import MayFade
from armlet.policies.shared import SharedOptimism, SharedThompson
from armlet.stores.verify import verify
from armlet.testing.lives import ActionLife, BanditLife, Configuration, Life
from armlet.testing.loop_lives import NAME, ActionLoopLife, LoopLife, plain_events
from armlet.testing.plain import Plain
from armlet.testing.promises import Options, require, same
from armlet.testing.refusals import fault_of

KINDS: Final[dict[str, type[Any]]] = {
    "bandit": BanditLife,
    "loop": LoopLife,
    "actions": ActionLife,
    "action loop": ActionLoopLife,
}
SETTINGS: Final[dict[str, Options]] = {
    "Algorithm1": {"p": 12},
    "ScheduledEpsilonGreedy": {"p": 12},
    "ContextualEpsilonGreedy": {"p": 12},
    "AllDataEpsilonGreedy": {"p": 12},
    "AutoAlgorithm1": {"horizon": 500},
    "FixedEpsilon": {"epsilon": 0.3},
    "ContextualUCB": {"history": "explored", "p": 8},
}
IF_FADING: Final[dict[str, dict[str, Any]]] = {"SquareCB": {"gamma": 30.0}}
FADING: Final = ({"discount": 0.95}, {"half_life": 25}, {"half_life": "3 hours"})
ARMS: Final = ("a", "b", 3)
CHANGES: Final = frozenset(
    (
        *("correct", "forget", "merge", "restart", "policy", "features", "ranges", "refit", "control", "shadow"),
        *("freeze", "promote", "unit", "weights", "rank", "played", "baseline", "defer", "partial_fit", "decide_many"),
    )
)
"""What happens in lives, and is counted in pairs with what they were made with."""


@dataclass(slots=True)
class Played:
    """What was met in some lives, and what was compared."""

    lives: int = 0
    met: Counter[str] = field(default_factory=Counter)  # calls and options, by name
    judged: Counter[str] = field(default_factory=Counter)  # comparisons with the plain replay, by kind
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)  # what met in one life, by two names

    def add(self, other: Played) -> None:
        """Add another's counts."""
        self.lives += other.lives
        self.met += other.met
        self.judged += other.judged
        self.pairs += other.pairs


# ---- cases


def case_of(number: int) -> Configuration:
    """Draw the configuration of a case; one that is refused is drawn again.

    Examples
    --------
    >>> case_of(7) == case_of(7)
    True
    """
    rng = np.random.default_rng(number)
    kind = str(rng.choice(["bandit", "bandit", "bandit", "loop", "loop", "loop", "loop", "actions", "action loop"]))
    while True:
        options = _actions(rng) if kind.startswith("action") else _arms(rng)
        if kind.endswith("loop"):
            options |= _windows(rng, options)
        options["seed"] = int(rng.integers(2**32))
        case = Configuration(number, kind, options, int(rng.integers(25, 45)), bool(rng.random() < 0.7))
        try:
            KINDS[kind](case)
        except ArmletError as error:
            fault = fault_of(error, {*options, "policy", "Budget"})
            require(fault is None, f"{case} raised {type(error).__name__}: {error}; {fault}")
        else:
            return case


def _pick(rng: np.random.Generator, some: Sequence[Any]) -> Any:
    return some[int(rng.integers(len(some)))]


def _arms(rng: np.random.Generator) -> Options:
    name = _pick(rng, [name for name in POLICIES if name != "Oracle"])
    kind: Any = POLICIES[name]
    settings = dict(SETTINGS.get(name, {}))
    if issubclass(kind, MayFade) and rng.random() < 0.6:
        settings |= _pick(rng, FADING) | IF_FADING.get(name, {})
    options: Options = {"arms": list(ARMS), "features": ["u", "v"], "policy": kind(**settings)}
    if rng.random() < 0.15:
        options["normalize"] = "l2"
    if rng.random() < 0.2:
        options["units"] = "as given"
    if rng.random() < 0.2:
        options["feature_range"] = {"u": (-1.5, 1.5, "clip"), "v": (-1.75, 2.0)}
    if rng.random() < 0.3:
        options["epoch"] = 7
    if rng.random() < 0.5:
        return options | _outcomes(rng)
    if rng.random() < 0.2:
        options["objective"] = "min"
    if rng.random() < 0.4:
        options["reward_range"] = (-3.0, 3.0)
    return options


def _outcomes(rng: np.random.Generator) -> Options:
    """Draw outcomes, with known prices, ranges and budgets."""
    weights = {"gain": 1.0, "cost": -2.0}
    options: Options = {"outcomes": weights}
    prices = {arm: (i + 1) / 8 for i, arm in enumerate([*ARMS, "d", "e"])}
    known = _pick(rng, [None, None, "delay", "cost"])
    if known is not None:
        options |= {"outcomes": {**weights, known: weights.get(known, -0.5)}, "known": {known: prices}}
    if rng.random() < 0.6:
        ranges = {"gain": (-3.0, 3.0), "cost": (0.0, 2.0)}
        options["reward_range"] = {name: each for name, each in ranges.items() if name != known}
    if rng.random() < 0.6:
        way = _pick(rng, ["horizon", "period"])
        options["budget"] = Budget("cost", total=12.0, hard=bool(rng.random() < 0.4), **{way: 40})
    return options


def _actions(rng: np.random.Generator) -> Options:
    policy = _pick(rng, [SharedOptimism(), SharedThompson(), SharedThompson(intercepts=False)])
    options: Options = {"features": ["u", "v"], "action_features": ["genre", "year"], "policy": policy}
    if rng.random() < 0.3:
        options["objective"] = "min"
    if rng.random() < 0.3:
        options["reward_range"] = (-3.0, 3.0)
    return options


def _windows(rng: np.random.Generator, options: Options) -> Options:
    """Draw what only loops have."""
    windows: Options = {"aggregation": _pick(rng, ["first", "last", "sum"])}
    if rng.random() < 0.5:
        default = {"gain": 0.0, "cost": 0.25} if "outcomes" in options else 0.0
        for name in options.get("known", {}):
            default = {each: value for each, value in default.items() if each != name}  # type: ignore[union-attr]
        windows |= {"window": 6000.0, "default_reward": _pick(rng, [default, None])}
    if rng.random() < 0.4:
        windows["early_window"] = 9000.0
    if "epoch" in options and rng.random() < 0.5:
        windows["epoch"] = timedelta(hours=4)
    return windows


# ---- what every life promises


def play(number: int) -> Played:
    """Play one case, and check all that it promises; a broken promise raises AssertionError that names the case.

    Examples
    --------
    >>> play(3).lives
    1
    """
    case = case_of(number)
    kind = KINDS[case.kind]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows far from zero, and the like
        try:
            held, kept = kind(case), kind(case, Path(folder))
            held.live()
            kept.live()
            _check_alike(held, kept)
            judged = _judge(kept if isinstance(kept, LoopLife) else held)
            check = _check_loop if isinstance(kept, LoopLife) else _check_log
            check(held, kept)
        except Exception as error:
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    names = sorted({*case.tags, *(name for name in held.met if name in CHANGES)})
    return Played(1, held.met, judged, Counter(combinations(names, 2)))


def _check_alike(held: Life, kept: Life) -> None:
    """Both lives answered every call alike."""
    for place, (one, other) in enumerate(zip(held.answers, kept.answers, strict=False)):
        require(one == other, f"call {place} in memory answered {one}; with files and restarts {other}")
    require(len(held.answers) == len(kept.answers), "one of two lives of a case has more calls")


def _check_log(held: Any, kept: Any) -> None:
    """The log passes its audit, and a copy from a file goes on as the bandit does."""
    require(held.bandit.digest() == kept.bandit.digest(), "a bandit with files has another state than one in memory")
    if kept.log is not None:
        kept.log.close()
        found = audit(kept.log.path, kept.start)
        require(found.ok, f"the audit of its log says {found}")
        require(found.digest == kept.bandit.digest(), "the log leads to another state")


def _check_loop(held: LoopLife, kept: LoopLife) -> None:
    """Rows lead to what a loop knows: opened again, verified, and audited."""
    for life in (held, kept):
        digest = _digest(life)
        require(digest == _digest(held), "a loop with restarts has another state than one without")
        verified = verify(life.ledger, NAME)
        require(verified.digest == digest, "the rows of a loop lead to another state than it has")
        log = life.loop.log
        found = audit(log.replayable, log.start)
        require(found.ok, f"the audit of its log says {found}")
        again = read_cast(log.start)
        play_all(log.replayable, again)  # its digest has the tables that were prepared since, so states are compared
        require(same(again.live.state, life.loop.model().state), "the log of a loop leads to another state than it has")
    for life in (held, kept):
        life.store.close()


def _digest(life: LoopLife) -> str:
    """Return the digest of all that a loop knows, its shadow, control and tables included."""
    life.loop.model()  # closes the windows that are due
    return str(life.loop._runner.cast.digest())


def _judge(life: Any) -> Counter[str]:
    """Sums, decisions and money are those of a plain numpy replay."""
    if not isinstance(life, LoopLife) and not life.case.has_log:
        return Counter({"no log": life.met["decide"]})
    plain, merged = Plain(life.start), iter(getattr(life, "merged", ()))
    for event in plain_events(life.rows) if isinstance(life, LoopLife) else life.rows.events:
        if event["kind"] == "decide" and event["id"] in life.before:
            plain.judge(life.before[event["id"]], event, life.asked[event["id"]])
        if event["kind"] == "merge":
            plain.merge(next(merged))
        else:
            plain.see(event)
    if isinstance(life, ActionLife | ActionLoopLife):
        plain.judge_actions(life.loop.model() if isinstance(life, LoopLife) else life.bandit, life.table)
    return plain.judged


def check_product(cases: Iterable[int]) -> Played:
    """Play cases by their numbers; the first promise that is broken raises AssertionError that names the case.

    Parameters
    ----------
    cases
        Numbers, such as `range(100)`; the same number is the same case always.

    Examples
    --------
    >>> check_product(range(2)).lives
    2
    """
    played = Played()
    for number in cases:
        played.add(play(number))
    return played
