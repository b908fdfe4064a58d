"""Policies that learn from a log: rejection replay of a learner.

`rejection_replay` is the replay evaluation of a learning policy by rejection sampling (Li, Chu, Langford, Wang 2011).
Rows whose arms were drawn uniformly are walked in order. The policy decides with the coins of its next step; if it
plays the arm that was played, it learns the reward and the step is done, else the row is passed over. Its coins stay
the same until then: given those, the choice is a function of x, and each x is as likely to be accepted, so what it
sees is what it would have seen. Where the draw was weighted, a row is first kept with probability (smallest / that of
its arm), by a coin of its own. K rows a step, O(n) decisions in the kernel; memory holds one block and the accepted
rewards.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet import kernel
from armlet.bandit import Bandit
from armlet.errors import LogError
from armlet.evaluation.provenance import Provenance, provenance
from armlet.evaluation.rows import Blocks, Rows, refuse_tables
from armlet.evaluation.sources import open_rows
from armlet.evaluation.units import refuse_units
from armlet.inference.intervals import Z, rough_t_quantile
from armlet.log.reader import Source
from armlet.parallel import Seeds
from armlet.policies.base import compiled_rule
from armlet.report import notebook, plots
from armlet.report.document import Section, check_pictures, document, figure, folded_section
from armlet.report.numbers import show
from armlet.report.result import Answered, Columns, plain
from armlet.types import Arm, Bool, Estimate, Float64, Int64, Interaction, Interval, Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDED: Final = 1e-4  # propensities of other systems have a few digits
DRAWN: Final = 400  # points of a curve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RejectionReplay(Answered):
    """What a policy would have earned while learning, and what it has learned."""

    bandit: Bandit
    """The trained bandit, its clock at the last step."""
    rewards: Float64
    """(steps,): the rewards of the accepted rows, in order."""
    t: Int64
    """(steps,): their steps in the log."""
    explored: Bool
    """(steps,): whether the policy that learns explored there."""
    rows: int
    """Rows of the log."""
    drawn: int
    """Those that were drawn regardless of the context, and have a reward."""
    kept: int
    """Those that were kept so that all arms are as likely."""
    seed: int
    made: Provenance | None = None
    """The log, the version and the call that it comes from."""

    @property
    def accepted(self) -> int:
        """How many rows the policy would have played too: its steps."""
        return len(self.rewards)

    @property
    def mean(self) -> float:
        """Reward a step."""
        return float(self.rewards.mean())

    @property
    def interval(self) -> Interval | None:
        """Where the expected reward a step of this run lies, 95 % of the time; None if it cannot be said.

        It is of the choices that this run made. Other rows would have taught other choices: replay several logs, or
        several seeds, to see by how much those differ.
        """
        n, mean = self.accepted, self.mean
        if np.isin(self.rewards, (0.0, 1.0)).all():  # Wilson's: it has room where nobody has clicked yet
            middle, room = mean + Z * Z / (2 * n), Z * np.sqrt(mean * (1 - mean) / n + (Z / (2 * n)) ** 2)
            return Interval(*(float(end / (1 + Z * Z / n)) for end in (middle - room, middle + room)))
        if n < 3 or np.ptp(self.rewards) == 0.0:
            return None
        half = rough_t_quantile(n - 1) * float(self.rewards.std(ddof=1)) / n**0.5
        return Interval(mean - half, mean + half)

    @property
    def curve(self) -> Float64:
        """(steps,): the mean reward up to each step."""
        return np.asarray(self.rewards.cumsum() / np.arange(1, self.accepted + 1))

    @property
    def answer(self) -> str:
        """What the policy would have earned while it learned, in a sentence."""
        earned = "earned" if self.bandit.settings.objective == "max" else "cost"
        steps = f"{self.accepted:,} {'step' if self.accepted == 1 else 'steps'}"
        return (
            f"On {self.rows:,} rows {self._policy()} would have taken {steps}, and "
            f"{earned} {self._shown()} a step while it learned."
        )

    def _shown(self) -> str:
        return (
            f"{show(self.mean)} (no interval)" if self.interval is None else show(Estimate(self.mean, *self.interval))
        )

    def basis(self) -> str:
        """Return what the answer rests on."""
        return (
            f"{self.drawn:,} rows with a reward were drawn regardless of the context; {self.kept:,} were kept, so "
            f"that all arms are equally likely, and {self.accepted:,} of them played what {self._policy()} would have "
            "played too. The interval, at 95 %, is of the choices of this run: other rows would have taught others."
        )

    def _policy(self) -> str:
        return type(self.bandit.policy).__name__

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the bandit as plain JSON types."""
        names = ("mean", "interval", "accepted", "rows", "drawn", "kept", "seed", "made", "rewards", "t", "explored")
        fields = {name: plain(getattr(self, name)) for name in names}
        return {"answer": self.answer, "policy": self._policy(), **fields}

    def columns(self) -> Columns:
        """Return a row a step: the step in the log, its reward, whether the policy explored, and the mean so far."""
        columns = {"t": self.t, "reward": self.rewards, "explored": self.explored, "mean": self.curve}
        return {"step": list(range(1, self.accepted + 1)), **{name: each.tolist() for name, each in columns.items()}}

    def plot(self) -> Figure:
        """Draw the mean reward up to each step; needs `armlet[plots]`."""
        at = np.unique(np.geomspace(1, self.accepted, DRAWN).astype(np.int64)) - 1
        with plots.frame(height=3.0, labels=[]) as (drawn, axes):
            axes.plot(at + 1, self.curve[at], color=plots.COLOURS[0])
            unit = "reward" if self.bandit.settings.objective == "max" else "cost"
            axes.set(xscale="log", xlabel="step (log scale)", ylabel=f"mean {unit} so far")
            axes.xaxis.set_major_formatter(lambda value, _: plots.short(value))
            axes.xaxis.set_minor_formatter(lambda *_: "")
        return drawn

    def _html(self) -> Iterable[str]:
        return [notebook.note(self.basis())]

    def _page(self) -> str:
        caption = f"What {self._policy()} earned on average up to each step."
        picture = plots.page_picture(self.plot(), key="curve", alt=self.answer, caption=caption)
        check_pictures([picture])
        limits = folded_section("limits", "What this cannot tell", [f"<p>{escape(LIMITS)}</p>"])
        parts: list[str | Section] = [figure(picture), f"<p>{escape(self.basis())}</p>", limits]
        made = {"seed": self.seed, **({} if self.made is None else self.made.lines())}
        return document("Replay of a learner", self.answer, parts, made)


