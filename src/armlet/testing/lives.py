"""Random lives of bandits and loops, call by call: what the product test plays.

A life is a function of its case: it draws the same calls whether it is durable or not, so two lives of one case can be
compared answer by answer. A durable life writes a log, is saved and loaded, or is closed and opened again where it
rests; the other one stays in memory. Every call is public, and every refusal is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.inputs.budget import Budget
from armlet.inputs.outcomes import Outcomes
from armlet.kernel import Decision
from armlet.loading import from_bytes
from armlet.log import Log, resume
from armlet.policies.discounts import duration_of
from armlet.record.values import Event
from armlet.testing.promises import Options
from armlet.testing.refusals import arguments_of, fault_of
from armlet.types import Arm, Float64

START: Final = 1.75e9  # seconds since 1970
NOUNS: Final = ("loop", "bandit", "decision", "policy")
POOL: Final = ("u", "v", "w", "x")  # names of features
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration: what is made, and with which options; a function of its number."""

    number: int
    kind: str
    options: Options
    steps: int
    has_log: bool = True

    @property
    def tags(self) -> list[str]:
        """What it is made with, by name: a budget that is hard is one of its own, and so is a policy's half-life."""
        names = [self.kind, *(name for name in self.options if name not in ("arms", "seed", "action_features"))]
        fades = vars_of(self.options["policy"])
        names += [name for name in ("discount", "half_life") if fades.get(name) is not None]
        names += ["time"] if isinstance(fades.get("half_life"), str) else []
        return names + (["hard"] if "budget" in names and self.options["budget"].hard else [])

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"case {self.number}: {self.kind}({options})"


