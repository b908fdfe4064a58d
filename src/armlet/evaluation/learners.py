"""Policies that learn from the log itself: rejection replay of a learner, and the value of a model on its own rows.

`rejection_replay` is the replay evaluation of a learning policy by rejection sampling (Li, Chu, Langford, Wang 2011).
Rows whose arms were drawn uniformly are walked in order. The policy decides with the coins of its next step; if it
plays the arm that was played, it learns the reward and the step is done, else the row is passed over. Its coins stay
the same until then: given those, the choice is a function of x, and each x is as likely to be accepted, so what it
sees is what it would have seen. Where the draw was weighted, a row is first kept with probability (smallest / that of
its arm), by a coin of its own. K rows a step, O(n) decisions in the kernel; memory holds one block and the accepted
rewards.

`self_evaluate` values the policy that the randomized rows of a log teach. Valued on its own rows a policy looks as good
as the luck that it learned. Sums make the policy without one row exact in closed form: only the score of the arm that
the row played changes, to (f - h r) / (1 - h), where f = z' M^-1 b and h = z' M^-1 z with the ridge that one row fewer
has. The mean over rows of what such policies earn is the point. Its plain standard error is too small where there is
nothing to learn, so the interval is that of the progressive value: from a third of the rows on, what the policy learned
from earlier rows earns on the next ones. O(n K d + n d^2).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from armlet import kernel
from armlet.bandit import Bandit
from armlet.errors import EvaluationError, LogError
from armlet.evaluation.estimators import Rewards, mean_interval
from armlet.evaluation.model import row_sums, unpack
from armlet.evaluation.result import Value
from armlet.evaluation.rows import Blocks, Design, Rows, open_rows
from armlet.inference.intervals import Z, rough_t_quantile
from armlet.log.reader import Source
from armlet.parallel import Seeds
from armlet.policies.base import compiled_rule
from armlet.types import Arm, Bool, Float64, Int64, Interaction, Interval, Policy

if TYPE_CHECKING:
    from armlet.evaluation.monitor import Survey

ROUNDED: Final = 1e-4  # propensities of other systems have a few digits
BEGIN: Final = 1 / 3
"""The share of rows that the progressive value learns from before it counts."""
GROWTH: Final = 1.02
"""Its policy is learned again when its rows have grown so much."""
WHY: Final = "exact leave-one-out of the linear policy that drawn rows of this log teach"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectionReplay:
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

    def __str__(self) -> str:
        found = self.interval
        between = "" if found is None else f" [{found.low:.4g} to {found.high:.4g}]"
        words = f"{self.accepted:,} {'step' if self.accepted == 1 else 'steps'} of {self.rows:,} rows"
        return f"{type(self.bandit.policy).__name__}: {self.mean:.4g}{between} a step, {words}"


def rejection_replay(log: Source | Blocks, policy: Policy, *, seed: int | None = None) -> RejectionReplay:
    """Let a policy learn from a log whose arms were drawn regardless of the context, exactly as if it had run itself.

    Parameters
    ----------
    log
        A path or a log, of any origin: explored rows of a bandit's own; or rows of others, where each arm has one
        propensity throughout. Refused where the draw may have depended on contexts.
    policy
        Any policy; it starts knowing nothing.
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
    thinning = find_thinning(blocks)
    chosen = secrets.randbits(127) if seed is None else seed
    about: Any = {"features": blocks.features, "objective": blocks.objective, "seed": chosen}
    bandit = Bandit(blocks.arms, blocks.dim, policy=policy, **about)
    steps = _walk(blocks, thinning, bandit, Seeds(chosen, "replay").rng("kept"))
    if not len(steps["rewards"]):
        raise LogError(f"{type(policy).__name__} would have played none of the {steps['kept']:,} rows that were drawn")
    return RejectionReplay(bandit=bandit, rows=blocks.n, seed=chosen, **steps)


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
    found = kernel.replay(*columns, start=state, **how)
    return found.statistics, found.rows, found.explored


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


class LinearPolicy(NamedTuple):
    """Ridge regression for each arm, in the units that the log's policy sees."""

    theta: Float64  # (K, D)
    rows: Float64  # (K,)
    A: Float64  # (K, D, D)
    b: Float64  # (K, D)
    turn: Float64  # (D, d + 1): z = turn (1, x)
    base: float  # rewards are taken from here on

    def contexts(self, X: Float64) -> Float64:
        """Return z for every row, (n, D)."""
        return np.asarray(np.column_stack([np.ones(len(X)), X]) @ self.turn.T)


