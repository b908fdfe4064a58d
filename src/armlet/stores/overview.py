"""What there is to see of a loop: a line for a list, and details for a page.

`Details` are made from a tally and a bandit, with the last decisions read by their numbers: O(arms x features), however
many decisions there are. They are the same from memory (`Loop.details`) and next to the process that runs the loop
(`details`), from one moment of a ledger; nothing is locked, learned or closed by looking. `overview` counts rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.settings import ActionSettings
from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, role_of
from armlet.errors import InvalidTypeError, StoreError
from armlet.inference.gains import value_intervals
from armlet.inputs.budget import Spending
from armlet.inputs.ranges import FeatureRanges
from armlet.inputs.settings import Settings
from armlet.model_file import policy_header
from armlet.report import notebook
from armlet.report.result import Columns, Result, table_text
from armlet.stores.folds import ArmCounts, BaselineCounts, OutcomeCounts, Tally
from armlet.stores.folds.arms import OTHERS
from armlet.stores.folds.comparisons import LEAST
from armlet.stores.folds.tally import Change, control_label, policy_words
from armlet.stores.gains import RANDOM, Gain, gain_of
from armlet.stores.health import Alarm, alarms
from armlet.stores.ledger import Head, LoopRecord, Row, View
from armlet.stores.rows.decisions import context_of, pair_of
from armlet.stores.rows.replay import recover
from armlet.stores.spec import RULES
from armlet.stores.terms import Terms
from armlet.types import Arm, Interval, Policy, Reward

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MICROSECONDS: Final = 1e6
DAY: Final = 86_400e6  # microseconds
LOOKED_AT: Final = 2000  # rows that are read at most for the rewards of the last decisions, next to another process

PlayedBy: TypeAlias = Literal["live", "exploration", "control"]
Linear: TypeAlias = tuple[float, tuple[tuple[str, float], ...]]
"""What is expected of an arm at x = 0, and for one more of each feature."""
Counts: TypeAlias = tuple[int, int]
"""How many rewards wait for their decision, and rows that a restart would play again."""


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
class Span:
    """A stretch of decisions, of which there are at most 32: exploring as it was, and as it should have been."""

    start: int  # microseconds since 1970
    decisions: int
    explored: int
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploring:
    """How much a loop explores, and what that costs."""

    explored: int
    expected: float | None  # the sum of the probabilities; None if the policy has none
    rate: float | None  # of the last decision
    spans: tuple[Span, ...]
    price: Interval | None  # explored decisions times the gain over exploration, in reward units; None if not known
    note: str  # why there is no price


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Rewards that never came, and what they could change at worst."""

    open: int  # decisions that wait for their first value
    defaulted: int  # windows that closed without a reward, and none came later
    share: float | None  # of decisions that are not rewarded, of all that were rewarded, defaulted or are open
    mean: float | None  # of the rewards that came
    lowest: float | None  # mean of all, if all others were the lowest reward there can be
    highest: float | None  # or the highest
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDetails:
    """One arm of a loop."""

    arm: Arm
    is_retired: bool
    decisions: int
    explored: int
    share: float  # of all decisions
    shares: tuple[float, ...]  # of each span
    rewards: int
    defaults: int
    coverage: float | None  # the share of its decisions whose reward was reported; None without a decision
    mean: float | None  # of what was learned, on contexts for which it was chosen
    value: Interval | None  # what it is worth if always played; holds at all looks with probability 0.95
    value_rows: int  # on which that rests
    value_note: str  # why there is none
    intercept: float | None
    coefficients: tuple[tuple[str, float], ...]  # by feature; empty if estimates are not linear in them


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDecision:
    """One of the last decisions. Its event and context may be somebody's secret."""

    t: int
    at: int  # microseconds since 1970
    arm: Arm
    propensity: float
    played_by: PlayedBy
    reward: float | None  # known by now
    event: str | None  # None if it was erased, as the context
    context: tuple[float, ...] | None
    parts: Mapping[str, float] | None = None  # instead of one reward: what is known by now, by outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What guards a loop."""

    control: str | None  # in words, such as: always "sale"
    share: float  # of the control
    shadow: str | None  # in words
    is_frozen: bool
    shadows: Mapping[str, str] = field(default_factory=dict)  # those that have names, in words


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Details(Result):
    """A loop as it is: what it was made with, what was counted, what it gains, and what is wrong with it."""

    name: str
    at: int  # microseconds since 1970, as all moments here
    decisions: int
    rewards: int  # decisions for which one was reported
    first_decision: int | None
    last_decision: int | None
    seconds_idle: float | None  # since the last decision
    pace: float | None  # decisions a day, on average so far
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
    gains: tuple[Gain, ...]
    exploring: Exploring
    missing: Missing
    by_arm: tuple[ArmDetails, ...]  # those that are played, then those that are retired
    last: tuple[LastDecision, ...]  # at most 20, the newest first
    changes: tuple[Change, ...]  # at most 30, the newest first
    guards: Guards
    alarms: tuple[Alarm, ...]
    weights: Mapping[str, float] | None = None  # what one of each outcome is worth; None with one reward
    known: tuple[str, ...] = ()  # outcomes that are given for every arm, and not learned
    outcomes: tuple[OutcomeCounts, ...] = ()  # of all arms and of each
    budget: Spending | None = None
    action_dim: int | None = None  # features of an action; None of a loop with arms
    action_features: tuple[str, ...] | None = None
    tables: Mapping[str, str] = field(default_factory=dict)  # prepared ones by name, their hashes
    others: ArmCounts | None = None  # arms of a catalogue that are not counted one by one
    baseline: BaselineCounts | None = None  # how often the policy agreed with its callers; None without a baseline
    deferred: int = 0  # decisions that were not activated
    feature_range: FeatureRanges | None = None  # its counts are of the process that runs the loop
    tally: Tally = field(default_factory=Tally, compare=False)  # of which the rest is made; a part of a page reads it

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__ if name not in ("policy", "tally")} | {
            "policy": policy_header(self.policy),
            "budget": None if self.budget is None else _spending(self.budget),
        }

    def columns(self) -> Columns:
        """Return the arms by columns."""
        names = ("arm", "decisions", "explored", "share", "rewards", "defaults", "mean")
        ends = {end: [getattr(arm.value, end, None) for arm in self.by_arm] for end in ("low", "high")}
        columns = {name: [getattr(arm, name) for arm in self.by_arm] for name in names}
        return {**columns, **ends, "state": ["retired" if arm.is_retired else "plays" for arm in self.by_arm]}

    def plot(self) -> Figure:
        """Draw the shares of arms over the decisions so far; needs `armlet[plots]`."""
        from armlet.report.loops import shares_figure

        return shares_figure(self)

    def __str__(self) -> str:
        return "\n".join([self._answer(), table_text(self.columns()), *map(str, self.gains), *map(str, self.alarms)])

    def _title(self) -> str:
        return f"Loop {self.name!r}"

    def _answer(self) -> str:
        trouble = f"{len(self.alarms):,} alarms" if self.alarms else "no alarm"
        return f"{self.decisions:,} decisions, {self.rewards:,} rewarded, {self.open:,} open; {trouble}."

    def _html(self) -> Iterable[str]:
        facts = {"policy": notebook.brief(self.policy), "objective": self.objective, "reward range": self.reward_range}
        guards = {"control": self.guards.control, "shadow": self.guards.shadow, "frozen": self.guards.is_frozen or None}
        guards |= {f"shadow {name}": policy for name, policy in self.guards.shadows.items()}
        notes = [notebook.note(str(each)) for each in (*self.gains, *self.alarms)]
        return [notebook.facts({**facts, **guards}), notebook.table(self.columns()), *notes]


