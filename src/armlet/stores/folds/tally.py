"""The tally of a loop: folds over its rows, of which `stats`, `health` and `details` are made.

A tally sees each row once: when it is written, in the transaction that writes it, or when it is played again. It is
written down as JSON once in 1,000 rows or so, and rows since then are seen again after a restart. A row costs O(1), but
for folding 64 draws or 200 decisions at a time; memory is O(arms), of a catalogue O(1): `folds/arms.py`. It holds
no context and no event. Times are microseconds since 1970 by the wall clock.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from armlet.cast.cast import role_of, shadows_of
from armlet.errors import StoreError
from armlet.kernel import json_bytes
from armlet.record.kinds import CHANGING, KINDS
from armlet.stores.folds.arms import MOST, OTHERS, ArmCounts, ArmSums, Catalogue, Cells
from armlet.stores.folds.cohorts import Cohorts
from armlet.stores.folds.comparisons import Comparisons
from armlet.stores.folds.decisions import Bets, ContextSums, Stamps, Switches
from armlet.stores.folds.fold import ERASE, FOLDS, Fold, Seen, finite, whole
from armlet.stores.folds.rewards import OutcomeSums, Traffic
from armlet.stores.ledger import Row
from armlet.types import Arm

FORMAT: Final = 2
EARLIER: Final = 1  # format without comparisons, cells and changes
VALUED: Final = frozenset(("learn", "correct", "forget", ERASE))  # kinds of rows that change what is learned

CHANGES: Final = 30  # that are remembered
LONGEST: Final = 300  # characters of a change
GUARDS: Final = ("control", "shadow")  # rules that guards tell of, too

F = TypeVar("F", bound=Fold)


class Tally:
    """Folds over the rows of one loop.

    Examples
    --------
    >>> about = {"arm": "a", "propensity": 1.0, "explored": False, "exploration_rate": None}
    >>> decided = Row(seq=1, ts=1_700_000_000_000_000, kind="decide", t=1, fields=about, x=bytes(16))
    >>> fields = {"of": 1, "reward": 1.0, "status": "accepted"}
    >>> learned = Row(seq=2, ts=1_700_000_003_000_000, kind="learn", t=1, fields=fields)
    >>> tally = Tally()
    >>> tally.see(decided, None)
    >>> tally.see(learned, decided)
    >>> tally.traffic.decisions, tally.open, tally.traffic.statuses
    (1, 0, {'accepted': 1})
    >>> Tally.from_json(tally.to_json()).to_json() == tally.to_json()
    True
    """

    __slots__ = (
        *(
            "_folds",
            "_seen",
            "_watching",
            "arms",
            "bets",
            "catalogue",
            "cells",
            "changes",
            "cohorts",
            "comparisons",
            "contexts",
        ),
        *("outcomes", "stamps", "traffic", "units"),
    )

    def __init__(self) -> None:
        self._begin(Traffic(), ArmSums(), {key: fold() for key, fold in FOLDS.items()}, None)
        self.changes: list[Change] = []  # the last ones

    def _begin(self, traffic: Traffic, arms: ArmSums, folds: dict[str, Fold], catalogue: Catalogue | None) -> None:
        self.traffic, self.arms, self._folds = traffic, arms, folds
        self.catalogue = catalogue  # where actions come with each decision
        self.cells, self.contexts, self.outcomes = self[Cells], self[ContextSums], self[OutcomeSums]
        self.bets, self.cohorts, self.comparisons = self[Bets], self[Cohorts], self[Comparisons]
        self.units, self.stamps = self[Switches], self[Stamps]
        self._seen = Seen()
        self._watching: dict[str, list[Callable[[Seen], None]]] = {}  # by kind of row
        for fold in self._all:
            for kind in fold.kinds:
                self._watching.setdefault(kind, []).append(getattr(fold, f"on_{kind}"))

    def __getitem__(self, kind: type[F]) -> F:
        fold = self._folds[kind.key]
        if not isinstance(fold, kind):
            raise TypeError(f"{kind.key} is a {type(fold).__name__}")
        return fold

    @property
    def _all(self) -> list[Fold]:
        some = [] if self.catalogue is None else [self.catalogue]
        return [self.traffic, self.arms, *self._folds.values(), *some]

    # ---- rows

    def see(self, row: Row, about: Row | None) -> None:
        """Count a row; `about` is the row of the decision that it is about, None if it is about none."""
        if about is None:
            self._see_own(row)
            return
        _, _, kind, _, fields, _ = row
        seen, traffic = self._seen, self.traffic
        if "played" in fields:
            arm, seen.explored = fields["played"], False
        else:
            arm, seen.explored = about.fields["arm"], about.fields["explored"]
        place = self.arms.places.get(arm)
        seen.row, seen.fields, seen.about, seen.arm = row, fields, about, arm
        seen.place, seen.decisions = self._place(arm) if place is None else place, traffic.decisions
        seen.is_reported = fields.get("source") != "default"
        if kind == "learn" and self.outcomes.several is None:
            seen.before, seen.after = None, fields["reward"]
        elif kind in VALUED:
            seen.before, seen.after = self.outcomes.values(kind, fields, arm)
        else:
            seen.before = seen.after = None
        for see in self._watching.get(kind, ()):
            see(seen)

    def _see_own(self, row: Row) -> None:
        """Count a decision, or a row about none."""
        _, ts, kind, _, fields, _ = row
        seen = self._seen
        seen.row, seen.fields = row, fields
        if kind == "decide":
            arm = fields["arm"]
            catalogue = self._begin_catalogue() if "actions" in fields else None
            place = self.arms.places.get(arm)
            if place is None:
                place = self._place(arm) if catalogue is None else self._admit(catalogue, arm)
            seen.about, seen.arm, seen.place, seen.explored = row, arm, place, fields["explored"]
            seen.decisions, seen.n_arms = self.traffic.decisions + 1, len(self.arms.labels)
        elif "of" in fields:  # of a decision that was pruned
            return
        elif kind in CHANGING:
            text = words_of(kind, fields, self.comparisons.guards)
            self.changes = [*self.changes, Change(row.seq, ts, text)][-CHANGES:]
        else:
            self._begin_catalogue()
        for see in self._watching.get(kind, ()):
            see(seen)
        if kind == "decide" and ts >= self.cohorts.ripe:
            self.cohorts.judge(ts, self.traffic.wait(ts), self.arms.is_complete)

    def _place(self, arm: Arm) -> int:
        """Return the place of an arm, a new one if it was not seen before."""
        place = self.arms.places.get(arm)
        if place is None:
            place = OTHERS if self.catalogue is not None else self._append(arm)
        return place

    def _append(self, arm: Arm, *, is_named: bool = True) -> int:
        """Make room for one more arm, and return its place."""
        place = self.arms.append(arm, is_named=is_named)
        for fold in self._all:
            fold.add_arm()
        return place

    def _begin_catalogue(self) -> Catalogue:
        if self.catalogue is None:
            self._begin(self.traffic, self.arms, self._folds, Catalogue())
            self.cohorts.pooled = self._append("", is_named=False)
        assert self.catalogue is not None
        return self.catalogue

    def _admit(self, catalogue: Catalogue, arm: Arm) -> int:
        """Count an arm by itself, if need be instead of the one that counts least."""
        if len(self.arms.labels) <= MOST:
            return self._append(arm)
        place = catalogue.least(self.arms.decided)
        catalogue.bonus[place] += int(self.arms.decided[place])
        for fold in self._all:
            fold.move(place, OTHERS)
        self.arms.rename(place, arm)
        return place

    # ---- what they say

    @property
    def reported(self) -> tuple[int, float]:
        """How many values are learned that were reported, in time or late, and their sum."""
        defaults = self.arms.defaulted
        late = min(self.traffic.statuses.get("late", 0), defaults)  # which count instead of as many defaults
        missing = defaults - late
        share = missing / defaults if defaults else 0.0
        return max(self.arms.learned - missing, 0), self.arms.total - share * self.arms.defaulted_total

    @property
    def open(self) -> int:
        """How many decisions wait for their first value."""
        return self.traffic.unlearned - (0 if self.catalogue is None else self.catalogue.deferred)

    @property
    def counts(self) -> list[ArmCounts]:
        """What was counted of every arm, in the order in which they were first seen; of a catalogue, of some."""
        first = 0 if self.catalogue is None else OTHERS + 1
        return [self.arms.counts(place) for place in range(first, len(self.arms.labels))]

    @property
    def others(self) -> ArmCounts | None:
        """What was counted of all other arms of a catalogue together; None if there are none."""
        return None if self.catalogue is None or not self.arms.decided[OTHERS] else self.arms.counts(OTHERS)

    # ---- JSON

    def to_json(self) -> str:
        """Return everything as text."""
        states = ((key, fold.required, fold.state()) for key, fold in self._folds.items())
        return json_bytes(
            {
                "format": FORMAT,
                **self.traffic.state(),
                **self.arms.state(),
                **{key: state for key, required, state in states if required or state},
                "last": [self.arms.defaulted_total, *self.traffic.last_rows],
                "changes": [[change.seq, change.at, change.text] for change in self.changes],
                **({"catalogue": self.catalogue.state()} if self.catalogue is not None else {}),
            }
        ).decode()

    @staticmethod
    def from_json(text: str) -> Tally:
        """Return the tally that `to_json` wrote; a StoreError says that the text is damaged."""
        try:
            state = json.loads(text)
            if state["format"] not in (EARLIER, FORMAT):
                raise ValueError(f"its format is {state['format']!r}, and this version reads {EARLIER} and {FORMAT}")
            return Tally._restore(state)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise StoreError(f"the tally of the loop is damaged: {error}; go back to a backup") from error

    @staticmethod
    def _restore(state: dict[str, Any]) -> Tally:
        tally, has_catalogue = Tally(), "catalogue" in state
        traffic, arms = Traffic.restore(state), ArmSums.read(state, first=OTHERS + 1 if has_catalogue else 0)
        folds, catalogue = tally._folds, Catalogue.restore(state["catalogue"]) if has_catalogue else None
        if sum(arms.decided) != traffic.decisions or min(arms.decided, default=0) < 0:
            raise ValueError("its counts do not add up")
        for key, kind in FOLDS.items():
            if key in state or (kind.required and state["format"] == FORMAT):
                folds[key] = kind.restore(state[key])
            else:
                folds[key] = kind()
                for _ in arms.labels:
                    folds[key].add_arm()
        tally._begin(traffic, arms, folds, catalogue)
        for fold in tally._all:
            fold.check(len(arms.labels))
        tally.cohorts.pooled = OTHERS if has_catalogue else -1
        if state["format"] == FORMAT:
            total, *rows = state["last"]
            arms.defaulted_total = finite(total)
            traffic.last_rows.extend(whole(seq) for seq in rows)
            tally.changes = [Change(whole(seq), whole(at), str(text)) for seq, at, text in state["changes"]]
        return tally


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed in a loop, in words."""

    seq: int  # its row
    at: int  # microseconds since 1970
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {"seq": self.seq, "at": self.at, "text": self.text}


