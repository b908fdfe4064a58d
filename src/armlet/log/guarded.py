"""A bandit with guardrails: a control that plays a share of the steps, a shadow, or a live policy that learns nothing.

One more bandit may go along with the live one, in one of three roles; both learn the same rows in the same order. The
state of all of it is a function of the log, like that of a bandit alone, and so are its coins: the control's is drawn
from a stream that no policy draws from. Propensities are over all coins, the control's included:
P(a) = (1 - s) P_live(a) + s P_control(a), whichever of the two was played. Cost: that of two bandits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias, cast

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.errors import ArmletError, CheckedSettings, InvalidTypeError, InvalidValueError, ModelFileError
from armlet.inputs.budget import Budget
from armlet.inputs.columns import check_label
from armlet.inputs.settings import chance, settle
from armlet.kernel import AutoTunedStatistics, Decision, coins, unit_seed
from armlet.loading import from_bytes
from armlet.model_file import policy_header
from armlet.policies import check_given, is_registered
from armlet.policies.base import compiled_rule
from armlet.types import Arm, Context, Contexts, Float64, Policy, Reward

CONTROL: Final = 0x636F6E74726F6C  # "control": in the key of a coin that says whether the control plays
SECOND: Final = 0x7365636F6E64  # "second": in the seed of the other bandit, whose coins are its own
MAGIC: Final = b"armlet guarded 1\n"
LENGTH: Final = 8  # bytes of the length of the header
NUMBERS_AN_ITEM: Final = 6  # of a model of actions, besides features: its key, rows, rewards and the like
EVEN: Final = 1e-9  # by which probabilities may differ and be the same

Role: TypeAlias = Literal["shadow", "control", "learner"]
"""What the other bandit is for: its choices are logged; they are played now and then; it learns for a frozen one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(CheckedSettings):
    """What is played in a share of the steps instead of the live policy's choice, by a coin of its own.

    Parameters
    ----------
    arm
        The arm that is played then. In steps where it is retired or not eligible the live policy plays.
    policy
        Or the policy that plays then, such as the one before: one of Armlet's own.
    share
        The probability with which a step belongs to the control, above 0 and below 1.

    Examples
    --------
    >>> Control(arm="old", share=0.1)
    Control(arm='old', policy=None, share=0.1)
    >>> Control(share=0.1)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: control has neither arm nor policy; give one of them
    """

    arm: Arm | None = None
    policy: Policy | None = None
    share: float = 0.1

    def __post_init__(self) -> None:
        if (self.arm is None) == (self.policy is None):
            both = "neither arm nor policy" if self.arm is None else "both arm and policy"
            raise InvalidTypeError(f"control has {both}; give one of them")
        if self.arm is not None:
            settle(self, arm=lambda _, arm: check_label(arm))
        else:
            check_own("control", self.policy)
        settle(self, share=chance(fix="give the share of steps that it plays, above 0 and below 1, such as 0.1"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        who = {"arm": self.arm} if self.policy is None else {"policy": policy_header(self.policy)}
        return {**who, "share": self.share}


def check_own(name: str, policy: object) -> Policy:
    """Return a policy that can be read back by its name, or refuse another one."""
    given: Policy = policy  # type: ignore[assignment]  # checked in the next line
    check_given(given)
    if not is_registered(given):
        raise InvalidValueError(f"{name} is {given!r}, which is not one of Armlet's own; register it, or give another")
    return given


class GuardedBandit(Bandit):
    """A bandit with a control, a shadow or a learner; `guard` makes it, of a bandit and what goes along with it."""

    _control: Control | None
    _second: Bandit | None
    _role: Role | None
    _minutes = 0  # since 1970, of the step under way, where one of the bandits forgets by time
    is_torn = False  # a call was broken off between the two bandits, so that neither is to be used again

    # ---- deciding

    @property
    def _asked(self) -> tuple[Bandit, ...]:
        """The bandits that decide and learn."""
        return (self,) if self._second is None else (self, self._second)

    def _tell_time(self, minutes: int) -> None:
        self._minutes = minutes
        for each in self._asked:
            if getattr(each.state, "fades", None) == "time":
                Bandit._tell_time(each, minutes)

    def play(
        self,
        x: Context,
        *,
        t: int,
        eligible: Iterable[Arm] | None = None,
        probabilities: Literal["all"] | None = None,
        unit: str | None = None,
        epoch: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Decision, dict[str, Any]]:
        """Decide a step; return what is played, and what a row says of the guards besides.

        The propensity, and all probabilities if they are asked for, are over all coins. A step that the control plays
        did not explore. While the live policy takes turns the control has no share: nothing is left to chance there.

        Of the control it is told: its share of this step, whether it was played, the arm that the live policy chose
        with its own propensity, and the control's arm. Of a shadow: the arm that it would have played.
        """
        control = self._control
        of = {} if unit is None else {"unit": unit, "epoch": epoch}
        wants: dict[str, Any] = {"t": t, "propensity": "marginal", "eligible": eligible, "weights": weights, **of}
        is_due = control is not None and (unit is not None or self._coin(t) < control.share)
        spent = self._spending_values
        live = super().decide(x, **wants, probabilities="all" if is_due else probabilities)
        if control is not None and unit is not None:  # for as long as the epoch lasts it is the control's, or is not
            is_due = self._coin(live.epoch or 0, unit) < control.share
        self.is_torn = True
        told: dict[str, Any] = {}
        other = self._ask_second(x, wants, "all" if self._role == "control" else None)
        if other is not None and self._role == "shadow":
            told["shadow"] = {"arm": other.arm}
        if control is None:
            played = _copied(live)
        else:
            theirs = other if self._role == "control" else None
            played, told["control"] = self._mix(live, theirs, control, is_due, probabilities)
        if self._minutes and played.tag == 0:  # only the other bandit forgets by time
            played = Decision.from_dict({**played.to_dict(), "tag": self._minutes})
        self._begin(live, played, spent)
        self.is_torn = False
        return played, told

    def _coin(self, t: int, unit: str | None = None) -> float:
        """Return the coin of a step, or of a unit and epoch, that says whether the control plays."""
        seed = self.seed ^ CONTROL
        return coins(seed if unit is None else unit_seed(seed, unit), t).coin

    def _ask_second(
        self, x: Context, wants: Mapping[str, Any], probabilities: Literal["all"] | None
    ) -> Decision | None:
        """Ask the other bandit what it would play, and let it wait for no reward of that."""
        if self._second is None or self._role == "learner":
            return None
        spent = self._second._spending_values
        choice = self._second.decide(x, **wants, probabilities=probabilities)
        self._second.expire(choice)
        _restore(self._second, spent)
        return choice

    def _mix(
        self, live: Decision, other: Decision | None, control: Control, is_due: bool, asked: Literal["all"] | None
    ) -> tuple[Decision, dict[str, Any]]:
        """Return the decision of a step that the control plays with a known probability, and what is told of it."""
        arm = control.arm if other is None else other.arm
        if arm is None:
            raise InvalidTypeError("the control has neither arm nor policy")
        has_share = live.design != "turn" and (other is not None or self._may_play(live, arm))
        share, is_due = (control.share, is_due) if has_share else (0.0, False)
        told = {"share": share, "played": is_due, "live": live.arm, "propensity": live.propensity, "arm": arm}
        record = live.to_dict()
        if asked is None:
            record.pop("probabilities", None)
        if has_share:
            record |= self._mixed(live, other, arm, share, is_due, asked)
        return Decision.from_dict(record), told

    def _mixed(
        self, live: Decision, other: Decision | None, arm: Arm, share: float, is_due: bool, asked: Literal["all"] | None
    ) -> dict[str, Any]:
        labels = self._labels
        played = arm if is_due else live.arm
        place = labels.index(played)
        mine = _all(live)[place] if is_due else live.propensity
        theirs = float(played == arm) if other is None else _all(other)[place]
        rate = live.exploration_rate
        fields: dict[str, Any] = {
            "propensity": (1.0 - share) * float(mine) + share * float(theirs),
            "exploration_rate": None if rate is None else (1.0 - share) * rate,
        }
        if live.greedy is False and theirs > 0.0:
            fields["greedy"] = None  # a step that does not explore may play it: the control's
        if is_due:
            fields |= {"arm": played, "explored": False, "optimistic": False}
            if played != live.arm:
                fields |= {"greedy": None, "exploration_propensity": self._explored_with(live)}
        if asked is not None:
            chosen = [float(label == arm) for label in labels] if other is None else _all(other).tolist()
            fields["probabilities"] = [
                (1.0 - share) * p + share * q for p, q in zip(_all(live).tolist(), chosen, strict=True)
            ]
        return fields

    def _may_play(self, live: Decision, arm: Arm) -> bool:
        return arm in self._labels and arm not in self._retired if live.eligible is None else arm in live.eligible

    def _explored_with(self, live: Decision) -> float | None:
        """Return the probability of any other arm given that the step explores, where all have the same."""
        given, least = live.exploration_propensity, live.min_exploration_probability
        n = len(self._labels) - len(self._retired) if live.eligible is None else len(live.eligible)
        return given if least is not None and abs(least * n - 1.0) <= EVEN else None

    def _begin(self, live: Decision, played: Decision, spent: Float64 | None) -> None:
        """Wait for the reward of what is played, and for no other one; only that is spent."""
        if self._role == "learner" or (live.arm, live.explored) != (played.arm, played.explored):
            super().expire(live)
            _restore(self, spent)
            if self._role != "learner":
                super()._begin_decision(played.arm, played.explored)
        if self._second is not None:
            if self._role == "learner":
                self._second.replace(t=played.t)  # it was not asked, so its clock stands still
            self._second._begin_decision(played.arm, played.explored)
        self._follow_spending()

    def _follow_spending(self) -> None:
        """Keep the budget where the policy is frozen: spending and price are those of the bandit that learns."""
        if self._role == "learner" and self._second is not None:
            _restore(self, self._second._spending_values)

    # ---- learning: both, but for a live policy that is frozen

    def _teach(self, method: str, decision: Decision, *args: Reward, **options: float) -> None:
        second = self._second
        if second is not None and self._role == "learner":
            getattr(second, method)(decision, *args, **options)
            self._follow_spending()
            return
        twin = None if second is None else _copied(decision)
        getattr(super(), method)(decision, *args, **options)
        if second is not None and twin is not None:
            self.is_torn = True
            getattr(second, method)(twin, *args, **options)
            self.is_torn = False

    def learn(self, decision: Decision, reward: Reward, *, weight: float = 1.0) -> None:
        """Learn the reward of a decision."""
        self._teach("learn", decision, reward, weight=weight)

    def correct(self, decision: Decision, old_reward: Reward, new_reward: Reward) -> None:
        """Replace the reward that was learned from a decision."""
        self._teach("correct", decision, old_reward, new_reward)

    def forget(self, decision: Decision, reward: Reward) -> None:
        """Take back what was learned from a decision."""
        self._teach("forget", decision, reward)

    def expire(self, decision: Decision) -> None:
        """Stop waiting for the reward of a decision."""
        self._teach("expire", decision)

    def bill(self, decision: Decision, cost: float) -> None:
        """Count what a decision costs, and learn nothing from it."""
        self._teach("bill", decision, cost)

    def forget_frozen(self, decision: Decision, reward: Reward | None) -> None:
        """Take back from a frozen policy what it knows of a decision: a reward, or that one is waited for."""
        if reward is None:
            super().expire(decision)
        else:
            super().forget(decision, reward)
        self._follow_spending()

    def _begin_decision(self, label: Arm, explored: bool) -> None:
        if self._role != "learner":
            super()._begin_decision(label, explored)
        if self._second is not None:
            self._second._begin_decision(label, explored)
        self._follow_spending()

    def _is_in_epoch(self, epoch: int) -> bool:
        other = None if self._role == "learner" else self._second  # a learner is not asked
        return super()._is_in_epoch(epoch) and (other is None or other._is_in_epoch(epoch))

    def _begin_epoch(self, epoch: int, t: int) -> None:
        super()._begin_epoch(epoch, t)
        if self._second is not None and self._role != "learner":
            self._second._begin_epoch(epoch, t)

    def partial_fit(self, X: Contexts, *args: Any, **options: Any) -> Self:
        """Learn from a table of decisions."""
        if self._role != "learner":
            super().partial_fit(X, *args, **options)
        if self._second is not None:
            self._second.partial_fit(X, *args, **options)
        return self

    # ---- changes: both, but for the policy

    def replace(self, **change: Any) -> None:
        """Continue with one thing changed; another policy is that of the live bandit."""
        if "budget" in change and self._control is not None and self._control.arm is not None:
            _check_arm(self._control.arm, self.arms, change["budget"])
        super().replace(**change)
        if self._second is not None and ("policy" not in change or self._role == "learner"):
            self._second.replace(**change)

    def add_arm(self, arm: Arm) -> None:
        """Add an arm without data."""
        super().add_arm(arm)
        if self._second is not None:
            self._second.add_arm(arm)

    def retire_arm(self, arm: Arm) -> None:
        """Stop playing an arm; its data is kept."""
        super().retire_arm(arm)
        if self._second is not None:
            self._second.retire_arm(arm)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        super().restore_arm(arm)
        if self._second is not None:
            self._second.restore_arm(arm)

    # ---- the whole

    def _clone(self) -> Self:
        twin = super()._clone()
        twin._second = None if self._second is None else self._second.copy()
        return twin

    def to_bytes(self) -> bytes:
        """Return everything as bytes, for `read_guarded`."""
        models = [super().to_bytes(), *([] if self._second is None else [self._second.to_bytes()])]
        control = None if self._control is None or self._control.arm is None else self._control.to_dict()
        share = None if self._control is None else self._control.share
        header = {"role": self._role, "control": control, "share": share, "sizes": [len(model) for model in models]}
        text = json.dumps(header).encode()
        return b"".join([MAGIC, len(text).to_bytes(LENGTH, "little"), text, *models])

    def digest(self) -> str:
        """Return 64 hexadecimal digits that are equal for those that decide and learn alike, guards included."""
        told = {
            "live": super().digest(),
            "second": None if self._second is None else self._second.digest(),
            "guards": guards_of(self),
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _copied(decision: Decision) -> Decision:
    """Return a decision of its own, which one bandit can learn without the other."""
    return Decision.from_dict(decision.to_dict())


def _restore(bandit: Bandit, spent: Float64 | None) -> None:
    """Take back what a decision that nobody gets has spent of a budget, if there is one."""
    if spent is not None:
        bandit._restore_spending(spent)


def _all(decision: Decision) -> Float64:
    found = decision.probabilities
    if found is None:
        raise InvalidTypeError(f"decision {decision.id} was made without the probabilities of all arms")
    return found


# ---- what there is of a bandit


def control_of(bandit: Bandit) -> Control | None:
    """Return the control of a bandit, if it has one."""
    return bandit._control if isinstance(bandit, GuardedBandit) else None


def second_of(bandit: Bandit, role: Role | None = None) -> Bandit | None:
    """Return the bandit that goes along with another one, in a certain role if that is given."""
    if not isinstance(bandit, GuardedBandit) or role not in (None, bandit._role):
        return None
    return bandit._second


def role_of(bandit: Bandit) -> Role | None:
    """Return what the other bandit is for; None if there is no other."""
    return bandit._role if isinstance(bandit, GuardedBandit) else None


def guards_of(bandit: Bandit) -> dict[str, Any]:
    """Describe the guards of a bandit in plain JSON types; nothing if it has none.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["old", "new"], 1, seed=1)
    >>> guards_of(bandit), guards_of(guard(bandit, control=Control(arm="old")))
    ({}, {'control': {'arm': 'old', 'share': 0.1}})
    """
    control, shadow = control_of(bandit), second_of(bandit, "shadow")
    told: dict[str, Any] = {} if control is None else {"control": control.to_dict()}
    if shadow is not None:
        told["shadow"] = policy_header(shadow.policy)
    return told | ({"frozen": True} if role_of(bandit) == "learner" else {})


def is_compiled(bandit: Bandit) -> bool:
    """Whether the kernel learns by itself all that it is to learn."""
    if isinstance(bandit, ActionBandit):
        return True
    second = second_of(bandit)
    return compiled_rule(bandit.policy) is not None and (second is None or compiled_rule(second.policy) is not None)


def has_order(bandit: Bandit) -> bool:
    """Whether what it learns depends on which decisions are pending then, as the looks of `AutoEpsilonGreedy` do."""
    second = second_of(bandit)
    return any(isinstance(each.state, AutoTunedStatistics) for each in (bandit, second) if each is not None)


def size_of(bandit: Bandit) -> int:
    """Return the bytes of its state, or of both states."""
    if isinstance(bandit, ActionBandit):
        state, s = bandit.state, bandit.settings
        return 8 * (2 * state.n_terms**2 + state.n_items * (s.dim + s.action_dim + NUMBERS_AN_ITEM))
    second = second_of(bandit)
    nbytes: int = bandit.state.nbytes + (0 if second is None else second.state.nbytes)
    return nbytes


# ---- how it is made, and made again


def alone(bandit: Bandit, seed: int | None = None) -> Bandit:
    """Return a copy of the live bandit without its guards; with another seed, decisions of its own can be learned."""
    if isinstance(bandit, ActionBandit):
        return cast("Bandit", bandit.copy(seed=seed))
    now = bandit._snapshot()
    if seed is not None and seed != now.seed:
        others = [stream for stream in (now.seed, *now.streams) if stream != seed]
        now = now._replace(seed=seed, streams=others)
    twin = Bandit.__new__(Bandit)
    twin._init_engine(bandit._settings, now, bandit._fixed_rows)
    twin._continue_lives(bandit)
    return twin


def guard(
    live: Bandit, *, control: Control | None = None, second: Bandit | None = None, role: Role | None = None
) -> Bandit:
    """Return a copy of a bandit with these guards, and with no others; without any if none are given.

    Parameters
    ----------
    live
        The bandit that decides.
    control
        The control; its policy is that of `second` if it has one.
    second, role
        The bandit that goes along with it, of the same arms and features, and what it is for.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["old", "new"], 1, policy=armlet.LinUCB(), seed=1)
    >>> guarded = guard(bandit, control=Control(arm="old", share=0.25))
    >>> decision, told = guarded.play([1.0], t=1)
    >>> decision.arm, decision.propensity, told["control"]["played"]
    ('old', 0.625, False)
    """
    if control is None and second is None:
        return alone(live)
    if control is not None and control.arm is not None:
        _check_arm(control.arm, live.arms, live.settings.budget)
    if second is not None:
        _check_second(live, second)
    seed = live.seed if role == "learner" else live.seed ^ SECOND
    made = GuardedBandit.__new__(GuardedBandit)
    made._init_engine(live._settings, live._snapshot(), live._fixed_rows)
    made._continue_lives(live)
    made._control, made._role = control, role
    made._second = None if second is None else alone(second, seed)
    return made


def _check_arm(arm: Arm, arms: Iterable[Arm], budget: Budget | None) -> None:
    """Refuse an arm that cannot be played in a share of the steps."""
    if arm not in arms:
        raise InvalidValueError(f"control is {arm!r}, which is not an arm; give one of {list(arms)}")
    if budget is not None and budget.hard:
        raise InvalidValueError(
            f"control is the arm {arm!r}, but the budget is hard, and one arm cannot keep it; give a policy as control"
        )


def _check_second(live: Bandit, second: Bandit) -> None:
    """Refuse one that could not learn all that the live one learns."""
    ours, theirs = live.settings, second.settings
    if second.policy.rewards == "binary" != live.policy.rewards:
        raise InvalidValueError(f"{second.policy!r} learns rewards of 0 and 1 only, but the loop takes others")
    if (list(live.arms), ours.dim, ours.reward_range) != (list(second.arms), theirs.dim, theirs.reward_range):
        raise InvalidValueError("the two bandits differ in arms, features or the range of rewards")
    if ours.feature_range != theirs.feature_range:
        raise InvalidValueError("the two bandits differ in the ranges of features")
    if (ours.outcomes, ours.budget) != (theirs.outcomes, theirs.budget):
        raise InvalidValueError("the two bandits differ in outcomes or their budget")


def read_guarded(data: bytes, *, policy: Policy | None = None) -> Bandit:
    """Read a bandit back from its bytes, with its guards if it has any; `policy` if it is not one of Armlet's own.

    Examples
    --------
    >>> import armlet
    >>> bandit = guard(armlet.Bandit(["old", "new"], 1, seed=1), control=Control(arm="old"))
    >>> read_guarded(bandit.to_bytes()).digest() == bandit.digest()
    True
    """
    if not data.startswith(MAGIC):
        return from_bytes(data, policy=policy)
    try:
        header, models = _parts(data)
        role: Role | None = header["role"]
        live = from_bytes(models[0], policy=policy)
        second = None if role is None else from_bytes(models[1], policy=policy if role == "learner" else None)
        return guard(live, control=_control(header, second), second=second, role=role)
    except ModelFileError:
        raise
    except (ArmletError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ModelFileError(f"the model of a bandit with guards is damaged: {error}") from error


def _parts(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    start = len(MAGIC) + LENGTH
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    header = json.loads(data[start:end])
    models = []
    for size in header["sizes"]:
        models.append(data[end : end + size])
        end += size
    if end != len(data):
        raise ValueError(f"it has {len(data):,} bytes instead of {end:,}")
    return header, models


def _control(header: Mapping[str, Any], second: Bandit | None) -> Control | None:
    if header["role"] == "control" and second is not None:
        return Control(policy=second.policy, share=header["share"])
    return None if header["control"] is None else Control(**header["control"])
