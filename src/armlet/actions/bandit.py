"""The bandit that users hold where arms have features: one model over pairs, prepared tables, a clock and a seed.

Contexts, actions and rewards are checked here, once; everything inside trusts them. Any thread may call at any time:
threads take turns. A decision over a prepared table of n actions costs O(n d) in the kernel; learning O(D^2), D the
terms of a pair, and now and then a solve, O(D^3).
"""

from __future__ import annotations

import base64
import dataclasses
import reprlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from armlet import lost_digits
from armlet.actions import file
from armlet.actions.decision import ActionDecision
from armlet.actions.law import ActionChoice, ActionStep, chances_of, greedy_chances, play
from armlet.actions.learning import (
    Folded,
    check_known,
    check_learnable,
    check_learned,
    check_waited_for,
    corrected,
    without,
)
from armlet.actions.settings import NO_RANGES, ActionSettings, AnyEncoder, check_side
from armlet.actions.table import ActionTable
from armlet.disk import decode_model, give_up_in_children
from armlet.errors import (
    BusyError,
    DecisionError,
    InvalidTypeError,
    InvalidValueError,
    MergeError,
    UnknownNameError,
    choices,
    suggesting,
)
from armlet.inputs import columns
from armlet.inputs.actions import (
    ActionContext,
    ActionSource,
    PairRows,
    Sparse,
    dense,
    exchanged,
    read_context,
    read_pairs,
)
from armlet.inputs.columns import check_utf8
from armlet.inputs.settings import Objective, check_mode, check_seed, check_step, ends, whole
from armlet.kernel import action_keys, coins, commit
from armlet.policies.shared import PairPolicy, SharedOptimism
from armlet.types import Arm, Bool, Contexts, Float64, Mode

if TYPE_CHECKING:
    from armlet.actions.explanation import ActionExplanation
    from armlet.actions.recording import ActionRecorder
    from armlet.disk import Target
    from armlet.kernel import PairModel
    from armlet.recording import Fields, Recording, Value, Values

Actions: TypeAlias = str | ActionTable | ActionSource
"""Actions at the border: the name of a prepared table, a table, features by label, (labels, Z), or a data frame."""

LAST: Final = 2**63 - 1  # step
EMPTY: Float64 = np.empty(0)


