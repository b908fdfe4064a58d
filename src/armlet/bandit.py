"""The bandit that users hold: a policy, its state, arm labels, a clock and a seed.

Contexts and rewards are checked here, once; everything inside trusts them. Any thread may decide, learn, read, and
change arms at any time: each call sees and leaves a whole state, and looks labels up at that same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs import columns
from armlet.inputs.settings import (
    Design,
    Normalize,
    Objective,
    Settings,
    Units,
    check_design,
    check_encoder,
    check_reward_range,
    check_seed,
    check_step,
    check_steps,
    in_units,
    units_of,
)
from armlet.kernel import ArmSet, Decision, Decisions, Engine, argmax_rows, clear_argmax, expectations
from armlet.policies import check_given, default_policy, find_policy, is_registered
from armlet.policies.base import compiled_rule
from armlet.policies.state import subtract
from armlet.reference.choice import best_chances
from armlet.reference.linear import ordered_scores
from armlet.replacing import check_replaceable
from armlet.types import Arm, Bool, Context, Contexts, Float64, Int64, Policy, Snapshot

if TYPE_CHECKING:
    from armlet.disk import Source, Target
    from armlet.inference import model as inference
    from armlet.inference.model import Contrast
    from armlet.inference.regression import Looks
    from armlet.inference.summary import Coefficients, Explanation, Summary
    from armlet.inputs.encoder import Encoder
    from armlet.model_file import Model
    from armlet.recorder import Fields, Recorder

AnyBandit = TypeVar("AnyBandit", bound="Bandit")


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
        it where rewards have a range. In the bandit's own sense: costs if the objective is "min".
    seed
        The policy's coins, a function of the seed and the step; 0 <= seed < 2^128. Drawn at random if left out.
    log
        Is told of everything that changes the bandit, as it happens: an `armlet.recorder.Recorder`.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(arms=["north", "south"], dim=2, seed=7)
    >>> decision = bandit.decide([1.0, 0.5])
    >>> decision.arm, decision.propensity, decision.explored
    ('north', 0.5, True)
    >>> bandit.learn(decision, 0.3)
    >>> careful = armlet.Bandit(["north", "south"], 2, policy=armlet.OccasionalOptimism(floor=0.02), seed=7)
    """

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
        reward_range: tuple[float, float] | None = None,
        seed: int | None = None,
        log: Recorder | None = None,
    ) -> None:
        policy = default_policy() if policy is None else policy
        check_given(policy)
        policy = in_units(policy, units)
        labels = columns.check_labels(arms)
        encoder, names, dim = check_encoder(encoder, features, dim)
        settings = Settings(
            policy=policy,
            dim=dim,
            features=names,
            objective=objective,
            normalize=normalize,
            reward_range=check_reward_range(reward_range, policy, objective),
            encoder=encoder,
        )
        policy.check(len(labels), dim, 0)
        state = policy.init(len(labels), dim)
        self._set_up(settings, Snapshot(0, labels, [], state, check_seed(seed), []))
        if log is not None:
            self._attach_log(log)

    def _set_up(self, settings: Settings, now: Snapshot, fixed_rows: float = 0.0) -> None:
        s = settings
        super().__init__(
            s.policy,
            compiled_rule(s.policy),
            now.state,
            now.arms,
            now.seed,
            s.reader.row,
            features=s.features if s.encoder is None else None,  # a dict has columns where there is an encoder
            sign=s.sign,
            normalize=s.normalize == "l2",
            reward_range=s.reward_range,
        )
        self._settings, self._reader = s, s.reader
        self._fixed_rows = fixed_rows  # weight of rows that no reward chose, by `design` of `partial_fit`
        self._advance(now.t)
        for stream in now.streams:
            self._know(stream)
        for arm in now.retired:
            self._set_active(arm, False)

    def _attach_log(self, log: Recorder) -> None:
        from armlet.recording import attach  # not before it is needed: files slow down `import armlet`

        attach(self, log, self._model(), self.digest)

    def _user_attributes(self) -> dict[str, Any]:
        """Return what a subclass or a user keeps on it."""
        ours = ("_settings", "_reader", "_fixed_rows")
        return {name: value for name, value in vars(self).items() if name not in ours}

    def _twin(self) -> Self:
        twin = type(self).__new__(type(self))
        twin._set_up(self._settings, self._snapshot(), self._fixed_rows)
        twin._continue_lives(self)
        twin.__dict__.update(self._user_attributes())
        return twin

    # ---- the loop: decide, learn, correct and forget are the engine's own

    def decide_many(self, X: Contexts, *, eligible: Iterable[Arm] | None = None, t: int | None = None) -> Decisions:
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

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1)
        >>> bandit.decide_many([[0.5], [1.0]], t=100).t.tolist(), bandit.t
        ([100, 101], 101)
        """
        return self._decide_many(self._reader.matrix(X), eligible, None if t is None else check_step(t))

    def learn_many(
        self,
        decisions: Sequence[Decision] | Decisions,
        rewards: npt.ArrayLike,
        *,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Learn the rewards of many decisions, all or none, also when it is interrupted."""
        given = list(decisions)
        self._learn_many(given, columns.rewards(rewards, len(given)), columns.weights(weights, len(given)))

    # ---- logs

    def partial_fit(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        steps: int | None = None,
        design: Design = "adaptive",
    ) -> None:
        """Learn from a log, all of it or nothing. Its rows count as decisions: the clock advances by one a row.

        So a bandit that was trained on a log exploits from its first decision on, as much as its policy allows.

        Parameters
        ----------
        X, arms, rewards
            One row, label and reward per logged step.
        explored
            Which steps were played at random: a column of booleans, or one for all. Policies that learn from
            explored steps only insist on it.
        weights
            How much each step counts; 1 if left out.
        steps
            How many decisions the log stands for, if not one a row: more where only a part of the decisions was
            logged, 0 where this very bandit took them, so that they have been counted.
        design
            How the arms of these rows were chosen, which `summary` and `intervals` need to know. "adaptive": by
            something that learned from rewards, as every bandit does. "fixed": by a rule that no reward of these rows
            changed; contexts may decide. "randomized": drawn at random regardless of the context, so that `explored`
            is True unless it is given. While all rows are fixed or randomized, intervals are those of ordinary
            regression, else wider ones. It is kept in model files; a log does not keep it.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Greedy(), seed=1)
        >>> bandit.partial_fit([[1.0], [2.0]], ["a", "b"], [0.5, 3.0])
        >>> bandit.t, bandit.decide([1.0]).arm
        (2, 'b')
        """
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
        values, sizes = columns.rewards(rewards, n), columns.weights(weights, n)
        coins = columns.explored(True if explored is None else explored, n)
        self._learn_rows(rows, played, values, sizes, coins, check_steps(steps, n))
        if design != "adaptive":
            self._fixed_rows += float(sizes.sum())

    def learn_logged(self, table: object) -> None:
        """Learn the rows of a log as `learn` would learn its decisions one by one, bit for bit; all of it or nothing.

        The clock stays: `advance_to` sets it. Decisions of any bandit are learned, once more if they have been.

        Parameters
        ----------
        table
            A mapping of columns, a pandas or polars data frame, or an Arrow table, in the order of learning:

            - t: the step; x: the context, one row of numbers (or float64 as bytes) each, unless there is a column for
              every feature; arm; reward;
            - propensity, explored: as the decision said;
            - tag (0), weight (1): likewise, if there are such columns;
            - replaces: the reward that was learned before and that `reward` takes the place of, as in `correct`; null
              or NaN in rows that are new.

            Columns of other names are passed over.

        Examples
        --------
        >>> import armlet
        >>> one, other = (armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1) for _ in range(2))
        >>> decision = one.decide([0.5])
        >>> one.learn(decision, 1.0)
        >>> row = decision.to_dict()
        >>> other.learn_logged({name: [row[name]] for name in ("t", "x", "arm", "reward", "propensity", "explored")})
        >>> other.advance_to(one.t)
        >>> other.digest() == one.digest()
        True
        """
        from armlet.inputs.columns import read_logged  # not before a log comes

        rows = read_logged(table, self._reader.plain)  # a log has what an encoder made of contexts
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

    def fit(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        explored: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        steps: int | None = None,
        design: Design = "adaptive",
    ) -> None:
        """Forget all sums, then learn from a log as `partial_fit` does; the clock advances as there."""
        fresh = self._twin()
        blank = self.policy.init(len(fresh.arms), self.dim)
        fresh._restore(blank, fresh.arms, 0)
        before, fresh._fixed_rows = fresh.t, 0.0
        fresh.partial_fit(X, arms, rewards, explored=explored, weights=weights, steps=steps, design=design)
        if hasattr(fresh.state, "renew"):  # free units: those of the whole log
            fresh.state.renew()
        self._restore(fresh.state, fresh.arms, fresh.t - before)
        self._fixed_rows = fresh._fixed_rows

    # ---- reading: never random, never changes anything

    def _estimated(
        self, X: Contexts, eligible: Iterable[Arm] | None
    ) -> tuple[list[Arm], Bool, Float64, Float64, float]:
        """Give labels, which may be played, contexts as estimates see them, estimates, and what these are on top of."""
        rows = self._scaled(self._reader.matrix(X))
        labels, playable, theta, units = self._view(eligible)
        if units is None:
            return labels, playable, rows, theta, 0.0
        return labels, playable, units.standard(rows), theta, units.base

    def _slopes(self, eligible: Iterable[Arm]) -> tuple[Bool, Float64] | None:
        """Give which arms may be played and the theta that they are ranked by; None if not on contexts as they come."""
        _, playable, theta, units = self._view(eligible)
        return None if units is not None or self.normalize is not None else (playable, theta)

    def _leading(self, X: Float64, eligible: Iterable[Arm]) -> Int64:
        """Give the place of the arm that looks best, (n,): -1 where another is close, or a row is no context."""
        _, playable, theta, units = self._view(eligible)
        rows = X if self.normalize is None else self._scaled(X)  # which would copy them
        rows = rows if units is None else units.standard(rows)
        arms = np.flatnonzero(playable)
        best = clear_argmax(rows, theta[arms])
        return best if len(arms) == len(theta) else np.where(best < 0, -1, arms[best])

    def predict(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> npt.NDArray[Any]:
        """Give the arm that looks best for each context, (n,); the first of those that tie.

        An array of str or of int64 if all labels are of that kind and fit, so that `sklearn.metrics` takes it; of
        Python objects if not.
        """
        labels, playable, rows, theta, _ = self._estimated(X, eligible)
        arms = np.flatnonzero(playable)
        return columns.label_array(labels)[arms[argmax_rows(rows, theta[arms])]]

    def predict_expectations(self, X: Contexts) -> Float64:
        """Give the estimated reward (or cost) of every arm, (n, K); columns in the order of `arms`."""
        _, _, rows, theta, base = self._estimated(X, None)
        return self._settings.sign * (base + expectations(rows, theta))

    def predict_proba(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Float64:
        """Give the probability with which the next decision would play each arm, (n, K).

        That is the policy at this very step, with what it explores: early on it is close to random play, and a turn
        of a round-robin warm-up has probability 1 whatever the context is. What was learned is `greedy_proba`.
        """
        return self._probabilities(self._reader.matrix(X), None, eligible)

    def greedy_proba(self, X: Contexts, *, eligible: Iterable[Arm] | None = None) -> Float64:
        """Give the law that only exploits: 1 for the arm that looks best, shared by those that tie, (n, K).

        This is what to evaluate on a log, if the question is what the bandit has learned. It is `predict` as
        probabilities, but for ties.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), seed=1)
        >>> bandit.greedy_proba([[1.0]])  # nothing is known: a tie
        array([[0.5, 0.5]])
        >>> bandit.partial_fit([[1.0], [1.0], [1.0]], ["a", "b", "b"], [0.0, 1.0, 1.0], explored=True)
        >>> bandit.predict_proba([[1.0]]), bandit.greedy_proba([[1.0]])  # the turn of step 4, and what was learned
        (array([[1., 0.]]), array([[0., 1.]]))
        """
        _, playable, rows, theta, _ = self._estimated(X, eligible)
        return best_chances(ordered_scores(rows, theta), playable)

    # ---- what it knows, and how surely: from the sums alone

    def intervals(
        self, *, interval: Looks = "fixed", level: float = 0.95, noise_scale: float | None = None
    ) -> Coefficients:
        """Give every coefficient of every arm, by least squares, with an interval; in the user's units.

        What is guaranteed depends on how rows came about, and is said in `words` of the result. A coefficient that the
        rows do not tell has no interval and says why.

        Parameters
        ----------
        interval
            "fixed": for one look, at a time that was fixed beforehand. "anytime": for all looks at once.
        level
            How often an interval covers.
        noise_scale
            For policies that choose rows by what they learned: a bound on the sub-Gaussian scale of noise, which is the
            deviation of normal noise. Left out, it is half of `reward_range`; without either there is no interval.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
        >>> for t in range(60):
        ...     decision = bandit.decide([t % 7])
        ...     bandit.learn(decision, (t % 7) * (decision.arm == "b") + 0.1 * (t % 3))
        >>> found = bandit.intervals().of("b", "0")
        >>> found.low < 1.0 < found.high
        True
        """
        from armlet.inference.model import Ask
        from armlet.inference.summary import coefficients

        return coefficients(self._inference(), Ask(interval, level, noise_scale))

    def contrast(
        self,
        first: Arm,
        second: Arm,
        x: Context | None = None,
        *,
        interval: Looks = "fixed",
        level: float = 0.95,
        noise_scale: float | None = None,
    ) -> Contrast:
        """Say what one arm gives more than another, in a context or on average over contexts; Welch's t.

        Parameters
        ----------
        x
            The context; left out, the mean of those that were learned from, and its own error counts too.
        interval, level, noise_scale
            As in `intervals`; "anytime" needs x.
        """
        from armlet.inference.model import Ask, contrast

        row = None if x is None else self._scaled(self._reader.row(x)[None])[0]
        return contrast(self._inference(), first, second, row, Ask(interval, level, noise_scale))

    def summary(self, *, interval: Looks = "fixed", level: float = 0.95, noise_scale: float | None = None) -> Summary:
        """Give the model as people read it: arms, rows, mean rewards, coefficients with errors; prints as tables."""
        from armlet.inference.model import Ask
        from armlet.inference.summary import summary

        return summary(self._inference(), Ask(interval, level, noise_scale), self.retired)

    def explain(self, x: Context) -> Explanation:
        """Say what each feature of a context adds to the estimate of each arm: they add up to `predict_expectations`.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), features=["age"], seed=1)
        >>> bandit.partial_fit([[1.0], [1.0], [1.0]], ["a", "b", "b"], [0.0, 1.0, 1.0], explored=True)
        >>> print(bandit.explain({"age": 2.0}))
        arm  estimate  base    age
        a           0     0      0
        b       1.172     0  1.172
        """
        from armlet.inference.summary import explanation

        labels, _, rows, theta, base = self._estimated(self._reader.row(x)[None], None)
        names = list(self.features or map(str, range(self.dim)))
        return explanation(labels, names, rows[0], theta, base, self._settings.sign)

    def _inference(self) -> inference.Model:
        from armlet.inference.model import model_of

        now = self._snapshot()
        return model_of(self._settings, now.arms, now.state, now.t, self._fixed_rows)

    # ---- arms: from any thread, while others decide and learn

    def add_arm(self, arm: Arm) -> None:
        """Add an arm of which nothing is known yet."""
        self._add_arm(columns.check_label(arm))

    def retire_arm(self, arm: Arm) -> None:
        """Play an arm no more, but keep what is known of it and learn its late rewards."""
        self._set_active(arm, False)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._set_active(arm, True)

    def remove_arm(self, arm: Arm) -> None:
        """Drop an arm and all that is known of it; its late rewards are refused, unless its label is added again."""
        self._remove_arm(arm)

    # ---- merging and copies

    def merge(self, other: Bandit) -> None:
        """Add what another bandit learned, arm by arm, and its count of decisions; or refuse and change nothing.

        From then on its pending decisions may be learned here. Workers that started from one model would count it once
        each: let them ship `worker.since(model)` instead.
        """
        if not isinstance(other, Bandit):
            raise InvalidTypeError(f"other is {other!r}; merge takes a Bandit")
        self._settings.check_same(other._settings)
        theirs = other._snapshot()

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import merge_fields

            return merge_fields(self._settings, theirs)

        seeds = [theirs.seed, *theirs.streams]
        self._merge(theirs.state, theirs.arms, theirs.retired, theirs.t, seeds, fields)
        self._fixed_rows += other._fixed_rows

    def __add__(self, other: Bandit) -> Bandit:
        """Merge into a new bandit with this one's seed."""
        if not isinstance(other, Bandit):
            return NotImplemented
        total = self._twin()
        total.merge(other)
        return total

    def since(self, base: Bandit) -> Bandit:
        """Give what was learned since a copy was taken: sums and clock, less those of the copy, exact to rounding.

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
        >>> model.merge(worker.since(base))
        >>> model.t, model.state.n.sum()
        (2, np.float64(2.0))
        """
        if not isinstance(base, Bandit):
            raise InvalidTypeError(f"base is {base!r}; since takes the Bandit that this one started from")
        self._settings.check_same(base._settings)
        now, then = self._snapshot(), base._snapshot()
        if now.t < then.t:
            raise MergeError(f"base has taken {then.t} decisions and this bandit {now.t}; base must be the earlier one")
        subtract(now.state, now.arms, then.state, then.arms)
        rest = Bandit.__new__(Bandit)
        fixed = max(0.0, self._fixed_rows - base._fixed_rows)
        rest._set_up(self._settings, now._replace(t=now.t - then.t), fixed)
        return rest

    def copy(self, *, seed: int | None = None) -> Self:
        """Copy everything, the stream of coins included; with `seed`, for a worker, a stream of its own.

        Two copies with one stream toss the same coins for different contexts and give the same ids: right for a
        rehearsal or a snapshot, wrong for two that serve at the same time.
        """
        twin = self._twin()
        if seed is not None:
            twin.reseed(seed)
        return twin

    def replace(self, *, policy: Policy) -> None:
        """Go on with other settings of the same policy, such as another p or width; all that was learned stays.

        Refused where the state would mean something else: another policy, other units, other experts. What it takes
        of `bandit.state` before is not that of the bandit any more.

        Parameters
        ----------
        policy
            The policy with the settings that it is to have from the next decision on.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), seed=1)
        >>> bandit.learn(bandit.decide([1.0]), 0.5)
        >>> bandit.replace(policy=armlet.Algorithm1(p=10))
        >>> bandit.policy, bandit.t, bandit.state.n.tolist()
        (Algorithm1(p=10, ridge='paper', warmup='round-robin', units='as given', origin=None), 1, [0.0, 1.0])
        """
        check_given(policy)
        settings = self._settings.with_policy(policy)
        check_replaceable(self.policy, policy, self.state, len(self.arms), self.dim)

        def fields() -> Fields:  # of a bandit with a log
            from armlet.recording import replace_fields

            return replace_fields(policy)

        self._replace(policy, compiled_rule(policy), fields)
        self._settings = settings

    def reseed(self, seed: int | None = None) -> None:
        """Go on with a new stream of coins; pending decisions of the old one can still be learned.

        Parameters
        ----------
        seed
            Of the new stream; drawn from the operating system if left out. One that was in use already is refused.
        """
        self._reseed(check_seed(seed))

    def __copy__(self) -> Self:
        return self._twin()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self._twin()
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        own = None if is_registered(self.policy) else self.policy  # pickle itself must find its class
        return (_unpickle, (type(self), self.to_bytes(), own), self._user_attributes() or None)

    # ---- files

    def save(self, path: Target) -> None:
        """Write one file, whole or not at all: a JSON header and raw little-endian arrays.

        It holds the seed: a new file can be read by its owner alone. One that is there keeps its permissions.

        Parameters
        ----------
        path
            Where to; or a binary file object, which is written to from where it stands.
        """
        from armlet import model_file  # not before it is needed: files would slow down `import armlet`

        model_file.write(path, self._model())

    def to_bytes(self) -> bytes:
        """Give what `save` would write; `armlet.from_bytes` reads it back."""
        from armlet import model_file

        return model_file.encode(self._model())

    def arm_set(self, labels: Iterable[Arm]) -> ArmSet:
        """Look labels up beforehand, for the `eligible` of many decisions.

        The set may be used for any bandit that has these arms, from any thread, also after arms have come and gone.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b", "c"], 1, policy=armlet.Algorithm1(p=3), seed=1)
        >>> some = bandit.arm_set(["a", "c"])
        >>> bandit.decide([0.5], eligible=some).eligible
        ('a', 'c')
        """
        return self._arm_set(labels)

    def digest(self) -> str:
        """Give 64 hexadecimal digits that tell two bandits apart unless they decide and learn alike, but for coins.

        SHA-256 of policy, state, clock, arms and all other settings; not of the seed, nor of what can be worked out
        from the state. Two replicas that learned the same in the same order have the same digest on any machine.

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

    def _model(self) -> Model:
        from armlet.model_file import Model

        return Model(settings=self._settings, **self._snapshot()._asdict(), fixed_rows=self._fixed_rows)

    # ---- what it is

    @property
    def arms(self) -> list[Arm]:
        """The labels, retired ones included, in the order of columns."""
        return self._labels

    @property
    def retired(self) -> list[Arm]:
        """The labels of retired arms."""
        return self._retired

    @property
    def policy(self) -> Policy:
        """The policy: frozen settings, and how arms are chosen."""
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
    def encoder(self) -> Encoder | None:
        """A copy of the encoder that contexts by column go through, if there is one."""
        return None if self._settings.encoder is None else self._settings.encoder.copy()

    @property
    def objective(self) -> Objective:
        """Whether rewards are sought or costs avoided."""
        return self._settings.objective

    @property
    def normalize(self) -> Normalize | None:
        """How contexts are scaled."""
        return self._settings.normalize

    @property
    def units(self) -> Units:
        """Whether what it decides is free of the units of features and rewards."""
        return units_of(self.policy)

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The lowest and the highest reward that is learned, if given."""
        return self._settings.reward_range

    @property
    def seed(self) -> int:
        """The seed of its coins."""
        return self._seed

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state takes."""
        held: int = self.state.nbytes
        return held

    def __repr__(self) -> str:
        if "_settings" not in vars(self):  # in the traceback of a refused one, for instance
            return f"<{type(self).__name__} that was not set up>"
        return f"Bandit(arms={self.arms}, dim={self.dim}, policy={self.policy}, t={self.t})"


def load(path: Source, *, policy: Policy | None = None, seed: int | None = None, log: Recorder | None = None) -> Bandit:
    """Read a bandit back from its file; it decides as the saved one would, bit for bit.

    Parameters
    ----------
    path
        A file written by `Bandit.save`; or a binary file object, which is read to its end.
    policy
        The policy, if it is not one of Armlet's own.
    seed
        A stream of coins of its own, for one of several processes that load the same file, or after a restart from a
        file that is older than the last decision: otherwise the same ids come again for other contexts. Pending
        decisions of the file's own stream can still be learned.
    log
        Is told of everything that changes the bandit from now on, as in `Bandit`.

    Examples
    --------
    >>> import io, armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1)
    >>> file = io.BytesIO()
    >>> bandit.save(file)
    >>> _ = file.seek(0)
    >>> worker = armlet.load(file, seed=2)
    >>> worker.decide([1.0]).id == bandit.decide([1.0]).id
    False
    """
    from armlet import model_file

    if policy is not None:
        check_given(policy)
    bandit = _from_model(model_file.read(path, find_policy, policy), Bandit)
    if seed is not None:
        bandit.reseed(seed)
    if log is not None:
        bandit._attach_log(log)
    return bandit


def from_bytes(data: bytes, *, policy: Policy | None = None, log: Recorder | None = None) -> Bandit:
    """Read a bandit back from what `Bandit.to_bytes` gave; nothing in it is ever executed.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1)
    >>> armlet.from_bytes(bandit.to_bytes()).decide([1.0]).id == bandit.decide([1.0]).id
    True
    """
    from armlet import model_file

    if policy is not None:
        check_given(policy)
    bandit = _from_model(model_file.decode(data, find_policy, policy), Bandit)
    if log is not None:
        bandit._attach_log(log)
    return bandit


def _from_model(saved: Model, kind: type[AnyBandit]) -> AnyBandit:
    bandit = kind.__new__(kind)
    now = Snapshot(saved.t, saved.arms, saved.retired, saved.state, saved.seed, list(saved.streams))
    bandit._set_up(saved.settings, now, saved.fixed_rows)
    return bandit


def _unpickle(kind: type[AnyBandit], data: bytes, policy: Policy | None) -> AnyBandit:
    from armlet import model_file

    return _from_model(model_file.decode(data, find_policy, policy), kind)
