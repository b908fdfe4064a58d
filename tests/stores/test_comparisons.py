"""Comparisons of a loop: every decision once, by its coins, the same live and replayed; started again by changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.bandit import Bandit
from armlet.cast.cast import Cast
from armlet.errors import StoreError
from armlet.inference.gains import GainSums, exploration_score
from armlet.loading import from_bytes
from armlet.stores import Control, Loop, Memory, Row, Store
from armlet.stores.folds import Tally
from armlet.stores.folds.arms import CELLS, Cells
from armlet.stores.folds.comparisons import (
    FEWEST,
    FIRST,
    LEAST,
    Against,
    Coins,
    Comparison,
    Comparisons,
    Scale,
    coins_of,
)
from armlet.stores.folds.tally import CHANGES
from armlet.stores.gains import Gain, advice, gain_of
from armlet.stores.rows.decisions import fields_of
from armlet.stores.rows.replay import _compare
from armlet.testing.stores import Place
from armlet.types import Policy
from support.loops import Ticks, context, ticking
from support.stores.guards import rows_of
from support.stores.real_loops import KINDS, RealLoop
from support.stores.tally_rows import decide, seen_at, tell

COIN = armlet.FixedEpsilon(epsilon=0.25)


def reward_of(i: int) -> float:
    """Return the i-th reward: 0, 0.5 or 1."""
    return ((7 * i) % 5 % 3) / 2


def sums_of(loop: Loop) -> dict[str, GainSums]:
    return {against: one.sums for against, one in loop._runner.tally.comparisons.between.items()}


def rows_of_gain(loop: Loop, against: Against = "uniform") -> tuple[int, int]:
    one = loop._runner.tally.comparisons.between[against]
    return one.sums.rows, one.compared


def make(store: Store, **options: Any) -> Loop:
    return store.loop("home", arms=["a", "b", "c"], dim=2, **{"policy": COIN, "seed": 3, **options})


def decide_and_reward(loop: Loop, first: int, n: int, every: int = 1) -> None:
    for i in range(first, first + n):
        loop.decide(context(i, 2), event=f"e{i}")
        if i % every == 0:
            loop.reward(f"e{i}", reward_of(i))


# ---- against a plain account of the rows


def account(rows: list[Row], low: float, high: float) -> dict[str, tuple[float, float, int]]:
    """Return S, W and rows of each comparison, as their definitions say, from rows without a change."""
    decided = {row.seq: row.fields for row in rows if row.kind == "decide"}
    found: dict[str, tuple[float, float, int]] = dict.fromkeys(("uniform", "control", "shadow"), (0.0, 0.0, 0))
    shares: list[float] = []

    def add(against: str, d: float, k: float) -> None:
        S, W, n = found[against]
        found[against] = (S + d, W + k, n + 1)

    for row in rows:
        if row.kind != "learn" or "expired" in row.fields:
            continue
        fields = decided[row.fields["of"]]
        u = (row.fields["reward"] - low) / (high - low)
        above = u - (0.5 + sum(shares)) / (1 + len(shares))
        shares.append(u)
        control = fields.get("control", {"share": 0.0, "played": False, "propensity": fields["propensity"]})
        s = control["share"]
        if s:
            differs = control["live"] != control["arm"]
            add("control", (s - control["played"]) * above if differs else 0.0, s * (1 - s))
        if control["played"]:
            continue
        c, q, p = fields["exploration_rate"] / (1 - s), fields["exploration_propensity"], control["propensity"]
        pi = (p - c * q) / (1 - c)
        add("uniform", c * (1 - c) * (pi - q) / p * above, c * (1 - c))
        if "shadow" in fields:
            k = c * (1 - c) * fields["min_exploration_probability"]
            add("shadow", k * ((fields["arm"] == fields["shadow"]["arm"]) - pi) / p * above, k)
    return found


GUARDS: dict[str, tuple[dict[str, Any], ...]] = {
    "none": (),
    "control by arm": ({"control": Control(arm="b", share=0.2)},),
    "control by policy": ({"control": Control(policy=armlet.LinUCB(), share=0.2), "how": "refit"},),
    "shadow": ({"shadow": armlet.LinUCB(), "how": "refit"},),
    "control and shadow": (
        {"control": Control(arm="b", share=0.2)},
        {"shadow": armlet.LinUCB(), "how": "refit"},
    ),
}


@pytest.mark.parametrize("guards", GUARDS)
@pytest.mark.parametrize("window", [None, 40.0])
def test_sums_are_those_of_the_definitions(guards: str, window: float | None) -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        default = None if window is None else 0.0
        loop = make(store, window=window, default_reward=default, reward_range=(-1.0, 3.0))
        for change in GUARDS[guards]:
            loop.change(**change)
        for i in range(150):
            ticks.now += 1.0
            decide_and_reward(loop, i, 1, every=2)
        ticks.now += 100.0
        loop.model()
        expected = account(rows_of(loop), -1.0, 3.0)
        found = {each: [sums.S, sums.W, sums.rows] for each, sums in sums_of(loop).items()}
    assert found == {each: pytest.approx(list(sums), abs=1e-12) for each, sums in expected.items()}
    assert (found["uniform"][2] > 50, found["control"][2] > 50, found["shadow"][2] > 50) == (
        True,
        "control" in guards,
        "shadow" in guards,
    )


# ---- the same, however often it is read again


def counted(loop: Loop, cast: Cast) -> Tally:
    """Count all rows of a loop, and play none."""
    rows, tally = {row.seq: row for row in rows_of(loop)}, Tally()
    _compare(tally, cast, 0, 0)
    for row in rows.values():
        tally.see(row, rows.get(row.fields.get("of", 0)))
    return tally


def bustle(loop: Loop, ticks: Ticks) -> None:
    """Let everything happen that may happen to decisions with coins."""
    for i in range(120):
        ticks.now += 1.0
        loop.decide(context(i, 2), event=f"e{i}", eligible=["a", "b"] if i % 7 == 0 else None)
        if i % 3 == 0:
            loop.reward(f"e{i}", reward_of(i), played="a" if i % 30 == 0 else None)
        if i % 11 == 5:
            loop.reward(f"e{i - 5}", 1.0, name="again")  # late, for some
        if i == 30:
            loop.change(control=Control(arm="b", share=0.3))
        if i == 60:
            loop.retire_arm("c")
        if i == 80:
            loop.restore_arm("c")
            loop.change(shadow=armlet.LinUCB(), how="refit")
        if i == 100:
            loop.change(reward_range=(-2.0, 2.0), aggregation="sum")


@pytest.mark.parametrize("window", [None, 10.0])
def test_live_sums_are_those_of_the_rows_and_of_a_loop_opened_again(place: Place, window: float | None) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = make(store, window=window, default_reward=None if window is None else 0.0)
        start = from_bytes(store._ledger.loops()[0].start)
        bustle(loop, ticks)
        live = loop._runner.tally
        state, changes = live.comparisons.state(), live.changes
        again = counted(loop, Cast(start))
        assert (again.comparisons.state(), again.changes) == (state, changes)
        assert (again.cells.state(), again.traffic.last_rows) == (live.cells.state(), live.traffic.last_rows)
        loop._runner.let_go()
        loop.stats()
        assert loop._runner.tally is not live
        assert loop._runner.tally.comparisons.state() == state
        loop.forget_many([f"e{i}" for i in range(0, 60, 4)])
        state = loop._runner.tally.comparisons.state()
    with ticking(place(), ticks) as store:
        loop = store.loop("home")
        loop.stats()
        assert loop._runner.tally.comparisons.state() == state


def test_sums_of_few_rows_do_not_keep_what_was_forgotten() -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = make(store, control=Control(arm="a", share=0.3), reward_range=(0.0, 1.0))
        for i in range(FEWEST - 1):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", 0.1234567)
        tally = loop._runner.tally
        assert max(one.sums.rows for one in tally.comparisons.between.values()) == FEWEST - 1
        loop.forget_many([f"e{i}" for i in range(FEWEST - 1)])
        assert {one.sums.rows for one in tally.comparisons.between.values()} == {0}
        assert {one.rows for one in tally.comparisons.values} == {0}
        assert "0.123" not in tally.to_json()


def test_a_decision_counts_once_whatever_becomes_of_its_reward() -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = make(store, window=10.0, default_reward=0.0)
        for i in range(30):
            loop.decide(context(i, 2), event=f"e{i}")
        loop.reward("e0", 1.0)
        assert rows_of_gain(loop)[0] == 0  # its window is open
        ticks.now += 11.0
        loop.stats()
        assert rows_of_gain(loop)[0] == 30
        before = loop._runner.tally.comparisons.state()
        other = next(arm for arm in ("a", "b", "c") if arm != loop.decide(context(2, 2), event="e2").arm)
        assert loop.reward("e1", 1.0) == "late"
        assert loop.reward("e2", 1.0, played=other) == "late"
        assert loop._runner.tally.comparisons.state() == before
        assert loop.forget("e3")
        assert loop._runner.tally.comparisons.state()["between"]["uniform"] == before["between"]["uniform"]


def test_a_reward_for_another_arm_than_decided_leaves_the_sums() -> None:
    with Store(Memory()) as store:
        loop = make(store, policy=armlet.OccasionalOptimism(floor=0.25))
        decision = loop.decide([1.0, 0.0], event="e")
        loop.reward("e", 1.0, played=next(arm for arm in ("a", "b", "c") if arm != decision.arm))
        assert rows_of_gain(loop)[0] == 0


# ---- starting again


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"policy": armlet.FixedEpsilon(epsilon=0.5)}, ()),
        ({"reward_range": (0.0, 2.0)}, ()),
        ({"control": Control(arm="b", share=0.3)}, ("uniform", "shadow")),
        ({"control": None}, ("uniform", "shadow")),
        ({"shadow": None}, ("uniform", "control")),
        ({"arms": ["a", "b"]}, ("uniform", "control", "shadow")),
        ({"aggregation": "last"}, ("uniform", "control", "shadow")),
    ],
)
def test_a_change_starts_the_comparisons_again_that_it_concerns(change: dict[str, Any], kept: tuple[str, ...]) -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = make(store, control=Control(arm="a", share=0.3))
        loop.change(shadow=armlet.FixedEpsilon(epsilon=0.1))
        decide_and_reward(loop, 0, 60)
        loop.decide([1.0, 0.0], event="open")
        before, ticks.now = {each: sums.rows for each, sums in sums_of(loop).items()}, 2000.0
        assert min(before.values()) > 20
        loop.change(**change)
        loop.reward("open", 1.0)  # decided before
        after = {each: sums.rows for each, sums in sums_of(loop).items()}
        for against, rows in after.items():
            assert rows == 0 if against not in kept else rows >= before[against]
            since = loop._runner.tally.comparisons.between[against].since
            assert (since == 2_000_000_000) == (against not in kept)
        decide_and_reward(loop, 100, 60)
        going = {each for each, sums in sums_of(loop).items() if sums.rows > after[each]}
        ended = {name for name in ("control", "shadow") if name in change and change[name] is None}
        assert going == {"uniform", "control", "shadow"} - ended


def test_freezing_goes_on_with_the_comparisons_and_is_told_in_words() -> None:
    with Store(Memory()) as store:
        loop = make(store, control=Control(arm="a", share=0.3))
        decide_and_reward(loop, 0, 30)
        before = rows_of_gain(loop, "control")
        loop.freeze()
        loop.thaw()
        assert rows_of_gain(loop, "control") == before
        assert [change.text for change in loop._runner.tally.changes] == ["frozen", "thawed"]


def test_a_loop_that_was_written_before_compares_from_now_on() -> None:
    ledger = Memory()
    with Store(ledger) as store:
        loop = make(store)
        decide_and_reward(loop, 0, 30)
        loop.decide([1.0, 0.0], event="open")
    (book,) = ledger._books.values()
    state = json.loads(book.tally or "")
    for name in ("comparisons", "cells", "changes", "last"):
        del state[name]
    book.tally = json.dumps({**state, "format": 1})
    with Store(ledger) as store:
        loop = store.loop("home")
        loop.reward("open", 1.0)
        assert rows_of_gain(loop)[0] == 0
        assert loop._runner.tally.comparisons.between["uniform"].seq == 61
        decide_and_reward(loop, 100, 20)
        assert rows_of_gain(loop)[0] == 20
        assert loop.details().gains[0].answer == "not yet"


# ---- coins


def test_a_decision_without_a_coin_worth_looking_at_has_none() -> None:
    for policy in (armlet.LinUCB(), armlet.ThompsonSampling(), armlet.FixedEpsilon(epsilon=LEAST / 2)):
        bandit = Bandit(["a", "b"], dim=1, policy=policy, seed=1)
        assert coins_of(fields_of(bandit.decide([1.0], propensity="marginal"), "e")) is None


def test_rows_of_earlier_versions_have_no_coins() -> None:
    fields = fields_of(Bandit(["a", "b"], dim=1, policy=COIN, seed=1).decide([1.0], propensity="marginal"), "e")
    assert coins_of(fields) is not None
    del fields["design"]
    assert coins_of(fields) is None


@pytest.mark.parametrize("policy", [COIN, armlet.OccasionalOptimism(floor=0.2), armlet.Algorithm1(p=50)], ids=repr)
def test_logged_probabilities_of_all_arms_give_scores_whose_mean_is_the_gain(policy: Policy) -> None:
    """Over all arms that the coins of a step could have led to, with rewards that differ by arm."""
    rng, bandit = np.random.default_rng(6), Bandit(["a", "b", "c"], dim=2, policy=policy, seed=1)
    mu, seen = {"a": 0.2, "b": 0.9, "c": 0.4}, 0
    for _ in range(300):
        decision = bandit.decide(rng.normal(size=2), propensity="marginal", probabilities="all")
        c, p = decision.exploration_rate, decision.probabilities
        assert c is not None
        assert p is not None
        assert decision.propensity == p[["a", "b", "c"].index(str(decision.arm))]
        if c < 1.0:
            scores = [exploration_score(float(each), c, 1 / 3) for each in p]
            mean = sum(each * factor * (u - 0.3) for each, (factor, _), u in zip(p, scores, mu.values(), strict=True))
            live = sum((each - c / 3) / (1.0 - c) * u for each, u in zip(p, mu.values(), strict=True))
            assert mean == pytest.approx(c * (1.0 - c) * (live - 0.5), abs=1e-12)
            seen += 1
        bandit.learn(decision, float(rng.random() < mu[str(decision.arm)]))
    assert seen > 200


@pytest.mark.parametrize("kind", KINDS)
def test_real_policies_are_compared_within_their_intervals(kind: str) -> None:
    """The truth is inside at each of 10 looks: it is not in 1 of 20 loops at most, and the seed is fixed."""
    loop = RealLoop(KINDS[kind], 61_030)
    for t in range(1, 1001):
        loop.step(t)
        if t % 100 == 0:
            assert not loop.is_wrong
    assert loop.tally.comparisons.between[loop.kind.against].sums.rows > 800


def test_costs_that_are_saved_are_gains() -> None:
    """The same loop twice, with rewards and with their negatives as costs."""
    found = []
    for sign, objective in ((1.0, "max"), (-1.0, "min")):
        with Store(Memory()) as store:
            loop = make(store, objective=objective)
            for i in range(400):
                decision = loop.decide(context(i, 2), event=f"e{i}")
                loop.reward(f"e{i}", sign * float(decision.arm == "b"))
            found.append(loop.details())
    gains, arms = [each.gains[0] for each in found], [each.by_arm[1] for each in found]
    assert (gains[0].answer, gains[0].interval) == ("yes", gains[1].interval)
    values = [arm.value for arm in arms]
    assert values[0] is not None
    assert values[1] == pytest.approx((-values[0].high, -values[0].low))


# ---- what is kept


def test_ends_are_kept_at_rows_that_grow_geometrically() -> None:
    comparison = Comparison()
    for row in range(1, 20_001):
        comparison.add(0.0, 0.09, 0.1, False, row)
    at = [decisions for decisions, _, _ in comparison.history]
    assert at[0] == FIRST
    assert all(1.0 < later / earlier <= 1.16 for earlier, later in pairwise(at) if earlier > 20)
    # each point is at least 14 % after the one before, from 20 rows on, so 10^7 rows have at most so many
    assert len(at) + np.log(1e7 / at[-1]) / np.log(1.14) < 115


def test_a_comparison_that_is_damaged_is_refused() -> None:
    tally = Tally()
    tally.comparisons.begin(Scale(0.0, 1.0, False), 0, 0)
    whole = json.loads(tally.to_json())
    assert Tally.from_json(json.dumps(whole)).to_json() == tally.to_json()
    damages: tuple[dict[str, Any], ...] = (
        {"between": {}},
        {"values": [[1, 2.0, 3.0]]},
        {"scale": ["a", 1, False]},
        {"sums": [0]},
    )
    for damage in damages:
        text = json.dumps({**whole, "comparisons": {**whole["comparisons"], **damage}})
        with pytest.raises(StoreError, match="the tally of the loop is damaged"):
            Tally.from_json(text)


def test_cells_are_few_and_hold_every_decision() -> None:
    cells, rng = Cells(), np.random.default_rng(5)
    arms = rng.integers(0, 3, 50_000).tolist()
    for at, arm in enumerate(arms):
        cells.on_decide(seen_at(arm if at > 1000 else 0, at, explored=at % 10 == 0, exploration_rate=0.1))
        assert len(cells.cells) <= CELLS
    assert sum(cell.n for cell in cells.cells) == 50_000
    assert sum(cell.explored for cell in cells.cells) == 5000
    assert sum(cell.expected for cell in cells.cells) == pytest.approx(5000.0)
    plays = np.sum([[*cell.plays, 0, 0][:3] for cell in cells.cells], axis=0)
    assert plays.tolist() == np.bincount([arm if at > 1000 else 0 for at, arm in enumerate(arms)]).tolist()
    assert np.sum([list(cells.shares(place)) for place in range(3)], axis=0) == pytest.approx(1.0)
    assert len({cell.n for cell in cells.cells[:-1]}) == 1
    assert Cells.restore(json.loads(json.dumps(cells.state()))).state() == cells.state()


def test_the_last_changes_are_told_in_words() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        for i in range(CHANGES):
            loop.add_arm(f"arm {i}")
        loop.retire_arm("arm 1")
        loop.change(window=60.0, default_reward=0.0, policy=armlet.FixedEpsilon(epsilon=0.5))
        loop.change(control=Control(arm="a", share=0.05))
        loop.change(control=None)
        changes = [change.text for change in loop.details().changes]
    assert len(changes) == CHANGES
    assert changes[:2] == ["control: none", 'control: always "a", in 5 % of decisions']
    assert changes[2].startswith("window: 60.0; default_reward: 0.0; policy: FixedEpsilon(epsilon=0.5")
    assert changes[3:5] == ["arm 'arm 1' retired", "arm 'arm 29' added"]


# ---- what is said


def said(rows: int, d: Callable[[int], float], share: float = 0.1, *, has_window: bool = True) -> Gain:
    """Return what a comparison says after so many rows, with weights as of a coin of 10 %."""
    tally = Tally()
    tally.comparisons.begin(Scale(0.0, 2.0, False), 0, 0)
    tally.traffic.decisions = tally.traffic.known = rows
    for row in range(rows):
        tally.comparisons.between["control"].add(d(row), 0.09, 0.1, row % 10 == 0, row + 1)
    return gain_of(tally, "control", 'always "a"', share, has_window=has_window)


def test_answers_are_those_of_the_interval() -> None:
    yes, no = said(3000, lambda _: 0.02), said(3000, lambda _: -0.02)
    unsure = said(3000, lambda row: 0.3 if row % 2 else -0.29)
    assert [each.answer for each in (yes, no, unsure)] == ["yes", "no", "not yet"]
    assert yes.interval is not None
    assert no.interval is not None
    assert yes.interval == (-no.interval.high, -no.interval.low)
    assert yes.seen == pytest.approx(2.0 * 0.02 / 0.09)
    assert (yes.rows, yes.compared, yes.longer, yes.note) == (3000, 300, None, "")
    assert unsure.longer is not None
    assert unsure.longer > 0
    assert yes.history[-1][1:] == pytest.approx(said(yes.history[-1][0], lambda _: 0.02).interval, rel=1e-4)
    assert str(yes).startswith('is the live policy better than always "a"? yes: 0.')


def test_without_a_coin_there_is_nothing_to_say_but_which_share_would_answer() -> None:
    none, gone = said(0, float, share=0.0), said(100, lambda row: 0.3 if row % 2 else -0.29, share=0.0)
    assert (none.answer, none.interval, none.longer, none.history) == ("nothing to say", None, None, ())
    assert gone.answer == "nothing to say"
    assert "there will be an answer" in none.note
    assert said(3000, lambda _: 0.02, share=0.0).note.startswith("It is about earlier decisions")
    assert said(3000, lambda _: 0.02, has_window=False).note.startswith("Only decisions that got a reward")
    assert said(0, float).answer == "not yet"


def test_advice_counts_decisions_by_the_mean_and_variance_of_rewards() -> None:
    """Clicks of 10 %: a gain of 0.02 with a share of 10 % takes 12.5 x 0.09 / (0.1 x 0.02^2) = 28,125 decisions."""
    tally, bandit = Tally(), Bandit(["a"], dim=1, policy=armlet.LinUCB(), seed=1)
    for i in range(1001):
        row = decide(tally, bandit.decide([1.0]), 1_000_000 * i)
        tell(tally, row, "learn", 0, reward=float(i % 10 == 0))
    words = advice(tally)
    assert "a gain of 0.0202, 20 % of the mean, shows after about 28,000 decisions, within two days" in words


@pytest.mark.parametrize(
    ("policy", "answer", "words"),
    [
        (armlet.LinUCB(), "nothing to say", "explores in no decision now"),
        (armlet.Uniform(), "nothing to say", "Every decision explores now"),
        (armlet.FixedEpsilon(epsilon=0.0005), "nothing to say", "explores in 0.05 % of decisions now"),
        (armlet.FixedEpsilon(epsilon=0.1), "not yet", "Only decisions that got a reward are compared"),
    ],
)
def test_a_loop_says_what_its_policy_lets_it_say(policy: Policy, answer: str, words: str) -> None:
    with Store(Memory()) as store:
        loop = make(store, policy=policy)
        decide_and_reward(loop, 0, 20)
        (gain,) = loop.gains()
    assert (gain.answer, gain.label) == (answer, "random play")
    assert words in gain.note


def test_exploration_that_favours_arms_is_named_as_such() -> None:
    comparisons = Comparisons()
    for _ in range(2):
        comparisons.add_arm()
    comparisons.begin(Scale(0.0, 1.0, False), 0, 0)
    even = Coins("a", 0.95, 0.1, 0.5, 0.5, True)
    comparisons.add(0, 1.0, even, 1, 1)
    assert comparisons.is_even
    comparisons.add(0, 1.0, even._replace(given=0.9, smallest=0.1), 2, 2)
    assert not comparisons.is_even
    comparisons.restart(["uniform"], 2, 0)
    assert comparisons.is_even


def test_gains_are_plain_json() -> None:
    gain = said(100, lambda _: 0.02)
    fields = json.loads(json.dumps(gain.to_dict()))
    assert fields["interval"] == list(gain.interval or ())
    assert fields["history"] == [list(each) for each in gain.history]
