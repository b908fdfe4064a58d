"""Health: what is wrong with a loop, in words, by the sums of its tally; O(arms).

A rule names a fault, not an effect of learning: rewards that rise while a loop learns, arms that come and go, nights
and weekends, rewards that are late or never come are all in order. `RULES` says what each rule looks at, and what it
cannot see. By `python benchmarks/health.py --loops 1000 --decisions 100000 --seed 80000`, and 80001, where no threshold
was chosen, 5 and 4 of 1,000 healthy loops raised an alarm in 100,000 decisions, and 982 of 984 and 976 of 986 faults
were named within 2,000 decisions of their start. Those that were not are changes of rewards (10 of 400) and halved
exploration rates (2 of 200). `benchmarks/contexts.py` does the same for the rule `contexts`.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from armlet.inputs.codes import MISSING
from armlet.stores.folds import FAULTS, GAPS, Tally
from armlet.stores.folds.cohorts import EVIDENCE, Evidence
from armlet.types import Arm

Rule: TypeAlias = Literal[
    "silence",
    "unknown",
    "out_of_range",
    "conflict",
    "missing_rewards",
    "defaults",
    "propensities",
    "change",
    "contexts",
    "clock",
    "digits",
]

RULES: Final[Mapping[Rule, str]] = {
    "silence": (
        "No reward for longer than usual: by how many come at which age, at least 15 should have come since the last "
        "one, and at least three times as many as in the longest silence so far, of 10 or more. Time without decisions "
        "does not count. Before the first rewards nothing is usual, so a loop that never had any raises no alarm."
    ),
    "unknown": (
        "Rewards of unknown events are more than 1 % of all: CUSUM of the likelihoods of 3 % and 1 %, above 7."
    ),
    "out_of_range": (
        "Rewards that are out of range are more than 1 % of all: CUSUM of the likelihoods of 3 % and 1 %, above 7."
    ),
    "conflict": (
        "Rewards in conflict with earlier ones are more than 1 % of all: CUSUM of the likelihoods of 3 % and 1 %, "
        "above 7."
    ),
    "missing_rewards": (
        "An arm lacks rewards more than others: CUSUM of the likelihoods of 0.5 and 0.75 times the share of other "
        "arms in the same cohorts of decisions, above 10. Only where rewards of several values are reported for half "
        "of all decisions or more; where successes alone are reported, an arm that lacks them is one that fails."
    ),
    "defaults": (
        "More windows close without a reward than usual: CUSUM of the likelihoods of 1.7 and 1.2 times the usual "
        "share, above 7. Only where rewards of several values are reported for half of all decisions or more."
    ),
    "propensities": (
        "Arms are not drawn as often as the propensities say, or steps do not explore as often: bets against them, "
        "which win with probability 1/500 at most, however long a loop lives, if they are right. Decisions without any "
        "chance cannot be tested."
    ),
    "change": (
        "Rewards dropped below what the same arms usually earn (rose above, where costs are learned): CUSUM over "
        "cohorts of decisions, of standard deviations beyond 0.07 a reward, above 90. What is usual is learned again "
        "when 15 % of plays go to other arms, or an arm is gone. A rise is what learning looks like, so it is no alarm."
    ),
    "contexts": (
        "A feature was more than 1,000 times its usual size (the 90 % quantile of sizes that are not zero, from 8 on; "
        "more where sizes differ widely), within the last 10,000 decisions; or it has not changed in 1,000 decisions "
        "and 20 times the longest time before, having changed 20 times; or a column was missing in all of 1,000. "
        "Features with a feature_range are not looked at for size. A wrong value of about the usual size is not seen."
    ),
    "clock": (
        "Where rewards are discounted by time: the wall clock jumped by more than an hour at least twice, the last "
        "time within 1,000 decisions. Rewards are discounted by the loop's steady clock. A clock that is always wrong "
        "cannot be seen, and does no harm."
    ),
    "digits": (
        "A row that was forgotten or corrected has cost the sums digits, and the loop's rows have not been learned "
        "again since: that is under way, the process ended in between, the loop is frozen, or the rows are not all "
        "kept. Opening the loop, or thawing it, learns them again."
    ),
}
"""What every rule looks at, and what it cannot see."""

SILENCE: Final = 15.0  # rewards that should have come
LONGER: Final = 3.0  # times the longest silence so far
SHARE: Final = 7.0  # evidence that a status is too frequent
RECENT: Final = 10_000  # decisions for which a wild value is told
STILL: Final = 1000  # decisions without a change
TIMES: Final = 20  # the longest time without one before
CHANGES: Final = 20  # before
_FORGET: Final = "loop.forget(next(e['event'] for e in loop.log if e['kind'] == 'decide' and e['t'] == {t})), then"
STAMPS: Final = 1000  # decisions for which a wrong clock is reported
DAY: Final = 1440  # minutes
ALPHA: Final = 0.002  # right propensities are accused at most that often, by draws or by coins

WORDS: Final = {
    "unknown": "were for events that this loop has not decided",
    "out_of_range": "were out of range",
    "conflict": "contradicted an earlier reward of the same event",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One thing that is wrong with a loop.

    Examples
    --------
    >>> print(Alarm(rule="silence", text="No reward has come."))
    silence: No reward has come.
    """

    rule: Rule
    text: str
    since: int | None = None  # microseconds since 1970: when it began, as far as known
    arm: Arm | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {"rule": self.rule, "text": self.text, "since": self.since, "arm": self.arm}


