"""What there is to see of a loop next to the process that runs it: counts, terms, arms, alarms.

All of it is read from one moment of a ledger; nothing is locked, learned or closed by looking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from armlet.bandit import Bandit
from armlet.errors import StoreError
from armlet.model_file import policy_header
from armlet.stores.health import Alarm, alarms
from armlet.stores.ledger import Head, LoopRecord, View
from armlet.stores.rows import recover
from armlet.stores.spec import RULES
from armlet.stores.tally import ArmCounts, Tally
from armlet.stores.terms import Terms
from armlet.types import Arm, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A loop in a line."""

    name: str
    decisions: int
    rewards: int  # decisions for which one was reported
    rows: int  # that are kept
    bytes: int  # of rows
    last_decision: int | None  # microseconds since 1970

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """A loop as it is: what it was made with, what was counted, and what is wrong with it."""

    overview: Overview
    terms: Mapping[str, Any]
    policy: Policy
    dim: int
    features: tuple[str, ...] | None
    has_encoder: bool
    objective: str
    reward_range: tuple[float, float] | None
    arms: tuple[Arm, ...]
    retired: tuple[Arm, ...]
    counts: tuple[ArmCounts, ...]  # of arms that were played
    statuses: Mapping[str, int]  # of calls that reported rewards; those without a row are written a few at a time
    open: int  # decisions that wait for their first value
    early: int  # rewards that wait for their decision
    rows_since_snapshot: int
    digest: str
    alarms: tuple[Alarm, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in ("overview", "alarms")}
        told = {
            "policy": policy_header(self.policy),
            "reward_range": None if self.reward_range is None else list(self.reward_range),
            "features": None if self.features is None else list(self.features),
            "arms": list(self.arms),
            "retired": list(self.retired),
            "counts": [asdict(each) for each in self.counts],
            "alarms": [alarm.to_dict() for alarm in self.alarms],
        }
        return {**self.overview.to_dict(), **plain, **told}


def overview(view: View, record: LoopRecord) -> Overview:
    """Describe a loop in a line; O(its rows), which are counted and not read."""
    head, counts, usage = _head(view, record), view.tally(record.id), view.usage(record.id)
    tally = Tally() if counts is None else Tally.from_json(counts)
    later = list(view.rows(record.id, head.tallied))  # a few hundred at most
    decided = [row.ts for row in later if row.kind == "decide"]
    rewarded = (row.kind == "learn" and row.fields.get("source") != "default" for row in later)
    return Overview(
        name=record.name,
        decisions=tally.decisions + len(decided),
        rewards=sum(arm.rewards for arm in tally.arms) + sum(rewarded),
        rows=usage.rows,
        bytes=usage.bytes,
        last_decision=decided[-1] if decided else tally.last_at or None,
    )


def details(view: View, record: LoopRecord, now: int, *, policy: Policy | None = None) -> Details:
    """Describe a loop; rows since its snapshot are played again.

    Parameters
    ----------
    view
        Of its ledger.
    record
        The loop.
    now
        Microseconds since 1970, for alarms.
    policy
        The policy, if it is not one of Armlet's own.
    """
    head, terms = _head(view, record), Terms.read(record)
    bandit, tally, snapshot = recover(view, record, head, policy, terms.carry)
    settings = bandit.settings
    return Details(
        overview=overview(view, record),
        terms={name: getattr(terms, name) for name in RULES},
        policy=bandit.policy,
        dim=settings.dim,
        features=settings.features,
        has_encoder=settings.encoder is not None,
        objective=settings.objective,
        reward_range=settings.reward_range,
        arms=_played(bandit),
        retired=tuple(bandit.arms.retired),
        counts=tuple(tally.arms),
        statuses=dict(tally.statuses),
        open=tally.open,
        early=head.early,
        rows_since_snapshot=head.seq - snapshot,
        digest=bandit.digest(),
        alarms=tuple(alarms(tally, now, objective=settings.objective)),
    )


def _played(bandit: Bandit) -> tuple[Arm, ...]:
    retired = set(bandit.arms.retired)
    return tuple(arm for arm in bandit.arms if arm not in retired)


def _head(view: View, record: LoopRecord) -> Head:
    head = view.head(record.id)
    if head is None:
        raise StoreError(f"the head of loop {record.name!r} is missing; go back to a backup")
    return head