def words_of(kind: str, fields: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Say what a row has changed; `before` are the guards until then.

    Examples
    --------
    >>> words_of("add_arm", {"arm": "sale"}, {})
    "arm 'sale' added"
    >>> words_of("change", {"rules": {"window": 60.0}, "replaces": [{"reward_range": [0.0, 5.0]}]}, {})
    'window: 60.0; reward_range: [0.0, 5.0]'
    >>> words_of("change", {"rules": {}, "replaces": [{"guards": {"frozen": True}}]}, {})
    'frozen'
    """
    text = "; ".join(_parts(fields, before))
    text = text or KINDS[kind].words.format_map({name: repr(value) for name, value in fields.items()})
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _parts(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    rules: Mapping[str, Any] = fields.get("rules", {})
    yield from (f"{name}: {_plain(value)}" for name, value in rules.items() if name not in GUARDS)
    for replaced in fields.get("replaces", ()):
        for name, value in replaced.items():
            if name == "policy":
                yield f"policy: {policy_words(value)}"
            elif name == "guards":
                yield from _guard_parts(value, before)
            elif name == "encoder":
                yield "another encoder"
            elif name != "fill":
                yield f"{name}: {_plain(value)}"


def _guard_parts(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    if now.get("control") != before.get("control"):
        control = now.get("control")
        yield f"control: {'none' if control is None else control_words(control)}"
    ours, theirs = shadows_of(now), shadows_of(before)
    for name in {**theirs, **ours}:
        if ours.get(name) != theirs.get(name):
            yield f"{role_of(name)}: {policy_words(ours[name]) if name in ours else 'none'}"
    if ("frozen" in now) != ("frozen" in before):
        yield "frozen" if "frozen" in now else "thawed"


def control_words(control: Mapping[str, Any]) -> str:
    """Say what a control plays, and its share.

    Examples
    --------
    >>> control_words({"arm": "sale", "share": 0.1})
    'always "sale", in 10 % of decisions'
    """
    return f"{control_label(control)}, in {100 * control['share']:.3g} % of decisions"


def control_label(control: Mapping[str, Any]) -> str:
    """Say what a control plays."""
    return f'always "{control["arm"]}"' if "arm" in control else policy_words(control["policy"])


def policy_words(header: Mapping[str, Any]) -> str:
    """Return a policy by its name and settings.

    Examples
    --------
    >>> policy_words({"name": "FixedEpsilon", "settings": {"epsilon": 0.1, "ridge": None}})
    'FixedEpsilon(epsilon=0.1)'
    """
    values: Mapping[str, Any] = header.get("settings", {})
    settings = ", ".join(f"{name}={_plain(value)}" for name, value in values.items() if value is not None)
    return f"{header['name']}({settings})"


def _plain(value: object) -> str:
    return "none" if value is None else reprlib.repr(value)
