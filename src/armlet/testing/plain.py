"""A plain numpy replay: the rows that a log says were learned, added up again, and what they make of a decision.

It knows nothing of the kernel's states and of `armlet.log.replaying`: rows are dicts, and all sums of an arm are made
of all of its rows each time. Three things are compared, each where it can be:

- sums: n, A and b of every arm and outcome, of policies that keep them;
- estimates: ridge regression on these sums, by `armlet.reference`, where the ridge is a setting and units are those
  that the state last took; and that the best of them plays where a policy exploits;
- law: what the policy's own methods in Python say of the state, with numpy's coins, of decisions with one reward.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armlet.actions.table import ActionTable, action_key
from armlet.bandit import Bandit
from armlet.inputs.budget import Budget
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.settings import Ridge
from armlet.kernel import Statistics
from armlet.policies.discounts import duration_of, fading
from armlet.record.values import Event
from armlet.reference.choice import coins
from armlet.reference.discount import TICKS, FadingReference
from armlet.reference.pair_model import ActionRows, PairModel
from armlet.reference.schedule import Reference
from armlet.reference.units import FreeUnits
from armlet.testing.promises import Options, require
from armlet.types import Arm, Array, Float64

CLOSE: Final = 1e-8  # of the size of a sum's terms
EXPLOITING: Final = (
    "Greedy",
    "FixedEpsilon",
    "Algorithm1",
    "ScheduledEpsilonGreedy",
    "ContextualEpsilonGreedy",
    "AllDataEpsilonGreedy",
)
"""Policies that play the best estimate where they do not explore."""


@dataclass(frozen=True, slots=True)
class PlainRow:
    """A decision, and its reward or outcomes once they are complete."""

    t: int
    minutes: int
    x: Float64
    arm: Arm
    explored: bool
    values: Mapping[str, float]
    weight: float = 1.0
    z: Float64 | None = None  # of an action


class Plain:
    """Rows as events tell them; `judge` compares them with a bandit as it was when it decided."""

    def __init__(self, start: Any) -> None:
        several = getattr(start.settings, "outcomes", None)
        self._names = ("reward",) if several is None else several.learned
        self._features = start.settings.features or ()
        self._money = PlainSpending(getattr(start.settings, "budget", None))
        self._decided: dict[str, PlainRow] = {}
        self._frozen: dict[str, PlainRow] | None = None
        self._extra = 0
        self._t = 0
        self.judged: Counter[str] = Counter()

    # ---- what happened

    def see(self, event: Event) -> None:
        """Take one event of a bandit's log, or one row of a loop."""
        kind = event["kind"]
        self._money.see(event)
        if kind == "decide":
            self._decide(event)
        elif kind in ("learn", "correct"):
            self._learn(event)
        elif kind in ("forget", "erase"):  # what is erased, a frozen policy forgets too
            for rows in self._all() if kind == "erase" else [self._decided]:
                if event["id"] in rows:
                    rows[event["id"]] = replace(rows[event["id"]], values={})
        elif kind == "replace":
            self._replace(event)
        elif kind == "remove_arm":
            for rows in self._all():
                rows |= {name: replace(row, values={}) for name, row in rows.items() if row.arm == event["arm"]}
        elif kind == "partial_fit":
            self._fit(event)
        elif kind == "advance":
            self._t = event["t"]

    def merge(self, events: Iterable[Event]) -> None:
        """Take the rows that a worker learned since it was copied."""
        before, decided = self._t, 0
        self._money.is_known = not self._money.repeats
        for event in events:
            decided += event["kind"] == "decide"
            self.see(event)
        self._t = before + decided

    def _all(self) -> list[dict[str, PlainRow]]:
        return [self._decided] if self._frozen is None else [self._decided, self._frozen]

    def _decide(self, event: Event) -> None:
        self._t = event["t"]
        row = _row_of(event)
        for rows in self._all():
            rows[event["id"]] = row

    def _learn(self, event: Event) -> None:
        reward = event["reward"] if event["kind"] == "learn" else event["new_reward"]
        values = reward if isinstance(reward, Mapping) else {"reward": reward}
        row = self._decided.get(event["id"])
        if row is None:  # made elsewhere
            row = _row_of(event["decision"])
        if "played" in event and event["played"] != row.arm:
            row = replace(row, arm=event["played"], explored=False)
        weight = event["weight"] if event["kind"] == "learn" and not row.values else row.weight  # the first part's
        self._decided[event["id"]] = replace(row, values={**row.values, **values}, weight=weight)

    def _fit(self, event: Event) -> None:
        rewards, weights = event["rewards"], event["weights"]
        for i, (x, arm) in enumerate(zip(event["X"], event["arms"], strict=True)):
            if isinstance(rewards, Mapping):
                values = {name: float(rewards[name][i]) for name in self._names}
            else:
                values = {"reward": float(rewards[i])}
            self._extra += 1
            row = PlainRow(self._t + 1 + i, 0, np.array(x, dtype=np.float64), arm, bool(event["explored"][i]), values)
            self._decided[f"row {self._extra}"] = replace(row, weight=float(weights[i]))
        self._t += event["steps"]

    def _replace(self, event: Event) -> None:
        if "features" in event:
            change = FeatureChange.between(self._features, event["features"], event.get("fill"))
            for rows in self._all():
                for name, row in rows.items():
                    rows[name] = replace(row, x=change.carry(row.x))
            self._features = change.after
        if "guards" in event:
            is_frozen = event["guards"].get("frozen", False)
            self._frozen = (self._frozen or dict(self._decided)) if is_frozen else None

    # ---- what must be so

    def judge_actions(self, bandit: Any, table: ActionTable) -> None:
        """Compare what the rows make of actions with what a bandit says of them."""
        settings, twin = bandit.settings, bandit.copy()
        twin.state.solve()
        plain = PairModel(settings.dim, settings.action_dim, settings.products(), intercepts=settings.policy.intercepts)
        for row in (self._decided if self._frozen is None else self._frozen).values():
            for value in row.values.values():
                z: Any = row.z
                plain.add(action_key(row.arm, z), row.x, z, settings.sign * value, row.weight)
        plain.solve()
        x, rows = np.array([0.75, -1.25][: settings.dim]), ActionRows(table.features, table.keys)
        found, expected = twin.predict_expectations(x, table), settings.sign * plain.estimates(x, rows)
        is_close = np.allclose(found, expected, rtol=1e-6, atol=1e-6)
        require(is_close, f"plain numpy estimates actions at {expected}, and the bandit at {found}")
        self.judged["actions"] += 1

    def judge(self, before: Any, event: Event, options: Options) -> None:
        """Compare the rows so far with a bandit, and what they make of the decision that it made then."""
        if getattr(before, "budget", None) is not None and "cost" in self._names:
            self._money.judge(before)
            self.judged["money"] += 1
        if not isinstance(before, Bandit):
            return
        active = [arm for arm in before.arms if arm not in before.arms.retired]
        x = np.array(event["x"], dtype=np.float64)
        decision = {**event, "x": x, "arm": event.get("live", event["arm"]), "minutes": event["tag"]}
        decision["eligible"] = active if event["eligible"] is None else event["eligible"]
        arrays: Any = before.state.arrays()
        if "records" not in arrays or arrays["records"].ndim != 2:
            self.judged["other states"] += 1
            return
        sums = _Sums(before, self._learned(before), self._names)
        sums.compare(arrays)
        self.judged["sums"] += 1
        self._judge_estimates(before, sums, decision, options)
        self._judge_law(before, decision, options)

    def _learned(self, before: Bandit) -> list[PlainRow]:
        rows = self._decided if self._frozen is None else self._frozen
        whole = (row for row in rows.values() if len(row.values) == len(self._names))
        return [row for row in whole if row.explored or before.policy.learns_from == "every step"]

    def _judge_estimates(self, before: Bandit, sums: _Sums, decision: Any, options: Options) -> None:
        policy, several = before.policy, before.settings.outcomes
        if type(before.state) is not Statistics or getattr(policy, "ridge", None) is None:
            return
        x, spending = sums.scaled(decision["x"]), before.budget
        weights = {"reward": 1.0} if several is None else {**several.weights, **(decision.get("weights") or {})}
        if spending is not None:
            weights[spending.budget.outcome] -= spending.price
        scores = sums.scores(x, decision["t"], decision["minutes"], weights)
        known = {} if several is None else several.known
        for name, prices in known.items():
            scores = scores + weights[name] * np.array([prices[arm] for arm in before.arms])
        if several is None and duration_of(policy) is None:
            state = before.state.copy()
            state.as_of(decision["t"])
            found = state.scores(x)
            is_close = np.allclose(found, scores, rtol=1e-6, atol=1e-6)
            require(is_close, f"plain numpy estimates {scores} at step {decision['t']}, and the state {found}")
            self.judged["estimates"] += 1
        is_free = spending is None or not spending.budget.hard
        is_own = decision.get("is_own", True) and "unit" not in options and not decision["explored"]
        if type(policy).__name__ in EXPLOITING and is_own and is_free:
            allowed = [place for place, arm in enumerate(before.arms) if arm in decision["eligible"]]
            best, played = scores[allowed].max(), scores[list(before.arms).index(decision["arm"])]
            size = 1.0 + float(np.abs(scores).max())
            require(played >= best - 1e-6 * size, f"plain numpy scores {scores} at step {decision['t']}: {decision}")
            self.judged["exploits"] += 1

    def _judge_law(self, before: Bandit, decision: Any, options: Options) -> None:
        if before.settings.outcomes is not None or "unit" in options or duration_of(before.policy) is not None:
            return
        state, x = before.state.copy(), before._scaled(decision["x"][None])[0]
        mask = np.array([arm in decision["eligible"] for arm in before.arms])
        said = before.policy.decide(state, decision["t"], x, coins(before.seed, decision["t"]), mask)
        arm = before.arms[said.arm]
        require(arm == decision["arm"], f"by its methods the policy plays {arm} at step {decision['t']}: {decision}")
        self.judged["law"] += 1