def _plain(value: object) -> Any:
    """Return a part of `Details` in plain JSON types."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _spending(found: Spending) -> dict[str, Any]:
    """Return a budget and how far its spending has got, in plain JSON types."""
    names = ("price", "spent", "left", "decisions", "decisions_left", "waiting")
    return {**found.budget.to_dict(), **{name: getattr(found, name) for name in names}}


UNSEEN: Final = ArmCounts("", 0, 0, 0, 0, 0, None, None, None)  # of an arm that was never played

# ---- a line


def overview(view: View, record: LoopRecord) -> Overview:
    """Describe a loop in a line; O(its rows), which are counted and not read."""
    head, counts, usage = _head(view, record), view.tally(record.id), view.usage(record.id)
    tally = Tally() if counts is None else Tally.from_json(counts)
    later = list(view.rows(record.id, head.tallied))  # a few hundred at most
    decided = [row.ts for row in later if row.kind == "decide"]
    learned = (row.fields for row in later if row.kind == "learn")
    rewarded = (fields.get("source") != "default" and "waits" not in fields for fields in learned)
    return Overview(
        name=record.name,
        decisions=tally.traffic.decisions + len(decided),
        rewards=tally.arms.rewarded + sum(rewarded),
        rows=usage.rows,
        bytes=usage.bytes,
        last_decision=decided[-1] if decided else tally.traffic.last_at or None,
    )


def _head(view: View, record: LoopRecord) -> Head:
    head = view.head(record.id)
    if head is None:
        raise StoreError(f"the head of loop {record.name!r} is missing; go back to a backup")
    return head


# ---- details


class Glimpse(NamedTuple):
    """A loop at one moment, taken quickly by whoever runs it; `details_of` makes the rest of it, in any thread."""

    name: str
    at: int  # microseconds since 1970
    tally: str  # JSON
    terms: Terms
    settings: Settings
    arms: tuple[Arm, ...]
    retired: tuple[Arm, ...]
    linear: Mapping[Arm, Linear]
    last: Sequence[LastDecision]
    spending: Spending | None
    early: int  # rewards that wait for their decision
    rows_since_snapshot: int


def glimpse(
    name: str, now: int, tally: Tally, terms: Terms, bandit: Bandit, last: Sequence[LastDecision], counts: Counts
) -> Glimpse:
    """Take what is needed of a loop; O(arms x features)."""
    fields: tuple[Any, ...]
    if isinstance(bandit, ActionBandit):  # its arms are those that were played
        played = sorted(tally.counts, key=lambda each: -each.decisions)
        fields = (bandit.settings, tuple(each.arm for each in played), (), {}, last, None)
    else:
        retired = tuple(bandit.arms.retired)
        gone = set(retired)
        arms = tuple(arm for arm in bandit.arms if arm not in gone)
        fields = (bandit.settings, arms, retired, _linear(bandit), last, bandit.budget)
    return Glimpse(name, now, tally.to_json(), terms, *fields, *counts)


def details(view: View, record: LoopRecord, now: int, *, policy: Policy | None = None) -> Details:
    """Describe a loop next to the process that runs it; rows since its snapshot are played again.

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
    cast, tally, snapshot = recover(view, record, head, policy, terms.carry)
    rows = [row for seq in tally.traffic.last_rows if (row := view.row(record.id, seq)) is not None]
    values = _values(islice(view.rows(record.id, rows[0].seq), LOOKED_AT)) if rows else {}
    counts = (head.early, head.seq - snapshot)
    return details_of(glimpse(record.name, now, tally, terms, cast.live, last_decisions(rows, values), counts))