@dataclass(slots=True)
class LifeClock:
    """Seconds that pass only where a life lets them."""

    now: float = START

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass(slots=True)
class EventRecorder:
    """A recorder that keeps events in memory: kinds and fields."""

    events: list[Event] = field(default_factory=list)

    def open(self, start: bytes, about: Mapping[str, object], digest: Callable[[], str]) -> None:
        """Begin."""

    def on_actions(self, table: ActionTable, name: str | None = None) -> None:
        """Keep no table: decisions have the features of their action."""

    def on_decision(self, decision: Decision | ActionDecision) -> None:
        """Keep a decision."""
        self.events.append({"kind": "decide", **decision.to_dict()})

    def on_decisions(self, decisions: Iterable[Decision]) -> None:
        """Keep many."""
        for each in decisions:
            self.on_decision(each)

    def on_event(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keep a change."""
        self.events.append({"kind": kind, **fields})

    def on_events(self, kind: str, many: Sequence[Mapping[str, object]]) -> None:
        """Keep many changes."""
        for fields in many:
            self.on_event(kind, fields)


class Life:
    """What lives share: random draws, calls that are judged, and a transcript of the answers."""

    def __init__(self, case: Configuration) -> None:
        self.case = case
        self.rng = np.random.default_rng([case.number, 1])
        self.answers: list[str] = []
        self.met: Counter[str] = Counter()  # what happened, by name
        self.clock = LifeClock()
        self.several: Outcomes | None = None

    def live(self) -> None:
        """Play all steps."""
        for _ in range(self.case.steps):
            self.clock.now += float(self.rng.integers(1, 4000))
            self.step()

    def step(self) -> None:
        """Decide, reward, and now and then something else."""
        raise NotImplementedError

    def rest(self) -> None:
        """Close and open again, if the life is durable."""
        raise NotImplementedError

    def state(self) -> object:
        """Return what a refused call must leave as it was."""
        raise NotImplementedError

    def chance(self, p: float) -> bool:
        """Draw whether something happens."""
        return bool(self.rng.random() < p)

    def pick(self, some: Sequence[T]) -> T:
        """Draw one of some."""
        return some[int(self.rng.integers(len(some)))]

    def call(self, name: str, method: Callable[..., T], /, *given: Any, **options: Any) -> T | None:
        """Make a public call; return its answer, or None where it is refused. Any other error is a fault."""
        before = None if method.__name__ == "decide" else self.state()
        line = f"{method.__name__}({', '.join([*map(_text, given), *(f'{k}={_text(v)}' for k, v in options.items())])})"
        try:
            answer = method(*given, **options)
        except Exception as error:
            inner = [key for value in (*given, *options.values()) if isinstance(value, Mapping) for key in value]
            fault = fault_of(error, {*arguments_of(method), *options, *map(str, inner), *NOUNS})
            if fault is not None:
                raise AssertionError(f"{line} raised {type(error).__name__}: {error}; {fault}") from error
            if before is not None and self.state() != before:
                raise AssertionError(f"{line} was refused ({error}), but changed something") from error
            self.answers.append(f"{line}: {type(error).__name__}: {error}")
            self.met[f"{name} refused"] += 1
            return None
        self.met[name] += 1
        self.answers.append(f"{line}: {_text(answer)}")
        return answer

    def happen(self, happenings: Mapping[str, Callable[[str], object]]) -> None:
        """Let one of these happen."""
        name = self.pick(list(happenings))
        happenings[name](name)

    # ---- draws

    def reward(self, names: Sequence[str] | None = None) -> Any:
        """Draw a reward, or one for each of some outcomes; few are out of range."""
        if self.several is None:
            return self.value()
        return {name: abs(self.value()) if name == "cost" else self.value() for name in names or self.several.learned}

    def value(self) -> float:
        """Draw a number; few are out of range."""
        return float(self.rng.integers(-8, 9)) / (2 if self.chance(0.05) else 8)

    def other_features(self, now: Sequence[str] | None) -> Options:
        """Draw other features: some stay, some come."""
        some = [name for name in POOL if self.chance(0.6)] or ["u"]
        new = [name for name in some if name not in (now or ())]
        fill = {name: 0.5 for name in new if self.chance(0.3)}
        return {"features": [some[i] for i in self.rng.permutation(len(some))], **({"fill": fill} if fill else {})}

    def other_range(self) -> Any:
        """Draw a range of rewards, of all or of one of them."""
        low, high = -float(self.rng.integers(2, 6)), float(self.rng.integers(2, 6))
        if self.several is None:
            return (low, high)
        return {name: (0.0, high) if name == "cost" else (low, high) for name in [self.pick(self.several.learned)]}

    def other_contexts(self) -> Options | None:
        """Draw ranges of features, or none."""
        return self.pick([None, {"u": (-1.75, 1.75, "clip")}, {"u": (-2.0, 1.75)}])

    def other_prices(self, arms: Sequence[Arm]) -> dict[str, dict[Arm, float]]:
        """Draw prices of every arm."""
        names = [] if self.several is None else list(self.several.known)
        return {name: {arm: float(self.rng.integers(1, 9)) / 8 for arm in arms} for name in names or ["delay"]}

    def other_budget(self) -> Budget:
        """Draw a budget."""
        total, length = float(self.rng.integers(5, 60)), int(self.rng.integers(20, 90))
        way = self.pick(["horizon", "period"])
        return Budget("cost", total=total, hard=self.chance(0.3), **{way: length})


def _text(value: object) -> str:
    """Return a value as two lives of a case have it: decisions by what was decided."""
    if isinstance(value, Decision | ActionDecision):
        return f"<{value.id} {value.arm} {value.propensity!r} {value.explored} {value.optimistic}>"
    if isinstance(value, Bandit | ActionBandit):
        return f"<{value.digest()}>"
    if isinstance(value, ActionTable):
        return f"<{value.hash}>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


# ---- bandits in memory, with a log and files


class MemoryLife(Life):
    """The life of a bandit of either kind; a durable one is loaded from its files where it rests, or from its log."""

    kind: ClassVar[type[Any]]
    record: ClassVar[type[Any]]

    def __init__(self, case: Configuration, folder: Path | None = None) -> None:
        super().__init__(case)
        self._path = None if folder is None or not case.has_log else folder / f"{case.number}.jsonl"
        self._is_durable = folder is not None
        self.log = None if self._path is None else Log(self._path)
        self.rows = EventRecorder()  # of a life in memory
        held = self.rows if case.has_log and folder is None else None
        self.bandit = self.kind(**case.options, log=self.log or held)
        self.start = self.bandit.copy()
        self.before: dict[str, Any] = {}  # as it was when it decided, by id
        self.asked: dict[str, Options] = {}  # the options of that decision
        self.merged: list[list[Event]] = []  # the events of workers, by merge
        self._made: list[Any] = []
        self._left: list[Any] = []  # of workers, whose rewards have not come
        self._is_timed = duration_of(self.bandit.policy) is not None
        self._changed_at = self._rested_at = 0  # the last steps before features were replaced, and before a rest

    def state(self) -> object:
        """Return what a refused call must leave as it was."""
        return self.bandit.digest(), self.bandit.t

    def rest(self) -> None:
        """Save and load; or close the log, and go on with it. Records from before other features stay behind."""
        self._keep_after(self._changed_at)
        self._rested_at = self.bandit.t
        if not self._is_durable:
            return
        self._made, self._left = (
            [self.record.from_dict(each.to_dict()) for each in some] for some in (self._made, self._left)
        )
        if self._path is None or self.log is None:
            self.bandit = from_bytes(self.bandit.to_bytes(), kind=self.kind)
            return
        digest = self.bandit.digest()
        self.log.close()
        self.log = Log(self._path)
        self.bandit = resume(self.log, kind=self.kind)
        if self.bandit.digest() != digest:
            raise AssertionError("a bandit that was resumed from its log has another digest")

    def _keep_after(self, t: int) -> None:
        """Go on without the decisions up to a step."""
        self._made, self._left = ([each for each in some if each.t > t] for some in (self._made, self._left))

    def context(self) -> Float64:
        """Draw a context of the features of now."""
        dim: int = self.bandit.settings.dim
        return self.rng.integers(-8, 9, size=dim) / 4

    def tables(self) -> list[ActionTable]:
        """Draw what is decided among besides arms."""
        return []

    def step(self) -> None:
        """Decide, learn some, and now and then something else."""
        self.decide()
        for _ in range(int(self.rng.integers(3))):
            self.learn("learn")
        if self.chance(0.3):
            self.happen(self.happenings())
        if self.chance(0.06):
            self.met["restart"] += 1
            self.rest()

    def drawn_options(self, *tables: ActionTable) -> Options:
        """Draw the options of a decision."""
        raise NotImplementedError

    def decide(self) -> None:
        """Decide once, with options."""
        x, tables, before = self.context(), self.tables(), self.bandit.copy()
        options = self.drawn_options(*tables)
        made = self.call("decide", self.bandit.decide, x, *tables, propensity="marginal", **options)
        if made is not None:
            self.before[made.id], self.asked[made.id] = before, options
            self._made.append(made)
            self.met.update(name for name in ("unit", "weights", "eligible") if name in options)

    def learn(self, name: str) -> None:
        """Learn the reward of a pending decision, or a part of it."""
        pending = [each for each in (*self._made[-9:], *self._left) if not each.learned]
        if not pending:
            return
        names = None
        if self.several is not None and self.chance(0.5):
            names = [self.pick(self.several.learned)]
        how = {"weight": 2.0} if self.chance(0.15) else {}
        late = self.pick(pending)
        self.call(name, self.bandit.learn, late, self.reward(names), **how)
        if "made by another bandit" in self.answers[-1]:
            raise AssertionError(f"a bandit was merged, and its decision is refused: {self.answers[-1]}")

    def happenings(self) -> dict[str, Callable[[str], object]]:
        """Return what can happen, by name."""
        mine = self.bandit
        return {
            "merge": self._merge,
            "policy": lambda name: self.call(name, mine.replace, policy=other_settings(mine.policy)),
            "ranges": lambda name: self.call(name, mine.replace, reward_range=self.other_range()),
            "t": lambda name: self.call(name, mine.replace, t=mine.t + int(self.rng.integers(4))),
            "decide_many": self._many,
            "expire": self._about(lambda name, d: self.call(name, mine.expire, d), False),
            "correct": self._about(lambda name, d: self.call(name, mine.correct, d, d.reward, self.reward()), True),
            "forget": self._about(lambda name, d: self.call(name, mine.forget, d, d.reward), True),
        }

    def _about(self, call: Callable[[str, Any], object], *learned: bool) -> Callable[[str], object]:
        """Return a call about a decision that was learned, or not; if there is none, nothing is called."""

        def happen(name: str) -> None:
            if some := [each for each in self._made if each.learned in learned]:
                call(name, self.pick(some))

        return happen

    def _many(self, name: str) -> None:
        X = np.array([self.context() for _ in range(3)])
        made = self.call(name, self.bandit.decide_many, X, *self.tables(), propensity="marginal")
        self._made += [] if made is None else list(made)

    def _merge(self, name: str) -> None:
        """Let a worker learn some rows, and merge what it learned; one of its rewards comes later."""
        base, rows = self.bandit.copy(), EventRecorder()
        twin = self.bandit.copy(seed=int(self.rng.integers(2**40)))
        worker = from_bytes(twin.to_bytes(), log=rows, kind=self.kind)
        how = {"at": self.clock.now} if self._is_timed else {}
        made = [self.call("worker decides", worker.decide, self.context(), *self.tables(), **how) for _ in range(3)]
        for each in made[1:]:
            if each is not None:
                self.call("worker learns", worker.learn, each, self.reward())
        rest = self.call("difference", worker.difference, base)
        if rest is not None:
            self.call(name, self.bandit.merge, rest)
            self.merged.append(rows.events)
            if not self.case.has_log and not self._changed_at:  # a log holds no seeds, and a file no former features
                self._left += [each for each in made[:1] if each is not None]


class BanditLife(MemoryLife):
    """The life of a Bandit."""

    kind, record = Bandit, Decision

    def __init__(self, case: Configuration, folder: Path | None = None) -> None:
        super().__init__(case, folder)
        self.several = self.bandit.settings.outcomes

    def drawn_options(self, *_: ActionTable) -> Options:
        """Draw the options of a decision."""
        options: Options = {}
        active = [arm for arm in self.bandit.arms if arm not in self.bandit.arms.retired]
        if self.chance(0.2):
            options["eligible"] = [arm for arm in active if self.chance(0.6)] or active[:1]
        if self.chance(0.25) and self.bandit.settings.epoch is not None:
            options["unit"] = f"session {self.rng.integers(4)}"
        if self.several is not None and self.chance(0.25):
            options["weights"] = {"cost": -float(self.rng.integers(5))}
        if self._is_timed:
            options["at"] = self.clock.now
        return options

    def happenings(self) -> dict[str, Callable[[str], object]]:
        """Return what can happen, by name."""
        mine = self.bandit
        found = super().happenings() | {
            "add_arm": lambda name: self.call(name, mine.add_arm, self.pick(["d", "e"])),
            "retire_arm": lambda name: self.call(name, mine.retire_arm, self.pick([*mine.arms, "nowhere"])),
            "restore_arm": lambda name: self.call(name, mine.restore_arm, self.pick([*mine.arms])),
            "remove_arm": lambda name: self.call(name, mine.remove_arm, self.pick([*mine.arms[1:], "nowhere"])),
            "features": self._features,
            "contexts": lambda name: self.call(name, mine.replace, feature_range=self.other_contexts()),
            "partial_fit": self._fit,
        }
        if self.several is None and self.chance(0.8):
            return found
        return found | {
            "outcomes": lambda name: self.call(name, mine.replace, outcomes={"gain": float(self.rng.integers(1, 4))}),
            "known": lambda name: self.call(name, mine.replace, known=self.other_prices([*mine.arms, "d", "e"])),
            "budget": lambda name: self.call(name, mine.replace, budget=self.pick([None, self.other_budget()])),
            "bill": self._about(lambda name, d: self.call(name, mine.bill, d, abs(self.value())), True, False),
        }

    def _features(self, name: str) -> None:
        before = self.bandit.settings.features
        self.call(name, self.bandit.replace, **self.other_features(before))
        if self.bandit.settings.features != before:
            self._changed_at = self.bandit.t
            self._keep_after(self._rested_at)  # contexts of decisions are carried, those of records are not
            self._left = []  # nor those of workers

    def _fit(self, name: str) -> None:
        n, arms = 3, [self.pick([*self.bandit.arms]) for _ in range(3)]
        X = np.array([self.context() for _ in range(n)])
        rewards: Any = [self.reward() for _ in range(n)]
        if self.several is not None:
            rewards = {each: [row[each] for row in rewards] for each in self.several.learned}
        self.call(name, self.bandit.partial_fit, X, arms, rewards, explored=self.chance(0.8))


class ActionLife(MemoryLife):
    """The life of an ActionBandit."""

    kind, record = ActionBandit, ActionDecision

    def __init__(self, case: Configuration, folder: Path | None = None) -> None:
        super().__init__(case, folder)
        self.table = drawn_table(self.rng, 6)

    def tables(self) -> list[ActionTable]:
        """Draw a table: that of always, or a new one."""
        return [self.pick([self.table, drawn_table(self.rng, 4)])]

    def drawn_options(self, *tables: ActionTable) -> Options:
        """Draw the options of a decision."""
        return {"eligible": tables[0].labels[:2]} if self.chance(0.2) else {}

    def happenings(self) -> dict[str, Callable[[str], object]]:
        """Return what can happen, by name."""
        mine = self.bandit
        return super().happenings() | {
            "prepare": lambda name: self.call(name, mine.prepare, "all", self.table),
            "remove_table": lambda name: self.call(name, mine.remove_table, "all"),
        }


def drawn_table(rng: np.random.Generator, n: int) -> ActionTable:
    """Draw a table of actions."""
    labels = [f"film {i}" for i in rng.choice(40, size=n, replace=False).tolist()]
    return ActionTable(labels, rng.integers(-8, 9, size=(n, 2)) / 4, names=["genre", "year"])


def vars_of(policy: object) -> Options:
    """Return the settings of a policy."""
    return asdict(policy) if is_dataclass(policy) and not isinstance(policy, type) else {}


def other_settings(policy: Any) -> Any:
    """Return a policy with other settings that the same state serves."""
    settings = vars_of(policy)
    changed = {
        name: value * 1.5 for name, value in settings.items() if name in ("p", "alpha", "epsilon", "v") and value
    }
    return replace(policy, **{name: min(value, 1.0) if name == "epsilon" else value for name, value in changed.items()})