class Ratio:
    """S v r / S v, its error and its effective rows, from sums."""

    def __init__(self) -> None:
        self.v = self.vv = self.vr = self.vrr = self.vvr = self.vvrr = 0.0

    def add(self, v: Float64, r: Float64) -> None:
        """Add rows."""
        self.v += math.fsum(v)
        self.vv += math.fsum(v * v)
        self.vr += math.fsum(v * r)
        self.vrr += math.fsum(v * r * r)
        self.vvr += math.fsum(v * v * r)
        self.vvrr += math.fsum(v * v * r * r)

    @property
    def value(self) -> float:
        """The weighted mean."""
        return self.vr / self.v if self.v > 0 else math.nan

    @property
    def se(self) -> float:
        """Its standard error."""
        if not self.v > 0:
            return math.nan
        V = self.value
        return math.sqrt(max(0.0, self.vvrr - 2 * V * self.vvr + V * V * self.vv)) / self.v

    def covariance(self, mean: float, n: int) -> float:
        """Return the covariance with the mean of the rewards of n rows, these among them."""
        if not self.v > 0:
            return math.nan
        return (self.vrr - (self.value + mean) * self.vr + self.value * mean * self.v) / (self.v * n)

    @property
    def ess(self) -> float:
        """As many rows of equal weight tell as much."""
        return self.v * self.v / self.vv if self.vv > 0 else 0.0


class SelfEvaluation(NamedTuple):
    """The value of what the randomized rows of a log teach, and what policies taught by earlier rows earned."""

    value: Value
    ahead: Ratio


def self_evaluate(
    blocks: Blocks, survey: Survey, level: float, rewards: Rewards, name: str, *, doubt: str, refused: str
) -> SelfEvaluation:
    """Value the policy that the randomized rows of a log teach.

    `doubt` and `refused` say why there is no interval, or no number at all; they are empty if there is.
    """
    if adaptive := survey.rewarded - survey.known - survey.foreign:
        raise EvaluationError(
            f"{name!r} is what drawn rows teach, but {adaptive:,} rows chose their arm by what had been learned. Log "
            "with a policy that explores at a known rate, such as armlet.Algorithm1, or OccasionalOptimism(floor=0.05)"
        )
    units, sign = _units(blocks), 1.0 if blocks.objective == "max" else -1.0
    learned = learn(survey.records(blocks.dim), units)
    left_out, n = Ratio(), 0
    for block in blocks:
        rows, chance = _randomized(block)
        left_out.add(_match_weights(leave_one_out(learned, rows), rows, chance, sign), rows.reward)
        n += len(rows)
    ahead = _progressive(blocks, n, units, sign)
    span, why = mean_interval(ahead.value, ahead.se, ahead.ess, level, rewards)
    note = "its interval is of the progressive value, which learns from earlier rows alone"
    if span is not None and not span.low <= left_out.value <= span.high:
        note += ", and misses the point, which learns from more"
    value = Value(
        name=name,
        value=math.nan if refused else left_out.value,
        se=math.nan if refused else left_out.se,
        interval=None if refused or doubt else span,
        anytime=None,
        rows=survey.rewarded,
        ess=left_out.ess,
        estimator="leave one out",
        why=WHY,
        largest_weight=math.nan,
        note=refused or doubt or why or note,
    )
    return SelfEvaluation(value, ahead)


def _units(blocks: Blocks) -> str:
    settings = {} if blocks.policy is None else blocks.policy["settings"]
    name = "" if blocks.policy is None else blocks.policy["name"]
    return str(settings.get("units", "as given" if name == "Algorithm1" else "free"))


def _randomized(block: Rows) -> tuple[Rows, Float64]:
    """Return the rows that were drawn regardless of the context, and the probabilities of their arms."""
    paid = block.take(block.rewarded)
    used, chance = Design.of(paid).randomized()
    return paid.take(used), chance[used]


