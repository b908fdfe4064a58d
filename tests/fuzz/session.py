"""One case of the fuzzer of calls: a bandit, those around it, and what must hold after every call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np

from armlet import ArmletError, Bandit, Decision
from armlet.errors import BudgetError
from fuzz import policies, values
from fuzz.faults import Fault, Hostility, View, judge, look, plain, require, same_moment

SCALES = (1.0, 1.0, 1.0, 1.0, 1e-100, 1e-12, 1e12, 1e24, 1e40)
EXTREME_SCALES = (1.0, 1e-100, 1e24, 1e40)
PLENTY = 60  # decisions and arms that are kept to play with
SHARED = Path("/dev/shm")
FOLDER = SHARED if SHARED.is_dir() else Path(tempfile.gettempdir())  # saving waits for the disk, if there is one


class Call(NamedTuple):
    """A call, what it may do to the bandit, and what its answer must be."""

    name: str
    act: Callable[[], Any]
    effect: Literal["reads", "decides", "changes"]
    check: Callable[[Any, View], None] | None = None
    decision: Decision | None = None  # must stay as it was if the call is refused
    also: tuple[type[Exception], ...] = ()  # errors that are right here and nowhere else
    of: tuple[Callable[..., Any] | str, ...] = ()  # public calls that it makes, if not the method of this name


class Session:
    """A bandit under attack, with its decisions, a worker to merge, and a stranger that it never met."""

    def __init__(self, case: int, folder: Path) -> None:
        self.rng = rng = Random(case)
        self.rogue = case % 16 == 7
        self.policy = policies.Rogue() if self.rogue else policies.draw(rng, case)
        name = policies.name_of(self.policy)
        self.n_arms, self.dim = (4, 3) if name == "Oracle" else (rng.choice((1, 2, 3, 4, 9)), rng.choice((1, 2, 3, 5)))
        self.wild = case % 5 == 3
        self.scale = rng.choice(EXTREME_SCALES if self.wild else SCALES)
        self.features = tuple(f"f{j}" for j in range(self.dim)) if rng.random() < 0.3 else None
        self.settings: dict[str, Any] = {
            "features": self.features,
            "objective": rng.choice(("max", "min")),
            "normalize": rng.choice((None, None, "l2")),
        }
        self.labels: list[Any] = [rng.choice((f"arm {i}", i)) for i in range(self.n_arms)]
        self.take_outcomes(case)
        try:
            self.bandit = self.make(case)
        except ValueError:  # a policy that is not for so few or so many
            self.policy, self.n_arms, self.dim, self.features = policies.ordinary(name), 4, 3, None
            self.labels, self.settings["features"] = ["arm 0", "arm 1", 2, 3], None
            self.bandit = self.make(case)
        self.other, self.stranger = self.make(case + 1), self.make(case + 2, budget=None)
        self.decisions: list[Decision] = []
        self.path = folder / f"{case}.armlet"
        self.moment = look(self.bandit)
        self.meddled, self.busy, self.patience = False, False, 0

    def take_outcomes(self, case: int) -> None:
        """Let one case in three have several outcomes, if its policy takes them."""
        from fuzz import outcomes  # which draws for sessions

        self.learned: list[str] = []  # outcomes
        if case % 3 != 1 or self.rogue:
            return
        plain = self.settings
        self.settings = {**plain, **outcomes.settings(self.rng)}
        try:
            self.make(case)
        except ValueError:
            self.settings = plain
        else:
            self.learned = [name for name in self.settings["outcomes"] if name not in self.settings.get("known", {})]

    def make(self, seed: int, **others: Any) -> Bandit:
        """Build a bandit like this case's, with a seed of its own."""
        return Bandit(self.labels, self.dim, policy=self.policy, seed=seed, **{**self.settings, **others})

    def number(self) -> Any:
        """Draw a number to call with."""
        return values.number(self.rng, self.deed, self.wild)

    # ---- what hostile objects do

    def deed(self) -> Any:
        """Raise, answer nonsense, or reach into the bandit that is at work; at most a few times a call."""
        if self.busy or self.patience == 0:
            return None
        self.patience -= 1
        kind = self.rng.random()
        if kind < 0.25:
            raise Hostility("an object")
        if kind < 0.45:
            return self.rng.choice(values.WRONG + values.ODD)
        if kind < 0.9:
            self.meddle()
        return None

    def meddle(self) -> None:
        """Call the bandit while it is inside another call."""
        self.busy, self.meddled, b = True, True, self.bandit
        reward: Any = dict.fromkeys(self.learned, 1.0) if self.learned else 1.0
        arm = self.rng.choice(b.arms)
        x = np.ones((1, self.dim))
        try:
            values.pick(
                self.rng,
                [
                    lambda: b.add_arm(f"new {self.rng.randrange(10**9)}"),
                    lambda: b.remove_arm(arm),
                    lambda: b.retire_arm(arm),
                    lambda: b.restore_arm(arm),
                    lambda: b.decide(x[0]),
                    lambda: b.learn(self.rng.choice(self.decisions or [b.decide(x[0])]), reward),
                    lambda: b.predict_proba(x),
                    lambda: b.merge(b),
                    lambda: b.replace(
                        known={name: dict.fromkeys(b.arms, 0.5) for name in self.settings.get("known", {})}
                    ),
                    lambda: b.replace(outcomes=dict.fromkeys(self.settings.get("outcomes", {}), 2.0)),
                    lambda: b.partial_fit(x, [arm], [1.0], explored=True),
                ],
            )()
        except ArmletError:
            pass
        finally:
            self.busy = False
            self.moment = look(b)

    def order(self) -> None:
        """Tell a rogue policy what to answer next."""
        kind = self.rng.random()
        if kind < 0.5:
            object.__setattr__(self.policy, "order", policies.lies(self.rng, len(self.bandit.arms)))
        elif kind < 0.7:
            object.__setattr__(self.policy, "order", self.deed)

    # ---- the oracle

    def play(self, call: Call) -> None:
        """Make one call and hold the bandit against the promise."""
        self.moment = before = look(self.bandit)
        self.meddled, self.patience = False, 3
        fate = facts(call.decision)
        if self.rogue:
            self.order()
        try:
            answer = call.act()
        except Exception as error:
            self.busy = True
            if not isinstance(error, (*call.also, Hostility)):
                self.judge(error, call)
            same_moment(self.bandit, self.moment, f"{call.name} was refused ({error!r:.200})")
            unchanged = self.meddled or facts(call.decision) == fate
            require(unchanged, lambda: f"{call.name} was refused, but the decision went from {fate}")
            return
        finally:
            self.busy = True  # hostile labels and numbers that stay in the bandit do nothing to the oracle
            if self.rogue:
                object.__setattr__(self.policy, "order", None)
        if call.effect == "reads":
            same_moment(self.bandit, self.moment, f"{call.name} only reads")
        if call.effect == "decides" and not self.meddled:
            b = self.bandit
            now = before._replace(t=b.t, spending=b._spending, epoch=b._epoch)
            same_moment(b, now, f"{call.name} only decides", but_for="under_way")
        if call.check is not None and not self.meddled:
            call.check(answer, before)

    def judge(self, error: Exception, call: Call) -> None:
        """Require a refusal that names an argument of the call, an outcome, the bandit or its policy."""
        objects = ("bandit", "budget", "state", "policy", type(self.bandit.policy).__name__)
        judge(
            error, call.name, *(call.of or (getattr(Bandit, call.name),)), *self.settings.get("outcomes", ()), *objects
        )

    def probe(self) -> None:
        """Require that the bandit can still say what it would play, by probabilities."""
        x = np.array([[self.scale * self.rng.uniform(-1, 1) for _ in range(self.dim)]])
        b = self.bandit
        if self.rogue:
            object.__setattr__(b.policy, "order", None)  # a pickled bandit has a policy of its own
        try:
            chances = b.predict_proba(x)
        except BudgetError:
            require(self.learned != [], lambda: "predict_proba of a bandit without a budget names one")
            return
        except Exception as error:
            raise Fault(f"predict_proba of a sound bandit raised {error!r:.300}") from error
        retired = set(map(plain, b.arms.retired))
        dead = [i for i, arm in enumerate(b.arms) if plain(arm) in retired]
        self.sound(chances, dead)

    def sound(self, chances: Any, dead: list[int]) -> None:
        """Require rows of probabilities: none negative, sum 1, 0 for the dead."""
        good = bool((chances >= 0).all()) and bool((abs(chances.sum(axis=1) - 1) < 1e-6).all())
        require(good, lambda: f"predict_proba gave {chances.tolist()}")
        require(not chances[:, dead].any(), lambda: f"predict_proba plays arms {dead}, which it may not")


def facts(decision: Decision | None) -> tuple[object, ...] | None:
    """Return what learning changes in a decision."""
    return None if decision is None else (decision.learned, decision.expired, decision.reward, decision.weight)