def alarms(
    tally: Tally,
    now: int,
    *,
    objective: Literal["max", "min"] = "max",
    features: Sequence[str] | None = None,
    ranges: Collection[str] = (),
    lost: str = "",
) -> list[Alarm]:
    """Return what is wrong with a loop.

    Parameters
    ----------
    tally
        The sums of the loop.
    now
        Microseconds since 1970.
    objective
        Whether its rewards are to be high or low.
    features
        The names of its features, if they have any.
    ranges
        Those of them that have a range.
    lost
        Digits that a row cost the sums which was forgotten.

    Examples
    --------
    >>> alarms(Tally(), 0)
    []
    """
    return [
        *_silence(tally, now),
        *_statuses(tally),
        *_missing(tally),
        *_defaults(tally),
        *_draws(tally),
        *_coins(tally),
        *_change(tally, objective),
        *_contexts(tally, features, ranges),
        *_stamps(tally),
        *_digits(lost),
    ]


def _silence(tally: Tally, now: int) -> list[Alarm]:
    if tally.traffic.gaps < GAPS:
        return []
    expected = tally.traffic.expected_answers(now)
    if expected < max(SILENCE, LONGER * tally.traffic.most_expected):
        return []
    text = (
        f"No reward has come since {_clock(tally.traffic.last_answer_at)}, where {expected:,.0f} should have by now; "
        f"in the longest silence so far it was {tally.traffic.most_expected:,.0f}. See whether rewards still reach the "
        "store."
    )
    return [Alarm(rule="silence", text=text, since=tally.traffic.last_answer_at)]


def _statuses(tally: Tally) -> list[Alarm]:
    found = []
    for status in FAULTS:
        share = tally.traffic.faults[status]
        if share.evidence(tally.traffic.answers) >= SHARE:
            answers = tally.traffic.answers - share.before
            text = (
                f"Of {answers:,} rewards since {_clock(share.since)}, {share.n:,} ({share.n / answers:.1%}) "
                f"{WORDS[status]}; up to 1 % is in order."
            )
            found.append(Alarm(rule=status, text=text, since=share.since))
    return found


def _missing(tally: Tally) -> list[Alarm]:
    found = []
    pooled = tally.cohorts.pooled
    for place, (label, one) in enumerate(zip(tally.arms.labels, tally.cohorts.lack, strict=True)):
        if one.amount >= EVIDENCE["lack"]:
            arm, name = (None, "Rarely played arms lack") if place == pooled else (label, f"Arm {label!r} lacks")
            text = (
                f"{name} rewards: {one.got / one.rows:.0%} of {one.rows:,.0f} decisions since "
                f"{_clock(one.since)} have one, and {one.usual / one.rows:.0%} of those of other arms."
            )
            found.append(Alarm(rule="missing_rewards", text=text, since=one.since, arm=arm))
    return found


def _defaults(tally: Tally) -> list[Alarm]:
    one = tally.cohorts.fewer
    if one.amount < EVIDENCE["defaults"]:
        return []
    text = (
        f"Rewards get lost: {one.got / one.rows:.1%} of {one.rows:,.0f} windows since {_clock(one.since)} closed with "
        f"the default, where {one.usual / one.rows:.1%} is usual."
    )
    return [Alarm(rule="defaults", text=text, since=one.since)]


