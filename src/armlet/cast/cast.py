"""The cast of a loop: the live policy, a control that plays a share of the steps, shadows, and a learner while frozen.

Everybody learns the same rows in the same order. The state of a cast is a function of the log, like that of a bandit
alone, and so are its coins: the control's is drawn from a stream that no policy draws from. Propensities are those of
the mixture, P(a) = (1 - s) P_live(a) + s P_control(a), whichever of the two was played. Cost: that of its bandits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.bandit import Bandit
from armlet.cast.control import Control, check_own
from armlet.cast.law import law_of, mix, point
from armlet.errors import (
    InternalError,
    InvalidTypeError,
    InvalidValueError,
    LoopStateError,
)
from armlet.kernel import AutoTunedStatistics, Decision, coins, unit_seed
from armlet.model_file import policy_header
from armlet.policies.base import compiled_rule
from armlet.policies.discounts import fades_by_time, reach_time, time_of
from armlet.types import Arm, Context, Contexts, Float64, Policy, Reward

CONTROL: Final = 0x636F6E74726F6C  # "control": in the key of a coin that says whether the control plays
SECOND: Final = 0x7365636F6E64  # "second": in the seed of another bandit, whose coins are its own
SHADOW: Final = "shadow"  # the name of a shadow that has no other
MAGIC: Final = b"armlet cast 1\n"
PAIR_MAGIC: Final = b"armlet guarded 1\n"  # of a live bandit and one more at most
LENGTH: Final = 8  # bytes of the length of the header
NUMBERS_AN_ITEM: Final = 6  # of a model of actions, besides features: its key, rows, rewards and the like
EVEN: Final = 1e-9  # by which probabilities may differ and be the same

AnyDecision: TypeAlias = Decision | ActionDecision
Act: TypeAlias = Callable[[Bandit], object]
Teach: TypeAlias = Callable[[Any, Any], object]  # a bandit of either kind, and its decision


class Cast:
    """The bandits of a loop, which decide, learn and change together: all of them, or none.

    Parameters
    ----------
    live
        The bandit that decides.
    control
        What plays a share of the steps.
    player
        The bandit of the control's policy, if the control is one.
    shadows
        Bandits by name, whose choices are logged and never played.
    learner
        The bandit that learns for a live one that is frozen.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["old", "new"], 1, policy=armlet.LinUCB(), seed=1)
    >>> both = Cast(bandit, control=Control(arm="old", share=0.25))
    >>> decision, fields = both.decide([1.0], t=1)
    >>> decision.arm, decision.propensity, fields["control"]["played"]
    ('old', 0.625, False)
    """

    __slots__ = ("_minutes", "control", "fades_by_time", "is_alone", "learner", "live", "player", "shadows")

    def __init__(
        self,
        live: Bandit,
        *,
        control: Control | None = None,
        player: Bandit | None = None,
        shadows: Mapping[str, Bandit] | None = None,
        learner: Bandit | None = None,
    ) -> None:
        self.live: Bandit = live
        self.control, self.player, self.learner = control, player, learner
        self.shadows = dict(shadows or {})
        self._minutes = 0  # since 1970, of the step under way, where one of the bandits forgets by time
        if control is not None and control.arm is not None and control.arm not in live.arms:
            raise InvalidValueError(f"control is {control.arm!r}, which is not an arm; give one of {list(live.arms)}")
        for other in self.others:
            _check_fits(live, other)
        self.is_alone = control is None and not self.others
        self.fades_by_time = any(map(fades_by_time, self.members))  # is told when it decides

    # ---- who takes part

    @property
    def others(self) -> list[Bandit]:
        """All bandits but the live one."""
        return [each for each in (self.player, *self.shadows.values(), self.learner) if each is not None]

    @property
    def members(self) -> list[Bandit]:
        """All bandits, the live one first."""
        return [self.live, *self.others]

    @property
    def learners(self) -> list[Bandit]:
        """The bandits that learn: all, but for a live one that is frozen."""
        return self.members if self.learner is None else [self.learner, *self.others[:-1]]

    @property
    def is_compiled(self) -> bool:
        """Whether the kernel learns by itself all that is to be learned."""
        return isinstance(self.live, ActionBandit) or all(
            compiled_rule(each.policy) is not None for each in self.members
        )

    @property
    def has_order(self) -> bool:
        """Whether what is learned depends on which decisions are pending then, as the looks of `AutoEpsilonGreedy`."""
        return any(isinstance(each.state, AutoTunedStatistics) for each in self.members)

    @property
    def nbytes(self) -> int:
        """The bytes of all states."""
        if isinstance(self.live, ActionBandit):
            state, s = self.live.state, self.live.settings
            return 8 * (2 * state.n_terms**2 + state.n_items * (s.dim + s.action_dim + NUMBERS_AN_ITEM))
        return sum(each.state.nbytes for each in self.members)

    def describe(self) -> dict[str, Any]:
        """Describe the cast of a live policy in plain JSON types; nothing if it is alone.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["old", "new"], 1, seed=1)
        >>> Cast(bandit).describe(), Cast(bandit, control=Control(arm="old")).describe()
        ({}, {'control': {'arm': 'old', 'share': 0.1}})
        """
        fields: dict[str, Any] = {} if self.control is None else {"control": self.control.to_dict()}
        fields |= _by_name({name: policy_header(each.policy) for name, each in self.shadows.items()})
        return fields | ({} if self.learner is None else {"frozen": True})

    # ---- deciding

    def tell_time(self, minutes: int) -> None:
        """Set the time of the next decision, in minutes since 1970, for those that forget by time."""
        self._minutes = minutes
        for each in self.members:
            if fades_by_time(each):
                each._tell_time(minutes)

    def reach_time(self, minutes: int) -> None:
        """Let all learn rows of a time that was checked when they were recorded."""
        for each in self.members:
            reach_time(each, minutes)

    @property
    def time(self) -> int:
        """The minute, since 1970, of the latest decision that one of them has learned; 0 if none forgets by time."""
        return max(map(time_of, self.members))

    def decide(
        self, x: Context, *, t: int, probabilities: Literal["all"] | None = None, **options: Any
    ) -> tuple[Decision, dict[str, Any]]:
        """Decide a step; return what is played, and what a row says of the cast.

        The propensity, and all probabilities if they are asked for, are over all coins. A step that the control plays
        did not explore. While the live policy takes turns the control has no share: nothing is left to chance there.

        A row says of the control: its share of this step, whether it was played, the arm that the live policy chose
        with its own propensity, and the control's arm. Of a shadow: the arm that it would have played.
        """
        wants: dict[str, Any] = {"t": t, "propensity": "marginal", **options}
        if self.is_alone:
            return self.live.decide(x, **wants, probabilities=probabilities), {}
        control, unit, spent = self.control, options.get("unit"), self.live._spending_values
        is_due = control is not None and (unit is not None or self._coin(t) < control.share)
        live = self.live.decide(x, **wants, probabilities="all" if is_due else probabilities)
        if control is not None and unit is not None:  # for as long as the epoch lasts it is the control's, or is not
            is_due = self._coin(live.epoch or 0, unit) < control.share
        with _following():
            theirs = None if self.player is None else _ask(self.player, x, wants, "all")
            arms = {name: {"arm": _ask(each, x, wants, None).arm} for name, each in self.shadows.items()}
            fields = _by_name(arms)
            if control is None:
                played = _copied(live)
            else:
                played, fields["control"] = self._mix(live, theirs, control, is_due, probabilities)
            if self._minutes and played.tag == 0:  # only another bandit forgets by time
                played = Decision.from_dict({**played.to_dict(), "tag": self._minutes})
            self._begin(live, played, spent)
        return played, fields

    def _coin(self, t: int, unit: str | None = None) -> float:
        """Return the coin of a step, or of a unit and epoch, that says whether the control plays."""
        seed = self.live.seed ^ CONTROL
        return coins(seed if unit is None else unit_seed(seed, unit), t).coin

    def _mix(
        self, live: Decision, theirs: Decision | None, control: Control, is_due: bool, asked: Literal["all"] | None
    ) -> tuple[Decision, dict[str, Any]]:
        """Return the decision of a step that the control plays with a known probability, and what a row says of it."""
        arm = control.arm if theirs is None else theirs.arm
        if arm is None:
            raise InvalidTypeError("the control has neither arm nor policy")
        has_share = live.design != "turn" and (theirs is not None or self._may_play(live, arm))
        share, is_due = (control.share, is_due) if has_share else (0.0, False)
        fields = {"share": share, "played": is_due, "live": live.arm, "propensity": live.propensity, "arm": arm}
        record = live.to_dict()
        if asked is None:
            record.pop("probabilities", None)
        if has_share:
            labels, played = self.live._labels, arm if is_due else live.arm
            other = point(arm) if theirs is None else law_of(theirs, labels)._replace(given={})  # explores for no one
            mine = law_of(live, labels, None if is_due or asked is not None else played)
            law = mix([("live", 1.0 - share, mine), ("control", share, other)])
            record |= {"propensity": law.chance(played), "exploration_rate": law.given.get("explore")}
            if live.greedy is False and other.chance(played) > 0.0:
                record["greedy"] = None  # a step that does not explore may play it: the control's
            if is_due:
                record |= {"arm": played, "explored": False, "optimistic": False}
            if played != live.arm:
                record |= {"greedy": None, "exploration_propensity": self._explored_with(live)}
            if asked is not None:
                record["probabilities"] = list(law.chances)
        return Decision.from_dict(record), fields

    def _may_play(self, live: Decision, arm: Arm) -> bool:
        """Whether an arm may be played in a step: a hard budget has left out what it cannot pay."""
        if live.eligible is not None:
            return arm in live.eligible
        return arm in self.live._labels and arm not in self.live._retired

    def _explored_with(self, live: Decision) -> float | None:
        """Return the probability of any other arm given that the step explores, where all have the same."""
        given, least = live.exploration_propensity, live.min_exploration_probability
        n = len(self.live._labels) - len(self.live._retired) if live.eligible is None else len(live.eligible)
        return given if least is not None and abs(least * n - 1.0) <= EVEN else None

    def _begin(self, live: Decision, played: Decision, spent: Float64 | None) -> None:
        """Wait for the reward of what is played, and for no other one; only that is spent."""
        if self.learner is not None or (live.arm, live.explored) != (played.arm, played.explored):
            self.live.expire(live)
            _restore(self.live, spent)
            if self.learner is None:
                self.live._begin_decision(played.arm, played.explored)
        if self.learner is not None:
            self.learner.replace(t=played.t)  # it was not asked, so its clock stands still
        for each in self.others:
            each._begin_decision(played.arm, played.explored)
        self._follow_spending()

    def _follow_spending(self) -> None:
        """Keep the budget where the policy is frozen: spending and price are those of the bandit that learns."""
        if self.learner is not None:
            _restore(self.live, self.learner._spending_values)

    # ---- learning: everybody, but for a live policy that is frozen

    def learn(self, decision: AnyDecision, reward: Reward, *, weight: float = 1.0) -> None:
        """Learn the reward of a decision."""
        if self.is_alone:
            live: Any = self.live
            live.learn(decision, reward, weight=weight)
        else:
            self._teach(decision, lambda bandit, each: bandit.learn(each, reward, weight=weight))

    def expire(self, decision: AnyDecision) -> None:
        """Stop waiting for the reward of a decision."""
        self._teach(decision, lambda bandit, each: bandit.expire(each))

    def bill(self, decision: AnyDecision, cost: float) -> None:
        """Count what a decision costs, and learn nothing from it."""
        self._teach(decision, lambda bandit, each: bandit.bill(each, cost))

    def correct(self, decision: AnyDecision, old_reward: Reward, new_reward: Reward) -> None:
        """Replace the reward that was learned from a decision."""
        self._take_back(decision, lambda bandit, each: bandit.correct(each, old_reward, new_reward, **_any_row(bandit)))

    def forget(self, decision: AnyDecision, reward: Reward) -> None:
        """Take back what was learned from a decision."""
        self._take_back(decision, lambda bandit, each: bandit.forget(each, reward, **_any_row(bandit)))

    def _teach(self, decision: AnyDecision, teach: Teach) -> None:
        """Let the first learner refuse what all would, before anything has changed; the others follow it."""
        first, *others = self.learners
        twins = [_copied(decision) for _ in others]
        teach(first, decision)
        with _following():
            for each, twin in zip(others, twins, strict=True):
                teach(each, twin)
            self._follow_spending()

    def _take_back(self, decision: AnyDecision, take: Teach) -> None:
        """Let all learners act, or none: one that began later may have emptied an arm that others know."""
        first, *others = self.learners
        copies = [each.copy() for each in others]
        for each in copies:
            take(each, _copied(decision))
        take(first, decision)
        self._exchange(dict(zip(map(id, others), copies, strict=True)))
        self._follow_spending()

    def forget_frozen(self, decision: AnyDecision, reward: Reward | None) -> None:
        """Take back from a frozen policy what it knows of a decision: a reward, or that one is waited for."""
        live: Any = self.live
        if reward is None:
            live.expire(decision)
        else:
            live.forget(decision, reward)
        self._follow_spending()

    def begin_decision(self, label: Arm, explored: bool) -> None:
        """Wait for the reward of a decision that was made elsewhere."""
        for each in self.members if self.learner is None else self.others:
            each._begin_decision(label, explored)
        self._follow_spending()

    def is_in_epoch(self, epoch: int) -> bool:
        """Whether all that decide are in this epoch of units."""
        return all(each._is_in_epoch(epoch) for each in self._deciders)

    def begin_epoch(self, epoch: int, t: int) -> None:
        """Begin an epoch of units, as its first decision did."""
        for each in self._deciders:
            each._begin_epoch(epoch, t)

    @property
    def _deciders(self) -> list[Bandit]:
        return self.members if self.learner is None else self.members[:-1]  # a learner is not asked

    def partial_fit(self, X: Contexts, *args: Any, **options: Any) -> None:
        """Learn from a table of decisions."""
        for each in self.learners:
            each.partial_fit(X, *args, **options)

    # ---- changes: everybody, but for the policy

    def replace(self, **change: Any) -> None:
        """Continue with one thing changed; another policy is that of the live bandit."""
        own = [self.live, *([] if self.learner is None else [self.learner])]
        self._change(lambda bandit: bandit.replace(**change), own if "policy" in change else self.members)
        self.fades_by_time = any(map(fades_by_time, self.members))

    def advance(self, t: int) -> None:
        """Let the clock of all go on to a step."""
        for each in self.members:
            each.replace(t=t)

    def add_arm(self, arm: Arm) -> None:
        """Add an arm without data."""
        self._change(lambda bandit: bandit.add_arm(arm), self.members)

    def retire_arm(self, arm: Arm) -> None:
        """Stop playing an arm; its data is kept."""
        self._change(lambda bandit: bandit.retire_arm(arm), self.members)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._change(lambda bandit: bandit.restore_arm(arm), self.members)

    def _change(self, act: Act, members: list[Bandit]) -> None:
        """Let some members act, the live one among them, or none: the others act on copies first."""
        first, *others = members
        copies = [each.copy() for each in others]
        for each in copies:
            act(each)
        act(first)
        self._exchange(dict(zip(map(id, others), copies, strict=True)))

    def _exchange(self, copies: Mapping[int, Bandit]) -> None:
        """Go on with copies instead of bandits, by their ids."""
        self.player = None if self.player is None else copies.get(id(self.player), self.player)
        self.learner = None if self.learner is None else copies.get(id(self.learner), self.learner)
        self.shadows = {name: copies.get(id(each), each) for name, each in self.shadows.items()}

    # ---- other casts: each of these returns a new one, which has this one's bandits where they stay

    def with_live(self, live: Bandit) -> Cast:
        """Return this cast around another live bandit."""
        if self.learner is not None:
            raise LoopStateError("the loop is frozen, so its policy cannot learn the log again; thaw it: loop.thaw()")
        return Cast(live, control=self.control, player=self.player, shadows=self.shadows)

    def with_control(self, control: Control | None, learned: Bandit | None = None) -> Cast:
        """Return a cast with another control, or without one; `learned` is that of its policy, if it has learned."""
        player = None
        if control is not None and control.policy is not None:
            player = self._joining(control.policy, self.player, learned, self.shadows.values())
        return Cast(self.live, control=control, player=player, shadows=self.shadows, learner=self.learner)

    def with_shadows(self, policies: Mapping[str, Policy], learned: Mapping[str, Bandit] | None = None) -> Cast:
        """Return a cast with these shadows, and no others; `learned` are those that have learned."""
        shadows: dict[str, Bandit] = {}
        for name, policy in sorted(policies.items()):
            others = [*shadows.values(), *(each for old, each in self.shadows.items() if old in policies)]
            others += [] if self.player is None else [self.player]
            shadows[name] = self._joining(policy, self.shadows.get(name), (learned or {}).get(name), others)
        return Cast(self.live, control=self.control, player=self.player, shadows=shadows, learner=self.learner)

    def _joining(
        self, policy: Policy, there: Bandit | None, learned: Bandit | None, others: Iterable[Bandit]
    ) -> Bandit:
        """Return a bandit for a policy: the one that is there, one that has learned the log, or one that knows it all.

        Its coins are its own: no other's decisions are alike because of them.
        """
        if learned is None and there is not None and there.policy == policy:
            return there
        seed, taken = self.live.seed ^ SECOND, {each.seed for each in others if each is not there}
        while seed in taken:
            seed = (seed + 1) % 2**64
        twin = reseeded(learned or self.learner or self.live, seed)
        if learned is None and policy != twin.policy:
            try:
                twin.replace(policy=policy)
            except InvalidValueError as error:
                raise InvalidValueError(f"{error}; or let it learn the loop's log again: how='refit'") from error
        return twin

    def frozen(self) -> Cast:
        """Return a cast that decides from the state it has, while a copy learns; itself if it is frozen already."""
        if self.learner is not None:
            return self
        return Cast(self.live, control=self.control, player=self.player, shadows=self.shadows, learner=self.live.copy())

    def thawed(self) -> Cast:
        """Return a cast that goes on with what was learned while it was frozen; itself if it is not frozen."""
        if self.learner is None:
            return self
        return Cast(self.learner, control=self.control, player=self.player, shadows=self.shadows)

    def promoted(self, name: str, share: float | None = None) -> Cast:
        """Return a cast whose shadow is the live one; with a share the policy so far is the control from then on."""
        if self.learner is not None:
            raise LoopStateError("the loop is frozen, so no shadow can be promoted; thaw it first: loop.thaw()")
        shadows = {other: each for other, each in self.shadows.items() if other != name}
        live = reseeded(self.shadows[name], self.live.seed)
        if share is None:
            return Cast(live, control=self.control, player=self.player, shadows=shadows)
        control = Control(policy=check_own("the policy so far", self.live.policy), share=share)
        return Cast(live, shadows=shadows).with_control(control, self.live)

    # ---- the whole

    def copy(self) -> Cast:
        """Return a cast of copies."""
        return Cast(
            self.live.copy(),
            control=self.control,
            player=None if self.player is None else self.player.copy(),
            shadows={name: each.copy() for name, each in self.shadows.items()},
            learner=None if self.learner is None else self.learner.copy(),
        )

    def to_bytes(self) -> bytes:
        """Return everything as bytes, for `read_cast`: those of the live bandit if it is alone."""
        if self.is_alone:
            return self.live.to_bytes()
        models = [each.to_bytes() for each in self.members]
        control = None if self.control is None or self.control.arm is None else self.control.to_dict()
        share = None if self.control is None else self.control.share
        roles = {"role": self._role} if self._is_pair else {"others": self._roles}
        text = json.dumps({**roles, "control": control, "share": share, "sizes": [*map(len, models)]}).encode()
        magic = PAIR_MAGIC if self._is_pair else MAGIC
        return b"".join([magic, len(text).to_bytes(LENGTH, "little"), text, *models])

    @property
    def _roles(self) -> list[list[str]]:
        """What each of the others is, by its role and name."""
        roles = [["control", ""]] if self.player is not None else []
        roles += [["shadow", name] for name in self.shadows]
        return roles + ([["learner", ""]] if self.learner is not None else [])

    @property
    def _is_pair(self) -> bool:
        """Whether there is one other bandit at most, and no name to remember."""
        return len(self.others) <= 1 and self.shadows.keys() <= {SHADOW}

    @property
    def _role(self) -> str | None:
        return next((role for role, _ in self._roles), None)

    def digest(self) -> str:
        """Return 64 hexadecimal digits that are equal for casts that decide and learn alike."""
        if self.is_alone:
            return self.live.digest()
        digests = [each.digest() for each in self.others]
        second: Any = digests if not self._is_pair else digests[0] if digests else None
        parts = {"live": self.live.digest(), "second": second, "guards": self.describe()}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _ask(bandit: Bandit, x: Context, wants: Mapping[str, Any], probabilities: Literal["all"] | None) -> Decision:
    """Ask another bandit what it would play, and let it wait for no reward of that."""
    spent = bandit._spending_values
    choice = bandit.decide(x, **wants, probabilities=probabilities)
    bandit.expire(choice)
    _restore(bandit, spent)
    return choice


@contextmanager
def _following() -> Iterator[None]:
    """Raise an error of one that follows the first as a fault: the first has changed, so all are read again."""
    try:
        yield
    except Exception as error:
        raise InternalError(f"nothing of this call was kept: one bandit of the loop refused it: {error}") from error


def _by_name(shadows: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of shadows by name, in the form of a row: one that has no name of its own stands alone."""
    if not shadows:
        return {}
    return {"shadow": shadows[SHADOW]} if shadows.keys() == {SHADOW} else {"shadows": dict(shadows)}