def _row_of(event: Event) -> PlainRow:
    """Return a decision as a row that nothing was learned from."""
    x, z = (None if part is None else np.array(part, dtype=np.float64) for part in (event["x"], event.get("z")))
    if x is None:
        raise AssertionError(f"decision {event['id']} has no context")
    return PlainRow(event["t"], event["tag"], x, event["arm"], event["explored"], {}, z=z)


class PlainSpending:
    """What was spent since there is a budget of a cost that is learned, and what a hard one keeps back."""

    def __init__(self, budget: Budget | None) -> None:
        self._costs: dict[str, float] = {}  # of decisions, whether there was a budget then or not
        self._waiting: set[str] = set()  # decisions without a cost
        self._is_kept = budget is not None and budget.hard  # from the first decision on, or nothing is promised
        self.is_known = True
        self._begin(budget)

    def _begin(self, budget: Budget | None) -> None:
        self._budget, self.spent, self._decisions = budget, 0.0, 0.0

    @property
    def repeats(self) -> bool:
        """Whether there are periods, which begin anew."""
        return self._budget is not None and self._budget.period is not None

    def see(self, event: Event) -> None:
        """Take an event."""
        kind, reward = event["kind"], event.get("new_reward", event.get("reward"))
        if kind == "decide" and self._budget is not None:
            if self._budget.period is not None and self._decisions >= self._budget.period:
                self.spent = self._decisions = 0.0
            self._decisions += 1.0
            self._waiting.add(event["id"])
        elif kind == "forget" and self._budget is None:  # there was no budget that it stays spent in
            self._costs.pop(event["id"], None)
        elif kind == "bill":
            self._pay(event["id"], event["cost"])
        elif kind in ("learn", "correct") and isinstance(reward, Mapping) and "cost" in reward:
            self._pay(event["id"], reward["cost"])
        elif kind == "replace" and "budget" in event:
            self._replace(event["budget"])

    def _pay(self, name: str, cost: float) -> None:
        self.spent += cost - self._costs.get(name, 0.0)
        self._costs[name] = cost
        self._waiting.discard(name)

    def _replace(self, given: Event | None) -> None:
        budget = None if given is None else Budget(**given)
        if budget is None or self._budget is None:
            self._begin(budget)
        self._budget, self._is_kept = budget, self._is_kept and budget is not None and budget.hard

    def judge(self, before: Any) -> None:
        """Require what a bandit has spent to be this; and a hard budget to afford the decision that it makes."""
        if not self.is_known or self._budget is None:
            return
        found, budget = before.budget.spent, self._budget
        require(abs(found - self.spent) <= 1e-9 * (1.0 + abs(found)), f"{found} is spent, and {self.spent} was billed")
        if not self._is_kept:
            return
        spent = 0.0 if budget.period is not None and self._decisions >= budget.period else self.spent
        most = spent + (len(self._waiting) + 1) * before.settings.outcomes.ranges["cost"][1]
        is_kept = most <= budget.total * (1.0 + 1e-9)
        require(is_kept, f"a decision could take the spend to {most} of {budget.total}, which is hard")


