"""The terms of a loop: what it was made with besides its bandit, as the ledger keeps it, and how old contexts are read.

They are plain JSON in the loop's record. When features change, the rows from before keep the contexts that they had:
the terms remember every change, so that a row is carried to the features of any later moment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self, cast, get_args

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import InvalidTypeError, InvalidValueError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.outcomes import Outcomes
from armlet.inputs.settings import HUGE, number, one_of, positive, settle
from armlet.stores.ledger import REWARD, LoopRecord, Row
from armlet.stores.rewards import Aggregation, PartRules, RewardRules, Value
from armlet.types import Float64

USUAL: Final = (-1.0, 1.0)  # rewards, if nobody says: one wild value ruins the sums of an arm
LONGEST_WINDOW: Final = 1e9  # seconds
SECOND: Final = 1_000_000  # microseconds
GOING: Final = '{"is_deleted": true}'  # instead of terms: somebody is deleting the loop, or was


class Carry:
    """Carries contexts of rows from before features changed."""

    def __init__(self, changes: Mapping[int, FeatureChange]) -> None:
        self._changes = dict(changes)  # by the row that says so

    def row(self, row: Row, upto: int | None = None) -> Row:
        """Return a decision's row with the features that there are now, or were after the row `upto`."""
        if not self._changes or row.x is None:
            return row
        x = np.frombuffer(row.x, dtype="<f8")
        for seq, change in self._changes.items():
            if row.seq < seq and (upto is None or seq <= upto):
                x = change.carry(x)
        return row._replace(x=x.astype("<f8").tobytes())

    def matches(self, row: Row, x: Float64) -> bool:
        """Whether a context is that of a decision, in all features that there were then and are now."""
        if row.x is None:
            return False
        known = np.frombuffer(row.x, dtype="<f8")
        for seq, change in self._changes.items():
            if row.seq < seq:
                known = replace(change, fills=(math.nan,) * change.dim).carry(known)
        return known.shape == x.shape and bool(np.all(np.isnan(known) | (known == x)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Rules of rewards, and changes of features by the row that says so: names before and after, and what is filled."""

    window: float | None = None  # seconds
    default_reward: Value | None = None
    aggregation: Aggregation = "first"
    early_window: float | None = None  # seconds
    has_windows: bool = False  # some decision may have one
    last_default: Value | None = None  # of windows that were opened before there were none
    changes: tuple[tuple[int, list[str] | None, list[str], dict[str, float]], ...] = field(default=())
    guards: Mapping[str, Any] = field(default_factory=dict)  # as the models have them, for those who read no model
    frozen_at: int = 0  # the row that froze the loop; 0 if it is not frozen
    weighed_at: int = 0  # the last row that changed the usual weights of outcomes; 0 if there is none
    lost_digits: str = ""  # what a row that was forgotten cost the sums, until rows are learned again

    def __post_init__(self) -> None:
        settle(self, aggregation=one_of(*get_args(Aggregation)))
        if (self.window is None) != (self.default_reward is None):
            raise InvalidValueError(
                f"window is {self.window!r} and default_reward is {self.default_reward!r}; "
                "give both or neither: a row is learned when its window closes, with the default if no reward came"
            )
        fix = f"give seconds, more than 0 and at most {LONGEST_WINDOW:g}"
        if self.window is not None:
            settle(self, window=positive(LONGEST_WINDOW, fix=fix), default_reward=check_default)
        if self.early_window is not None:
            settle(self, early_window=positive(LONGEST_WINDOW, fix=fix))

    @classmethod
    def read(cls, record: LoopRecord) -> Self:
        """Read what a ledger has; an editor of a table can mend a checksum too."""
        if record.about == GOING:
            raise StoreError(
                f"loop {record.name!r} is being deleted; wait, or finish it with store.delete({record.name!r})"
            )
        try:
            about = json.loads(record.about)
            about.pop("arms", None)  # of earlier versions
            return cls(**about)._later()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(f"loop {record.name!r} is damaged: {error}; go back to a backup") from error

    def _later(self) -> Self:
        """Remember windows, which stay open when there are to be no more of them."""
        if self.window is None:
            return self
        return replace(self, has_windows=True, last_default=self.default_reward)

    def with_rules(self, **rules: Any) -> Self:
        """Return the terms with other rules."""
        return replace(self._later(), **rules)._later()

    def with_change(self, seq: int, change: FeatureChange) -> Self:
        """Return the terms after features have changed in a row."""
        entry = (seq, list(change.before), list(change.after), change.added)
        return replace(self, changes=(*self.changes, entry))

    def with_guards(self, seq: int, guards: Mapping[str, Any]) -> Self:
        """Return the terms with other guards, since a row."""
        is_frozen = "frozen" in guards
        return replace(self, guards=dict(guards), frozen_at=(self.frozen_at or seq) if is_frozen else 0)

    def with_weights(self, seq: int) -> Self:
        """Return the terms after the usual weights of outcomes have changed in a row."""
        return replace(self, weighed_at=seq)

    def to_json(self) -> str:
        """Return what a ledger keeps."""
        unused = {name for name in ("weighed_at", "lost_digits") if not getattr(self, name)}
        unused |= set() if self.guards else {"guards", "frozen_at"}
        return json.dumps({name: value for name, value in asdict(self).items() if name not in unused})

    @property
    def carry(self) -> Carry:
        """What carries contexts from before features changed."""
        changes = {seq: FeatureChange.between(before, after, fill) for seq, before, after, fill in self.changes}
        return Carry(changes)

    def rules(self, bandit: Bandit) -> RewardRules:
        """Return when a loop with this bandit learns a reward, and which."""
        default = self.last_default if self.window is None else self.default_reward
        several, budget = bandit._settings.outcomes, bandit._settings.budget
        if several is None:
            usual = bandit._settings.reward_range or USUAL
            is_binary = bandit.policy.rewards == "binary"
            parts = {REWARD: PartRules(default=_one_default(default), reward_range=usual, binary=is_binary)}
            _check_default(parts[REWARD], "default_reward")
        else:
            defaults, parts = _defaults(default, several), {}
            for name in several.learned:
                parts[name] = PartRules(
                    default=defaults.get(name),
                    reward_range=several.ranges.get(name, USUAL),
                    is_spent=budget is not None and budget.outcome == name,
                )
                _check_default(parts[name], f"default_reward[{name!r}]")
        return RewardRules(
            parts=parts,
            is_number=several is None,
            window=None if self.window is None else round(self.window * SECOND),
            early=None if self.early_window is None else round(self.early_window * SECOND),
            aggregation=self.aggregation,
        )


def check_default(name: str, value: object) -> Value:
    """Return a reward by default, or one for each outcome that has one."""
    if not isinstance(value, Mapping):
        return cast(float, number(-HUGE)(name, value))
    return {part: cast(float, number(-HUGE)(f"{name}[{part!r}]", each)) + 0.0 for part, each in value.items()}


def _one_default(default: Value | None) -> float | None:
    if isinstance(default, Mapping):
        raise InvalidTypeError(f"default_reward is {default!r}, but the loop has one reward; give a number")
    return default


def _defaults(default: Value | None, several: Outcomes) -> Mapping[str, float]:
    if default is None:
        return {}
    if not isinstance(default, Mapping):
        raise InvalidTypeError(
            f"default_reward is {default!r}, but the loop has outcomes; give those of which none may be reported, by "
            f"name, such as {{{several.learned[0]!r}: {default!r}}}"
        )
    for name in default:
        if name not in several.learned:
            raise InvalidValueError(
                f"default_reward has {name!r}, which is not learned; the outcomes that are: {list(several.learned)}"
            )
    return default


def _check_default(rules: PartRules, name: str) -> None:
    if rules.default is not None and not rules.takes(rules.default):
        raise InvalidValueError(
            f"{name} is {rules.default!r}, but rewards are from {rules.reward_range[0]} to "
            f"{rules.reward_range[1]}{', 0 or 1 only' if rules.binary else ''}; give one of these"
        )