def digest(view: View, record: LoopRecord, *, policy: Policy | None = None) -> str:
    """Return the digest of what a loop has learned; O(the size of its model)."""
    cast, _, _ = recover(view, record, _head(view, record), policy, Terms.read(record).carry)
    return cast.digest()


def _values(rows: Iterator[Row]) -> dict[int, Reward]:
    """Return what rows say of the rewards of decisions, by the row of the decision."""
    found: dict[int, Reward] = {}
    for row in rows:
        if row.kind in ("learn", "reward", "correct"):
            of, value = row.fields["of"], row.fields["new_reward" if row.kind == "correct" else "reward"]
            before = found.get(of)
            found[of] = {**before, **value} if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return found


def details_of(seen: Glimpse) -> Details:
    """Return the details of a loop; O(arms x features)."""
    tally, settings, terms = Tally.from_json(seen.tally), seen.settings, seen.terms
    several = settings.outcomes
    gains = gains_of(tally, terms)
    return Details(
        name=seen.name,
        at=seen.at,
        decisions=tally.traffic.decisions,
        rewards=tally.arms.rewarded,
        first_decision=tally.traffic.first_at or None,
        last_decision=tally.traffic.last_at or None,
        seconds_idle=max(seen.at - tally.traffic.last_at, 0) / MICROSECONDS if tally.traffic.last_at else None,
        pace=_pace(tally),
        terms={name: getattr(terms, name) for name in RULES},
        policy=settings.policy,
        dim=settings.dim,
        features=settings.features,
        has_encoder=settings.encoder is not None,
        objective=settings.objective,
        reward_range=settings.reward_range,
        arms=seen.arms,
        retired=seen.retired,
        counts=tuple(tally.counts),
        statuses=dict(tally.traffic.statuses),
        open=tally.open,
        early=seen.early,
        rows_since_snapshot=seen.rows_since_snapshot,
        gains=gains,
        exploring=_exploring(tally, gains[0]),
        missing=_missing(tally, has_window=terms.window is not None),
        by_arm=tuple(_arms(tally, seen)),
        last=tuple(seen.last),
        changes=tuple(reversed(tally.changes)),
        guards=_guards(tally),
        alarms=tuple(alarms_of(tally, seen.at, settings, seen.terms)),
        weights=None if several is None else dict(several.weights),
        known=() if several is None else tuple(several.known),
        outcomes=tuple(tally.outcomes.counts(tally.arms.labels)),
        budget=seen.spending,
        feature_range=getattr(settings, "feature_range", None),  # where actions come with each decision there is none
        tally=tally,
        **_catalogue(tally, settings),
    )