LIMITS: Final = (
    "It is one run on one log: replay several logs, or several seeds, to see by how much runs differ. Rows that the "
    "policy would not have played teach nothing, so it has fewer steps than the log has rows."
)


def rejection_replay(log: Source | Blocks, policy: Policy, *, seed: int | None = None) -> RejectionReplay:
    """Let a policy learn from a log whose arms were drawn regardless of the context, exactly as if it had run itself.

    Parameters
    ----------
    log
        A path or a log, of any origin: explored rows of a bandit's own; or rows of others, where each arm has one
        propensity throughout. Refused where the draw may have depended on contexts.
    policy
        Any policy; it starts knowing nothing. Of K arms one row in K is a step, so a half-life in steps lasts K times
        as many rows of the log.
    seed
        Of its coins, and of those that keep a row; drawn at random if left out.

    Examples
    --------
    >>> import armlet
    >>> rng = np.random.default_rng(0)
    >>> X, arms = rng.normal(size=(3000, 2)), rng.integers(2, size=3000)
    >>> log = armlet.log.from_obp(
    ...     {"context": X, "action": arms, "reward": X[np.arange(3000), arms], "pscore": np.full(3000, 0.5)}
    ... )
    >>> found = rejection_replay(log, armlet.LinUCB(alpha=1.0), seed=1)
    >>> found.accepted, round(found.mean, 2)  # the best policy earns 0.564 in expectation
    (1506, 0.58)
    >>> found.bandit.predict([[2.0, -1.0]])
    array([0])
    """
    blocks = open_rows(log)
    refuse_tables(blocks, "rejection replay")
    refuse_units(blocks, "rejection replay", "replay a log without units, or evaluate a policy that does not learn")
    thinning = find_thinning(blocks)
    chosen = secrets.randbits(127) if seed is None else seed
    about: Any = {"features": blocks.features, "objective": blocks.objective, "seed": chosen}
    bandit = Bandit(blocks.arms, blocks.dim, policy=policy, **about)
    steps = _walk(blocks, thinning, bandit, Seeds(chosen, "replay").rng("kept"))
    if not len(steps["rewards"]):
        raise LogError(f"{type(policy).__name__} would have played none of the {steps['kept']:,} rows that were drawn")
    made = provenance(blocks, rejection_replay, policy=policy, seed=chosen)
    return RejectionReplay(bandit=bandit, rows=blocks.n, seed=chosen, made=made, **steps)


