"""The bandit that users hold: a policy, its state, arm labels, a clock and a seed.

Contexts and rewards are checked here, once; everything inside trusts them. Any number of threads may call `decide` and
the reads while others `learn`: each call sees and leaves a whole state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armlet.core import arms as labelling
from armlet.core import columns
from armlet.core.contexts import feature_names
from armlet.core.errors import DecisionError
from armlet.core.kernel import Decision, Decisions, Engine, argmax_rows
from armlet.core.settings import Normalize, Objective, Settings, check_seed
from armlet.core.types import Arm, Bool, Contexts, Float64, Policy, State
from armlet.policies import POLICIES, check_given

if TYPE_CHECKING:
    from armlet.core.disk import Source, Target


class Bandit(Engine):
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
        check_given(policy)
        labels = labelling.check_labels(arms)
        names, dim = feature_names(features, dim)
        settings = Settings(
            policy=policy, dim=dim, features=names, objective=objective, normalize=normalize, seed=check_seed(seed)
        )
        policy.check(len(labels), dim, 0)
        self._set_up(settings, labels, policy.init(len(labels), dim))

    def _set_up(
        self, settings: Settings, labels: list[Arm], state: State, *, retired: Iterable[Arm] = (), t: int = 0
    ) -> None:
        s = settings
        schedule, scale = s.policy.schedule(), s.normalize == "l2"
        super().__init__(s.policy, schedule, state, labels, s.seed, s.reader.row, sign=s.sign, normalize=scale)
        self._settings, self._reader = s, s.reader
        self._advance(t)
        for arm in retired:
            self._set_active(labelling.find(self, arm), False)

    def _copy(self) -> Bandit:
        t, labels, active, state = self._snapshot()
        twin = Bandit.__new__(Bandit)
        retired = [arm for arm, plays in zip(labels, active, strict=True) if not plays]
        twin._set_up(self._settings, labels, state, retired=retired, t=t)
        return twin

    def _matrix(self, X: Contexts) -> Float64:
        rows = self._reader.matrix(X)
        return self._normalized(rows) if self.normalize else rows

    def _mask(self, eligible: Iterable[Arm] | None) -> Bool | None:
        return None if eligible is None else labelling.mask(self, eligible)

    # ---- the loop: decide, learn, correct and forget are the engine's own

    def decide_many(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Decisions:
        """Choose for many contexts: the same decisions, bit for bit, as one by one."""
        return self._decide_many(self._matrix(X), self._mask(eligible))

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
        given = list(decisions)
        if len(set(map(id, given))) < n:
            raise DecisionError("decisions holds one decision more than once; learn it once")
        for row, decision in enumerate(given):
            self._locate(decision)
            if decision.learned:
                raise DecisionError(f"decision {decision.id} in row {row} was learned already; leave it out")
        for decision, value, size in zip(given, values, sizes, strict=True):
            self.learn(decision, value, weight=size)

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
        if explored is None and self.policy.learns_from == "explored steps":
            raise ValueError(
                "explored is missing: this policy learns only from steps that were played at random; "
                "say which with a column of booleans, or explored=True if all were"
            )
        rows, table = self._matrix(X), self._table
        n = len(rows)
        played = labelling.indices(self, columns.labels(arms, n))
        values, sizes = columns.rewards(rewards, n), columns.weights(weights, n)
        coins = columns.explored(True if explored is None else explored, n)
        self._learn_rows(table, rows, played, values, sizes, coins)

    def fit(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Forget all sums, then learn from a log as `partial_fit` does; the clock stays."""
        fresh = self._copy()
        fresh._restore(self.policy.init(len(fresh.arms), self.dim))
        fresh.partial_fit(X, arms, rewards, explored=explored, weights=weights)
        self._restore(fresh.state)

    # ---- reading: never random, never changes anything

    def predict(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> npt.NDArray[Any]:
        """Give the arm that looks best for each context, (n,); the first of those that tie.

        An array of str or of int64 if all labels are of that kind and fit, so that `sklearn.metrics` takes it; of
        Python objects if not.
        """
        mask = self._mask(eligible)
        arms = np.flatnonzero(self._active if mask is None else self._active & mask)
        if not arms.size:
            raise ValueError("eligible leaves no arm to predict: name at least one that is not retired")
        best = argmax_rows(self._matrix(X), self._estimates()[arms])
        return labelling.label_array(self.arms)[arms[best]]

    def predict_expectations(self, X: Contexts) -> Float64:
        """Give the estimated reward (or cost) of every arm, (n, K); columns in the order of `arms`."""
        theta = self._estimates()
        return self._settings.sign * (self._matrix(X) @ theta.T)

    def predict_proba(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Float64:
        """Give the probability with which the next decision would play each arm, (n, K)."""
        return self._probabilities(self._matrix(X), self.t + 1, self._mask(eligible))

    # ---- arms

    def add_arm(self, arm: Arm) -> None:
        """Add an arm of which nothing is known yet."""
        label = labelling.check_label(arm)
        if self._index_of(label) is not None:
            raise ValueError(f"there is an arm {label!r} already; restore_arm brings a retired one back")
        self.policy.check(len(self.arms) + 1, self.dim, self.t)
        self._add_arm(label)

    def retire_arm(self, arm: Arm) -> None:
        """Play an arm no more, but keep what is known of it and learn its late rewards."""
        index = labelling.find(self, arm)
        if not np.delete(self._active, index).any():
            raise ValueError(f"arm {arm!r} is the only one left to play; add another before retiring it")
        self._set_active(index, False)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._set_active(labelling.find(self, arm), True)

    def remove_arm(self, arm: Arm) -> None:
        """Drop an arm and all that is known of it; its late rewards are refused, unless its label is added again."""
        index = labelling.find(self, arm)
        if not np.delete(self._active, index).any():
            raise ValueError(f"arm {arm!r} is the only one left to play; add another before removing it")
        self.policy.check(len(self.arms) - 1, self.dim, self.t)
        self._remove_arm(index)

    # ---- merging and files

    def merge(self, other: Bandit) -> None:
        """Add what another bandit learned, arm by arm, and its count of decisions."""
        if not isinstance(other, Bandit):
            raise TypeError(f"other is {other!r}; merge takes a Bandit")
        self._settings.check_same(other._settings)
        theirs = other._copy()
        new = [arm for arm in theirs.arms if arm not in self.arms]
        self.policy.check(len(self.arms) + len(new), self.dim, self.t)
        for arm in new:
            self.add_arm(arm)
        for arm in set(new) & set(theirs.retired):
            self.retire_arm(arm)
        self._merge(theirs.state, labelling.indices(self, theirs.arms).tolist(), theirs.t)

    def __add__(self, other: Bandit) -> Bandit:
        """Merge into a new bandit with this one's seed."""
        if not isinstance(other, Bandit):
            return NotImplemented
        total = self._copy()
        total.merge(other)
        return total

    def save(self, path: Target) -> None:
        """Write one file, whole or not at all: a JSON header and raw little-endian arrays.

        Parameters
        ----------
        path
            Where to; or a binary file object, which is written to from where it stands.
        """
        from armlet.core import model  # not before it is needed: files would slow down `import armlet`

        saved = self._copy()
        settings, state = self._settings, saved.state
        model.write(
            path, model.Model(settings=settings, arms=saved.arms, retired=saved.retired, t=saved.t, state=state)
        )

    # ---- what it is

    @property
    def arms(self) -> list[Arm]:
        """The labels, retired ones included, in the order of columns."""
        return self._labels

    @property
    def retired(self) -> list[Arm]:
        """The labels of retired arms."""
        return [arm for arm, active in zip(self.arms, self._active, strict=True) if not active]

    @property
    def policy(self) -> Policy:
        """How it chooses."""
        return self._settings.policy

    @property
    def dim(self) -> int:
        """Values in a context."""
        return self._settings.dim

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the values in a context, if given."""
        return self._settings.features

    @property
    def objective(self) -> Objective:
        """Whether rewards are sought or costs avoided."""
        return self._settings.objective

    @property
    def normalize(self) -> Normalize | None:
        """How contexts are scaled."""
        return self._settings.normalize

    @property
    def seed(self) -> int:
        """The seed of its coins."""
        return self._settings.seed

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes."""
        held: int = self.state.nbytes
        return held

    def __repr__(self) -> str:
        return f"Bandit(arms={self.arms}, dim={self.dim}, policy={self.policy}, t={self.t})"


def load(path: Source, *, policy: Policy | None = None) -> Bandit:
    """Read a bandit back from its file; it decides as the saved one would, bit for bit.

    Parameters
    ----------
    path
        A file written by `Bandit.save`; or a binary file object, which is read to its end.
    policy
        The policy, if it is not one of Armlet's own.
    """
    from armlet.core import model

    if policy is not None:
        check_given(policy)
    saved = model.read(path, POLICIES, policy)
    bandit = Bandit.__new__(Bandit)
    bandit._set_up(saved.settings, saved.arms, saved.state, retired=saved.retired, t=saved.t)
    return bandit