def alarms_of(tally: Tally, now: int, settings: Settings, terms: Terms) -> list[Alarm]:
    """Return what is wrong with a loop that has these settings and terms."""
    ranges = getattr(settings, "feature_range", None) or ()  # where actions come with each decision there is none
    return alarms(
        tally,
        now,
        objective=settings.objective,
        features=settings.features,
        ranges=ranges,
        lost=terms.lost_digits,
    )


def _catalogue(tally: Tally, settings: Any) -> dict[str, Any]:
    """Return the details that loops with actions alone have."""
    found = tally.catalogue
    if not isinstance(settings, ActionSettings):
        return {}
    fields = {"action_dim": settings.action_dim, "action_features": settings.action_features, "others": tally.others}
    if found is None:
        return fields
    tables = {name: table.hash for name, table in found.prepared.items()}
    return {**fields, "tables": tables, "baseline": found.baseline, "deferred": found.deferred}


def _guards(tally: Tally) -> Guards:
    guards = tally.comparisons.guards
    control, shadow = guards.get("control"), guards.get("shadow")
    shadows = {name: policy_words(each) for name, each in guards.get("shadows", {}).items()}
    return Guards(
        control=None if control is None else control_label(control),
        share=0.0 if control is None else control["share"],
        shadow=None if shadow is None else policy_words(shadow),
        is_frozen="frozen" in guards,
        shadows=shadows,
    )


def gains_of(tally: Tally, terms: Terms) -> tuple[Gain, ...]:
    """Return what the comparisons of a loop say: against random play, and the control and each shadow if it has any."""
    has_window, rate = terms.window is not None, tally.comparisons.rate or 0.0
    guards = _guards(tally)
    coin = RANDOM if tally.comparisons.is_even else "exploration, which favours arms that lack data"
    found = [gain_of(tally, "uniform", coin, rate if rate < 1.0 else 0.0, has_window=has_window)]
    if guards.control is not None:
        found.append(gain_of(tally, "control", guards.control, guards.share, has_window=has_window))
    for name in [*([] if guards.shadow is None else [SHADOW]), *guards.shadows]:
        known = tally.comparisons.between[role_of(name)].share
        share = known or rate / max(len(tally.arms.labels), 1)  # before its first row
        share = share if LEAST <= rate < 1.0 else 0.0
        shadow = None if name == SHADOW else name
        found.append(gain_of(tally, "shadow", "the live policy", share, has_window=has_window, shadow=shadow))
    return tuple(found)


def _pace(tally: Tally) -> float | None:
    took = tally.traffic.last_at - tally.traffic.first_at
    return (tally.traffic.decisions - 1) * DAY / took if took > 0 and tally.traffic.decisions > 1 else None


def _exploring(tally: Tally, coin: Gain) -> Exploring:
    cells, rate = tally.cells.cells, tally.comparisons.rate
    spans = tuple(Span(start=c.start, decisions=c.n, explored=c.explored, expected=c.expected) for c in cells)
    price, note = None, ""
    if coin.interval is not None:
        price = Interval(coin.compared * coin.interval.low, coin.compared * coin.interval.high)
    else:
        note = "No explored decision has been compared yet." if rate else "The policy does not explore at random."
    return Exploring(
        explored=tally.arms.explored,
        expected=None if rate is None else sum(span.expected for span in spans),
        rate=rate,
        spans=spans,
        price=price,
        note=note,
    )