def shadows_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a row, or a cast's description, says of shadows, by name.

    Examples
    --------
    >>> shadows_of({"shadow": {"arm": "a"}}), shadows_of({"shadows": {"one": {"arm": "b"}}}), shadows_of({})
    ({'shadow': {'arm': 'a'}}, {'one': {'arm': 'b'}}, {})
    """
    shadow = fields.get(SHADOW)
    return fields.get("shadows", {}) if shadow is None else {SHADOW: shadow}


def _any_row(bandit: object) -> Mapping[str, Any]:
    """Return the option that takes back any row: an event, or a loop, cannot be refused one."""
    return {"folded": "approximate"} if isinstance(bandit, ActionBandit) else {}


def role_of(name: str) -> str:
    """Return what comparisons call a shadow.

    Examples
    --------
    >>> role_of("shadow"), role_of("cautious")
    ('shadow', 'shadow cautious')
    """
    return SHADOW if name == SHADOW else f"{SHADOW} {name}"


def _copied(decision: Any) -> Any:
    """Return a decision of its own, which one bandit can learn without the other."""
    return type(decision).from_dict(decision.to_dict())


def _restore(bandit: Bandit, spent: Float64 | None) -> None:
    """Take back what a decision that nobody gets has spent of a budget, if there is one."""
    if spent is not None:
        bandit._restore_spending(spent)


def reseeded(bandit: Bandit, seed: int) -> Bandit:
    """Return a copy with another seed, which can learn decisions of its own."""
    now = bandit._snapshot()
    if seed != now.seed:
        now = now._replace(seed=seed, streams=[stream for stream in (now.seed, *now.streams) if stream != seed])
    twin = Bandit.__new__(Bandit)
    twin._init_engine(bandit._settings, now, bandit._fixed_rows)
    twin._continue_lives(bandit)
    return twin


def _check_fits(live: Bandit, other: Bandit) -> None:
    """Refuse one that could not learn all that the live one learns."""
    ours, theirs = live.settings, other.settings
    if other.policy.rewards == "binary" != live.policy.rewards:
        raise InvalidValueError(f"{other.policy!r} learns rewards of 0 and 1 only, but the loop takes others")
    if (list(live.arms), ours.dim, ours.reward_range) != (list(other.arms), theirs.dim, theirs.reward_range):
        raise InvalidValueError("the two bandits differ in arms, features or the range of rewards")
    if ours.feature_range != theirs.feature_range:
        raise InvalidValueError("the two bandits differ in the ranges of features")
    if (ours.outcomes, ours.budget) != (theirs.outcomes, theirs.budget):
        raise InvalidValueError("the two bandits differ in outcomes or their budget")