def _walk(blocks: Blocks, thinning: Thinning, bandit: Bandit, coins: np.random.Generator) -> dict[str, Any]:
    """Let the bandit learn from the rows, block by block, and set its state and clock; return columns and counts."""
    policy, sign = bandit.policy, -1.0 if blocks.objective == "min" else 1.0
    rule, state = compiled_rule(policy), policy.init(len(bandit.arms), bandit.settings.dim)
    taken: list[tuple[Float64, Int64, Bool]] = []
    drawn = kept = t = 0
    for block in blocks:
        some = block.take(thinning.which(block))
        rows = some.take(coins.random(len(some)) < thinning.probabilities(some))
        rewards = sign * rows.reward
        if rule is None:
            at, explored = _learn_in_python(policy, state, bandit._seed, rows, rewards, t)
        else:
            state, at, explored = _learn_in_kernel(rule, state, bandit._seed, rows, rewards, t)
        drawn, kept, t = drawn + len(some), kept + len(rows), t + len(at)
        taken.append((rows.reward[at], rows.t[at], explored))
    bandit._restore(state, list(bandit.arms), 0)
    bandit.replace(t=t)
    columns = zip(("rewards", "t", "explored"), zip(*taken, strict=True), strict=True)
    return {"drawn": drawn, "kept": kept, **{name: np.concatenate(column) for name, column in columns}}


def _learn_in_kernel(
    rule: kernel.Rule, state: Any, seed: int, rows: Rows, rewards: Float64, t: int
) -> tuple[Any, Int64, Bool]:
    """Return the state, which rows were accepted, and which of those the learner explored."""
    how: Any = {"rule": rule, "seed": seed, "t": t, "eligible": None if rows.eligible.all() else rows.eligible}
    columns = (np.ascontiguousarray(rows.X), np.ascontiguousarray(rows.arm), rewards)
    replayed = kernel.replay(*columns, start=state, **how)
    return replayed.statistics, replayed.rows, replayed.explored


