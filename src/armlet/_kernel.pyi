"""The compiled part of Armlet. Import it through armlet.kernel."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, overload

import numpy
import numpy.random
from matplotlib.figure import Figure
from numpy.typing import NDArray

import armlet.types
from armlet.types import Arm, Context, Reward

class Decision:
    """What `decide` answers: the arm to play, and what `learn` needs when the reward comes."""
    @property
    def id(self) -> str:
        """A name for the decision: its step, and 64 bits that tell bandits apart."""
    @property
    def t(self) -> int:
        """The step, from 1."""
    @property
    def arm(self) -> str | int:
        """The label of the arm to play."""
    @property
    def unit(self) -> str | None:
        """The unit that it is of, a name; None if decide was given none."""
    @property
    def epoch(self) -> int | None:
        """The number of the epoch whose first state and clock the unit met; None without a unit."""
    @property
    def propensity(self) -> float:
        """The probability with which this arm was to be played: over all coins if `marginal`, else as if every step were of this one's kind, greedy or optimistic."""
    @property
    def marginal(self) -> bool:
        """Whether the propensity is over all coins, as an evaluation needs it; False if it is given what kind of step the coin made it: see `propensity`."""
    @property
    def exploration_propensity(self) -> float | None:
        """The probability of this arm given that the step explores, which no context moves; None if the policy has none."""
    @property
    def exploration_rate(self) -> float | None:
        """The probability that the step explores; None if the policy has none."""
    @property
    def min_exploration_probability(self) -> float | None:
        """The smallest probability of an eligible arm given that the step explores; None if the policy has none."""
    @property
    def greedy(self) -> bool | None:
        """Whether the arm is the best-looking one, or one of several, that a step which does not explore may play; None if a step that was sure to explore did not look."""
    @property
    def design(self) -> Literal["turn", "coin", "choice"]:
        """How the arm was found: by its turn, by a coin that no context moves, or by the policy's own choice."""
    @property
    def eligible(self) -> tuple[str | int, ...] | None:
        """The labels of the arms that could be played; None if all that were not retired could."""
    @property
    def probabilities(self) -> NDArray[numpy.float64] | None:
        """(K,): a copy of the probability of every arm at this step; None unless decide was asked for them."""
    @property
    def explored(self) -> bool:
        """Whether the step explored: the turn or the coins chose, not the estimates."""
    @property
    def optimistic(self) -> bool:
        """Whether the coin made it an optimistic step, which plays the highest bound and does not explore; False for policies without such steps."""
    @property
    def learned(self) -> bool:
        """Whether a reward was learned from it."""
    @property
    def expired(self) -> bool:
        """Whether its reward is no longer waited for: it was expired, or learned and forgotten."""
    @property
    def reward(self) -> Any:  # a float, a dict of them, or None
        """The reward learned, if any; of several outcomes those that have come, by name."""
    @property
    def weight(self) -> float:
        """The weight with which it was learned."""
    @property
    def billed(self) -> float | None:
        """What counts as its cost in a budget, if that is not the cost that was learned; None if nothing was billed."""
    @property
    def weights(self) -> dict[str, float] | None:
        """The weights of outcomes that it was made with, if some were given."""
    @property
    def tag(self) -> int:
        """A number that the policy attached for its own use; 0 for most policies."""
    @property
    def x(self) -> NDArray[numpy.float64]:
        """A copy of the context as it was given, before `normalize` scales it; empty if it was not kept."""
    def _repr_html_(self) -> str: ...
    def to_dict(self) -> dict[str, Any]:
        """Everything that a later `learn` and an evaluation need, as plain JSON types."""
    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Decision:
        """A decision from what `to_dict` gave, as it is or from JSON; entries that it does not know are passed over."""
    @staticmethod
    def restore(
        id: str,
        arm: str | int,
        propensity: float,
        explored: bool,
        x: NDArray[numpy.float64] | list[float] | None,
        reward: float | dict[str, float] | None = None,
        weight: float = 1.0,
        tag: int = 0,
        exploration_propensity: float | None = None,
        exploration_rate: float | None = None,
        min_exploration_probability: float | None = None,
        greedy: bool | None = None,
        eligible: Iterable[str | int] | None = None,
        probabilities: NDArray[numpy.float64] | list[float] | None = None,
        expired: bool = False,
        optimistic: bool = False,
        marginal: bool = True,
        unit: str | None = None,
        epoch: int | None = None,
        weights: dict[str, float] | None = None,
        learned: bool | None = None,
        billed: float | None = None,
    ) -> Decision:
        """A decision from a log or another process, pending unless a reward is given, or `learned` says so."""

def restore_decision(
    id: str,
    arm: str | int,
    propensity: float,
    explored: bool,
    x: NDArray[numpy.float64] | list[float] | None,
    reward: float | dict[str, float] | None = None,
    weight: float = 1.0,
    tag: int = 0,
    exploration_propensity: float | None = None,
    exploration_rate: float | None = None,
    min_exploration_probability: float | None = None,
    greedy: bool | None = None,
    eligible: Iterable[str | int] | None = None,
    probabilities: NDArray[numpy.float64] | list[float] | None = None,
    expired: bool = False,
    optimistic: bool = False,
    marginal: bool = True,
    unit: str | None = None,
    epoch: int | None = None,
    weights: dict[str, float] | None = None,
    learned: bool | None = None,
    billed: float | None = None,
) -> Decision:
    """
    A decision from a log or another process, pending unless a reward is given, or `learned` says so.
    """

def decision_from_dict(record: Mapping[str, Any]) -> Decision:
    """
    A decision from what `to_dict` gave, as it is or from JSON; entries that it does not know are passed over.
    """

