"""The bandit that users hold: a policy, its state, arm labels, a clock and a seed.

Contexts and rewards are checked here, once; everything inside trusts them. Any number of threads may call `decide` and
the reads while others `learn`: each call sees and leaves a whole state.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.core import arms as labelling
from armlet.core import columns, files
from armlet.core.contexts import ContextReader, feature_names
from armlet.core.errors import DecisionError, MergeError, ModelFileError
from armlet.core.kernel import Decision, Decisions, Engine, Statistics, argmax_rows
from armlet.core.types import Arm, Bool, Context, Contexts, Float64, Policy
from armlet.core.version import __version__
from armlet.policies import POLICIES, Uniform

Objective: TypeAlias = Literal["max", "min"]
Normalize: TypeAlias = Literal["l2"]

CHUNK = 4096  # rows learned in one go; other threads get their turn in between


class Bandit:
    """A contextual bandit: `decide`, play, `learn`.

    Parameters
    ----------
    arms
        Labels, str or int.
    dim
        Values in a context; may be left out if `features` are named.
    policy
        How to choose: `armlet.ContextualEpsilonGreedy(p=...)`, or any other policy.
    features
        Names of the values, for contexts given as mappings or tables.
    objective
        "max" for rewards, "min" for costs.
    normalize
        "l2" divides every context by its length (a zero context stays); None leaves contexts as they are.
    seed
        The policy's coins, a function of the seed and the step; 0 <= seed < 2^128. Drawn at random if left out.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(arms=["north", "south"], dim=2, policy=armlet.ContextualEpsilonGreedy(p=4), seed=7)
    >>> decision = bandit.decide([1.0, 0.5])
    >>> decision.arm, decision.propensity, decision.explored
    ('south', 1.0, True)
    >>> bandit.learn(decision, 0.3)
    """

    def __init__(
        self,
        arms: Iterable[Arm],
        dim: int | None = None,
        *,
        policy: Policy,
        features: Iterable[str] | None = None,
        objective: Objective = "max",
        normalize: Normalize | None = None,
        seed: int | None = None,
    ) -> None:
        labels = labelling.check_labels(arms)
        names, dim = feature_names(features, dim)
        _check_choice("objective", objective, ("max", "min"))
        _check_choice("normalize", normalize, (None, "l2"))
        policy.check(len(labels), dim, 0)
        self._policy, self._objective, self._normalize = policy, objective, normalize
        self._seed = _check_seed(seed)
        self._sign = 1.0 if objective == "max" else -1.0
        self._reader = ContextReader(dim, names)
        self._engine = self._start(labels, [], 0, policy.init(len(labels), dim))

    def _start(self, labels: list[Arm], retired: Iterable[Arm], t: int, state: Statistics) -> Engine:
        engine = Engine(
            self._policy,
            self._policy.schedule(),
            state,
            labels,
            self._seed,
            self._reader.row,
            sign=self._sign,
            normalize=self._normalize == "l2",
        )
        engine.t = t
        for arm in retired:
            engine.set_active(labelling.find(engine, arm), False)
        return engine

    def _like(self, state: Statistics) -> Bandit:
        """Make a bandit that differs in its state only."""
        twin = copy.copy(self)
        twin._engine = self._start(self.arms, self.retired, self.t, state)
        return twin

    def _matrix(self, X: Contexts) -> Float64:
        rows = self._reader.matrix(X)
        return self._engine.normalized(rows) if self._normalize else rows

    def _mask(self, eligible: Iterable[Arm] | None) -> Bool | None:
        return None if eligible is None else labelling.mask(self._engine, eligible)

    # ---- the loop

    def decide(self, x: Context, *, eligible: Iterable[Arm] | None = None) -> Decision:
        """Choose an arm for one context, and advance the clock.

        Parameters
        ----------
        x
            A numpy row, a list, or a mapping by feature name.
        eligible
            The arms that may be played this time; all that are not retired if left out.
        """
        if eligible is None:
            return self._engine.decide(x)
        return self._engine.decide(x, self._mask(eligible))

    def learn(self, decision: Decision, reward: float, *, weight: float = 1.0) -> None:
        """Learn the reward of a decision: late, out of order, or never, but only once."""
        self._engine.learn(decision, reward, weight)

    def decide_many(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Decisions:
        """Choose for many contexts: the same decisions, bit for bit, as one by one."""
        return self._engine.decide_many(self._matrix(X), self._mask(eligible))

    def learn_many(
        self,
        decisions: Sequence[Decision] | Decisions,
        rewards: npt.ArrayLike,
        *,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Learn the rewards of many decisions, all or none."""
        n = len(decisions)
        values, sizes = columns.rewards(rewards, n).tolist(), columns.weights(weights, n).tolist()
        given = [decisions[row] for row in range(n)]
        if len({decision.id for decision in given}) < n:
            raise DecisionError("decisions holds one decision more than once; learn it once")
        for row, decision in enumerate(given):
            if decision.learned:
                raise DecisionError(f"decision {decision.id} in row {row} was learned already; leave it out")
            labelling.find(self._engine, decision.arm)
        for decision, value, size in zip(given, values, sizes, strict=True):
            self._engine.learn(decision, value, size)

    def correct(self, decision: Decision, old_reward: float, new_reward: float) -> None:
        """Replace the reward that was learned from a decision, exactly."""
        self._engine.correct(decision, old_reward, new_reward)

    def forget(self, decision: Decision, reward: float) -> None:
        """Take back what was learned from a decision, exactly; it may be learned again."""
        self._engine.forget(decision, reward)

    # ---- logs

    def partial_fit(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from a log. The clock, which counts decisions of this bandit, stays.

        Parameters
        ----------
        X, arms, rewards
            One row, label and reward per logged step.
        explored
            Which steps were played at random: a column of booleans, or one for all. Policies that learn from
            explored steps only insist on it.
        weights
            How much each step counts; 1 if left out.
        """
        rows = self._matrix(X)
        n = len(rows)
        played = labelling.indices(self._engine, columns.labels(arms, n))
        values, sizes = columns.rewards(rewards, n), columns.weights(weights, n)
        if explored is None and self._policy.learns_from == "explored steps":
            raise ValueError(
                "explored is missing: this policy learns only from steps that were played at random; "
                "say which with a column of booleans, or explored=True if all were"
            )
        coins = columns.explored(True if explored is None else explored, n)
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            self._engine.learn_rows(rows[part], played[part], values[part], sizes[part], coins[part])

    def fit(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Forget everything, then learn from a log as `partial_fit` does."""
        fresh = self._like(self._policy.init(len(self.arms), self.dim))
        fresh.partial_fit(X, arms, rewards, explored=explored, weights=weights)
        self._engine.state.restore(fresh._engine.state.records())

    # ---- reading: never random, never changes anything

    def predict(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> npt.NDArray[Any]:
        """Give the arm that looks best for each context, (n,); the first of those that tie."""
        mask = self._mask(eligible)
        arms = np.flatnonzero(self._engine.active if mask is None else self._engine.active & mask)
        if not arms.size:
            raise ValueError("eligible leaves no arm to predict: name at least one that is not retired")
        best = argmax_rows(self._matrix(X), self._policy.estimates(self._engine.state)[arms])
        return labelling.label_array(self.arms)[arms[best]]

    def predict_expectations(self, X: Contexts) -> Float64:
        """Give the estimated reward (or cost) of every arm, (n, K); columns in the order of `arms`."""
        theta = self._policy.estimates(self._engine.state)
        return self._sign * (self._matrix(X) @ theta.T)

    def predict_proba(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Float64:
        """Give the probability with which the next decision would play each arm, (n, K)."""
        return self._engine.probabilities(self._matrix(X), self.t + 1, self._mask(eligible))

    # ---- arms

    def add_arm(self, arm: Arm) -> None:
        """Add an arm of which nothing is known yet."""
        label = labelling.check_label(arm)
        if self._engine.index_of(label) is not None:
            raise ValueError(f"there is an arm {label!r} already; restore_arm brings a retired one back")
        self._policy.check(len(self.arms) + 1, self.dim, self.t)
        self._engine.add_arm(label)

    def retire_arm(self, arm: Arm) -> None:
        """Play an arm no more, but keep what is known of it and learn its late rewards."""
        index = labelling.find(self._engine, arm)
        if not np.delete(self._engine.active, index).any():
            raise ValueError(f"arm {arm!r} is the only one left to play; add another before retiring it")
        self._engine.set_active(index, False)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._engine.set_active(labelling.find(self._engine, arm), True)

    def remove_arm(self, arm: Arm) -> None:
        """Drop an arm and all that is known of it; its late rewards will be refused."""
        index = labelling.find(self._engine, arm)
        if not np.delete(self._engine.active, index).any():
            raise ValueError(f"arm {arm!r} is the only one left to play; add another before removing it")
        self._policy.check(len(self.arms) - 1, self.dim, self.t)
        self._engine.remove_arm(index)

    # ---- merging and files

    def merge(self, other: Bandit) -> None:
        """Add what another bandit learned, arm by arm, and its count of decisions."""
        self._check_same(other)
        new = [arm for arm in other.arms if arm not in self.arms]
        self._policy.check(len(self.arms) + len(new), self.dim, self.t)
        for arm in new:
            self.add_arm(arm)
        for arm in set(new) & set(other.retired):
            self.retire_arm(arm)
        into = labelling.indices(self._engine, other.arms)
        self._engine.state.merge(other._engine.state, into.tolist())
        self._engine.t += other.t

    def __add__(self, other: Bandit) -> Bandit:
        """Merge into a new bandit with this one's seed."""
        if not isinstance(other, Bandit):
            return NotImplemented
        total = self._like(self._engine.state.copy())
        total.merge(other)
        return total

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file, whole or not at all: a JSON header and raw little-endian arrays."""
        t, labels, active, records = self._engine.snapshot()
        header: dict[str, files.Json] = {
            "armlet": __version__,
            "policy": {"name": type(self._policy).__name__, "settings": _settings(self._policy)},
            "arms": list(labels),
            "retired": [arm for arm, plays in zip(labels, active, strict=True) if not plays],
            "dim": self.dim,
            "features": None if self.features is None else list(self.features),
            "objective": self._objective,
            "normalize": self._normalize,
            "t": t,
            "seed": self._seed,
        }
        files.write_model(path, header, {"records": records})

    # ---- what it is

    @property
    def arms(self) -> list[Arm]:
        """The labels, retired ones included, in the order of columns."""
        return self._engine.labels

    @property
    def retired(self) -> list[Arm]:
        """The labels of retired arms."""
        return [arm for arm, active in zip(self.arms, self._engine.active, strict=True) if not active]

    @property
    def dim(self) -> int:
        """Values in a context."""
        return self._reader.dim

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the values in a context, if given."""
        return self._reader.features

    @property
    def objective(self) -> Objective:
        """Whether rewards are sought or costs avoided."""
        return self._objective

    @property
    def normalize(self) -> Normalize | None:
        """How contexts are scaled."""
        return self._normalize

    @property
    def policy(self) -> Policy:
        """How it chooses."""
        return self._policy

    @property
    def state(self) -> Statistics:
        """What it knows: the sums of every arm."""
        return self._engine.state

    @property
    def seed(self) -> int:
        """The seed of its coins."""
        return self._seed

    @property
    def t(self) -> int:
        """Decisions taken so far."""
        return self._engine.t

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes, whatever t."""
        return self._engine.state.nbytes

    def __repr__(self) -> str:
        return f"Bandit(arms={self.arms}, dim={self.dim}, policy={self._policy}, t={self.t})"

    def _check_same(self, other: Bandit) -> None:
        for what in ("policy", "dim", "features", "objective", "normalize"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise MergeError(
                    f"{what} is {ours!r} here and {theirs!r} there; only sums of the same kind add up"
                )


def load(path: str | os.PathLike[str], *, policy: Policy | None = None) -> Bandit:
    """Read a bandit back from its file; it decides as the saved one would, bit for bit.

    Parameters
    ----------
    path
        A file written by `Bandit.save`.
    policy
        The policy, if it is not one of Armlet's own.
    """
    header, arrays = files.read_model(path)
    try:
        return _restore(header, arrays["records"], policy)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)}: the file does not describe a bandit: {error}") from error


def _restore(header: dict[str, Any], records: npt.NDArray[Any], policy: Policy | None) -> Bandit:
    labels = labelling.check_labels(header["arms"])
    chosen = _read_policy(header["policy"], policy)
    bandit = Bandit(
        labels,
        header["dim"],
        policy=Uniform(),  # any arms will do for it; the file's own may have met theirs one by one
        features=header["features"],
        objective=header["objective"],
        normalize=header["normalize"],
        seed=header["seed"],
    )
    state = chosen.init(len(labels), bandit.dim)
    if not np.isfinite(records).all() or (records[:, 0] < -1e-9).any():
        raise ValueError("the sums are not those of any rows")
    state.restore(records)
    bandit._policy = chosen
    bandit._engine = bandit._start(labels, header["retired"], header["t"], state)
    return bandit


def _read_policy(saved: dict[str, Any], given: Policy | None) -> Policy:
    name = saved["name"]
    if given is None and name not in POLICIES:
        raise ValueError(
            f"its policy is {name}, which is not Armlet's; pass it as load(path, policy={name}(...))"
        )
    policy = given if given is not None else POLICIES[name](**saved["settings"])
    if (type(policy).__name__, _settings(policy)) != (name, saved["settings"]):
        raise ValueError(f"it was saved with {name} and settings {saved['settings']}, not with {policy}")
    return policy


def _settings(policy: Policy) -> dict[str, Any]:
    if not dataclasses.is_dataclass(policy):
        raise TypeError(
            f"policy is a {type(policy).__name__}, not a dataclass, so its settings cannot be saved"
        )
    settings: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(policy)))
    return settings


def _check_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**128:
        raise ValueError(f"seed is {seed!r}; give an integer from 0 to 2^128 - 1, or leave it out")
    return int(seed)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")
