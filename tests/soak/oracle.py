"""What was answered, and whether the store still says so: nothing lost, nothing twice, the state exact.

It knows what the store must have learned from the answers alone: rows that were forgotten or pruned are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from armlet import Bandit
from armlet.types import Float64
from soak.environment import DEFAULT, LOOPS, context, is_private, kind_of, loop_of

Call = list[Any]
COUNTS: Final = ("accepted", "replaced", "late")  # statuses of a reward that counts from then on
WINS: Final = (*COUNTS, "duplicate")  # of one that has the value that counts


class LostError(AssertionError):
    """The store does not say what it has answered."""


def require(holds: object, what: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise LostError(what)


@dataclass(slots=True)
class Decided:
    """A decision as it was answered: id, step, arm, propensity, whether it explored, context."""

    answer: list[Any]
    asked_at: float
    told: list[tuple[float, int, str]] = field(default_factory=list)  # rewards: value, rank and status
    is_forgotten: bool = False

    @property
    def t(self) -> int:
        """Its step."""
        return int(self.answer[1])

    def says(self, answer: list[Any]) -> bool:
        """Whether an answer is the same; over HTTP, nobody is told the id and the step."""
        return answer == self.answer or (answer[:2] == [None, None] and answer[2:] == self.answer[2:])

    def value(self) -> float | None:
        """Return the reward that counts: of the highest rank that one was taken of."""
        won = {rank: value for value, rank, status in self.told if status in WINS}
        return won[max(won)] if won else None


class Oracle:
    """Remembers every call and its answer."""

    def __init__(self) -> None:
        self.open: dict[str, Call] = {}  # asked and not answered, by who has asked
        self.decided: dict[str, Decided] = {}
        self.changes: dict[tuple[str, str], int] = {}  # the last ones, by loop and kind
        self.counts: Counter[str] = Counter()
        self._asked_at: dict[str, float] = {}
        self._asked: Counter[tuple[str, float, int]] = Counter()  # rewards
        self._pruned = 0.0  # decisions before may be gone
        self._repeated: set[str] = set()  # keys of calls that a killed worker has left behind

    # ---- hearing

    def ask(self, key: str, at: float, call: Call) -> None:
        """Hear a question."""
        require(key not in self.open, f"{key} asks {call} before it is answered {self.open.get(key)}")
        self.open[key] = call
        kind = call[0]
        if kind == "decide":
            self._asked_at.setdefault(call[1], at)
        elif kind == "reward":
            self._asked[call[1], call[2], call[3]] += 1
        elif kind == "prune":
            self._pruned = max(self._pruned, call[1])

    def left(self, prefix: str) -> list[tuple[str, Call]]:
        """Return what a worker that was killed has not been answered, to be asked again."""
        found = [(key, call) for key, call in self.open.items() if key.startswith(prefix)]
        self._repeated.update(key for key, _ in found)
        return found

    def answer(self, key: str, answer: Any, refused: int, uncertain: int) -> None:
        """Hear an answer, after so many tries of which nothing was kept or nobody knew."""
        kind, *words = self.open.pop(key)
        self.counts[kind] += 1
        self.counts["refused"] += refused
        self.counts["uncertain"] += uncertain
        is_doubtful = uncertain > 0 or key in self._repeated
        self._repeated.discard(key)
        if kind == "decide":
            self._hear_decision(words[0], answer)
        elif kind == "reward":
            self._hear_reward(words[0], words[1], words[2], answer, is_doubtful=is_doubtful)
        elif kind == "forget":
            self._hear_forgotten(words[0], is_doubtful=is_doubtful, found=answer)
        elif kind == "change":
            self.changes[words[0], kind_of(words[0], words[1])] = words[1]

    def give_up(self, key: str) -> None:
        """Hear that nothing was kept of a call, and that nobody repeats it."""
        kind, *words = self.open.pop(key)
        self.counts["given up"] += 1
        if kind == "reward":
            self._asked[words[0], words[1], words[2]] -= 1

    def _hear_decision(self, event: str, answer: list[Any]) -> None:
        known = self.decided.get(event)
        self.counts["repeats"] += known is not None
        if known is None:
            self.decided[event] = Decided(answer, self._asked_at[event])
            require(answer[-1][:3] == context(event), f"{event} was decided for {answer[-1]}")
        else:
            require(known.says(answer), f"{event} was answered {known.answer} and then {answer}")

    def _hear_reward(self, event: str, value: float, rank: int, status: str, *, is_doubtful: bool) -> None:
        known = self.decided[event]
        known.told.append((value, rank, status))
        if status == "unknown":
            require(self.may_be_gone(event), f"{event} was decided, and its reward answered {status!r}")
        is_first = self._asked[event, value, rank] == 1
        is_known_early = status == "duplicate" and is_private(event) and is_first and not is_doubtful
        require(not is_known_early, f"a reward of {event} is {status!r}, but was reported for the first time")

    def _hear_forgotten(self, event: str, *, found: bool, is_doubtful: bool) -> None:
        known = self.decided[event]
        require(found or is_doubtful or self.may_be_pruned(known), f"{event} was decided, and could not be forgotten")
        known.is_forgotten = found or is_doubtful

    def may_be_pruned(self, known: Decided) -> bool:
        """Whether a decision is old enough, and has not explored."""
        return known.asked_at < self._pruned and not known.answer[4]

    def may_be_gone(self, event: str) -> bool:
        """Whether the store need not know an event any more."""
        known = self.decided[event]
        return known.is_forgotten or self.may_be_pruned(known)

    def fresh(self, since: float) -> list[tuple[float, str]]:
        """Return events that anybody may ask about."""
        some = list(self.decided.items())[-100:]
        return [(known.asked_at, event) for event, known in some if known.asked_at > since and not is_private(event)]

    # ---- what must be there

    def of(self, loop: str) -> Iterator[tuple[str, Decided]]:
        """Iterate over the decisions of a loop."""
        return ((event, known) for event, known in self.decided.items() if loop_of(event) == loop)

    def check_answers(self) -> None:
        """Refuse answers that contradict each other."""
        require(not self.open, f"{self.open} were never answered")
        for loop in LOOPS:
            steps = Counter(known.t for _, known in self.of(loop))
            require(max(steps.values(), default=1) == 1, f"a step of {loop} was answered twice")
        for event, known in self.decided.items():
            self._check_rewards(event, known)

    def _check_rewards(self, event: str, known: Decided) -> None:
        counted = Counter(rank for _, rank, status in known.told if status in COUNTS)
        require(max(counted.values(), default=0) <= 1, f"two rewards of {event} and one rank count: {known.told}")
        won = [{value for value, rank, status in known.told if rank == each and status in WINS} for each in (0, 1)]
        require(max(map(len, won)) <= 1, f"two values of {event} count: {known.told}")
        for value, rank, status in known.told:
            if status == "conflict":
                require(won[rank] and won[rank] != {value}, f"nothing conflicts with {value} of {event}: {known.told}")
            elif status == "outranked":
                require(rank == 0 and won[1], f"nothing outranks {value} of {event}: {known.told}")
            else:
                require(status in (*WINS, "unknown"), f"a reward of {event} was answered {status!r}")

    def learned(self, loop: str) -> dict[str, float]:
        """Return what a loop must have learned, once all windows are closed."""
        default = DEFAULT if loop == "late" else None
        values = ((event, known.value()) for event, known in self.of(loop) if not known.is_forgotten)
        return {event: value for event, told in values if (value := default if told is None else told) is not None}

    def check_state(self, loop: str, model: Bandit) -> int:
        """Add everything up again and compare; return how many rewards were learned."""
        learned = self.learned(loop)
        rows = [self.decided[event].answer for event in learned]
        X = np.array([row[-1] for row in rows]).reshape(len(rows), -1)
        X[:, -1] *= X[:, -1] == self.changes.get((loop, "features"), 0) / 8  # a feature of before is dropped
        values = np.array(list(learned.values()))
        for k, arm in enumerate(model.arms):
            mine = np.array([row[2] == arm for row in rows], dtype=bool)
            _compare(loop, arm, model, k, X[mine], values[mine])
        require(model.t == sum(1 for _ in self.of(loop)), f"{loop} has taken another number of steps than answered")
        return len(learned)


def _compare(loop: str, arm: object, model: Bandit, k: int, X: Float64, values: Float64) -> None:
    ours: Mapping[str, Any] = {"n": len(X), "A": X.T @ X, "b": X.T @ values}
    for name, value in ours.items():
        found = getattr(model.state, name)[k]
        told = f"{name} of {arm} in {loop} is not the sum of what was learned: {found}, and not {value}"
        require(np.array_equal(found, value), told)


def differences(said: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the loops of which replicas say different digests."""
    found: dict[str, set[str]] = {}
    for each in said:
        for loop, digest in each.items():
            found.setdefault(loop, set()).add(digest)
    return {loop for loop, digests in found.items() if len(digests) > 1}