def _floats(array: Array) -> Float64:
    return np.asarray(array, dtype=np.float64)


class _Sums:
    """Sums over rows, per arm, in the coordinates of a state: (1, x - origin) in free units, x else."""

    def __init__(self, before: Bandit, rows: list[PlainRow], names: tuple[str, ...]) -> None:
        self._bandit, self._rows, self._names = before, rows, names
        arrays = before.state.arrays()
        self._units = FreeUnits.of(_floats(arrays["units"])) if "units" in arrays else None
        self._fading = fading(before.policy)
        self._tick = int(_floats(arrays["clock"])[0]) if "clock" in arrays else 0
        several = before.settings.outcomes
        self._origins: Float64 = np.zeros(len(names))
        self._middles: Float64 = np.zeros(len(names))
        if several is not None:
            self._origins, self._middles = np.split(_floats(arrays["outcome_units"]), 2)
        elif self._units is not None:
            self._origins, self._middles = self._units.origin[:1], self._units.middle[:1]
        places = {arm: place for place, arm in enumerate(before.arms)}
        mine = [[row for row in rows if places[row.arm] == place] for place in places.values()]
        parts = zip(*map(self._of, mine), strict=True)
        self.n, self.A, self.b = (np.array(part) for part in parts)  # (K,), (K, D, D), (K, m, D)

    def scaled(self, x: npt.ArrayLike) -> Float64:
        """Return a context as the bandit keeps it."""
        row = np.array(x, dtype=np.float64)
        length = float(np.linalg.norm(row)) if self._bandit.settings.normalize == "l2" else 0.0
        return row / length if length > 0 else row

    def _of(self, rows: list[PlainRow]) -> tuple[float, Float64, Float64]:
        Y = np.array([self._seen(self.scaled(row.x)) for row in rows]).reshape(len(rows), self._size)
        w = np.array([row.weight * self._age(row) for row in rows])
        sign = self._bandit.settings.sign
        R = np.array([[sign * row.values[name] for name in self._names] for row in rows])
        R = R.reshape(len(rows), len(self._names)) - self._origins
        return float(w.sum()), (Y.T * w) @ Y, (R.T * w) @ Y

    @property
    def _size(self) -> int:
        return self._bandit.settings.dim + (self._units is not None)

    def _seen(self, x: Float64) -> Float64:
        return x if self._units is None else self._units.row(x)

    def _time(self, t: int, minutes: int) -> float:
        """Return a moment in half-lives."""
        duration = duration_of(self._bandit.policy)
        if duration is not None:
            return minutes / (duration.total_seconds() / 60)
        return float(t / self._fading["half_life"])

    def _age(self, row: PlainRow) -> float:
        return float(2.0 ** (self._time(row.t, row.minutes) - self._tick // TICKS)) if self._fading else 1.0

    def compare(self, arrays: Mapping[str, Array]) -> None:
        """Require that a state has these sums."""
        records = _floats(arrays["records"])
        size, upper = self._size, np.triu_indices(self._size)
        found_n, found_A = records[:, 0], records[:, 3 + size :]
        self._require("n", found_n, self.n, np.ones_like(self.n))
        scale = np.sqrt(np.einsum("kii->ki", self.A))  # of every column
        self._require("A", found_A, self.A[:, upper[0], upper[1]], scale[:, upper[0]] * scale[:, upper[1]])
        if "outcomes" in arrays:
            m = len(self._names)
            found_b = _floats(arrays["outcomes"])[:, m + m * (m + 1) // 2 :].reshape(self.b.shape)
        else:
            found_b = records[:, None, 3 : 3 + size]
        self._require("b", found_b, self.b, scale[:, None, :] * np.sqrt(1.0 + self.n)[:, None, None])

    def _require(self, name: str, found: Float64, expected: Float64, scale: Float64) -> None:
        ok = np.abs(found - expected) <= CLOSE * (1.0 + scale)
        message = f"{name} of the state is {found}, and rows add up to {expected}"
        require(bool(np.all(ok)), message)

    def scores(self, x: Float64, t: int, minutes: int, weights: Mapping[str, float]) -> Float64:
        """Return the estimates of every arm at a context, weighed, but for what all arms share."""
        policy: Any = self._bandit.policy
        ridge = Ridge.parse(policy.ridge)
        out: Float64 = np.zeros(len(self.n))
        common: Options = {"ridge": ridge, "units": "as given" if self._units is None else "free"}
        for j, name in enumerate(self._names):
            reference: Reference
            if self._fading:
                faded = FadingReference(len(self.n), self._bandit.settings.dim, 1.0, 1, **common)
                faded.tick = self._tick
                faded.now = max(math.floor(self._time(t, minutes) * TICKS), self._tick)
                reference = faded
            else:
                reference = Reference(len(self.n), self._bandit.settings.dim, 1.0, 1, **common)
            if self._units is not None:
                reference.free = FreeUnits.of(np.asarray(self._bandit.state.arrays()["units"], dtype=np.float64))
                reference.free.middle[0] = self._middles[j]
            reference.n, reference.A, reference.b = self.n, self.A, self.b[:, j]
            out = out + weights[name] * reference.scores(x)
        return out