class Decisions:
    """Many decisions in columns; each item is a Decision."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Decision]: ...
    def __getitem__(self, row: int, /) -> Decision: ...
    @property
    def ids(self, /) -> list[str]:
        """The name of each decision."""

    @property
    def arms(self, /) -> list[str | int]:
        """The labels to play."""

    @property
    def eligible(self, /) -> tuple[str | int, ...] | None:
        """
        The labels of the arms that could be played; None if all that were not retired could.
        """

    @property
    def t(self) -> NDArray[numpy.int64]:
        """(n,): the steps."""

    @property
    def units(self, /) -> list[str | None] | None:
        """The unit that each is of; None if none is of one."""

    @property
    def epochs(self, /) -> list[int | None] | None:
        """The epoch that each unit met; None if none is of a unit."""

    @property
    def X(self) -> NDArray[numpy.float64]:
        """
        (n, d): a copy of the contexts as they were given, before `normalize` scales them.
        """

    @property
    def indices(self) -> NDArray[numpy.int64]:
        """(n,): the arms by index."""

    @property
    def propensities(self) -> NDArray[numpy.float64]:
        """
        (n,): the probability with which each arm was to be played; see `Decision.propensity`.
        """

    @property
    def marginal(self) -> NDArray[numpy.bool_]:
        """
        (n,): which propensities are over all coins, not given what kind of step the coin made it.
        """

    @property
    def exploration_propensities(self) -> NDArray[numpy.float64]:
        """
        (n,): the probability of each arm given that the step explores; NaN if the policy has none.
        """

    @property
    def exploration_rates(self) -> NDArray[numpy.float64]:
        """
        (n,): the probability that each step explores; NaN if the policy has none.
        """

    @property
    def min_exploration_probabilities(self) -> NDArray[numpy.float64]:
        """
        (n,): the smallest probability of an eligible arm given that the step explores; NaN if the policy has none.
        """

    @property
    def explored(self) -> NDArray[numpy.bool_]:
        """(n,): which steps explored."""

    @property
    def optimistic(self) -> NDArray[numpy.bool_]:
        """
        (n,): which steps the coin made optimistic; all False for policies without such steps.
        """

    @property
    def tags(self) -> NDArray[numpy.int64]:
        """(n,): the number that the policy attached to each for its own use."""

    @property
    def greedy(self, /) -> list[bool | None]:
        """
        Whether each arm is the best-looking one; None where a step that was sure to explore did not look.
        """

    @property
    def designs(self, /) -> list[str]:
        """
        How each arm was found: by its turn, by a coin that no context moves, or by the policy's own choice.
        """

    def to_arrow(self) -> Any:
        """
        Return them as a pyarrow table, with a column for every entry of `Decision.to_dict`.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1)
        >>> bandit.decide_many([[0.5], [1.0]]).to_arrow().select(["t", "arm"]).to_pylist()
        [{'t': 1, 'arm': 'b'}, {'t': 2, 'arm': 'a'}]
        """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """
        The same for whatever reads Arrow streams: polars.DataFrame(decisions), pandas.DataFrame.from_arrow.
        """

    def __repr__(self) -> str: ...
    def columns(self) -> dict[str, list[Any]]:
        """Return them by columns, named as the entries of `Decision.to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        """
        Return the columns in plain JSON types; with a column of rewards, `Bandit.partial_fit` learns them.
        """

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame, one row a decision."""

    def plot(self) -> Figure:
        """
        Draw how often each arm is played, by exploration and not; needs `armlet[plots]`.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write a file, by the ending of its name: .html, .json, .csv, .png or .svg.
        """

    def _repr_html_(self) -> str: ...
    def _html(self) -> list[str]: ...
    def _page(self) -> str: ...

def register(
    *,
    errors: object,
    read_reward: Callable[[float], float],
    read_weight: Callable[[float], float],
    coins: type,
    interaction: type,
    snapshot: type,
    arrow_table: Callable[[Decisions], Any],
    unpickle_decision: Callable[..., Decision],
) -> None:
    """Hands over what this module needs of Armlet's Python side."""

class Schedule:
    """When a compiled policy explores, and which steps it learns from."""

    def __init__(self, p: float, *, round_robin: bool, learn_always: bool) -> None: ...

class Optimism:
    """Play the highest upper confidence bound, ties broken by the coins."""

    @staticmethod
    def constant(alpha: float, *, by_noise: bool = False) -> Optimism:
        """
        LinUCB: the same multiple of every width, or of every width times the noise.
        """

    @staticmethod
    def oful(radius: str, *, noise_scale: float, bound: float, delta: float, scale: float = 1.0) -> Optimism:
        """OFUL: the radius of its theorem, 'per-arm' or 'joint'."""

class Thompson:
    """Play the highest sample of the posterior."""

    @staticmethod
    def constant(v: float, *, by_noise: bool = False) -> Thompson:
        """The same v at every step, or times the noise."""

    @staticmethod
    def theory(*, noise_scale: float, delta: float, scale: float = 1.0) -> Thompson:
        """v = R sqrt(9 d log(t / delta)), scaled."""

class AutoSchedule:
    """Algorithm 1 with a p that sets itself for a horizon."""

    def __init__(self, *, horizon: float, caution: float, start: float, most: float, round_robin: bool) -> None: ...

class Evidence:
    """
    Explore the arms that lack rows, by weight, else play the best estimate.
    """

    def __init__(self, *, p: float, cap: float, floor: float, learn_always: bool) -> None: ...

class AutoEvidence:
    """The evidence clock with a p that sets itself, and shares of it by arm."""

    def __init__(
        self,
        *,
        horizon: float | None,
        caution: float,
        start: float,
        most: float,
        even: float,
        cap: float = 1.0,
        floor: float = 0.0,
    ) -> None: ...

class LogBonus:
    """
    Explore what lacks rows, else play the highest bound on a share of the steps, by the log of time, and the best estimate on the others.
    """

    def __init__(
        self,
        *,
        p: float,
        share: float,
        width_scale: float,
        noise: str,
        cap: float,
        floor: float,
        proved: bool = False,
        noise_scale: float = 0.0,
        theta_norm: float = 0.0,
    ) -> None: ...

class ConstantRate:
    """Explore at one rate at every step, else play the best estimate."""

    def __init__(self, rate: float | None) -> None:
        """None is greedy play, which has no rate."""

class InverseGaps:
    """Draw an arm, with 1 / (K + gamma gap) for those below the best."""

    def __init__(self, *, gamma: float, grows: bool, by_noise: bool) -> None:
        """
        gamma itself or, if it grows, times sqrt(t); gaps as they are or over the noise.
        """

def exploration_weights(n: object, q: float) -> NDArray[numpy.float64]:
    """(K,): min(1, exp(1 - n / q)), as the exploring law has it."""

def exps(values: object) -> NDArray[numpy.float64]:
    """(n,): exp of each, the same bits everywhere."""

def logs(values: object) -> NDArray[numpy.float64]:
    """(n,): log of each, the same bits everywhere."""

def erfcs(values: object) -> NDArray[numpy.float64]:
    """(n,): erfc of each, the same bits everywhere."""

def normals(pick: int, tie: int, n: int) -> NDArray[numpy.float64]:
    """
    (n,): the standard normals that Thompson sampling draws with these coins.
    """

def win_probabilities(means: object, deviations: object) -> NDArray[numpy.float64]:
    """
    (n,): the probability that each of n independent normals is the largest.
    """

class Statistics:
    """
    n, A, b, sum_r and sum_rr of every arm, and the estimates solved from them.
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        ridge: str = "paper",
        value: float = 1.0,
        units: str = "as given",
        origin: object | None = None,
        half_life: object | None = None,
        weighted_widths: bool = False,
    ) -> None: ...
    @property
    def fades(self) -> Literal["steps", "time"] | None:
        """
        By what rows fade, if they do: the steps of their decisions, or the time that these tell in their tag.
        """

    @property
    def clock(self) -> int:
        """The tick of the latest decision that was learned, if rows fade."""

    def as_of(self, t: int, tag: int = 0) -> None:
        """
        If rows fade: all else is as of this step, or of this time in minutes; no earlier than the clock.
        """

    @property
    def n_arms(self) -> int: ...
    @property
    def dim(self) -> int:
        """The number of values in a context, d."""

    @property
    def units(self) -> Literal["free", "as given"]:
        """
        'as given', where y = x and all that follows is of x and r; or 'free', where sums are of y = (1, x - o) and r - l, and estimates of z = (1, (x - o - m) / s) and r - l - r0.
        """

    @property
    def deviation(self) -> float:
        """Of all rewards, when units were last looked at; 1 in units as given."""

    @property
    def base(self) -> float:
        """
        What scores leave out, since all arms share it: l + r0 in free units, else 0.
        """

    @property
    def nbytes(self) -> int:
        """Bytes held: sums, estimates and marks of what is to be solved."""

    @property
    def n(self) -> NDArray[numpy.float64]:
        """(K,): how many rows, by weight."""

    @property
    def sum_r(self) -> NDArray[numpy.float64]:
        """(K,): sum of r, or of r - l."""

    @property
    def sum_rr(self) -> NDArray[numpy.float64]:
        """(K,): sum of r^2, or of (r - l)^2."""

    @property
    def b(self) -> NDArray[numpy.float64]:
        """(K, D): sum of r y."""

    @property
    def A(self) -> NDArray[numpy.float64]:
        """(K, D, D): sum of y y'."""

    def records(self) -> NDArray[numpy.float64]:
        """
        (K, 3 + D + D (D + 1) / 2): n, sum_r, sum_rr, b and the upper triangle of A by rows.
        """

    def restore(self, records: object) -> None:
        """Takes the sums from what `records` gave."""

    def renew(self) -> None:
        """In free units: takes the means and deviations of all rows anew."""

    def estimates(self) -> NDArray[numpy.float64]:
        """
        (K, d): theta_hat, solved where it changed: slopes in the user's units.
        """

    def intercepts(self) -> NDArray[numpy.float64]:
        """
        (K,): what is expected at x = 0, in the user's units; 0 if units are as given.
        """

    def standard(self, X: object) -> NDArray[numpy.float64]:
        """(n, D): rows of z, or in units as given of X itself."""

    def standard_estimates(self) -> NDArray[numpy.float64]:
        """(K, D): theta_hat of z."""

    def scores(self, x: object) -> NDArray[numpy.float64]:
        """(K,): z' theta_hat, the expected reward less `base`."""

    def widths(self, x: object) -> NDArray[numpy.float64]:
        """
        (K,): sqrt(z' V^-1 z) with V = ridge I + A, for a constant ridge; keeps a factor of V for each arm.
        """

    def width_bounds(self, x: object) -> NDArray[numpy.float64]:
        """
        (K,): no less than the widths and little more, where factors are kept coarsely as well; else inf.
        """

    def noise(self) -> float:
        """
        The deviation of rewards about the estimates, for a constant ridge: from the arms with more than d rows, else the root of the mean squared reward, or 1.
        """

    def typical_noise(self) -> float:
        """The same, but so that one arm that is much noisier hardly counts."""

    def log_determinants(self) -> NDArray[numpy.float64]:
        """(K,): log det V."""

    @property
    def versions(self) -> NDArray[numpy.int64]:
        """(K,): a stamp for each arm; no two states of its sums share one."""

    def add(
        self,
        arm: int,
        x: object,
        reward: float,
        weight: float = 1.0,
        outcomes: object | None = None,
        t: int = 0,
        tag: int = 0,
    ) -> None:
        """
        n += w, b += w r x, A += w x x'; a negative weight takes a row back. Of the decision of step t, if rows fade.
        """

    def correct(
        self,
        arm: int,
        x: object,
        old: float,
        new: float,
        weight: float = 1.0,
        old_outcomes: object | None = None,
        new_outcomes: object | None = None,
        t: int = 0,
        tag: int = 0,
    ) -> None:
        """The row stays, its reward changes."""

    def merge(self, other: Statistics, into: Sequence[int]) -> None:
        """Adds the other's arm i to this arm into[i]."""

    def subtract(self, earlier: Statistics, into: Sequence[int]) -> None:
        """Takes the earlier one's arm i away from this arm into[i]."""

    def add_arm(self) -> None:
        """One more arm, of which nothing is known."""

    def remove_arm(self, arm: int) -> None: ...
    @property
    def n_active(self) -> int:
        """How many arms are not retired."""

    @property
    def active(self) -> NDArray[numpy.bool_]:
        """(K,): which arms are not retired."""

    def set_active(self, arm: int, active: bool) -> None:
        """Says whether an arm may be played; a bandit tells its state by itself."""

    def count_under_way(self) -> None:
        """
        From now on decisions that wait for their reward are counted, and kept with the sums.
        """

    @property
    def under_way(self) -> NDArray[numpy.int64]:
        """
        (K,): how many decisions of each arm wait for their reward, 0 where they are not counted; below 0 in what was learned since a base, if the base counts decisions that were learned here.
        """

    @property
    def digits_lost(self) -> NDArray[numpy.float64]:
        """
        (K, 2 + d): how many of sixteen digits n, rewards and each feature have lost in an arm, since rows were taken back that were far larger than the others; 0 below ten. An arm that kept fewer than four was emptied. Not kept in files.
        """

    def arrays(self) -> dict[str, NDArray[numpy.generic]]:
        """All that must be kept, by name."""

    def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None:
        """Takes back what `arrays` gave, if these are sums of rows."""

    def copy(self) -> Statistics: ...

    not_summed: ClassVar[tuple[str, ...]]

    def open_outcomes(self, n: int) -> None:
        """
        From now on every row has n outcomes next to its reward, which is their sum by weights that stay.
        """

    @property
    def n_outcomes(self) -> int:
        """How many outcomes a row has; 0 if it has a reward alone."""

    def set_weights(self, weights: object, offsets: object | None = None) -> None:
        """
        Says by which weights estimates and noise are, and what is added to each arm in free units.
        """

    def reweigh(self, weights: object) -> None:
        """
        Makes the reward of every row the sum of its outcomes by these weights.
        """

    def outcome_estimates(self) -> NDArray[numpy.float64]:
        """(n, K, D): theta_hat of z, outcome by outcome."""

    @property
    def outcome_bases(self) -> NDArray[numpy.float64]:
        """
        (n,): what the estimates of each outcome leave out, since all arms share it; 0 as given.
        """

class Units:
    """The units of a state at one moment: what its estimates are of."""

    @property
    def base(self) -> float:
        """What scores leave out, since all arms share it: l + r0."""

    def standard(self, X: object) -> NDArray[numpy.float64]:
        """(n, D): rows of z = (1, (x - o - m) / s)."""

class AutoTunedStatistics(Statistics):
    """Sums of explored rows, and the p that follows from them."""

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        ridge: str = "paper",
        value: float = 1.0,
        units: str = "as given",
        origin: object | None = None,
    ) -> None: ...
    @property
    def nbytes(self) -> int:
        """Bytes held."""

    @property
    def sample(self) -> NDArray[numpy.float64]:
        """(m, d): the latest explored contexts, at most 64, the oldest first."""

    @property
    def next_look(self) -> float:
        """Rows at which p is looked at again."""

    @property
    def shares(self) -> NDArray[numpy.float64]:
        """(K,): of p, whatever they add up to; empty if all arms share alike."""

    @property
    def turnover(self) -> NDArray[numpy.float64]:
        """(2,): arms that came after the first row, and arms that were removed."""

    @overload
    def p(self, rule: AutoSchedule) -> float:
        """The p in force."""

    @overload
    def p(self, rule: AutoEvidence) -> float: ...
    @overload
    def look(self, rule: AutoSchedule, t: float) -> tuple[float, float, NDArray[numpy.float64], float]:
        """
        Noise, gap, losses with 1, 1.5, 1.5^2, ... times the rows, and the p that they ask for. A question.
        """

    @overload
    def look(
        self, rule: AutoEvidence, t: float
    ) -> tuple[float, float, NDArray[numpy.float64], float, NDArray[numpy.float64]]:
        """The same, and each arm's share of p."""

    @overload
    def learned(self, rule: AutoSchedule, x: object, weight: float, t: int) -> bool:
        """
        An explored row was added to the sums: keeps its context and looks, if it is time. Whether p, or a share of it, may have changed.
        """

    @overload
    def learned(self, rule: AutoEvidence, x: object, weight: float, t: int) -> bool: ...
    def merge(self, other: Statistics, into: Sequence[int]) -> None:
        """Adds the other's arm i to this arm into[i]."""

    def subtract(self, earlier: Statistics, into: Sequence[int]) -> None:
        """Takes the earlier one's arm i away from this arm into[i]."""

    def add_arm(self) -> None:
        """One more arm, of which nothing is known."""

    def remove_arm(self, arm: int) -> None: ...
    def arrays(self) -> dict[str, NDArray[numpy.generic]]:
        """All that must be kept, by name."""

    def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None:
        """Takes back what `arrays` gave, if these are sums of rows."""

    def copy(self) -> AutoTunedStatistics: ...

    not_summed: ClassVar[tuple[str, ...]]

class LazyStatistics(Statistics):
    """
    Sums of rows, of which an arm is solved when it has enough more of them.
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        ridge: float | None,
        units: str = "as given",
        origin: object | None = None,
        half_life: object | None = None,
    ) -> None: ...
    @property
    def rank(self) -> int:
        """
        How many of the values that an estimate multiplies vary, the constant among them.
        """

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    @property
    def solves(self) -> int:
        """
        How often some arms were solved: by what changes rows, not by what looks at them.
        """

    def fits(self) -> NDArray[numpy.float64]:
        """
        (K, 3): of the rows that an arm was solved for: n, squared residuals, freedom.
        """

    def deviations(self, noise: str) -> NDArray[numpy.float64]:
        """
        (K,): what the noise of each arm is taken to be, by 'pool', 'max' or 'shrunk'.
        """

    def typical_norm(self) -> float:
        """
        The root of the mean squared reward over that of the mean squared length of contexts, as solved for.
        """

    @property
    def ridge(self) -> float:
        """
        On slopes, in the units that estimates are of: given, or what the sums make likely.
        """

    def arrays(self) -> dict[str, NDArray[numpy.generic]]:
        """All that must be kept, by name."""

    def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None:
        """Takes back what `arrays` gave, if these are sums of rows."""

    def copy(self) -> LazyStatistics: ...

    not_summed: ClassVar[tuple[str, ...]]

class Pacer:
    """The price that keeps the spend of a bandit within its budget."""

    def __init__(self, total: float, length: float, repeats: bool) -> None: ...
    @property
    def price(self) -> float: ...
    @property
    def spent(self) -> float: ...
    @property
    def decisions(self) -> float: ...
    @property
    def waiting(self) -> float: ...
    def begin(self) -> None: ...
    def count(self, cost: float) -> None: ...
    def correct(self, before: float, after: float) -> None: ...
    def expire(self) -> None: ...
    def await_cost(self) -> None: ...
    def see(self, reward: float) -> None: ...
    def affords(self, cost: float, bound: float) -> bool: ...
    def merge(self, other: Pacer) -> None: ...
    def subtract(self, earlier: Pacer) -> None: ...
    def values(self) -> NDArray[numpy.float64]:
        """(10,): what must be kept."""

    def restore(self, values: object) -> None: ...

class ArmSet:
    """Arms that were looked up beforehand; see `Bandit.arms`."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str | int]: ...
    def __repr__(self) -> str: ...

class Engine:
    """
    What every decision of a bandit passes through: clock, arms, coins, estimates.
    """

    def __init__(
        self,
        policy: object,
        rule: object | None,
        state: object,
        labels: list[str | int],
        seed: int,
        read_context: Callable[[Any], NDArray[numpy.float64]],
        *,
        features: tuple[str, ...] | None = None,
        sign: float = 1.0,
        normalize: bool = False,
        reward_range: tuple[float, float] | None = None,
        outcomes: tuple[Any, ...] | None = None,
        budget: tuple[Any, ...] | None = None,
        bounds: tuple[list[float], list[float]] | None = None,
    ) -> None: ...
    def decide(
        self,
        x: Context,
        *,
        eligible: Iterable[Arm] | None = None,
        probabilities: Literal["all"] | None = None,
        t: int | None = None,
        propensity: Literal["marginal"] | None = None,
        unit: str | None = None,
        epoch: int | None = None,
        weights: Mapping[str, float] | None = None,
        at: datetime | float | None = None,
    ) -> Decision:
        """
        Choose an arm for one context, and advance the clock.

        Parameters
        ----------
        x
            A numpy row, a list, or a mapping by feature name.
        eligible
            The arms that may be played this time; all that are not retired if left out. Labels, or a boolean for each of
            `bandit.arms` as a numpy row, or `bandit.arms.subset(labels)`, which need no look-up.
        probabilities
            "all" for `decision.probabilities`, those of every arm at this very step.
        t
            The step to decide, with the coins of that step: for clocks that are handed out in ranges, and to replay a log. It
            is later than the clock, which stands at it afterwards; steps in between stay unused. The next step if left out.
        propensity
            "marginal" for a `decision.propensity` over all coins, which equals that of `predict_proba`: what an evaluation
            needs. It makes a difference where a coin says what a step looks for, as in the default policy, whose steps are
            greedy or optimistic: left out, a decision looks for the one candidate that it plays, and its propensity is as if
            every step were of this kind (`decision.marginal` is False). Decisions of a bandit with a log, of a loop, and those
            with `probabilities="all"` always have the marginal one.
        unit
            The name of a session, a user, a machine: text of 1 to 256 characters. Within an epoch all of its decisions have the
            same coins, and meet the estimates and the clock that the epoch's first decision of any unit found: in the same
            context, with the same arms to choose from, it has the same arm. The propensity is over the coins of units.
        epoch
            The number of the epoch, which goes forward only, for a bandit whose own setting `epoch` does not count them.
        weights
            Of outcomes, by name, for this decision alone: the dial. Those left out weigh what they usually do. Nothing is
            learned again: estimates are linear in them.
        at
            When the decision is made, for a policy that forgets by time (`half_life="7 days"`): a datetime with its zone, or
            seconds since 1970, at most 10 half-lives from the latest (`set_time`). It is kept in `decision.tag`, in minutes. A
            loop knows it by itself.

        Examples
        --------
        >>> import armlet
        >>> one, other = (armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1) for _ in range(2))
        >>> one.decide([0.5]).id == other.decide([0.5], t=1).id
        True
        >>> one.decide([0.5], t=1)
        Traceback (most recent call last):
        armlet.errors.InvalidValueError: t is 1 but the clock stands at 1 and goes forward only, up to 2^63 - 1; give a later step
        >>> default = armlet.Bandit(["a", "b"], 1, seed=1)
        >>> for _ in range(20):
        ...     default.learn(default.decide([0.5]), 1.0)
        >>> default.decide([0.5]).marginal, default.decide([0.5], propensity="marginal").marginal
        (False, True)
        >>> sticky = armlet.Bandit(["a", "b"], 1, seed=1, epoch=1000)
        >>> len({sticky.decide([0.5], unit="session-17").arm for _ in range(1000)})
        1
        """

    def _advance_to(self, t: int) -> None:
        """
        Set the clock forward: the next decision is of step t + 1. Steps in between stay unused, and their ids too.
        """

    def set_time(self, at: datetime | float) -> None:
        """
        Set the time of a bandit that forgets by time, after a pause, or after a wrong one.

        `decide(at=)` refuses a time that is more than 10 half-lives from the latest, and `learn`, `partial_fit` and `merge` rows
        that are further ahead: such a row would outweigh all others. The time that passes while the program runs is added to
        the latest. Nothing that was learned changes, and nothing is recorded.

        Parameters
        ----------
        at
            The time now: a datetime with its zone, or seconds since 1970.

        Examples
        --------
        >>> import armlet
        >>> from datetime import datetime, timedelta, UTC
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(half_life="1 day"), seed=1)
        >>> monday = datetime(2026, 3, 2, tzinfo=UTC)
        >>> bandit.learn(bandit.decide([0.5], at=monday), 1.0)
        >>> summer = monday + timedelta(days=90)
        >>> bandit.set_time(summer)
        >>> bandit.decide([0.5], at=summer).arm in ("a", "b")
        True
        """

    def learn(self, decision: Decision, reward: Reward, *, weight: float = 1.0) -> None:
        """
        Learn the reward of a decision: late, out of order, or never, but only once.

        Parameters
        ----------
        decision
            What `decide` gave.
        reward
            Any finite number; a cost if the objective is "min". Of a bandit with several outcomes, those that have come, by
            name: the others may come in later calls, and the row is learned when all have.
        weight
            How much it counts, a positive number, at least 1e-40. Of outcomes that come apart, that of the first call counts,
            and another one is refused.
        """

    def correct(self, decision: Decision, old_reward: Reward, new_reward: Reward) -> None:
        """
        Replace the reward that was learned from a decision, exactly but for rounding.
        """

    def forget(self, decision: Decision, reward: Reward) -> None:
        """
        Take back what was learned from a decision, exactly but for rounding; it may be learned again.
        """

    def expire(self, decision: Decision) -> None:
        """
        Stop waiting for the reward of a decision, which will not come. If it comes after all, it can still be learned.
        A hard budget keeps the upper end of its cost back all the same, until that is learned or `bill` says what it is.

        The default policy counts decisions whose rewards are under way, and takes an arm with many of them for better known
        than its rewards alone make it (`state.under_way`).

        Parameters
        ----------
        decision
            What `decide` gave, without a reward.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, seed=1)
        >>> decision = bandit.decide([0.5])
        >>> int(bandit.state.under_way.sum()), decision.expired
        (1, False)
        >>> bandit.expire(decision)
        >>> int(bandit.state.under_way.sum()), decision.expired
        (0, True)
        >>> bandit.learn(decision, 1.0)
        """

    def bill(self, decision: Decision, cost: float) -> None:
        """
        Count what a decision costs in the budget, and learn nothing from it.

        For a cost that should not teach, and for one that will never come: 0 releases what a hard budget keeps back for it. A
        later bill, or a cost that is learned later, takes its place.

        Parameters
        ----------
        decision
            What `decide` gave.
        cost
            Any finite number, in the units of the budget; `reward_range` says nothing about it.

        Examples
        --------
        >>> import armlet
        >>> budget = armlet.Budget("cost", total=10.0, horizon=100, hard=True)
        >>> bandit = armlet.Bandit(
        ...     ["a", "b"], 1, outcomes={"quality": 1.0, "cost": 0.0}, reward_range={"cost": (0, 6)}, budget=budget, seed=1
        ... )
        >>> decision = bandit.decide([0.5])
        >>> bandit.bill(decision, 0.0)  # the request was never sent
        >>> bandit.budget
        Spending(0 of 10 cost spent, 10 left for 99 decisions; price ...)
        """

    def _decide_many(
        self,
        X: object,
        eligible: object | None,
        t: int | None = None,
        propensity: object | None = None,
        units: list[object] | None = None,
        epoch: int | None = None,
        weights: object | None = None,
    ) -> Decisions: ...
    def _learn_many(
        self, decisions: list[Decision], rewards: NDArray[numpy.float64], weights: NDArray[numpy.float64]
    ) -> None: ...
    def _learn_rows(
        self,
        X: NDArray[numpy.float64],
        arms: list[str | int],
        rewards: NDArray[numpy.float64],
        weights: NDArray[numpy.float64],
        explored: NDArray[numpy.bool],
        steps: int,
        fixed: float,
    ) -> None:
        """`fixed` is the weight of those that no reward chose."""

    def _learn_logged(
        self,
        X: NDArray[numpy.float64],
        arms: list[str | int],
        steps: NDArray[numpy.int64],
        rewards: NDArray[numpy.float64],
        weights: NDArray[numpy.float64],
        explored: NDArray[numpy.bool],
        propensities: NDArray[numpy.float64],
        tags: NDArray[numpy.int64],
        replaces: NDArray[numpy.float64],
    ) -> None: ...
    def _take_lost(self) -> tuple[list[int], list[int]]:
        """
        Arms that have lost digits since the last call, and those of them that were emptied.
        """

    def _probabilities(
        self, X: object, t: int | None, eligible: object | None, weights: object | None = None
    ) -> NDArray[numpy.float64]:
        """(n, K): at step t, or at the next one."""

    def _view(
        self, eligible: object | None, weights: object | None = None, priced: bool = True
    ) -> tuple[list[str | int], NDArray[numpy.bool], NDArray[numpy.float64], Units | None, float]:
        """
        Labels, which of them may be played, theta_hat, the units that it is in if they are free, and what scores leave out, all of one moment.
        """

    def _scaled(self, X: object) -> NDArray[numpy.float64]:
        """(n, d): contexts as the policy sees them."""

    def _arm_set(self, labels: Iterable[str | int]) -> ArmSet: ...
    def _replace(
        self,
        policy: object,
        rule: object | None,
        read_context: Callable[[Any], NDArray[numpy.float64]],
        *,
        features: tuple[str, ...] | None,
        reward_range: tuple[float, float] | None,
        outcomes: tuple[Any, ...] | None,
        budget: tuple[Any, ...] | None,
        bounds: tuple[list[float], list[float]] | None,
        columns: tuple[list[int], list[float]] | None,
        renew: Callable[[Any], object],
        fields: Callable[[], Mapping[str, Any]],
        values: tuple[tuple[object, str, object], ...],
    ) -> None:
        """
        Goes on with what is given and `renew(state)`, and sets attributes, in one turn. `columns` are, of other features, the place of each before, or -1, and what it was before where it is new.
        """

    def _add_arm(self, label: object) -> None: ...
    def _remove_arm(self, label: object) -> None: ...
    def _set_active(self, label: object, active: bool) -> None: ...
    def _begin_decision(self, label: str | int, explored: bool) -> None:
        """A decision of this arm, made elsewhere, waits for its reward."""

    def _tell_time(self, minutes: int) -> None:
        """
        When the next decision is made, in minutes since 1970, for a policy that forgets by time.
        """

    def _reach_time(self, minutes: int) -> None:
        """
        Rows of this time, in minutes since 1970, are in order: they were checked when they were recorded.
        """

    def _set_epochs(self, length: int | None, under_way: tuple[int, int, Any, float] | None) -> None:
        """
        How many decisions an epoch lasts, if the clock counts them, and the one that is under way.
        """

    def _begin_epoch(self, epoch: int, t: int) -> None:
        """
        What a decision of a unit at step t, made elsewhere, does if it is the first of its epoch.
        """

    @property
    def _epoch(self, /) -> int | None:
        """
        The number of the epoch that units are in; None before the first decision of one.
        """

    def _advance(self, steps: int) -> None: ...
    def _reseed(self, seed: object) -> None: ...
    def _know(self, seed: object) -> None:
        """Decisions made with this seed may be learned here."""

    def _snapshot(self) -> armlet.types.Snapshot:
        """All of the bandit, of one moment."""

    def _continue_lives(self, other: Engine) -> None:
        """
        The arms are those of another bandit in this process, so what was removed there is removed here.
        """

    def _end_lives(self, arms: Sequence[int]) -> None:
        """
        All that these arms had learned is gone, so none of it can be taken back.
        """

    def _become(self, other: Engine, values: tuple[tuple[object, str, object], ...]) -> None:
        """
        Goes on as another bandit is, which nobody uses after that, but for seeds and log; and sets attributes.
        """

    def _restore(self, state: object, labels: list[str | int], steps: int, fixed: float | None = None) -> None: ...
    @property
    def _fixed_rows(self) -> float:
        """The weight of rows that no reward chose."""

    @_fixed_rows.setter
    def _fixed_rows(self, arg: float, /) -> None: ...
    def _merge(
        self,
        state: object,
        labels: list[str | int],
        retired: list[str | int],
        steps: int,
        seeds: list[int],
        spending: NDArray[numpy.float64] | None,
        fields: Callable[[], Mapping[str, Any]],
        other: Engine,
    ) -> None:
        """`other` is the bandit that all of this is of."""

    def _attach(self, recording: object) -> None:
        """
        From now on `recording.recorder` receives every change, under `recording.lock`.
        """

    def _restore_spending(self, values: NDArray[numpy.float64]) -> None: ...
    @property
    def _spending_values(self, /) -> NDArray[numpy.float64] | None:
        """What `_restore_spending` takes, or None without a budget."""

    @property
    def _spending(self, /) -> tuple[float, float, int, int] | None:
        """
        The price, what was spent, decisions and costs to come, or None without a budget.
        """

    @property
    def _seed(self, /) -> int: ...
    @property
    def _labels(self, /) -> list[str | int]: ...
    @property
    def _retired(self, /) -> list[str | int]: ...
    @property
    def t(self) -> int:
        """Decisions taken so far."""

    @property
    def state(self, /) -> Any:
        """What is known: the sums of every arm, or what else the policy keeps."""

def _before_fork() -> None: ...
def _after_fork(is_child: bool) -> None: ...
def coins(seed: int, t: int) -> tuple[float, int, int, int]:
    """The coin, pick, tie-break and mark of step t."""

def unit_seed(seed: int, unit: str) -> int:
    """The seed of a unit's coins: those of epoch e are coins(unit_seed, e)."""

def rollout(
    contexts: object,
    rewards: object,
    start: Any,
    rule: Schedule
    | Optimism
    | Thompson
    | AutoSchedule
    | Evidence
    | AutoEvidence
    | LogBonus
    | ConstantRate
    | InverseGaps,
    seed: int,
    t: int,
    propensities: str,
) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.bool], Any]:
    """
    A rule over given contexts (T, d) and rewards (T, K), without the interpreter lock.
    """

def replay(
    contexts: object,
    arms: object,
    rewards: object,
    eligible: object,
    start: Any,
    rule: Schedule
    | Optimism
    | Thompson
    | AutoSchedule
    | Evidence
    | AutoEvidence
    | LogBonus
    | ConstantRate
    | InverseGaps,
    seed: int,
    t: int,
) -> tuple[NDArray[numpy.int64], NDArray[numpy.bool], Any]:
    """
    A rule that learns from rows (n, d) which another has played, as far as it would have played them.
    """

def level() -> str:
    """
    Which instructions the kernel uses on this processor: base, AVX2 or AVX-512.
    """

def _use_level(level: int) -> int:
    """For tests: run the code of an older processor."""

def argmax_rows(X: object, theta: object) -> NDArray[numpy.int64]:
    """(n,): the best arm of every row of X."""

def clear_argmax(X: object, theta: object) -> NDArray[numpy.int64]:
    """
    (n,): the best arm of every row of X; -1 where float32 leaves a doubt, or the row holds what is no number.
    """

def simulate_steps(
    table: object,
    start: Any,
    rule: Schedule
    | Optimism
    | Thompson
    | AutoSchedule
    | Evidence
    | AutoEvidence
    | LogBonus
    | ConstantRate
    | InverseGaps,
    horizon: int,
    checkpoints: object,
    environment_seed: int,
    policy_seed: int,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], Any]:
    """A rule in an environment that is a table, every step drawn."""

def simulate_events(
    table: object,
    start: Any,
    rule: Schedule | AutoSchedule | Evidence | AutoEvidence,
    horizon: int,
    checkpoints: object,
    generator: numpy.random.Generator,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], Any]:
    """The law of Algorithm 1, in jumps from one exploration to the next."""

def add_rows(
    records: object,
    X: object,
    arms: object,
    rewards: object,
    weights: object | None = None,
    origin: object | None = None,
) -> None:
    """
    Adds rows to the records of their arms in place, without the interpreter lock; not those of negative arms.
    """

def sum_rows(X: object, arms: object, rewards: object, n_arms: int) -> NDArray[numpy.float64]:
    """
    (n_arms, ...): the records of y = (1, x), without the interpreter lock; rows of negative arms are left out.
    """

def predict_played(
    theta: object, inverse: object, X: object, arms: object, rewards: object, learned: object
) -> NDArray[numpy.float64]:
    """
    (n,): what a reward model says of the arms played, without a row's own reward where it has learned that.
    """

def predict_target(
    theta: object, inverse: object, X: object, target: object, arms: object, played: object
) -> NDArray[numpy.float64]:
    """
    (n,): what a reward model says of the arms that a target plays, or of its probabilities (n, K); of the arms that were played, what `predict_played` says.
    """

def value_greedy(
    estimates: object,
    eligible: object,
    theta: object,
    inverse: object,
    X: object,
    arms: object,
    rewards: object,
    learned: object,
) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    (n,) each: the arm that is best by x' estimates, -1 where rounding could decide; what a reward model says of it, and of what was played, as `predict_played` does; and the same where that arm was played, 0 elsewhere.
    """

def row_features(
    pi: object,
    direct: object,
    rewards: object,
    chance: object,
    given: object,
    explored: object,
    model: object,
    h: object,
    most: float,
    shrink: float,
) -> NDArray[numpy.float64]:
    """(n, 13): what each row adds to estimates of a target's value."""

def sum_features(
    pi: object,
    direct: object,
    rewards: object,
    chance: object,
    given: object,
    explored: object,
    model: object,
    h: object,
    most: float,
    shrink: float,
) -> tuple[NDArray[numpy.float64], float]:
    """
    (16, 16): products of the features and the reward, summed over rows in their order; and the largest weight.
    """

def sum_moments(X: object, origin: object) -> NDArray[numpy.float64]:
    """
    (2, d): sums of x - origin and of its squares, over rows in their order.
    """

def gram(F: object, G: object) -> NDArray[numpy.float64]:
    """(13, 13): F' G, summed over rows in their order."""

def race(
    X: object,
    eligible: object,
    arms: object,
    below: object,
    above: object,
    certain: object,
    thetas: object,
    before: int,
    sums: object,
) -> tuple[NDArray[numpy.float64], NDArray[numpy.bool_]]:
    """
    (4, J): the sums, and what rows add to them: totals and squares of `below` and of `above` where policy j, of thetas (J, 1, K, d), plays the arm that was played; and (J,): whether it does in all that are certain.
    """

def sum_agreeing(
    X: object, eligible: object, arms: object, columns: object, thetas: object, dials: object
) -> NDArray[numpy.float64]:
    """
    (J, D, q): columns (n, q), summed over the rows where policy j of thetas (J, m, K, d) under dial k of (D, m) plays the arm that was played.
    """

def search_subset(
    how: str, x: NDArray[numpy.float64], rows: NDArray[numpy.float64], counts: NDArray[numpy.float64]
) -> tuple[NDArray[numpy.float64], float, bool, int]:
    """
    Return the weights, f, whether it is proved to be the minimum, and how many subsets were tried where that is counted.
    """

def estimate_subset(
    rows: NDArray[numpy.float64],
    counts: NDArray[numpy.float64],
    sums: NDArray[numpy.float64],
    weights: NDArray[numpy.float64],
    dim: int,
) -> NDArray[numpy.float64]:
    """
    Return theta_hat of a subset: the solution of (sqrt(n) I + A) theta = b.
    """

def json_bytes(value: object) -> bytes:
    """
    Plain values as JSON in UTF-8 without spaces, floats by the shortest digits that read back as they are.
    """

def json_line(seq: int, kind: str, at: int, fields: dict[str, Any], crc: int) -> tuple[bytes, int]:
    """
    An event as a line of a log, and the check value that it carries on from `crc`.
    """

class Lines:
    """The lines of a log: those in its file, and those that wait for it."""

    def __init__(self, name: str, fd: int, flush: str) -> None: ...
    @property
    def seq(self) -> int:
        """The number of the next event."""

    @property
    def crc(self) -> int:
        """The check value that it carries on."""

    @property
    def size(self) -> int:
        """Bytes in the file, all of whole lines."""

    @property
    def n_waiting(self) -> int:
        """Bytes that wait."""

    @property
    def due(self) -> int:
        """The number of the event at which a checkpoint is."""

    @due.setter
    def due(self, arg: int, /) -> None: ...
    @property
    def refusal(self) -> str | None:
        """Why nothing more is taken, once that is so."""

    @refusal.setter
    def refusal(self, value: str | None) -> None: ...
    def is_due(self, is_decision: bool) -> bool:
        """Whether a checkpoint, or much to seal, is due."""

    def follow(self, seq: int, crc: int, size: int) -> None:
        """Goes on after the lines of a file."""

    def write(self) -> None:
        """
        Passes all that waits to the system; what cannot be written goes on waiting.
        """

    def sync(self) -> None:
        """What was written is on the disk."""

    def since(self, place: int) -> bytes:
        """
        What was written from this place in the file on; nothing if that was dropped.
        """

    def drop(self, place: int, n: int, values: tuple[tuple[object, str, object], ...]) -> bool:
        """
        Lets go of n bytes from this place on, and sets attributes; False if that was done meanwhile.
        """

    def put(self, seq: int, line: bytes, crc: int, values: tuple[tuple[object, str, object], ...]) -> bool:
        """
        Writes a line that was made as event `seq`, when all before it were dropped; drops it too, and sets attributes. False if others came before it.
        """

def commit(
    lines: Lines | None,
    events: list[tuple[str, dict[str, Any]]],
    values: tuple[tuple[object, str, object] | tuple[object, str, object, object], ...],
    call: Callable[..., object] | None = None,
    args: tuple[Any, ...] = (),
) -> None:
    """
    Records events, calls a builtin function and sets attributes, if those of which a fourth entry says what they are still are that: all of it or nothing, whatever interrupts.
    """

class EventReader:
    """Reads lines of a log into columns."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def seq(self) -> int:
        """The number of the next event."""

    @seq.setter
    def seq(self, arg: int, /) -> None: ...
    @property
    def crc(self) -> int:
        """The check value of the last line."""

    @crc.setter
    def crc(self, arg: int, /) -> None: ...
    @property
    def dim(self) -> int:
        """Values of a context; -1: no line is read."""

    @dim.setter
    def dim(self, arg: int, /) -> None: ...
    @property
    def action_dim(self) -> int:
        """Values of an action; -1 in a log of arms."""

    @action_dim.setter
    def action_dim(self, arg: int, /) -> None: ...
    def read(self, data: bytes, begin: int, most: int) -> int:
        """
        Takes lines from `begin` on until one is for another reader, not at its end, or there are `most` events; gives where that is.
        """

    def note(self, at: int, size: int, crc: int) -> None:
        """Has an event that another reader has read."""

    def take(self) -> dict[str, Any]:
        """The columns of the events since the last call."""

def play_block(
    bandit: Engine, block: object, begin: int, end: int, known: tuple[dict[str, Any], ...]
) -> tuple[int, Decision | None]:
    """
    Plays the decisions and rewards of a block again; gives where it stops, and the decision made there if it is not as it is written. Where it stops for another reason, nothing of that event was done. `known` are dicts of decisions by id, of which the first takes those that are made.
    """

def write_events(
    kinds: NDArray[numpy.int8],
    decisions: dict[str, Any],
    rewards: dict[str, Any],
    others: list[bytes],
    is_of_actions: bool,
) -> bytes:
    """
    The lines of events that columns hold, in the order of their kinds; those of others are as they are.
    """

class ActionRows:
    """Actions that can be played: features (n, dz) and keys (n,)."""

    def __init__(self, Z: object, keys: object) -> None: ...
    def __len__(self) -> int: ...
    @property
    def Z(self) -> NDArray[numpy.float64]:
        """(n, dz): a copy of the features."""

    @property
    def keys(self) -> NDArray[numpy.uint64]:
        """(n,): a copy of the keys."""

    @property
    def nbytes(self) -> int: ...

class PairModel:
    """
    One ridge regression over pairs of a context and an action, items with intercepts.
    """

    def __init__(self, dx: int, dz: int, products: object, *, intercepts: bool, kept: int = 10000) -> None: ...
    @property
    def n(self) -> float:
        """Rows learned, by weight."""

    @property
    def n_rows(self) -> int:
        """Rows learned."""

    @property
    def n_terms(self) -> int:
        """The number of terms, D."""

    @property
    def n_items(self) -> int:
        """Items with an intercept."""

    @property
    def sigma(self) -> float:
        """The deviation of the noise."""

    @property
    def ridges(self) -> NDArray[numpy.float64]:
        """(3,): the ridges of x, z and their products, in standard units."""

    @property
    def kappa(self) -> float:
        """How many rows the prior of an intercept is worth."""

    @property
    def digits_lost(self) -> NDArray[numpy.float64]:
        """
        (2 + dx + dz,): how many of sixteen digits n, rewards and each feature have lost, since rows were taken back that were far larger than the others; 0 below ten. Sums that kept fewer than four were dropped. Not kept in files.
        """

    @property
    def losses(self) -> int:
        """How often digits were lost."""

    @property
    def last_exact_widths(self) -> int:
        """How many widths the last optimistic question computed exactly."""

    def add(self, key: int, x: object, z: object, reward: float, weight: float) -> None:
        """Learn one row."""

    def remove(self, key: int, x: object, z: object, reward: float, weight: float) -> None:
        """Take back a row that was learned, as if it had never been."""

    def correct(self, key: int, x: object, z: object, old: float, new: float, weight: float) -> None:
        """Exchange the reward of a row that was learned."""

    def merge(self, other: PairModel) -> None:
        """
        Add the rows of another model; its items count as learned later than the own ones.
        """

    def subtract(self, base: PairModel) -> None:
        """Leave what was learned since `base`, an earlier copy."""

    def solve(self) -> None:
        """
        Weigh the evidence again and solve: everything is a function of the sums then.
        """

    def copy(self) -> PairModel: ...
    def arrays(self) -> dict[str, NDArray[numpy.generic]]:
        """The whole state by name."""

    def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None:
        """Take the state that `arrays` returned."""

    def estimates(self, x: object, rows: ActionRows) -> NDArray[numpy.float64]:
        """(n,): the expected reward of every row."""

    def widths(self, x: object, rows: ActionRows, allowed: object | None = None) -> NDArray[numpy.float64]:
        """
        (n,): the posterior deviation of every row's expected reward, in units of sigma.
        """

    def greedy(self, x: object, rows: ActionRows, allowed: object | None) -> NDArray[numpy.int64]:
        """The rows that share the highest estimate."""

    def optimistic(
        self, x: object, rows: ActionRows, t: int, allowed: object | None, scale: float = 0.85
    ) -> NDArray[numpy.int64]:
        """
        The rows that share the highest estimate plus scale sigma w sqrt(2 log(1 + t w^2 / D)).
        """

    def draws(
        self, x: object, rows: ActionRows, t: int, seed: object, n: int, v: float, allowed: object | None
    ) -> list[NDArray[numpy.int64]]:
        """
        For each of n draws from the posterior, v times as wide, the rows that share the highest value.
        """

def action_keys(labels: Sequence[str | int], Z: NDArray[numpy.float64]) -> NDArray[numpy.uint64]:
    """
    (n,): of each action eight bytes of BLAKE2b of its label and features, little-endian.
    """

def read_action_dicts(
    actions: object, names: tuple[str, ...] | None, width: int
) -> tuple[list[str | int], NDArray[numpy.float64]] | None:
    """
    Labels and (n, width) features of a dict of dicts of numbers; None if it is anything else.
    """