def _missing(tally: Tally, *, has_window: bool) -> Missing:
    scale, (came, total) = tally.comparisons.scale, tally.reported
    defaulted = tally.arms.learned - came
    lacking = defaulted + tally.open
    n = came + lacking
    note = ""
    if not tally.arms.is_complete:
        note = "All rewards so far are alike: a decision without one may be a failure rather than a loss."
    elif not has_window:
        note = "There is no window, so decisions without a reward are not learned."
    return Missing(
        open=tally.open,
        defaulted=defaulted,
        share=lacking / n if n else None,
        mean=total / came if came else None,
        lowest=(total + lacking * scale.low) / n if n and scale is not None else None,
        highest=(total + lacking * scale.high) / n if n and scale is not None else None,
        note=note,
    )


# ---- arms


def _arms(tally: Tally, seen: Glimpse) -> Iterator[ArmDetails]:
    first = 0 if tally.catalogue is None else OTHERS + 1
    counts = {counted.arm: (place, counted) for place, counted in enumerate(tally.counts, first)}
    values = _worth(tally)
    for arm in (*seen.arms, *seen.retired):
        place, counted = counts.get(arm, (-1, UNSEEN))
        value, rows = values[place] if place >= 0 else (None, 0)
        intercept, coefficients = seen.linear.get(arm, (None, ()))
        n = counted.decisions
        yield ArmDetails(
            arm=arm,
            is_retired=arm in seen.retired,
            decisions=n,
            explored=counted.explored,
            share=n / tally.traffic.decisions if tally.traffic.decisions else 0.0,
            shares=tuple(tally.cells.shares(place)),
            rewards=counted.rewards,
            defaults=counted.defaults,
            coverage=min(counted.rewards / n, 1.0) if n else None,  # one that came back has rewards from before
            mean=counted.mean,
            value=value,
            value_rows=rows,
            value_note=""
            if value is not None
            else "No decision that explored independently of the context has played it and got a reward.",
            intercept=intercept,
            coefficients=coefficients,
        )


def _worth(tally: Tally) -> list[tuple[Interval | None, int]]:
    """Return what every arm is worth in reward units, and the rows on which that rests."""
    scale, values = tally.comparisons.scale, tally.comparisons.values
    if scale is None:
        return [(None, 0) for _ in values]
    found = zip(values, value_intervals(values), strict=True)
    return [(scale.interval(ends) if sums.rows else None, sums.rows) for sums, ends in found]


def _linear(bandit: Bandit) -> dict[Arm, Linear]:
    """Return what each arm is expected to earn at x = 0, and for one more of each feature; O(arms x features).

    Features that are scaled by their size together (`normalize`) have no coefficients.
    """
    settings = bandit.settings
    if settings.normalize is not None:
        return {}
    try:
        rows = np.stack([np.zeros(settings.dim), np.ones(settings.dim)])  # not contexts: they may be out of range
        labels, _, theta, units, base = bandit._view(None)
        rows = rows if units is None else units.standard(rows)
    except InvalidTypeError:  # of a policy whose estimates are not linear
        return {}
    intercepts = settings.sign * (base + theta @ rows[0])
    slopes = settings.sign * (theta * (rows[1] - rows[0]))[:, -settings.dim :]
    names = settings.features or tuple(map(str, range(settings.dim)))
    pairs = (tuple(zip(names, each, strict=True)) for each in slopes.tolist())
    return {arm: (at, named) for arm, at, named in zip(labels, intercepts.tolist(), pairs, strict=True)}


# ---- the last decisions


def last_decisions(rows: Sequence[Row], values: Mapping[int, Reward]) -> list[LastDecision]:
    """Return decisions, the newest first, by their rows and what is known of their rewards."""
    return [_last_decision(row, values.get(row.seq)) for row in sorted(rows, reverse=True)]


def _last_decision(row: Row, value: Reward | None) -> LastDecision:
    fields = row.fields
    context = pair_of(row)["x"] if "actions" in fields else context_of(row)
    control = fields.get("control") or {}
    played_by: PlayedBy = "exploration" if fields["explored"] else "live"
    return LastDecision(
        t=row.t or 0,
        at=row.ts,
        arm=fields["arm"],
        propensity=fields["propensity"],
        played_by="control" if control.get("played") else played_by,
        reward=None if isinstance(value, Mapping) else value,
        event=fields.get("event"),
        context=None if context is None else tuple(context),
        parts=value if isinstance(value, Mapping) else None,
    )
