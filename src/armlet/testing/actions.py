"""What a bandit of actions promises, as checks that run over its policies, and over a subclass of `ActionBandit`.

`check_policy` runs them over a policy of actions. All checks have fixed seeds; items come and go from table to table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.errors import ArmletError
from armlet.kernel import PairModel
from armlet.loading import from_bytes
from armlet.policies.shared import PairPolicy, SharedThompson
from armlet.testing.promises import require, same
from armlet.testing.units import CHANGES, CLOSE, UnitChange
from armlet.types import Float64, Mode

STEPS: Final = 90
UNIT_STEPS: Final = 60
DIM, ACTION_DIM, ALIVE = 2, 3, 7
SEED: Final = 5
COPIES: Final = 300
PLAIN: Final = UnitChange(name="as it is")

Kind: TypeAlias = type[ActionBandit]


def new_bandit(policy: PairPolicy, kind: Kind, seed: int = SEED) -> ActionBandit:
    """Make a bandit for the catalogue of the checks."""
    return kind(DIM, ACTION_DIM, policy=policy, seed=seed)


def table_of(step: int, change: UnitChange = PLAIN) -> ActionTable:
    """Return the items that are alive at a step: one in four steps the oldest leaves and another comes."""
    first = step // 4
    labels = [f"item-{number:03d}" for number in range(first, first + ALIVE)]
    rows = [np.random.default_rng([11, number]).standard_normal(ACTION_DIM) for number in range(first, first + ALIVE)]
    return ActionTable(labels, change.contexts(np.array(rows)))


def contexts(steps: int = STEPS) -> Float64:
    """Return a context for each step."""
    return np.random.default_rng(13).standard_normal((steps, DIM))


def reward_of(x: Float64, z: Float64, step: int) -> float:
    """Return the reward of an action: mains, products, and noise of the step."""
    noise = np.random.default_rng([17, step]).standard_normal()
    return float(z[0] + x[0] * z[1] - x[1] + 0.5 * noise)


def play(bandit: ActionBandit, steps: int = STEPS, first: int = 0) -> Iterator[ActionDecision]:
    """Decide and learn, step by step."""
    for step, x in enumerate(contexts(first + steps)[first:], start=first):
        decision = bandit.decide(x, table_of(step), propensity="marginal")
        bandit.learn(decision, reward_of(decision.x, decision.z, step))
        yield decision


def played(policy: PairPolicy, kind: Kind, steps: int = STEPS) -> tuple[ActionBandit, list[ActionDecision]]:
    """Return a bandit that has learned some steps, and its decisions."""
    bandit = new_bandit(policy, kind)
    return bandit, list(play(bandit, steps))


def close_sums(one: ActionBandit, other: ActionBandit) -> bool:
    """Return whether two bandits have the same sums but for rounding; the order in which items came does not matter."""
    return all(
        found.shape == expected.shape and np.allclose(found, expected, rtol=1e-8, atol=1e-8)
        for found, expected in zip(_sums(one), _sums(other), strict=True)
    )


def _sums(bandit: ActionBandit) -> list[Float64]:
    arrays: dict[str, Any] = bandit.state.arrays()
    order = np.argsort(arrays["item_keys"])
    return [arrays["moments"], arrays["sums"], arrays["item_keys"][order], arrays["items"][order]]


# ---- what is learned


def check_decide_is_a_query(policy: PairPolicy, kind: Kind) -> None:
    """Deciding and predicting leave the model as it was."""
    bandit, _ = played(policy, kind, 20)
    before = bandit.state.copy()
    bandit.expire(bandit.decide(contexts()[0], table_of(0)))
    bandit.predict_proba(contexts()[0], table_of(0))
    require(same(before, bandit.state), "decide changed the model")


def check_seeds_repeat(policy: PairPolicy, kind: Kind) -> None:
    """The same seed on the same tables plays the same actions."""
    runs = [[decision.to_dict() for decision in played(policy, kind)[1]] for _ in range(2)]
    require(runs[0] == runs[1], "two runs with one seed differ")


def check_replay(policy: PairPolicy, kind: Kind) -> None:
    """Deciding again, and learning from records without their tables, rebuilds the bandit bit for bit."""
    bandit, decisions = played(policy, kind)
    twin = new_bandit(policy, kind)
    for step, made in enumerate(decisions):
        record = json.loads(json.dumps(made.to_dict()))
        again = twin.decide(record["x"], table_of(step), t=record["t"], propensity="marginal")
        fields = {name: value for name, value in record.items() if name not in ("reward", "weight")}
        require(again.to_dict() == fields, f"step {again.t} is decided otherwise in a replay")
        twin.learn(ActionDecision.from_dict(fields), record["reward"])
    require(same(bandit.state, twin.state), "replaying the records gave another model")


def check_fold(policy: PairPolicy, kind: Kind) -> None:
    """A table of rows has the sums of the decisions one by one, bit for bit, and what follows from them."""
    bandit, decisions = played(policy, kind)
    twin = new_bandit(policy, kind)
    twin.partial_fit(_columns(decisions))
    require(same(_weighed(bandit), twin.state), "partial_fit of the rows gave another model than learn")


def _weighed(bandit: ActionBandit) -> PairModel:
    """Return the model with everything as its sums have it, whatever the order of rows."""
    state = bandit.state.copy()
    state.solve()
    return state


def _columns(decisions: list[ActionDecision]) -> dict[str, list[Any]]:
    return {name: [getattr(decision, name) for decision in decisions] for name in ("x", "z", "arm", "reward")}


def check_merge(policy: PairPolicy, kind: Kind) -> None:
    """Two models add up to that of all rows; and what was learned since a copy adds up to the whole again."""
    one, two, whole = new_bandit(policy, kind, 5), new_bandit(policy, kind, 6), new_bandit(policy, kind, 7)
    halves = [list(play(one, STEPS // 2)), list(play(two, STEPS // 2, STEPS // 2))]
    whole.partial_fit(_columns(halves[0] + halves[1]))
    base = one.copy()
    one.merge(two)
    require(close_sums(one, whole), "merged models differ from that of all rows")
    require(one.t == STEPS, f"the clock stands at {one.t} after {STEPS} decisions in all")
    base.merge(one.difference(base))
    require(close_sums(base, whole), "what was learned since a copy, and the copy, differ from the whole")


def check_forget(policy: PairPolicy, kind: Kind) -> None:
    """Forgetting undoes what was learned; correcting is learning the other reward."""
    bandit, _ = played(policy, kind)
    before, other = bandit.copy(), bandit.copy()
    table = table_of(STEPS)
    decision, twin = (each.decide(contexts()[0], table) for each in (bandit, other))
    bandit.learn(decision, 3.0)
    bandit.forget(decision, 3.0)
    require(close_sums(bandit, before), "forget did not undo what was learned")
    bandit.learn(decision, 3.0)
    bandit.correct(decision, 3.0, -1.0)
    other.learn(twin, -1.0)
    require(close_sums(bandit, other), "correct gave another model than learning the other reward")


def check_late_rewards(policy: PairPolicy, kind: Kind) -> None:
    """Rewards that come late and out of order, after their tables are gone, are learned as they come."""
    bandit, twin = new_bandit(policy, kind), new_bandit(policy, kind)
    X, came = contexts(), []
    for start in range(0, 60, 20):
        block = [bandit.decide(X[step], table_of(step)) for step in range(start, start + 20)]
        for decision in reversed(block):
            bandit.learn(decision, reward_of(decision.x, decision.z, decision.t))
            came.append(decision)
    twin.partial_fit(_columns(came))
    require(
        same(_weighed(bandit), twin.state), "late rewards gave another model than folding them in the order they came"
    )


# ---- what is played


def check_propensities(policy: PairPolicy, kind: Kind) -> None:
    """Probabilities are exact: they sum to 1, spare the ineligible, and are what decisions report."""
    bandit, rng = new_bandit(policy, kind), np.random.default_rng(23)
    for step, x in enumerate(contexts()):
        table = table_of(step)
        some = sorted(rng.choice(ALIVE, size=rng.integers(1, ALIVE + 1), replace=False).tolist())
        eligible = [table.labels[place] for place in some]
        chances = bandit.predict_proba(x, table, eligible=eligible)
        decision = bandit.decide(x, table, eligible=eligible, propensity="marginal")
        bandit.learn(decision, reward_of(decision.x, decision.z, step))
        support = decision.support or dict.fromkeys(eligible, 1.0 / len(eligible))
        shares = np.array([support.get(label, 0.0) for label in table.labels])
        require(abs(chances.sum() - 1) < 1e-12, f"probabilities sum to {chances.sum()} at step {decision.t}")
        require(
            not np.delete(chances, some).any(), f"an action that is not eligible can be played at step {decision.t}"
        )
        require(decision.arm in eligible, f"an action that is not eligible was played at step {decision.t}")
        require(decision.marginal, f"the propensity of step {decision.t} is not marginal, though it was asked for")
        require(np.array_equal(shares, chances), f"the support of step {decision.t} is not what predict_proba says")
        at = table.place(decision.arm)
        require(decision.propensity == chances[at], f"the propensity of step {decision.t} is another's")
        require(np.array_equal(decision.z, table.features[at]), f"step {decision.t} has the features of another action")


def check_frequencies(policy: PairPolicy, kind: Kind) -> None:
    """Over seeds, actions are played as often as their probabilities say, within four standard deviations."""
    bandit, _ = played(policy, kind, 25)
    x, table = contexts()[30], table_of(30)
    chances, counts = np.zeros((COPIES, ALIVE)), np.zeros(ALIVE)
    for seed in range(COPIES):
        copy = bandit.copy(seed=1000 + seed)
        chances[seed] = copy.predict_proba(x, table)
        counts[table.place(copy.decide(x, table).arm)] += 1
    worst = np.abs(counts - chances.sum(axis=0)) - 4 * np.sqrt((chances * (1 - chances)).sum(axis=0))
    require((worst <= 1e-6).all(), f"actions were played {counts} times, expected {chances.sum(axis=0)}")


def check_order(policy: PairPolicy, kind: Kind) -> None:
    """The order in which a table is given changes nothing."""
    bandit, twin = new_bandit(policy, kind), new_bandit(policy, kind)
    for step, x in enumerate(contexts(30)):
        table = table_of(step)
        turned = {label: table[label] for label in reversed(table.labels)}
        one, other = bandit.decide(x, table), twin.decide(x, turned)
        require(one.to_dict() == other.to_dict(), f"step {one.t} is decided otherwise with the rows turned around")
        for each, decision in ((bandit, one), (twin, other)):
            each.learn(decision, reward_of(decision.x, decision.z, step))


def check_padding(policy: PairPolicy, kind: Kind) -> None:
    """Rows that are never eligible change nothing."""
    bandit, twin = new_bandit(policy, kind), new_bandit(policy, kind)
    for step, x in enumerate(contexts(30)):
        table = table_of(step)
        padded = table.changed({f"pad-{row}": np.full(ACTION_DIM, 100.0 * (1 + row)) for row in range(3)})
        one = bandit.decide(x, table, propensity="marginal")
        other = twin.decide(x, padded, eligible=table.labels, propensity="marginal")
        require(
            (one.arm, one.propensity, one.support) == (other.arm, other.propensity, other.support),
            f"step {one.t} plays {one.arm} with {one.propensity}, among rows that cannot be played {other.arm} with "
            f"{other.propensity}",
        )
        for each, decision in ((bandit, one), (twin, other)):
            each.learn(decision, reward_of(decision.x, decision.z, step))


def check_labels(policy: PairPolicy, kind: Kind) -> None:
    """Other labels change no estimate, and no probability that does not come of draws by label."""
    _, decisions = played(policy, kind)
    bandit, twin, x = new_bandit(policy, kind), new_bandit(policy, kind), contexts()[0]
    columns = _columns(decisions)
    bandit.partial_fit(columns)
    twin.partial_fit({**columns, "arm": [f"other-{label}" for label in columns["arm"]]})
    for each in (bandit, twin):
        each.replace(t=decisions[-1].t)
    table = table_of(STEPS)
    named = ActionTable([f"other-{label}" for label in table.labels], table.features)
    mode: Mode = "greedy" if isinstance(policy, SharedThompson) else "exploring"
    one, other = bandit.predict_expectations(x, table), twin.predict_expectations(x, named)
    require(np.array_equal(one, other), f"with other labels the estimates are {other}, not {one}")
    one, other = (each.predict_proba(x, t, mode=mode) for each, t in ((bandit, table), (twin, named)))
    require(np.array_equal(one, other), f"with other labels the probabilities are {other}, not {one}")


def check_units(policy: PairPolicy, kind: Kind) -> None:
    """Affine changes of contexts, actions and rewards change no decision.

    Draws of an action's intercept are a function of its key, a hash of its features: in other units they are others by
    the same law, so actions keep their units where a policy has such draws.
    """
    expected = _played_in(PLAIN, policy, kind)
    for change in CHANGES:
        close = 0.0 if change.exact else CLOSE
        for one, other in zip(expected, _played_in(change, policy, kind), strict=True):
            require(
                one.arm == other.arm and abs(one.propensity - other.propensity) <= close,
                f"{change.name}: step {one.t} played {one.arm} with probability {one.propensity}, in other units "
                f"{other.arm} with {other.propensity}",
            )


def _played_in(change: UnitChange, policy: PairPolicy, kind: Kind) -> list[ActionDecision]:
    bandit, made = new_bandit(policy, kind), []
    has_draws_by_key = isinstance(policy, SharedThompson) and policy.intercepts
    for step, x in enumerate(contexts(UNIT_STEPS)):
        table = table_of(step)
        shown = table if has_draws_by_key else table_of(step, change)
        decision = bandit.decide(change.contexts(x), shown, propensity="marginal")
        reward = reward_of(x, table[decision.arm], step)
        bandit.learn(decision, change.scale * reward + change.level)
        made.append(decision)
    return made


# ---- files and refusals


def check_file(policy: PairPolicy, kind: Kind) -> None:
    """A bandit from a file goes on as the saved one does."""
    bandit, _ = played(policy, kind, 30)
    twin = from_bytes(bandit.to_bytes(), kind=ActionBandit)
    require(twin.digest() == bandit.digest(), "a bandit from a file has another digest")
    runs = [[decision.to_dict() for decision in play(each, 30, 30)] for each in (bandit, twin)]
    require(runs[0] == runs[1], "after save and load the decisions differ")


def check_refusals(policy: PairPolicy, kind: Kind) -> None:
    """What is refused leaves everything as it was."""
    bandit, decisions = played(policy, kind, 10)
    before, x, table, old = bandit.to_bytes(), contexts()[0], table_of(0), decisions[0]
    calls: dict[str, Callable[[], object]] = {
        "a context that is too long": lambda: bandit.decide([*x, 1.0], table),
        "actions of other features": lambda: bandit.decide(x, {"a": [1.0]}),
        "an action that is not a number": lambda: bandit.decide(x, {"a": [1.0, 2.0, float("nan")]}),
        "no actions": lambda: bandit.decide(x, {}),
        "a table that nobody prepared": lambda: bandit.decide(x, "nowhere"),
        "an eligible action that is not there": lambda: bandit.decide(x, table, eligible=["nobody"]),
        "a step that is over": lambda: bandit.decide(x, table, t=3),
        "a reward that is not a number": lambda: bandit.learn(bandit.copy().decide(x, table), float("nan")),
        "a reward that was learned": lambda: bandit.learn(old, 1.0),
        "another reward than was learned": lambda: bandit.forget(old, 99.0),
        "a decision of another bandit": lambda: bandit.learn(new_bandit(policy, kind, 99).decide(x, table), 1.0),
        "a bandit of other features": lambda: bandit.merge(kind(DIM, ACTION_DIM + 1, seed=1)),
        "rows without actions": lambda: bandit.partial_fit({"x": [x], "arm": ["a"], "reward": [1.0]}),
    }
    for what, call in calls.items():
        try:
            call()
        except ArmletError:
            require(bandit.to_bytes() == before, f"{what} was refused but changed the bandit")
        else:
            raise AssertionError(f"{what} was not refused")


ActionCheck: TypeAlias = Callable[[PairPolicy, Kind], None]

ACTION_CHECKS: tuple[ActionCheck, ...] = (
    check_decide_is_a_query,
    check_seeds_repeat,
    check_replay,
    check_fold,
    check_merge,
    check_forget,
    check_late_rewards,
    check_propensities,
    check_frequencies,
    check_order,
    check_padding,
    check_labels,
    check_units,
    check_file,
    check_refusals,
)


def check_action_policy(policy: PairPolicy, *, kind: Kind = ActionBandit) -> None:
    """Run every check over a policy of actions; the first promise that is broken raises AssertionError.

    Parameters
    ----------
    policy
        The policy, with interactions that suit contexts of 2 and actions of 3 features.
    kind
        The class of bandits that plays it, such as a subclass of your own.

    Examples
    --------
    >>> import armlet
    >>> check_action_policy(armlet.SharedOptimism())
    """
    for check in ACTION_CHECKS:
        check(policy, kind)
