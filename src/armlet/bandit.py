"""The bandit that users hold: a policy, its state, arm labels, a clock and a seed.

Contexts and rewards are checked here, once; everything inside trusts them. Any thread may decide, learn, read, and
change arms at any time: each call sees and leaves a whole state, and looks labels up at that same moment.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from armlet import lost_digits
from armlet.errors import BusyError, InvalidTypeError, InvalidValueError, MergeError, suggesting
from armlet.inputs import columns
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.ranges import GivenRanges, check_feature_range
from armlet.inputs.settings import (
    Design,
    Normalize,
    Objective,
    Settings,
    Units,
    check_design,
    check_encoder,
    check_epoch,
    check_mode,
    check_reward_range,
    check_seed,
    check_step,
    check_steps,
    in_units,
)
from armlet.kernel import ArmSet, Decision, Decisions, Engine, argmax_rows, clear_argmax, expectations, spent_since
from armlet.policies import check_given, default_policy, find_policy, is_registered
from armlet.policies.base import check_replaceable, compiled_rule
from armlet.policies.state import subtract
from armlet.reference.choice import best_chances
from armlet.reference.linear import ordered_scores
from armlet.types import KEEP, Arm, Array, Bool, Contexts, Float64, Int64, Keep, Mode, Policy, Snapshot, State

if TYPE_CHECKING:
    from datetime import timedelta

    from armlet.disk import Target
    from armlet.inference.view import Inference
    from armlet.inputs.budget import Budget, Spending
    from armlet.inputs.encoder import Encoder
    from armlet.inputs.feature_change import FeatureChange
    from armlet.inputs.settings import Reader
    from armlet.inputs.table import Table
    from armlet.model_file import BanditModel
    from armlet.recording import Fields, Recorder, Recording

AnyBandit = TypeVar("AnyBandit", bound="Bandit")


class Arms(list[Arm]):
    """A copy of a bandit's labels, in the order of columns, retired arms included."""

    __slots__ = ("_bandit",)

    def __init__(self, bandit: Bandit) -> None:
        super().__init__(bandit._labels)
        self._bandit = bandit

    def __reduce__(self) -> tuple[type[list[Arm]], tuple[list[Arm]]]:
        return list, (list(self),)  # without the bandit

    @property
    def retired(self) -> list[Arm]:
        """The labels of arms that are retired now."""
        return self._bandit._retired

    def subset(self, labels: Iterable[Arm]) -> ArmSet:
        """Look labels up once, for the `eligible` of many decisions.

        The set may be used for any bandit that has these arms, from any thread, also after arms have come and gone.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b", "c"], 1, policy=armlet.Algorithm1(p=3), seed=1)
        >>> some = bandit.arms.subset(["a", "c"])
        >>> bandit.decide([0.5], eligible=some).eligible
        ('a', 'c')
        """
        return self._bandit._arm_set(labels)