class _Lock:
    """The lock of a bandit without a log; a forked child has one of its own."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        give_up_in_children(self)

    def forked(self) -> None:
        self.lock = threading.RLock()  # the other may have been copied while a thread held it


class ActionBandit:
    """A contextual bandit whose arms have features: `decide` among the actions of a table, play, `learn`.

    One model of all actions, over features of the pair: what is learned of one action tells about those like it, so
    actions may come and go at every decision, and a new one is understood at once.

    Parameters
    ----------
    dim
        Values in a context; may be left out if `features` are named. 0, or neither: there are no contexts.
    action_dim
        Values of an action; may be left out if `action_features` are named.
    features, action_features
        Names of these values, for contexts and actions given as mappings or tables.
    encoder, action_encoder
        A fitted `armlet.Encoder`, for contexts or actions that are rows of text, categories and numbers; or
        `armlet.HashedFeatures(n)`, for any names.
    policy
        `armlet.SharedOptimism()`, low regret with nothing to set; or `armlet.SharedThompson()`, for logs that are to be
        evaluated.
    objective
        "max" for rewards, "min" for costs.
    reward_range
        (lowest, highest): rewards outside are refused.
    seed
        All randomness of decisions is a function of it and of the step; 0 <= seed < 2^128, random if left out.
    log
        Receives every state change, in order: an `armlet.Log`, or any `armlet.actions.recording.ActionRecorder`.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.ActionBandit(features=["age"], action_features=["price", "sweet"], seed=7)
    >>> drinks = {"tea": {"price": 2.0, "sweet": 0}, "cocoa": {"price": 3.0, "sweet": 1}}
    >>> decision = bandit.decide({"age": 9}, drinks)
    >>> bandit.learn(decision, 1.0)
    >>> decision.propensity, decision.n_actions
    (0.5, 2)
    >>> bandit.decide({"age": 8}, drinks | {"lemonade": [2.5, 1.0]}, eligible=["tea", "lemonade"]).arm
    'lemonade'
    """

    @suggesting("ActionBandit", feature_range=NO_RANGES)
    def __init__(
        self,
        dim: int | None = None,
        action_dim: int | None = None,
        *,
        features: Iterable[str] | None = None,
        action_features: Iterable[str] | None = None,
        encoder: AnyEncoder | None = None,
        action_encoder: AnyEncoder | None = None,
        policy: PairPolicy | None = None,
        objective: Objective = "max",
        reward_range: tuple[float, float] | None = None,
        seed: int | None = None,
        log: ActionRecorder | None = None,
    ) -> None:
        encoder, names, width = check_side(encoder, features, dim, "")
        action_encoder, action_names, action_width = check_side(action_encoder, action_features, action_dim, "action_")
        settings = ActionSettings(
            policy=SharedOptimism() if policy is None else policy,
            dim=width,
            features=names,
            action_dim=action_width,
            action_features=action_names,
            objective=objective,
            reward_range=None if reward_range is None else ends("reward_range", reward_range),
            encoder=encoder,
            action_encoder=action_encoder,
        )
        state = file.new_state(settings)
        self._set(file.ActionModel(settings=settings, t=0, seed=check_seed(seed), streams=(), state=state, tables={}))
        if log is not None:
            self._attach_log(log)

    def _set(self, model: file.ActionModel) -> None:
        self._settings, self._t, self._seed, self._streams = model.settings, model.t, model.seed, model.streams
        self._state, self._tables = model.state, dict(model.tables)
        self._reader, self._action_reader = model.settings.reader, model.settings.action_reader
        self._recording: Recording | None = None
        self._turn: _Lock | Recording = _Lock()
        self._changes = 0

    @classmethod
    def _from_model(cls, model: file.ActionModel) -> Self:
        bandit = cls.__new__(cls)
        bandit._set(model)
        return bandit

    def _attach_log(self, log: ActionRecorder) -> None:
        from armlet.actions.recording import METHODS
        from armlet.recording import begin  # not before it is needed: files slow down `import armlet`

        now = self._model()
        start, about = file.encode(now), file.describe(now)
        recording = begin(cast(Any, log), start, about, self.digest, self._resync_fields, METHODS)
        self._recording = self._turn = recording

    def _resync_fields(self) -> Fields:
        return {"model": base64.b64encode(file.shared(self._model())).decode()}

    # ---- decisions

    def prepare(self, name: str, table: ActionSource | ActionTable) -> ActionTable:
        """Keep a table under a name, so that `decide(x, name)` chooses from it without reading it again.

        Parameters
        ----------
        name
            Of the table; one that has it already is replaced.
        table
            What `decide` takes as actions.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.ActionBandit(1, 1, seed=1)
        >>> bandit.prepare("drinks", {"tea": [2.0], "milk": [1.0]})
        <ActionTable of 2 actions with 1 features: 'milk', 'tea'>
        >>> bandit.decide([0.5], "drinks").arm
        'milk'
        >>> _ = bandit.prepare("drinks", bandit.tables["drinks"].changed(remove=["milk"]))
        >>> bandit.decide([0.5], "drinks").arm
        'tea'
        """
        if not isinstance(name, str) or not name:
            raise InvalidTypeError(f"name is {name!r}; give a text")
        check_utf8("name", name)
        if isinstance(table, str):
            raise InvalidTypeError(f"table is the text {table!r}; give the actions themselves")
        made = self.table(table)
        with self._turn.lock:
            values: Values = (self._once(), (self, "_tables", {**self._tables, name: made}))
            if self._recording is None:
                commit(None, [], values)
            else:
                self._recording.table(made, name, values)
        return made

    def remove_table(self, name: str) -> None:
        """Remove a prepared table; its pending decisions can still be learned.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.ActionBandit(1, 1, seed=1)
        >>> _ = bandit.prepare("drinks", {"tea": [2.0], "milk": [1.0]})
        >>> decision = bandit.decide([0.5], "drinks")
        >>> bandit.remove_table("drinks")
        >>> bandit.learn(decision, 1.0)
        >>> bandit.tables
        {}
        """
        if not isinstance(name, str):
            raise InvalidTypeError(f"name is {name!r}; give a text")
        with self._turn.lock:
            if name not in self._tables:
                near = choices(name, self._tables) if self._tables else "there are none"
                raise UnknownNameError(f"name is {name!r}, which no prepared table has; {near}")
            left = {other: table for other, table in self._tables.items() if other != name}
            values: Values = (self._once(), (self, "_tables", left))
            if self._recording is None:
                commit(None, [], values)
            else:
                self._recording.table_removed(name, values)

    @property
    def tables(self) -> Mapping[str, ActionTable]:
        """The prepared tables by name, a copy; those that a file has the names of alone are left out."""
        return {name: table for name, table in self._tables.items() if isinstance(table, ActionTable)}

    def table(self, actions: Actions) -> ActionTable:
        """Return actions as `decide` reads them: the table whose order `predict_proba` has.

        Examples
        --------
        >>> import armlet
        >>> armlet.ActionBandit(1, 1).table({"tea": [2.0], "milk": [1.0]}).labels
        ('milk', 'tea')
        """
        if not isinstance(actions, str):
            return self._settings.table(actions)
        table = self._tables.get(actions)
        if isinstance(table, ActionTable):
            return table
        raise self._no_table(actions, table)

    def _no_table(self, name: str, known: str | None) -> Exception:
        if known is not None:
            return InvalidValueError(f"table {name!r} was saved by its hash alone, {known}; prepare it again")
        near = choices(name, self._tables) if self._tables else "there are none yet"
        return UnknownNameError(f"no table {name!r} was prepared; call prepare({name!r}, table) first, or {near}")

    def decide(
        self,
        x: ActionContext,
        actions: Actions,
        *,
        eligible: Iterable[Arm] | Bool | None = None,
        t: int | None = None,
        propensity: Literal["marginal"] | None = None,
        probabilities: Literal["all"] | None = None,
    ) -> ActionDecision:
        """Choose an action for one context, and advance the clock.

        Parameters
        ----------
        x
            A numpy row, a list, or a mapping by feature name; None if there are no contexts.
        actions
            What can be chosen: features by label, a pair (labels, Z), a data frame or Arrow table with a column `arm`
            or an index of labels, an `ActionTable`, or the name of a prepared one.
        eligible
            Those of them that may be played this time: labels, or a boolean for each row of the table in its order.
        t
            The step to decide, with the coins of that step; later than the clock. The next step if left out.
        propensity
            "marginal" for a propensity and a support over all coins: what an evaluation needs. Left out, a decision
            looks for the candidates of its own kind of step alone (`decision.marginal` is False). Decisions of a bandit
            with a log, and those with `probabilities="all"`, always have the marginal one.
        probabilities
            "all" for `decision.probabilities`, those of every row of the table.
        """
        _check_words(propensity, probabilities)
        row = self._context(x)
        with self._turn.lock:
            once = self._once()
            table = self.table(actions)
            allowed = None if eligible is None else table.mask(eligible)
            step = self._step(t)
            marginal = propensity is not None or probabilities is not None or self._recording is not None
            choice = self._play(row, table, allowed, step, marginal=marginal)
            return self._made(row, table, allowed, step, choice, once, is_asked=probabilities is not None)

    def _context(self, x: Any) -> Float64:
        if self._settings.dim == 0 and (x is None or (isinstance(x, Mapping) and not x)):
            return EMPTY
        if isinstance(x, str) and x in self._tables:
            raise exchanged(x)
        return read_context(x, self._reader, self._settings.action_reader)

    def _step(self, t: int | None) -> int:
        step = self._t + 1 if t is None else check_step(t)
        if not self._t < step <= LAST:
            raise InvalidValueError(
                f"t is {step} but the clock stands at {self._t} and goes forward only, up to 2^63 - 1; give a later "
                "step"
            )
        return step

    def _play(self, x: Float64, table: ActionTable, allowed: Bool | None, t: int, *, marginal: bool) -> ActionChoice:
        n = len(table) if allowed is None else int(np.count_nonzero(allowed))
        step = ActionStep(self._state, x, table.rows, t, self._seed, coins(self._seed, t), allowed, n)
        return play(self._settings.policy, step, marginal=marginal)

    def _made(
        self,
        x: Float64,
        table: ActionTable,
        allowed: Bool | None,
        t: int,
        choice: ActionChoice,
        once: Value,
        *,
        is_asked: bool,
    ) -> ActionDecision:
        """Make the decision, record it, and advance the clock."""
        labels, support = table.labels, choice.support
        d = ActionDecision.__new__(ActionDecision)
        d.id, d.t, d.arm = f"{t}-{coins(self._seed, t).mark:016x}", t, labels[choice.row]
        d.x, d.z, d.key = _frozen(x), table.features[choice.row], int(table.keys[choice.row])
        d._table, d.n_actions = table, len(table)
        d.eligible = None if allowed is None else tuple(labels[place] for place in np.flatnonzero(allowed).tolist())
        d.propensity, d.marginal = choice.propensity, choice.marginal
        d.support = None if support is None else {labels[row]: chance for row, chance in support.items()}
        d.probabilities = chances_of(choice, len(table), allowed) if is_asked else None
        d.optimistic, d.greedy = choice.optimistic, choice.greedy
        d.learned, d.expired, d.reward, d.weight, d.recorded = False, False, None, 1.0, None
        clock: Values = (once, (self, "_t", t))
        if self._recording is None:
            commit(None, [], clock)
        else:
            self._recording.decision(d, table, clock)
        return d

    def decide_many(
        self,
        X: Contexts | Sparse,
        actions: Actions | Sequence[Actions],
        *,
        eligible: Iterable[Arm] | Bool | None = None,
        t: int | None = None,
        propensity: Literal["marginal"] | None = None,
    ) -> list[ActionDecision]:
        """Choose for many contexts: the same decisions, bit for bit, as one by one.

        Parameters
        ----------
        X
            One context a row.
        actions
            One table for all rows, or a list of tables, one for each.
        eligible, propensity
            As in `decide`, for all rows.
        t
            The step of the first row.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.ActionBandit(1, 1, seed=1)
        >>> [decision.t for decision in bandit.decide_many([[0.5], [1.0]], {"tea": [2.0], "milk": [1.0]})]
        [1, 2]
        """
        _check_words(propensity, None)
        rows = self._reader.matrix(dense(X))
        with self._turn.lock:
            before = self._changes
            if isinstance(actions, list):
                if len(actions) != len(rows):
                    raise InvalidValueError(f"actions has {len(actions)} tables for {len(rows)} contexts; give as many")
                tables = [self.table(each) for each in actions]
            else:
                tables = [self.table(cast(Actions, actions))] * len(rows)
            once = list(eligible) if isinstance(eligible, Iterator) else eligible
            masks = [None if once is None else table.mask(once) for table in tables]
            step = self._step(t)
            self._step(step + max(len(rows) - 1, 0))
            marginal = propensity is not None or self._recording is not None
            made = []
            for place, (x, table, allowed) in enumerate(zip(rows, tables, masks, strict=True)):
                count = self._once(before + place)
                played = self._play(x, table, allowed, step + place, marginal=marginal)
                made.append(self._made(x, table, allowed, step + place, played, count, is_asked=False))
            return made

    # ---- rewards

    def learn(self, decision: ActionDecision, reward: float, *, weight: float = 1.0) -> None:
        """Learn the reward of a decision: late, out of order, or never, but only once.

        Parameters
        ----------
        decision
            What `decide` gave, or a record of it (`ActionDecision.from_dict`): its table may be gone.
        reward
            Any finite number; a cost if the objective is "min".
        weight
            How much it counts, a positive number.
        """
        value, size = self._reward(reward), columns.weight(weight)
        with self._turn.lock:
            once, d = self._once(), self._known(decision)
            check_learnable(d, self._settings)
            row = (d.key, d.x, d.z, self._settings.sign * value, size)
            fields = {"reward": value, "weight": size}
            values = (once, *_learned(d, value, size))
            self._change("learn", lambda: [{**self._about(d), **fields}], values, self._state.add, row)

    def learn_many(
        self, decisions: Sequence[ActionDecision], rewards: npt.ArrayLike, *, weights: npt.ArrayLike | None = None
    ) -> None:
        """Learn the rewards of many decisions, all or none."""
        batch = cast("list[ActionDecision]", columns.listed("decisions", decisions))
        values = [self._reward(value) for value in columns.rewards(rewards, len(batch)).tolist()]
        sizes = columns.weights(weights, len(batch)).tolist()
        if len({id(decision) for decision in batch}) < len(batch):
            raise DecisionError("decisions holds one decision more than once; learn it once")
        rows = list(zip(batch, values, sizes, strict=True))
        with self._turn.lock:
            once = self._once()
            for decision in batch:
                check_learnable(self._known(decision), self._settings)
            state, flags = self._state.copy(), list[Any]()
            for d, value, size in rows:
                state.add(d.key, d.x, d.z, self._settings.sign * value, size)
                flags.extend(_learned(d, value, size))
            self._change(
                "learn",
                lambda: [{**self._about(d), "reward": value, "weight": size} for d, value, size in rows],
                (once, (self, "_state", state), *flags),
            )

    def correct(
        self, decision: ActionDecision, old_reward: float, new_reward: float, *, folded: Folded = "refuse"
    ) -> None:
        """Replace the reward that was learned from a decision, exactly but for rounding; `folded` as in `forget`."""
        old, new = columns.reward(old_reward, "old_reward"), self._reward(new_reward)
        with self._turn.lock:
            once, d = self._once(), self._known(decision)
            check_learned(d, old, "old_reward", self._settings)
            state = corrected(self._state, d, new, self._settings, folded)
            fields = {"old_reward": old, "new_reward": new, "weight": d.weight}
            losses = self._state.losses
            values = (once, (self, "_state", state), (d, "reward", new))
            self._change("correct", lambda: [{**self._about(d), **fields}], values)
        self._tell_losses(losses, state)

    def forget(self, decision: ActionDecision, reward: float, *, folded: Folded = "refuse") -> None:
        """Take back what was learned from a decision, exactly but for rounding; it may be learned again.

        Parameters
        ----------
        decision
            One that was learned.
        reward
            What was learned from it.
        folded
            What to do if rows of the action can no longer be distinguished, since more than ten thousand other actions
            were learned after them, even if the action came back since: "refuse" raises `armlet.errors.ForgetError`;
            "approximate" takes the row out as if the action had no intercept.
        """
        value = columns.reward(reward)
        with self._turn.lock:
            once, d = self._once(), self._known(decision)
            check_learned(d, value, "reward", self._settings)
            state = without(self._state, d, self._settings, folded)
            losses = self._state.losses
            flags = ((d, "learned", False), (d, "expired", True), (d, "reward", None))
            values = (once, (self, "_state", state), *flags)
            self._change("forget", lambda: [{**self._about(d), "reward": value, "weight": d.weight}], values)
        self._tell_losses(losses, state)

    def _tell_losses(self, before: int, state: PairModel) -> None:
        """Learn the log again if a row was taken back that was too large for the digits of the model, or warn."""
        if state.losses == before:
            return
        s = self._settings
        columns = [
            *lost_digits.column_names(s.features, s.dim),
            *lost_digits.column_names(s.action_features, s.action_dim, "action feature"),
        ]
        loss = [("the model", state.n_rows == 0, state.digits_lost)]
        lost_digits.is_cured(lost_digits.describe(loss, ["n", "rewards", *columns]), self._recording, None, self._take)

    def _take(self, learned: ActionBandit) -> None:
        """Go on with what another bandit has learned from this one's log, and record that as a resync."""
        once = self._once()
        if learned.t != self._t:
            raise InvalidValueError("the log leads to another step")
        learned._state.solve()  # from sums, as after `forget`
        data = file.shared(dataclasses.replace(self._model(), state=learned._state))
        other = file.restore("the log", *decode_model(data))  # what a replay makes of it
        fields = {"model": base64.b64encode(data).decode()}
        self._change("resync", lambda: [fields], (once, (self, "_state", other.state)))

    def expire(self, decision: ActionDecision) -> None:
        """Stop waiting for the reward of a decision, which will not come. If it comes after all, it can be learned."""
        with self._turn.lock:
            once, d = self._once(), self._known(decision)
            check_waited_for(d)
            self._change("expire", lambda: [self._about(d)], (once, (d, "expired", True)))

    def _reward(self, value: float) -> float:
        reward, ends = columns.reward(value), self._settings.reward_range
        if ends is not None and not ends[0] <= reward <= ends[1]:
            raise InvalidValueError(
                f"reward is {reward} but reward_range is {ends}; leave it out, or take a wider range: "
                "replace(reward_range=...)"
            )
        return reward

    def _known(self, decision: ActionDecision) -> ActionDecision:
        return check_known(decision, (self._seed, *self._streams))

    # ---- records

    def _once(self, before: int | None = None) -> Value:
        """Count a change, which is refused if another one came meanwhile, such as that of a signal handler."""
        now = self._changes if before is None else before
        return (self, "_changes", now + 1, now)

    def _change(
        self,
        kind: str,
        many: Callable[[], list[dict[str, Any]]],
        values: Values,
        call: Callable[..., object] | None = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        """Record events of a kind, call a method of the model and set attributes: all of it or nothing."""
        if self._recording is None:
            commit(None, [], values, call, args)
        else:
            self._recording.change(kind, many(), values, call, args)

    def _about(self, d: ActionDecision) -> dict[str, Any]:
        """Return the id of a decision, and its record if the recorder did not receive it."""
        about: dict[str, Any] = {"id": d.id} | ({"expired": True} if d.expired and not d.learned else {})
        return about if d.recorded is self._recording else {**about, "decision": d.to_dict()}

    # ---- logs

    def partial_fit(self, table: object) -> Self:
        """Learn from a log's table of decisions: the sums of `learn` one by one, bit for bit; all or nothing.

        Returns the bandit. Ridges and the weight of intercepts are functions of the sums afterwards, as after `merge`,
        `forget` and `correct`, where `learn` finds them again when rows have doubled.

        Parameters
        ----------
        table
            A mapping of columns, a pandas or polars data frame, or an Arrow table, in the order of learning:

            - x, z: the context, and the features of the action that was played: one row of numbers, or float64 as
              bytes, each; arm, its label; reward;
            - weight (1): if there is such a column;
            - replaces: the reward that was learned before and that `reward` takes the place of, as in `correct`; null
              or NaN in rows that are new.

            Columns of other names are ignored. The clock stays: `replace(t=)` sets it.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.ActionBandit(1, 1, seed=1)
        >>> _ = bandit.partial_fit({"x": [[0.5], [0.1]], "z": [[1.0], [2.0]], "arm": ["milk", "tea"], "reward": [0, 1]})
        >>> bandit.predict([0.3], {"water": [0.0], "coffee": [3.0]})
        'coffee'
        """
        rows = read_pairs(table, self._reader.plain, self._action_reader.plain)
        for value in rows.rewards.tolist():
            self._reward(value)
        with self._turn.lock:
            once, state = self._once(), self._state.copy()
            self._learn_rows(state, rows)
            state.solve()
            losses = self._state.losses
            self._change("learn_logged", lambda: [{"columns": rows.to_dict()}], (once, (self, "_state", state)))
        self._tell_losses(losses, state)
        return self

    def _learn_rows(self, state: PairModel, rows: PairRows) -> None:
        keys = action_keys(rows.arms, rows.Z + 0.0).tolist()
        sign, X, Z = self._settings.sign, rows.X, rows.Z + 0.0
        olds = rows.replaces.tolist()
        for i, (value, weight) in enumerate(zip(rows.rewards.tolist(), rows.weights.tolist(), strict=True)):
            if olds[i] == olds[i]:
                state.correct(keys[i], X[i], Z[i], sign * olds[i], sign * value, weight)
            else:
                state.add(keys[i], X[i], Z[i], sign * value, weight)

    # ---- reading: never random, never changes anything

    def predict(self, x: ActionContext, actions: Actions, *, eligible: Iterable[Arm] | Bool | None = None) -> Arm:
        """Return the action with the highest estimate; the first in the table's order of those that tie."""
        row, table = self._context(x), self.table(actions)
        allowed = None if eligible is None else table.mask(eligible)
        with self._turn.lock:
            return table.labels[int(np.argmax(greedy_chances(self._state, row, table.rows, allowed)))]

    def predict_expectations(self, x: ActionContext, actions: Actions) -> Float64:
        """Return the estimated reward (or cost) of every action, (n,), in the table's order."""
        row, table = self._context(x), self.table(actions)
        with self._turn.lock:
            return self._settings.sign * self._state.estimates(row, table.rows)

    def predict_proba(
        self,
        x: ActionContext,
        actions: Actions,
        *,
        mode: Mode = "exploring",
        eligible: Iterable[Arm] | Bool | None = None,
    ) -> Float64:
        """Return the probability of each action, (n,), in the table's order.

        Parameters
        ----------
        x, actions, eligible
            As in `decide`.
        mode
            "exploring": the policy at this very step, over all its coins. "greedy": what was learned, without
            exploration; 1 for the highest estimate, shared by those that tie.
        """
        check_mode(mode)
        row, table = self._context(x), self.table(actions)
        allowed = None if eligible is None else table.mask(eligible)
        with self._turn.lock:
            if mode == "greedy":
                return greedy_chances(self._state, row, table.rows, allowed)
            choice = self._play(row, table, allowed, min(self._t + 1, LAST), marginal=True)
        return chances_of(choice, len(table), allowed)

    def explain(self, x: ActionContext, actions: Actions, *, n: int = 10) -> ActionExplanation:
        """Return what is known of the n actions with the highest estimates.

        Of each the estimate, its width (the deviation of the estimate), the evidence (as if it had been shown so many
        times), and the probability of the next decision.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.ActionBandit(action_dim=1, seed=1)
        >>> for price in (1.0, 2.0, 3.0, 2.0):
        ...     _ = bandit.partial_fit({"z": [[price]], "arm": [f"at {price}"], "reward": [10 - price]})
        >>> bandit.explain(None, {"tea": [1.5], "milk": [9.0]}, n=1).arms
        ['tea']
        """
        from armlet.actions.explanation import explained  # not before somebody asks

        most = cast(int, whole()("n", n))
        row, table = self._context(x), self.table(actions)
        chances = self.predict_proba(x, table)
        with self._turn.lock:
            return explained(self._state, row, table, chances, most, self._settings.sign)

    # ---- merging and copies

    def merge(self, other: ActionBandit) -> None:
        """Add what another bandit learned, and its count of decisions; its pending decisions may be learned here.

        A bandit with a log does not take them over, since a log holds no seeds: learn them before they are merged.
        Workers that started from one model would count it once each: let them ship `worker.difference(model)` instead.
        """
        theirs = _other(other, "merge", "other")._model()
        self._settings.check_same(theirs.settings)
        with self._turn.lock:
            once, state = self._once(), self._state.copy()
            state.merge(theirs.state)
            t = self._t + theirs.t
            if t > LAST:
                raise InvalidValueError(f"the clock stands at {self._t} and cannot take {theirs.t} steps more")
            seeds = (theirs.seed, *theirs.streams) if self._recording is None else ()  # a log holds none to replay them
            new = [seed for seed in dict.fromkeys(seeds) if seed not in (self._seed, *self._streams)]
            values = (once, (self, "_state", state), (self, "_t", t), (self, "_streams", (*self._streams, *new)))
            self._change("merge", lambda: [{"model": base64.b64encode(file.shared(theirs)).decode()}], values)

    def __add__(self, other: ActionBandit) -> ActionBandit:
        """Merge into a new bandit with this one's seed."""
        if not isinstance(other, ActionBandit):
            return NotImplemented
        total = self.copy()
        total.merge(other)
        return total

    def difference(self, base: ActionBandit) -> ActionBandit:
        """Return what was learned since a copy was taken: sums and clock minus those of the copy, exact to rounding.

        Parameters
        ----------
        base
            The model that this bandit started from, as it was then.
        """
        then, now = _other(base, "difference", "base")._model(), self._model()
        self._settings.check_same(then.settings)
        if now.t < then.t:
            raise MergeError(f"base has taken {then.t} decisions and this bandit {now.t}; base must be the earlier one")
        now.state.subtract(then.state)
        settings = {"settings": now.settings, "seed": now.seed, "streams": now.streams, "tables": {}}
        return ActionBandit._from_model(file.ActionModel(**cast(Any, settings), t=now.t - then.t, state=now.state))

    def copy(self, *, seed: int | Literal["random"] | None = None) -> Self:
        """Copy everything but the log, the seed included, or with another `seed`, as in `replace`."""
        twin = self._from_model(self._model())
        twin.__dict__.update(self._user_attributes())
        if seed is not None:
            twin.replace(seed=seed)
        return twin

    @suggesting("replace", feature_range=NO_RANGES)
    def replace(
        self,
        *,
        policy: PairPolicy | None = None,
        seed: int | Literal["random"] | None = None,
        t: int | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        """Continue with one thing changed; what was learned stays, and pending decisions can still be learned.

        Parameters
        ----------
        policy
            Another policy over the same model: other settings, or the other kind, but the same interactions and
            intercepts.
        seed
            A new seed; "random" draws one from the operating system. One that was in use is refused.
        t
            The decisions taken so far, those taken elsewhere included; not fewer than now.
        reward_range
            (lowest, highest) from now on.
        """
        changes: dict[str, Any] = {"policy": policy, "seed": seed, "t": t, "reward_range": reward_range}
        names = [name for name, value in changes.items() if value is not None]
        if len(names) != 1:  # so that a refused call has changed nothing
            raise InvalidTypeError(f"replace got {' and '.join(names) or 'nothing'}; give one of {', '.join(changes)}")
        with self._turn.lock:
            once = self._once()
            if policy is not None:
                self._replace_settings(self._settings.with_policy(policy), "policy", once)
            elif reward_range is not None:
                self._replace_settings(self._settings.with_reward_range(reward_range), "reward_range", once)
            elif t is not None:
                self._advance_to(t, once)
            else:
                is_random = isinstance(seed, str) and seed == "random"
                self._reseed(check_seed(None if is_random else cast(int, seed)), once)

    def _replace_settings(self, settings: ActionSettings, name: str, once: Value) -> None:
        from armlet.model_file import policy_header

        value = policy_header(settings.policy) if name == "policy" else list(settings.reward_range or ())
        self._change("replace", lambda: [{name: value}], (once, (self, "_settings", settings)))

    def _advance_to(self, t: int, once: Value) -> None:
        if isinstance(t, int | np.integer) and t == self._t:
            return
        step = self._step(t)
        self._change("advance", lambda: [{"t": step}], (once, (self, "_t", step)))

    def _reseed(self, seed: int, once: Value) -> None:
        if self._recording is not None:
            raise BusyError("a new seed ends a log; save the bandit, and load it with a seed and a log of its own")
        if seed in (self._seed, *self._streams):
            raise InvalidValueError(f"seed is {seed}, which was in use; give another one")
        commit(None, [], (once, (self, "_streams", (*self._streams, self._seed)), (self, "_seed", seed)))

    def _resync(self, other: ActionBandit) -> None:
        """Go on in the state of another bandit, with this one's seeds: what a log says after an interrupted record."""
        named = ("_settings", "_t", "_state")
        with self._turn.lock:
            commit(None, [], tuple((self, name, getattr(other, name)) for name in named))

    # ---- files

    def save(self, path: Target, *, tables: file.Kept = "all") -> None:
        """Write one file, whole or not at all; `armlet.load` reads it back.

        Parameters
        ----------
        path
            Or a binary file object, which is written to from where it stands. A new file can be read by its owner
            alone, since it holds the seed.
        tables
            "all": prepared tables are in it. "names": their names and hashes are, and they must be prepared again.
        """
        from armlet.disk import write_model

        write_model(path, *file.parts(self._model(), tables))

    def to_bytes(self, *, tables: file.Kept = "all") -> bytes:
        """Return what `save` would write; `armlet.from_bytes` reads it back."""
        return file.encode(self._model(), tables)

    def digest(self) -> str:
        """Return 64 hexadecimal digits that are equal for bandits that decide and learn alike, apart from the seed."""
        with self._turn.lock:
            return file.digest(self._model())

    def _model(self) -> file.ActionModel:
        with self._turn.lock:
            return file.ActionModel(
                settings=self._settings,
                t=self._t,
                seed=self._seed,
                streams=self._streams,
                state=self._state.copy(),
                tables=dict(self._tables),
            )

    def _user_attributes(self) -> dict[str, Any]:
        """Return what a subclass or a user keeps on it."""
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self.copy()
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.to_bytes()), self._user_attributes() or None

    # ---- what it is, and what logs and stores ask of it

    @property
    def t(self) -> int:
        """The decisions taken so far."""
        return self._t

    @property
    def seed(self) -> int:
        """The seed of its decisions."""
        return self._seed

    @property
    def policy(self) -> PairPolicy:
        """The policy: frozen settings."""
        return self._settings.policy

    @property
    def settings(self) -> ActionSettings:
        """What the bandit was made with: policy, features of contexts and actions, encoders, objective, range."""
        return self._settings

    @property
    def state(self) -> PairModel:
        """The model: sums over pairs, intercepts of actions, and what was last solved from them."""
        return self._state

    def _begin_decision(self, label: Arm, explored: bool) -> None:
        """Take note of a decision that is read from a store: no decision under way is counted."""

    def __repr__(self) -> str:
        if "_settings" not in vars(self):
            return f"<{type(self).__name__} that was not set up>"
        from armlet.report.actions import action_bandit_text  # not before something is shown

        return action_bandit_text(self, SharedOptimism())

    def _repr_html_(self) -> str:
        from armlet.report.actions import action_bandit_html

        return action_bandit_html(self, SharedOptimism())


_OWN: Final = frozenset(
    {
        *("_settings", "_t", "_seed", "_streams", "_state", "_tables"),
        *("_reader", "_action_reader", "_recording", "_turn", "_changes"),
    }
)


def _check_words(propensity: object, probabilities: object) -> None:
    if propensity is not None and (not isinstance(propensity, str) or propensity != "marginal"):
        raise InvalidValueError(f"propensity is {propensity!r}; give 'marginal', or leave it out")
    if probabilities is not None and (not isinstance(probabilities, str) or probabilities != "all"):
        raise InvalidValueError(f"probabilities is {probabilities!r}; give 'all', or leave it out")


def _other(other: object, verb: str, name: str) -> ActionBandit:
    if not isinstance(other, ActionBandit):
        raise InvalidTypeError(f"{name} is {reprlib.repr(other)}; {verb} takes an ActionBandit")
    return other


def _learned(d: ActionDecision, value: float, weight: float) -> Values:
    return ((d, "learned", True), (d, "reward", value), (d, "weight", weight))


def _frozen(x: Float64) -> Float64:
    frozen = x.copy()
    frozen.setflags(write=False)
    return frozen


def _unpickle(kind: type[ActionBandit], data: bytes) -> ActionBandit:
    from armlet.disk import decode_model

    return kind._from_model(file.restore("the bytes", *decode_model(data)))
