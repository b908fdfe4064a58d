"""What was answered, and whether the store still says so: nothing lost, nothing twice, the state exact."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import armlet
from armlet.stores import Row
from soak.environment import ARMS, DIM, context, loop_of
from support.stores import rebuilt

Answer = list[Any]


class LostError(AssertionError):
    """The store does not say what it has answered."""


def _require(holds: object, what: str) -> None:
    if not holds:
        raise LostError(what)


class Oracle:
    """Remembers every answer and compares."""

    def __init__(self) -> None:
        self.decided: dict[str, Answer] = {}
        self.told: dict[str, list[Answer]] = {}
        self.repeats = 0

    def hear(self, kind: str, event: str, answer: Answer) -> None:
        """Take an answer in, and compare it with earlier ones about the same event."""
        if kind == "decide":
            before = self.decided.setdefault(event, answer)
            self.repeats += before is not answer
            _require(before == answer, f"{event} was answered {before} and then {answer}")
        else:
            self.told.setdefault(event, []).append(answer)
            is_lost = answer[1] == "unknown" and event in self.decided
            _require(not is_lost, f"{event} was decided, and its reward answered {answer}")

    def check(self, path: Path) -> int:
        """Open what a killed process has left, compare everything, and give how many rewards were learned."""
        with armlet.open_store(path) as store:
            loop = loop_of(store)
            bandit = loop.model()
            rows = list(loop._ledger.rows(loop._runner.id))
            again = rebuilt(store, loop.name)
        _require(bandit.to_bytes() == again.to_bytes(), "the state is not what the rows say")
        decided, learned = self._compare(rows)
        self._compare_rewards(decided, learned)
        self._compare_state(bandit, decided, learned)
        return len(learned)

    def _compare(self, rows: list[Row]) -> tuple[dict[str, Row], dict[str, float]]:
        """Compare decisions; give them by event, and what was learned."""
        _require([row.seq for row in rows] == list(range(1, len(rows) + 1)), "rows are not numbered one by one")
        made = [row for row in rows if row.kind == "decide"]
        steps = [row.t for row in made]
        _require(steps == sorted(set(steps), key=int), "a step was taken twice, or out of order")  # type: ignore[arg-type]
        decided = {row.fields["event"]: row for row in made}
        _require(len(decided) == len(made), "an event was decided twice")
        for event, answer in self.decided.items():
            f = decided[event].fields if event in decided else {}
            record = [f.get(name) for name in ("id", "arm", "propensity", "explored")]
            _require(record == answer, f"{event} was answered {answer}, and {record} is kept")
        events = {row.t: event for event, row in decided.items()}
        learns = [(events[row.t], row.fields["reward"]) for row in rows if row.kind == "learn"]
        _require(max(Counter(event for event, _ in learns).values(), default=0) <= 1, "a reward was learned twice")
        return decided, dict(learns)

    def _compare_rewards(self, decided: dict[str, Row], learned: dict[str, float]) -> None:
        for event, answers in self.told.items():
            accepted = [value for value, status in answers if status == "accepted"]
            _require(len(accepted) <= 1, f"two rewards of {event} were accepted")
            for value, status in answers:
                record = learned.get(event)
                if status in ("accepted", "duplicate"):
                    _require(record == value, f"{value} for {event} was {status}, and {record} is kept")
                elif status == "conflict":
                    _require(record not in (None, value), f"{value} for {event} was a conflict, and {record} is kept")
                else:
                    _require(status == "unknown", f"{value} for {event} was answered {status}")
        _require(set(learned) <= set(decided), "something was learned that nobody decided")

    def _compare_state(self, bandit: armlet.Bandit, decided: dict[str, Row], learned: dict[str, float]) -> None:
        """Add everything up again, from the names of events, the arms that were answered and the rewards kept."""
        n, A, b = np.zeros(len(ARMS)), np.zeros((len(ARMS), DIM, DIM)), np.zeros((len(ARMS), DIM))
        for event, value in learned.items():
            f = decided[event].fields
            if f["explored"]:
                x, arm = np.array(context(event)), ARMS.index(f["arm"])
                n[arm] += 1
                A[arm] += np.outer(x, x)
                b[arm] += value * x
        state = bandit.state
        for name, ours in (("n", n), ("A", A), ("b", b)):
            _require(np.array_equal(getattr(state, name), ours), f"{name} is not the sum of what was learned")