class Bandit(Engine):
    """A contextual bandit: `decide`, play, `learn`.

    Parameters
    ----------
    arms
        Labels, str or int.
    dim
        Values in a context; may be left out if `features` are named.
    policy
        How to choose. Left out, it is `armlet.OccasionalOptimism()`: low regret with nothing to set. For logs that are
        to be evaluated give it a floor, or take `armlet.AutoEpsilonGreedy()`; any policy will do.
    features
        Names of the values, for contexts given as mappings or tables.
    encoder
        A fitted `armlet.Encoder`: contexts are then rows of text, categories and numbers by column, and become its
        numbers; lists and arrays are taken for these numbers themselves.
    objective
        "max" for rewards, "min" for costs.
    normalize
        "l2" divides every context by its length (a zero context stays); None leaves contexts as they are. It comes
        before units.
    units
        "free": neither the zero nor the size of a feature or of rewards matters, since sums are kept with a constant
        and solved in standard units; refused for policies that cannot. "as given": they matter. Left out, it is the
        policy's own setting, which is "free" where it can be.
    reward_range
        (lowest, highest): rewards outside are refused. One wild value can ruin the sums of an arm for good, so give
        it where rewards have a range. In the bandit's own sense: costs if the objective is "min". With outcomes, a
        range for each, by name.
    feature_range
        Ranges of features by name, for some or all, such as `{"age": (0, 120)}`: a context with a value outside is
        refused. `{"age": (0, 120, "clip")}` takes the nearer end instead, and decides, learns and logs that.
        `bandit.settings.feature_range.counts` counts both. One wild value can ruin the sums of an arm, so give ranges
        where they are known.
    outcomes
        Several things that are observed of every decision, and what one unit of each is worth, such as
        `{"quality": 1.0, "cost": -40.0}`. A reward is then a mapping by name, and what is maximised is the weighted
        sum. `decide(x, weights=...)` weighs them otherwise, at once and without learning anything again.
    known
        Outcomes that are known beforehand, by name and arm, such as `{"cost": {"small": 0.001, "large": 0.03}}`: they
        are not learned and not reported. Needs free units.
    budget
        An `armlet.Budget`: how much of one of the outcomes may be spent, and within how many decisions. `bandit.budget`
        tells how far that has got.
    epoch
        How long a unit of `decide` keeps its arm: a number of decisions, of all units together; or, for a loop, which
        has a clock, a `datetime.timedelta`. Left out, who decides for a unit names the epoch.
    seed
        All randomness of decisions is a function of it and of the step; 0 <= seed < 2^128, random if left out.
    log
        Receives every state change, in order: an `armlet.Log`, or any `armlet.recording.Recorder`.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(arms=["north", "south"], dim=2, seed=7)
    >>> decision = bandit.decide([1.0, 0.5])
    >>> decision.arm, decision.propensity, decision.explored
    ('north', 0.5, True)
    >>> bandit.learn(decision, 0.3)

    Several outcomes, and a dial:

    >>> models = armlet.Bandit(["small", "large"], 1, outcomes={"quality": 1.0, "cost": -40.0}, seed=7)
    >>> decision = models.decide([0.5], weights={"cost": -400.0})
    >>> models.learn(decision, {"cost": 0.002})
    >>> models.learn(decision, {"quality": 0.9})  # later
    >>> decision.reward, decision.weights
    ({'quality': 0.9, 'cost': 0.002}, {'quality': 1.0, 'cost': -400.0})

    An age in nanoseconds, clipped:

    >>> bandit = armlet.Bandit(["a", "b"], features=["age"], feature_range={"age": (0, 120, "clip")}, seed=1)
    >>> bandit.decide({"age": 1.8e18}).x, bandit.settings.feature_range.counts
    (array([120.]), {'age': {'refused': 0, 'clipped': 1}})
    """

    @suggesting("Bandit")
    def __init__(
        self,
        arms: Iterable[Arm],
        dim: int | None = None,
        *,
        policy: Policy | None = None,
        features: Iterable[str] | None = None,
        encoder: Encoder | None = None,
        objective: Objective = "max",
        normalize: Normalize | None = None,
        units: Units | None = None,
        reward_range: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
        feature_range: GivenRanges | None = None,
        outcomes: Mapping[str, float] | None = None,
        known: Mapping[str, Mapping[Arm, float]] | None = None,
        budget: Budget | None = None,
        epoch: int | timedelta | None = None,
        seed: int | None = None,
        log: Recorder | None = None,
    ) -> None:
        policy = default_policy() if policy is None else policy
        check_given(policy)
        policy = in_units(policy, units)
        labels = columns.check_labels(arms)
        encoder, names, dim = check_encoder(encoder, features, dim)
        several = read_outcomes(outcomes, known, reward_range)
        if several is not None:
            several.check_arms(labels)
            reward_range = several.reward_range()
        settings = Settings(
            policy=policy,
            dim=dim,
            features=names,
            objective=objective,
            normalize=normalize,
            reward_range=check_reward_range(reward_range, policy, objective),
            encoder=encoder,
            epoch=check_epoch(epoch),
            outcomes=several,
            feature_range=check_feature_range(feature_range, names),
        )
        if budget is not None:
            settings = settings.with_budget(budget)
        policy.check(len(labels), dim, 0)
        state = settings.init(len(labels))
        self._init_engine(settings, Snapshot(0, labels, [], state, check_seed(seed), []))
        if log is not None:
            self._attach_log(log)

    def _init_engine(self, settings: Settings, now: Snapshot, fixed_rows: float = 0.0) -> None:
        s = settings.apart()
        reader = s.reader
        super().__init__(
            s.policy,
            compiled_rule(s.policy),
            now.state,
            now.arms,
            now.seed,
            reader.row,
            features=s.features if s.encoder is None else None,  # a dict has columns where there is an encoder
            sign=s.sign,
            normalize=s.normalize == "l2",
            reward_range=s.reward_range if s.outcomes is None else None,
            outcomes=None if s.outcomes is None else s.outcomes.engine,
            budget=s.engine_budget,
            bounds=_bounds(reader),
        )
        self._settings, self._reader = s, reader
        self._recording: Recording | None = None
        if now.spending is not None:
            self._restore_spending(now.spending)
        self._fixed_rows = fixed_rows
        self._advance(now.t)
        self._set_epochs(s.epoch if isinstance(s.epoch, int) else None, now.epoch)
        for stream in now.streams:
            self._know(stream)
        for arm in now.retired:
            self._set_active(arm, False)

    def _attach_log(self, log: Recorder) -> None:
        from armlet.recording import attach, resync_fields  # not before it is needed: files slow down `import armlet`

        self._recording = attach(self, log, self._model(), self.digest, lambda: resync_fields(self._model()))

    def _user_attributes(self) -> dict[str, Any]:
        """Return what a subclass or a user keeps on it."""
        ours = ("_settings", "_reader", "_recording")
        return {name: value for name, value in vars(self).items() if name not in ours}

    def _clone(self) -> Self:
        twin = type(self).__new__(type(self))
        twin._init_engine(self._settings, self._snapshot(), self._fixed_rows)
        twin._continue_lives(self)
        twin.__dict__.update(self._user_attributes())
        return twin

    # ---- the loop: decide, learn, correct and forget are the engine's own

    def decide_many(
        self,
        X: Contexts,
        *,
        eligible: Iterable[Arm] | None = None,
        t: int | None = None,
        propensity: Literal["marginal"] | None = None,
        units: Iterable[str | None] | None = None,
        epoch: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Decisions:
        """Choose for many contexts: the same decisions, bit for bit, as one by one.

        The batch takes its steps of the clock when it starts. Other threads may decide and learn meanwhile; changes of
        arms wait for its end. Interrupted, it returns no decisions, and its steps stay used.

        Parameters
        ----------
        X
            One context a row.
        eligible
            The arms that may be played, as in `decide`.
        t
            The step of the first row, as in `decide`; the next one if left out.
        propensity
            "marginal" for propensities over all coins, as in `decide`.
        units
            The unit of each row, or None for a row without one. Other threads wait for the end of such a batch.
        epoch
            The epoch of all units, as in `decide`.
        weights
            Of outcomes, for all of them, as in `decide`.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1)
        >>> bandit.decide_many([[0.5], [1.0]], t=100).t.tolist(), bandit.t
        ([100, 101], 101)
        """
        rows, first = self._reader.matrix(X), None if t is None else check_step(t)
        of = None if units is None else columns.listed("units", units)
        return self._decide_many(rows, eligible, first, propensity, of, epoch, weights)

    def _on_lost_digits(self, arms: list[int], emptied: list[int]) -> None:
        """Learn the log again after a row was taken back that was too large for the digits of some arms, or warn."""
        state: Any = self.state
        digits, labels, s = state.digits_lost, self.arms, self._settings
        losses = [(f"arm {labels[i]!r}", i in emptied, digits[i]) for i in sorted(set(arms))]
        loss = lost_digits.describe(losses, ["n", "rewards", *lost_digits.column_names(s.features, s.dim)])
        own = None if is_registered(s.policy) else s.policy
        if not lost_digits.is_cured(loss, self._recording, own, self._take):
            self._end_lives(emptied)

    def _take(self, learned: Bandit) -> None:
        """Go on with what another bandit has learned from this one's log, and record that as a resync."""
        from armlet.recording import resync_fields

        now = self._model()
        if (learned.arms, learned.t) != (now.arms, now.t) or self._recording is None:
            raise InvalidValueError("the log leads to other arms, or to another step")
        if hasattr(learned.state, "renew"):  # from sums, as after `forget`
            learned.state.renew()
        fields = resync_fields(dataclasses.replace(now, state=learned.state))
        other = _unpickle(Bandit, base64.b64decode(fields["model"]), self.policy)  # what a replay makes of it
        if other._settings.feature_range is not None:
            other._settings.feature_range.count_on(self._settings.feature_range)
        self._recording.change("resync", [dict(fields)], (), self._become, (other, self._values_of(other)))

    def _is_in_epoch(self, epoch: int) -> bool:
        """Whether units meet that epoch already."""
        return self._epoch == epoch

    def learn_many(
        self,
        decisions: Sequence[Decision] | Decisions,
        rewards: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        *,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Learn the rewards of many decisions, all or none, also when it is interrupted.

        With several outcomes, rewards are a column for each, by name.
        """
        several = list(decisions)
        self._learn_many(several, self._rewards(rewards, len(several)), columns.weights(weights, len(several)))

    def _rewards(self, rewards: Any, n_rows: int) -> Float64:
        several = self._settings.outcomes
        return columns.rewards(rewards, n_rows) if several is None else several.matrix(rewards, n_rows)

    # ---- logs

    def partial_fit(
        self,
        X: Contexts | Table,
        arms: npt.ArrayLike | None = None,
        rewards: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        steps: int | None = None,
        design: Design = "adaptive",
    ) -> Self:
        """Learn from logged rows, or from a log's table of decisions; all of it or nothing. Return the bandit.

        Rows given as `X, arms, rewards` count as decisions: the clock advances by one a row, so a bandit that was
        trained on a log exploits from its first decision on, as much as its policy allows. A table alone is learned as
        `learn` would learn its decisions one by one, bit for bit, and the clock stays: `replace(t=)` sets it. Decisions
        of any bandit are learned, also again if they have been.

        After rows, as after `merge`, `forget` and `correct`, units, ridge and estimates are functions of the sums, so
        that they do not depend on how rows came in batches; the first look, or the next row, solves them.

        Parameters
        ----------
        X, arms, rewards
            One row, label and reward per logged step; with several outcomes, rewards are a column for each, by name.
            Or X alone: an `armlet.Table`, which says which column is what, and whose rows count as decisions; or the
            decisions of a bandit, as a mapping of columns, a data frame, or an Arrow table, in the order of learning:

            - t: the step; x: the context, one row of numbers (or float64 as bytes) each, unless there is a column for
              every feature; arm; reward;
            - propensity, explored: as the decision said;
            - tag (0), weight (1): the same, if there are such columns;
            - replaces: the reward that was learned before and that `reward` takes the place of, as in `correct`; null
              or NaN in rows that are new;
            - with several outcomes, `reward` and `replaces` are columns by name, or there are columns `reward_NAME`
              and `replaces_NAME` for each.

            Columns of other names are ignored.
        explored
            Which steps were played at random: a column of booleans, or one for all. Required by policies that learn
            from explored steps only.
        weights
            How much each step counts; 1 if left out.
        steps
            How many decisions the rows stand for, if not one a row: more where only a part of the decisions was
            logged, 0 where this very bandit took them, so that they have been counted.
        design
            How the arms of these rows were chosen, which `inference` needs to know. "adaptive": by something that
            learned from rewards, as every bandit does. "fixed": by a rule that no reward of these rows changed;
            contexts may decide. "randomized": drawn at random regardless of the context, so that `explored` is True
            unless it is given. While all rows are fixed or randomized, intervals are those of ordinary regression,
            else wider ones. It is kept in model files; a log does not keep it.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Greedy(), seed=1)
        >>> _ = bandit.partial_fit([[1.0], [2.0]], ["a", "b"], [0.5, 3.0])
        >>> bandit.t, bandit.decide([1.0]).arm
        (2, 'b')

        A table of decisions and rewards, as `Decision.to_dict` names them:

        >>> one, other = (armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1) for _ in range(2))
        >>> decision = one.decide([0.5])
        >>> one.learn(decision, 1.0)
        >>> row = decision.to_dict()
        >>> _ = other.partial_fit({name: [row[name]] for name in ("t", "x", "arm", "reward", "propensity", "explored")})
        >>> other.replace(t=one.t)
        >>> other.digest() == one.digest()
        True
        """
        from armlet.inputs.table import Table  # not before a table may come: files slow down `import armlet`

        if isinstance(X, Table):
            others = {"arms": arms, "rewards": rewards, "explored": explored, "weights": weights}
            return self._learn_labelled(X, others, steps, design)
        if arms is None and rewards is None:
            known = None if design == "adaptive" else design
            self._learn_table(X, explored=explored, weights=weights, steps=steps, design=known)
            return self
        if arms is None or rewards is None:
            missing = "arms" if arms is None else "rewards"
            raise InvalidTypeError(f"{missing} is missing; give X, arms and rewards, or a table of decisions alone")
        if check_design(design) == "randomized" and explored is None:
            explored = True
        if explored is None and self.policy.learns_from == "explored steps":
            raise InvalidValueError(
                "explored is missing: this policy learns only from steps that were played at random; "
                "pass a column of booleans, or explored=True if all were"
            )
        rows = self._reader.matrix(X)
        n = len(rows)
        played = list(columns.labels(arms, n))
        values, sizes = self._rewards(rewards, n), columns.weights(weights, n)
        coins = columns.explored(True if explored is None else explored, n)
        fixed = 0.0 if design == "adaptive" else float(sizes.sum())
        self._learn_rows(rows, played, values, sizes, coins, check_steps(steps, n), fixed)
        return self

    def _learn_labelled(self, table: Table, others: Mapping[str, object], steps: int | None, design: Design) -> Self:
        """Learn the rows of a labelled table that have a reward; the others take their step of the clock."""
        for name, value in others.items():
            if value is not None:
                raise InvalidValueError(f"{name} is {value!r}, but a Table says that itself; give it to Table(...)")
        s, there = self._settings, table.rewarded
        several, names = s.outcomes, () if table.outcomes is None else table.outcomes.learned
        if names != (() if several is None else several.learned):
            fix = f"outcomes={None if several is None else dict(several.weights)}"
            raise InvalidValueError(f"the table was read with {table.roles.rewards} as rewards; give Table({fix})")
        X = table.contexts(s.encoder, None if s.encoder is not None else s.features)[there]
        rewards = table.rewards[there]
        return self.partial_fit(
            X,
            [label for label, has_reward in zip(table.labels(), there.tolist(), strict=True) if has_reward],
            rewards[:, 0] if several is None else dict(zip(names, rewards.T, strict=True)),
            explored=None if table.explored is None else table.explored[there],
            weights=None if table.weights is None else table.weights[there],
            steps=len(table) if steps is None else steps,
            design=design,
        )

    def _learn_table(self, table: object, **others: object) -> None:
        from armlet.inputs.columns import read_logged  # not before a log comes

        for name, value in others.items():
            if value is not None:
                raise InvalidValueError(
                    f"{name} is {value!r}, but the columns of a table of decisions say that already; leave {name} out, "
                    "or give arms and rewards too"
                )
        rows = read_logged(
            table, self._reader.plain, self._settings.outcomes
        )  # a log has what an encoder made of contexts
        self._learn_logged(
            rows.X,
            rows.arms,
            rows.t,
            rows.rewards,
            rows.weights,
            rows.explored,
            rows.propensities,
            rows.tags,
            rows.replaces,
        )
        arms, emptied = self._take_lost()
        if arms:
            self._on_lost_digits(arms, emptied)

    def fit(
        self,
        X: Contexts | Table,
        arms: npt.ArrayLike | None = None,
        rewards: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        steps: int | None = None,
        design: Design = "adaptive",
    ) -> Self:
        """Forget all sums, then learn as `partial_fit` does; the clock advances as there. Return the bandit."""
        fresh = self._clone()
        if fresh._settings.feature_range is not None:
            fresh._settings.feature_range.count_on(self._settings.feature_range)
        blank = self._settings.init(len(fresh.arms))
        fresh._restore(blank, fresh.arms, 0, 0.0)
        before = fresh.t
        fresh.partial_fit(X, arms, rewards, explored=explored, weights=weights, steps=steps, design=design)
        if hasattr(fresh.state, "renew"):  # free units: those of the whole log
            fresh.state.renew()
        self._restore(fresh.state, fresh.arms, fresh.t - before, fresh._fixed_rows)
        return self

    # ---- reading: never random, never changes anything

    def _estimated(
        self,
        X: Contexts,
        eligible: Iterable[Arm] | None,
        weights: Mapping[str, float] | None = None,
        priced: bool = True,
    ) -> tuple[list[Arm], Bool, Float64, Float64, float]:
        """Return labels, which may be played, contexts as theta sees them, theta, and the base to add to scores."""
        rows = self._scaled(self._reader.matrix(X))
        labels, playable, theta, units, base = self._view(eligible, weights, priced)
        return labels, playable, rows if units is None else units.standard(rows), theta, base

    def _slopes(self, eligible: Iterable[Arm]) -> tuple[Bool, Float64] | None:
        """Return which arms may be played and the theta that ranks them; None if contexts are transformed first."""
        _, playable, theta, units, _ = self._view(eligible)
        return None if units is not None or self._settings.normalize is not None else (playable, theta)

    def _leading(self, X: Float64, eligible: Iterable[Arm]) -> Int64:
        """Return the place of the highest estimate, (n,): -1 where another is close, or a row is not finite."""
        _, playable, theta, units, _ = self._view(eligible)
        rows = X if self._settings.normalize is None else self._scaled(X)  # which would copy them
        rows = rows if units is None else units.standard(rows)
        arms = np.flatnonzero(playable)
        best = clear_argmax(rows, theta[arms])
        return best if len(arms) == len(theta) else np.where(best < 0, -1, arms[best])

    def predict(
        self, X: Contexts, *, eligible: Iterable[Arm] | None = None, weights: Mapping[str, float] | None = None
    ) -> npt.NDArray[Any]:
        """Return the arm with the highest estimate for each context, (n,); the first of those that tie.

        An array of str or of int64 if all labels are of that kind and fit, so that `sklearn.metrics` takes it; of
        Python objects if not.
        """
        labels, playable, rows, theta, _ = self._estimated(X, eligible, weights)
        arms = np.flatnonzero(playable)
        return columns.label_array(labels)[arms[argmax_rows(rows, theta[arms])]]

    def predict_expectations(self, X: Contexts, *, weights: Mapping[str, float] | None = None) -> Float64:
        """Return the estimated reward (or cost) of every arm, (n, K); columns in the order of `arms`.

        With several outcomes it is their weighted sum, by the usual weights or by those that are given: with 0 for all
        others, one outcome by itself. The price of a budget is left out.
        """
        _, _, rows, theta, base = self._estimated(X, None, weights, priced=False)
        return self._settings.sign * (base + expectations(rows, theta))

    def predict_proba(
        self,
        X: Contexts,
        *,
        mode: Mode = "exploring",
        eligible: Iterable[Arm] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Float64:
        """Return the probability of each arm, (n, K); columns in the order of `arms`.

        Parameters
        ----------
        mode
            "exploring": the policy at this very step, over all its coins, exploration included. Early on that is close
            to random play, and in a round-robin warm-up the arm whose turn it is has probability 1 in every context.
            "greedy": what was learned, without exploration; 1 for the highest estimate, shared by those that tie. This
            is `predict` as probabilities, and usually what to evaluate on a log.
        weights
            Of outcomes, as in `decide`.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), seed=1)
        >>> bandit.predict_proba([[1.0]], mode="greedy")  # nothing is known: a tie
        array([[0.5, 0.5]])
        >>> _ = bandit.partial_fit([[1.0], [1.0], [1.0]], ["a", "b", "b"], [0.0, 1.0, 1.0], explored=True)
        >>> bandit.predict_proba([[1.0]]), bandit.predict_proba([[1.0]], mode="greedy")  # step 4 is the turn of a
        (array([[1., 0.]]), array([[0., 1.]]))
        """
        if check_mode(mode) == "exploring":
            return self._probabilities(self._reader.matrix(X), None, eligible, weights)
        _, playable, rows, theta, _ = self._estimated(X, eligible, weights)
        return best_chances(ordered_scores(rows, theta), playable)

    @property
    def inference(self) -> Inference:
        """Coefficients with intervals, contrasts of arms, a summary and explanations: see `Inference`."""
        from armlet.inference.view import Inference  # not before it is needed: it slows down `import armlet`

        return Inference(self)

    # ---- arms: from any thread, while others decide and learn

    def add_arm(self, arm: Arm) -> None:
        """Add an arm without data."""
        self._add_arm(columns.check_label(arm))

    def retire_arm(self, arm: Arm) -> None:
        """Stop playing an arm; its data is kept, and its pending rewards can still be learned."""
        self._set_active(arm, False)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._set_active(arm, True)

    def remove_arm(self, arm: Arm) -> None:
        """Drop an arm and its data; its pending rewards are refused unless the label is added again."""
        self._remove_arm(arm)

    # ---- merging and copies

    def merge(self, other: Bandit) -> None:
        """Add what another bandit learned, arm by arm, and its count of decisions.

        From then on its pending decisions may be learned here. Workers that started from one model would count it once
        each: let them ship `worker.difference(model)` instead.
        """
        if not isinstance(other, Bandit):
            raise InvalidTypeError(f"other is {other!r}; merge takes a Bandit")
        self._settings.check_same(other._settings)
        theirs = other._snapshot()

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import merge_fields

            return merge_fields(self._settings, theirs)

        seeds = [theirs.seed, *theirs.streams]
        self._merge(theirs.state, theirs.arms, theirs.retired, theirs.t, seeds, theirs.spending, fields, other)

    def __add__(self, other: Bandit) -> Bandit:
        """Merge into a new bandit with this one's seed."""
        if not isinstance(other, Bandit):
            return NotImplemented
        total = self._clone()
        total.merge(other)
        return total

    def difference(self, base: Bandit) -> Bandit:
        """Return what was learned since a copy was taken: sums and clock minus those of the copy, exact to rounding.

        Parameters
        ----------
        base
            The model that this bandit started from, as it was then.

        Examples
        --------
        >>> import armlet
        >>> model = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=100), seed=1)
        >>> model.learn(model.decide([1.0]), 0.5)
        >>> base, worker = model.copy(), model.copy(seed=2)
        >>> worker.learn(worker.decide([1.0]), 0.7)
        >>> model.merge(worker.difference(base))
        >>> model.t, model.state.n.sum()
        (2, np.float64(2.0))
        """
        if not isinstance(base, Bandit):
            raise InvalidTypeError(f"base is {base!r}; difference takes the Bandit that this one started from")
        self._settings.check_same(base._settings)
        now, then = self._snapshot(), base._snapshot()
        if now.t < then.t:
            raise MergeError(f"base has taken {then.t} decisions and this bandit {now.t}; base must be the earlier one")
        subtract(now.state, now.arms, then.state, then.arms)
        now = now._replace(spending=spent_since(self._settings.budget, now.spending, then.spending))
        rest = Bandit.__new__(Bandit)
        fixed = max(0.0, self._fixed_rows - base._fixed_rows)
        rest._init_engine(self._settings, now._replace(t=now.t - then.t, epoch=None), fixed)
        return rest

    def copy(self, *, seed: int | Literal["random"] | None = None) -> Self:
        """Copy everything, the seed included, or with another `seed`, as in `replace`.

        Copies with one seed draw the same random numbers for different contexts and use the same ids: right for a
        rehearsal or a snapshot, wrong for two that serve at the same time.
        """
        twin = self._clone()
        if seed is not None:
            twin.replace(seed=seed)
        return twin

    @suggesting("replace")
    def replace(
        self,
        *,
        policy: Policy | None = None,
        seed: int | Literal["random"] | None = None,
        t: int | None = None,
        features: Iterable[str] | None = None,
        encoder: Encoder | None = None,
        fill: Mapping[str, float] | None = None,
        reward_range: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
        feature_range: GivenRanges | Keep | None = KEEP,
        outcomes: Mapping[str, float] | None = None,
        known: Mapping[str, Mapping[Arm, float]] | None = None,
        budget: Budget | Keep | None = KEEP,
    ) -> None:
        """Continue with one thing changed; what was learned stays, and pending decisions can still be learned.

        Parameters
        ----------
        policy
            The same policy with other settings, such as another p or width, from the next decision on. Refused where
            the state would mean something else: another policy, other units, other experts. A `bandit.state` taken
            before is no longer that of the bandit.
        seed
            A new seed; "random" draws one from the operating system. One that was in use is refused. Pending decisions
            of the old seed can still be learned.
        t
            The decisions taken so far, those taken elsewhere included; not fewer than now. The next decision is step
            t + 1.
        features
            The names of the features from now on, in order: matched by name with those so far. The sums become what
            they would be had all rows had these, exactly: a feature that is left out is deleted from them, and one that
            is new has one value in every row so far, `fill`, and so no weight yet. Contexts of pending decisions are
            carried over when they are learned. Without names so far, it names the features that there are. Refused
            where the state is not sums of rows, or they do not say enough: with `normalize` none may be dropped.
        encoder
            Another fitted encoder; its features are matched in the same way.
        fill
            With `features` or `encoder`: what rows so far have in new features, 0 if left out. Any other value needs
            free units.
        reward_range
            (lowest, highest) from now on, as in `Bandit`; rewards of pending decisions must lie in it too.
        feature_range
            The ranges of features from now on, all of them, as in `Bandit`; None for none. Pending decisions are
            learned as they were made.
        outcomes
            What outcomes are worth from now on, those left out what they were: other weights of the same names.
        known
            Other values of what is known, for every arm: new prices. Arms to come may be among them.
        budget
            Another budget of the same outcome, such as a larger total; what was spent and decided so far counts in it,
            and the price goes on. Or a first one. None removes the budget and forgets what was spent of it: a later one
            begins at 0.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), seed=1)
        >>> bandit.learn(bandit.decide([1.0]), 0.5)
        >>> bandit.replace(policy=armlet.Algorithm1(p=10))
        >>> bandit.policy, bandit.t, bandit.state.n.tolist()
        (Algorithm1(p=10, ridge='paper', warmup='round-robin', units='as given', origin=None), 1, [0.0, 1.0])
        >>> bandit.replace(t=1000)
        >>> bandit.decide([1.0]).t
        1001

        A feature that comes later, and was 0 in all rows before:

        >>> shop = armlet.Bandit(["a", "b"], features=["age"], seed=1)
        >>> shop.learn(shop.decide({"age": 31}), 0.5)
        >>> shop.replace(features=["age", "member"], fill={"member": 0.0})
        >>> shop.learn(shop.decide({"age": 44, "member": 1}), 1.0)
        """
        changes: dict[str, Any] = {"policy": policy, "seed": seed, "t": t}
        changes |= {"features": features, "encoder": encoder, "reward_range": reward_range}
        changes |= {"outcomes": outcomes, "known": known}
        changed = {name: value for name, value in changes.items() if value is not None}
        changes |= {"feature_range": feature_range, "budget": budget}
        changed |= {} if feature_range is KEEP else {"feature_range": feature_range}
        changed |= {} if budget is KEEP else {"budget": budget}
        if len(changed) != 1:  # so that a refused call has changed nothing
            names = " and ".join(changed) or "nothing"
            raise InvalidTypeError(f"replace got {names}; give one of {', '.join(changes)}")
        if fill is not None and features is None and encoder is None:
            raise InvalidTypeError(f"fill is {fill!r}, but no feature is new; give features or encoder too")
        if policy is not None:
            self._replace_policy(policy)
        elif seed is not None:
            self._reseed(check_seed(None if seed == "random" else seed))
        elif t is not None:
            self._advance_to(t)
        elif reward_range is not None:
            self._replace_range(reward_range)
        elif feature_range is not KEEP:
            self._replace_feature_range(feature_range)
        elif outcomes is not None:
            self._replace_outcomes(self._several("outcomes", outcomes).with_weights(outcomes))
        elif known is not None:
            self._replace_outcomes(self._several("known", known).with_known(known))
        elif budget is not KEEP:
            self._replace_budget(budget)
        else:
            self._replace_features(features, encoder, fill)

    def _replace_policy(self, policy: Policy) -> None:
        check_given(policy)
        settings = self._settings.with_policy(policy)
        check_replaceable(self.policy, policy, self.state, len(self.arms), self._settings.dim)

        def renew(state: Any) -> State:
            fresh: State = settings.init(state.n_arms)
            fresh.restore_arrays(state.arrays())
            return fresh

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import policy_fields

            return policy_fields(policy)

        self._go_on(settings, renew, fields)

    def _replace_range(self, reward_range: object) -> None:
        settings = self._settings.with_reward_range(reward_range)
        if settings.outcomes is not None:
            self._replace_outcomes(settings.outcomes)
            return
        self._go_on(settings, lambda state: state, lambda: {"reward_range": list(settings.reward_range or ())})

    def _replace_feature_range(self, ranges: object) -> None:
        settings = self._settings.with_feature_range(ranges)
        event = {"feature_range": None if settings.feature_range is None else settings.feature_range.to_dict()}
        self._go_on(settings, lambda state: state, lambda: event)

    def _several(self, argument: str, value: object) -> Outcomes:
        if self._settings.outcomes is None:
            raise InvalidValueError(
                f"{argument} is {value!r}, but the bandit has one reward; start a new one with outcomes"
            )
        return self._settings.outcomes

    def _replace_outcomes(self, several: Outcomes) -> None:
        settings = self._settings.with_outcomes(several)
        before = self._several("outcomes", several.weights)

        def renew(state: Any) -> State:
            if before.weights == several.weights:
                return cast(State, state)
            fresh: Any = state.copy()
            fresh.reweigh(np.array([several.weights[name] for name in several.learned]))
            return cast(State, fresh)

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import outcome_fields

            return outcome_fields(several)

        self._go_on(settings, renew, fields)

    def _replace_budget(self, budget: Budget | None) -> None:
        settings = self._settings.with_budget(budget)
        event = {"budget": None if budget is None else budget.to_dict()}
        self._go_on(settings, lambda state: state, lambda: event)

    def _replace_features(
        self, features: Iterable[str] | None, encoder: Encoder | None, fill: Mapping[str, float] | None
    ) -> None:
        from armlet.inputs.feature_change import FeatureChange, check_same_buckets  # not before features change
        from armlet.policies.carrying import carry_state, check_change

        now = self._settings
        if encoder is None and now.encoder is not None:
            raise InvalidValueError(f"features is {features!r}, but the bandit's encoder names them; give encoder")
        ours, names, _ = check_encoder(encoder, features, None)
        if ours is not None:
            check_same_buckets(now.encoder, ours)
        change = FeatureChange.between(now.features, names or (), fill, dim=now.dim)
        if now.features == change.after and now.encoder == ours:  # as a script does that applies its settings again
            return
        check_change(change, now, self.state)

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import feature_fields

            return feature_fields(change, ours)

        settings = now.with_features(change.after, ours)
        self._go_on(settings, lambda state: carry_state(now.policy, state, change), fields, change)

    def _go_on(
        self,
        settings: Settings,
        renew: Callable[[Any], State],
        fields: Callable[[], Fields],
        change: FeatureChange | None = None,
    ) -> None:
        """Exchange the settings, and the state by the one that `renew` makes of it, in one turn of the engine."""
        before, reader = self._settings, settings.reader

        def renewed(state: Any) -> State:
            if self._settings is not before:
                raise BusyError("another thread has replaced something meanwhile; nothing was changed, call again")
            return renew(state)

        self._replace(
            settings.policy,
            compiled_rule(settings.policy),
            reader.row,
            features=settings.features if settings.encoder is None else None,
            reward_range=settings.reward_range if settings.outcomes is None else None,
            outcomes=None if settings.outcomes is None else settings.outcomes.engine,
            budget=settings.engine_budget,
            bounds=_bounds(reader),
            columns=None if change is None else (list(change.sources), list(change.fills)),
            renew=renewed,
            fields=fields,
            values=((self, "_settings", settings), (self, "_reader", reader)),
        )

    def _resync(self, other: Bandit) -> None:
        """Go on in the state of another bandit, with this one's seeds: what a log says after an interrupted record."""
        self._become(other, self._values_of(other))

    def _values_of(self, other: Bandit) -> tuple[tuple[object, str, object], ...]:
        return tuple((self, name, getattr(other, name)) for name in ("_settings", "_reader"))

    def __copy__(self) -> Self:
        return self._clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self._clone()
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        own = None if is_registered(self.policy) else self.policy  # pickle itself must find its class
        return (_unpickle, (type(self), self.to_bytes(), own), self._user_attributes() or None)

    # ---- files

    def save(self, path: Target) -> None:
        """Write one file, whole or not at all: a JSON header and raw little-endian arrays.

        It holds the seed: a new file can be read by its owner alone; one that exists keeps its permissions. `path` may
        be a binary file object, which is written to from where it stands.
        """
        from armlet import model_file  # not before it is needed: files would slow down `import armlet`

        model_file.write(path, self._model())

    def to_bytes(self) -> bytes:
        """Return what `save` would write; `armlet.from_bytes` reads it back."""
        from armlet import model_file

        return model_file.encode(self._model())

    def digest(self) -> str:
        """Return 64 hexadecimal digits that are equal for bandits that decide and learn alike, apart from the seed.

        SHA-256 of policy, state, clock, arms and all other settings; not of the seed, nor of what follows from the
        state. Two replicas that learned the same in the same order have the same digest on any machine.

        Examples
        --------
        >>> import armlet
        >>> one, other = (armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=seed) for seed in (1, 2))
        >>> one.digest() == other.digest()
        True
        >>> one.learn(one.decide([0.5]), 1.0)
        >>> one.digest() == other.digest()
        False
        """
        from armlet import model_file

        return model_file.digest(self._model())

    def _model(self) -> BanditModel:
        from armlet.model_file import BanditModel

        return BanditModel(settings=self._settings, **self._snapshot()._asdict(), fixed_rows=self._fixed_rows)

    # ---- what it is

    @property
    def arms(self) -> Arms:
        """The labels, retired ones included, in the order of columns; `arms.retired` are those not played."""
        return Arms(self)

    @property
    def policy(self) -> Policy:
        """The policy: frozen settings, and how arms are chosen."""
        return self._settings.policy

    @property
    def settings(self) -> Settings:
        """What the bandit was made with: policy, dim, features, encoder, objective, normalize, ranges, epoch."""
        s = self._settings
        return s if s.encoder is None else dataclasses.replace(s, encoder=s.encoder.copy())

    @property
    def budget(self) -> Spending | None:
        """How far the spending of its budget has got: price, spent, left; None without a budget."""
        now = self._spending
        if now is None or self._settings.budget is None:
            return None
        from armlet.inputs.budget import Spending  # not before there is one

        price, spent, decisions, waiting = now
        return Spending(self._settings.budget, price=price, spent=spent, decisions=decisions, waiting=waiting)

    @property
    def seed(self) -> int:
        """The seed of its decisions."""
        return self._seed

    def __repr__(self) -> str:
        if "_settings" not in vars(self):  # in the traceback of a refused one, for instance
            return f"<{type(self).__name__} that was not set up>"
        from armlet.report.bandits import bandit_text  # not before something is shown

        return bandit_text(self, default_policy())

    def _repr_html_(self) -> str:
        from armlet.report.bandits import bandit_html

        return bandit_html(self, default_policy())


def _bounds(reader: Reader) -> tuple[list[float], list[float]] | None:
    """Return what the engine needs of ranges: the lowest and the highest value of every feature."""
    ranges = reader.ranges
    return None if ranges is None else (ranges.low.tolist(), ranges.high.tolist())


def from_parts(name: str, header: dict[str, Any], arrays: dict[str, Array], policy: Policy | None) -> Bandit:
    """Make a bandit of the header and the arrays of a model file; errors call it by its name."""
    from armlet import model_file

    return _from_model(model_file.restore(name, header, arrays, find_policy, policy), Bandit)


def _from_model(saved: BanditModel, kind: type[AnyBandit]) -> AnyBandit:
    bandit = kind.__new__(kind)
    now = Snapshot(
        saved.t, saved.arms, saved.retired, saved.state, saved.seed, list(saved.streams), saved.epoch, saved.spending
    )
    bandit._init_engine(saved.settings, now, saved.fixed_rows)
    return bandit


def _unpickle(kind: type[AnyBandit], data: bytes, policy: Policy | None) -> AnyBandit:
    from armlet import model_file

    return _from_model(model_file.decode(data, find_policy, policy), kind)