def _draws(tally: Tally) -> list[Alarm]:
    if not tally.arms.labels:
        return []
    p, place = tally.bets.worst_draw(len(tally.arms.labels) if tally.catalogue is None else 1)
    if p >= ALPHA / 2:
        return []
    arm = tally.arms.labels[place] if tally.catalogue is None else None
    name = f"Arm {arm!r}" if arm is not None else f"The action that is number {place + 1} by probability"
    text = (
        f"{name} is played more often than its propensities say. If they were right, this would happen "
        f"{_rarely(p)}: do not evaluate policies by them."
    )
    return [Alarm(rule="propensities", text=text, arm=arm)]


def _coins(tally: Tally) -> list[Alarm]:
    p, word = tally.bets.worst_coin()
    if p >= ALPHA / 2:
        return []
    text = (
        f"Decisions explore {word} often than their exploration rates say. If these were right, this would happen "
        f"{_rarely(p)}: do not evaluate policies by them."
    )
    return [Alarm(rule="propensities", text=text)]


def _change(tally: Tally, objective: Literal["max", "min"]) -> list[Alarm]:
    one: Evidence = tally.cohorts.drop if objective == "max" else tally.cohorts.rise
    if one.amount < EVIDENCE["change"]:
        return []
    text = (
        f"Rewards have changed: {one.rows:,.0f} decisions since {_clock(one.since)} earned {one.got / one.rows:.4g} on "
        f"average, where the same arms usually earn {one.usual / one.rows:.4g}. If arms change with time, a policy "
        "that forgets would help: give it a half_life, such as '7 days', and change the loop with how='refit'."
    )
    return [Alarm(rule="change", text=text, since=one.since)]


def _contexts(tally: Tally, features: Sequence[str] | None, ranges: Collection[str]) -> list[Alarm]:
    sums, has_arms = tally.contexts, tally.catalogue is None
    may_change = has_arms and features is not None
    names = [str(place) for place in range(sums.width)] if features is None else [*map(repr, features)]
    unbounded = [features is None or name not in ranges for name in features or names]
    found = []
    for place, one in sums.wild.items():
        if sums.n - one.last < RECENT and unbounded[place]:
            bound = (
                f"loop.change(feature_range={{{names[place]}: (lowest, highest)}})" if may_change else "check x first"
            )
            text = (
                f"Feature {names[place]} lay beyond {sums.limits[place]:.3g} in size in {one.n:,} of {sums.n:,} "
                f"contexts, far more than is usual; the last is the decision of step {one.t:,}. One such row steers "
                f"{'an arm' if has_arms else 'the model'}. Take it back: {_FORGET.format(t=one.t)} "
                f"loop.change(policy=loop.model().policy, how='refit'). To keep others out: {bound}."
            )
            found.append(Alarm(rule="contexts", text=text, since=one.at))
    for name, (changes, longest, since, sizes) in zip(names, sums.still(), strict=False):
        if changes >= CHANGES and since >= max(STILL, TIMES * longest):
            text = (
                f"Feature {name} was the same in the last {since:,} decisions, where it changed at least every "
                f"{longest:,} before. See whether its source still runs"
                f"{', or drop it: loop.change(features=[...])' if may_change else ''}."
            )
            found.append(Alarm(rule="contexts", text=text))
        elif not changes and since >= STILL and sizes and name.endswith(f"={MISSING}'"):
            text = (
                f"Feature {name} says that a column was missing in all of {since:,} decisions. See whether it is sent "
                f"under its name{', or drop it: loop.change(encoder=...)' if may_change else ''}."
            )
            found.append(Alarm(rule="contexts", text=text))
    return found


def _stamps(tally: Tally) -> list[Alarm]:
    stamps = tally.stamps
    if (
        stamps.jumps < 2 or tally.traffic.decisions - stamps.last >= STAMPS
    ):  # one alone is a pause, or a clock that was set
        return []
    days, way = abs(stamps.farthest) / DAY, "ahead" if stamps.farthest > 0 else "behind"
    text = (
        f"The wall clock jumped {stamps.jumps:,} times by more than an hour, and was {days:,.1f} days {way}; rewards "
        "are discounted by the loop's own clock instead. Set the clocks of all machines that use this store."
    )
    return [Alarm(rule="clock", text=text)]


def _digits(lost: str) -> list[Alarm]:
    cure = "loop.change(policy=loop.model().policy, how='refit') learns the loop's rows again"
    text = f"By a decision that was forgotten or corrected, {lost}; {cure}."
    return [Alarm(rule="digits", text=text)] if lost else []


def _clock(ts: int) -> str:
    """Return a moment in words."""
    moment = datetime.datetime.fromtimestamp(ts / 1e6, tz=datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _rarely(p: float) -> str:
    return f"at most once in {math.floor(1 / p):,} loops" if p > 1e-6 else "less than once in a million loops"