def _learn_in_python(policy: Policy, state: Any, seed: int, rows: Rows, rewards: Float64, t: int) -> tuple[Int64, Bool]:
    """Change the state; return which rows were accepted, and which of those the learner explored."""
    accepted: list[int] = []
    explored: list[bool] = []
    coins = kernel.coins(seed, t + 1)
    for i, (x, arm) in enumerate(zip(rows.X, rows.arm.tolist(), strict=True)):
        choice = policy.decide(state, t + 1, x, coins, rows.eligible[i])
        if choice.arm != arm:
            continue
        t += 1
        drawn: Any = {"propensity": choice.propensity, "explored": choice.explored, "tag": choice.tag}
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=float(rewards[i]), **drawn))
        accepted.append(i)
        explored.append(choice.explored)
        coins = kernel.coins(seed, t + 1)
    return np.array(accepted, dtype=np.int64), np.array(explored, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Thinning:
    """How to find the rows that were drawn regardless of the context, and to thin them until all arms are as likely."""

    by_arm: Float64 | None  # (K,): the propensity of every arm, where the log does not say which rows explored
    floor: float | None  # the probability that a row has in the end, where arms differ from row to row

    def which(self, rows: Rows) -> Bool:
        """Return which rows can be used."""
        drawn = rows.rewarded & ~rows.turn
        return drawn if self.by_arm is not None else drawn & (rows.explored == 1)

    def probabilities(self, rows: Rows) -> Float64:
        """Return the probability with which each row is kept: that of the rarest arm over that of its own."""
        if self.by_arm is not None:
            return np.asarray(self.by_arm.min() / self.by_arm[rows.arm])
        rarest = rows.min_exploration_probability if self.floor is None else self.floor
        return np.asarray(np.minimum(rarest / rows.exploration_propensity, 1.0))


def find_thinning(blocks: Blocks) -> Thinning:
    """Read a log once to find how its arms were drawn; refuse one that does not show it, or that drew by contexts.

    A log shows it where its policy explores: `explored`, `exploration_propensity`, `min_exploration_probability`. One
    of other origin shows it if every arm has one propensity throughout and these add up to 1, for then they cannot have
    depended on contexts.

    Examples
    --------
    >>> from armlet.log import from_obp
    >>> feedback = {"action": [1, 0, 1], "reward": [0, 1, 1], "context": [[1.0], [2.0], [3.0]]}
    >>> find_thinning(open_rows(from_obp(feedback | {"pscore": [0.75, 0.25, 0.75]}))).by_arm
    array([0.25, 0.75])
    >>> find_thinning(open_rows(from_obp(feedback | {"pscore": [0.6, 0.25, 0.75]})))
    Traceback (most recent call last):
    armlet.errors.LogError: arm 1 has propensities from 0.6 to 0.75, and the log does not say which rows ...
    """
    seen = _Seen(len(blocks.arms))
    for rows in blocks:
        seen.add(rows)
    if seen.n == 0:
        raise LogError("the log has no row with a reward; there is nothing to learn from")
    if seen.known and seen.unknown:
        raise LogError(f"{seen.unknown:,} of {seen.n:,} rows do not say whether they explored; give a log of one kind")
    return seen.by_flags() if seen.known else seen.by_propensities(blocks.arms)


class _Seen:
    def __init__(self, n_arms: int) -> None:
        self.n = self.known = self.unknown = self.usable = self.without = 0
        self._least, self._most = np.full(n_arms, np.inf), np.zeros(n_arms)
        self._floor = np.inf
        self._one: Bool | None = None
        self._differ = False

    def add(self, rows: Rows) -> None:
        some = rows.take(rows.rewarded)
        if not len(some):
            return
        if (some.weight != 1.0).any():
            raise LogError("the log has rewards with weights other than 1, whose meaning replay does not know")
        self.n += len(some)
        self.unknown += int((some.explored < 0).sum())
        self.known += int((some.explored >= 0).sum())
        np.minimum.at(self._least, some.arm, some.propensity)
        np.maximum.at(self._most, some.arm, some.propensity)
        self._one = some.eligible[0] if self._one is None else self._one
        self._differ |= bool((some.eligible != self._one).any())
        drawn = some.take((some.explored == 1) & ~some.turn)
        self.usable += len(drawn)
        self.without += int(
            (np.isnan(drawn.exploration_propensity) | np.isnan(drawn.min_exploration_probability)).sum()
        )
        if len(drawn):
            self._floor = min(self._floor, float(np.fmin.reduce(drawn.min_exploration_probability)))

    def by_flags(self) -> Thinning:
        if not self.usable:
            raise LogError(
                "no row of the log explored: which arm it played depended on the context, so no learner can replay"
            )
        if self.without:
            raise LogError(
                f"{self.without:,} of {self.usable:,} explored rows have no exploration_propensity: what was explored "
                "may have depended on the context; log with a policy that explores regardless of it, such as Uniform"
            )
        if self._differ and not self._floor > 0:
            raise LogError(
                "arms that might be played differ from row to row, and some had no chance; leave those rows out"
            )
        # eligible arms may go with the context, so every row must be as likely to be kept as any other
        return Thinning(None, self._floor if self._differ else None)

    def by_propensities(self, arms: tuple[Arm, ...]) -> Thinning:
        if self._differ:
            raise LogError(
                "the log does not say which rows explored, and arms that might be played differ from row to row"
            )
        may = np.ones(len(arms), dtype=np.bool_) if self._one is None else self._one
        for arm in np.flatnonzero(may):
            low, high = self._least[arm], self._most[arm]
            if not np.isfinite(low):
                raise LogError(f"arm {arms[arm]!r} was never played, and the log does not say which rows explored")
            if high - low > ROUNDED * high:
                raise LogError(
                    f"arm {arms[arm]!r} has propensities from {low:g} to {high:g}, and the log does not say which rows "
                    "explored: which arm it played may have depended on the context"
                )
        total = float(self._most[may].sum())
        if abs(total - 1.0) > ROUNDED * may.sum():
            raise LogError(f"the propensities of all arms add up to {total:g}; they must add up to 1")
        return Thinning(np.where(may, self._most, np.inf), None)