def learn(records: Float64, units: str) -> LinearPolicy:
    """Solve (sqrt(n) I + A) theta = b for every arm, as Algorithm 1 does, in its units."""
    A, b = unpack(records)
    n = records[:, 0]
    turn, base = _turn(A, records, units)
    b = (b - base * A[:, 0, :]) @ turn.T  # S (r - base) y, since y begins with 1
    A = turn @ A @ turn.T
    theta = np.stack([_solve(A[a], b[a], n[a]) for a in range(len(n))])
    return LinearPolicy(theta, n, A, b, turn, base)


def _turn(A: Float64, records: Float64, units: str) -> tuple[Float64, float]:
    size = A.shape[1]
    total, n = A.sum(axis=0), float(records[:, 0].sum())
    if units == "as given" or n == 0.0:
        return np.eye(size)[1:], 0.0
    mean = total[0, 1:] / n
    variance = np.maximum(np.diag(total)[1:] / n - mean * mean, 0.0)
    scale = np.where(variance > 1e-12 * np.maximum(1.0, mean * mean), 1.0 / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    turn = np.zeros((size, size))
    turn[0, 0] = 1.0
    turn[1:, 0] = -mean * scale
    turn[np.arange(1, size), np.arange(1, size)] = scale
    return turn, float(records[:, 1].sum()) / n


def _solve(A: Float64, b: Float64, n: float) -> Float64:
    if n == 0:
        return np.zeros(len(b))
    return np.asarray(np.linalg.solve(A + math.sqrt(n) * np.eye(len(b)), b), dtype=np.float64)


def leave_one_out(learned: LinearPolicy, rows: Rows) -> Float64:
    """Return the scores of all arms, (n, K), that of the arm played without the row itself.

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> rng = np.random.default_rng(1)
    >>> rows = rows_of(rng.normal(size=(9, 2)), np.arange(9) % 2, rng.normal(size=9), np.full(9, 0.5))
    >>> def learn_from(which):
    ...     return learn(row_sums(rows, which), "as given")
    >>> quick = leave_one_out(learn_from(np.ones(9, dtype=bool)), rows)[4, 0]
    >>> slow = learn_from(np.arange(9) != 4).theta[0] @ rows.X[4]
    >>> abs(quick - slow) < 1e-12
    np.True_
    """
    Z = learned.contexts(rows.X)
    scores = Z @ learned.theta.T
    for arm, n in enumerate(learned.rows):
        mine = np.flatnonzero(rows.arm == arm)
        if n < 2 or not mine.size:
            scores[mine, arm] = 0.0
            continue
        inverse = np.linalg.inv(learned.A[arm] + math.sqrt(n - 1) * np.eye(Z.shape[1]))
        z, r = Z[mine], rows.reward[mine] - learned.base
        h = np.einsum("ij,jk,ik->i", z, inverse, z)
        scores[mine, arm] = (z @ (inverse @ learned.b[arm]) - h * r) / (1.0 - h)
    return scores


def _match_weights(scores: Float64, rows: Rows, chance: Float64, sign: float) -> Float64:
    """Return 1/chance where the policy plays what was played, 0 elsewhere."""
    best = np.where(rows.eligible, sign * scores, -np.inf).argmax(axis=1)
    return np.where(best == rows.arm, 1.0 / chance, 0.0)


def _progressive(blocks: Blocks, n: int, units: str, sign: float) -> Ratio:
    """Value, from a third of the rows on, what earlier rows have taught."""
    ahead, seen = Ratio(), 0
    records: Float64 | None = None
    next_cut = max(1, math.ceil(BEGIN * n))
    learned: LinearPolicy | None = None
    for block in blocks:
        for part in _parts(_randomized(block)[0], seen, next_cut):
            if learned is not None:
                chance = Design.of(part).randomized()[1]
                scores = learned.contexts(part.X) @ learned.theta.T
                ahead.add(_match_weights(scores, part, chance, sign), part.reward)
            added = row_sums(part, np.ones(len(part), dtype=np.bool_))
            records = added if records is None else records + added
            seen += len(part)
            if seen >= next_cut:
                learned = learn(records, units)
                next_cut = math.ceil(max(GROWTH * seen, seen + 1))
    return ahead


def _parts(rows: Rows, seen: int, cut: int) -> Iterator[Rows]:
    """Cut rows where the policy is learned again."""
    at = 0
    while at < len(rows):
        end = min(len(rows), at + max(1, cut - seen - at))
        yield rows.take(slice(at, end))
        at = end
        if seen + at >= cut:
            cut = math.ceil(max(GROWTH * (seen + at), seen + at + 1))
