"""A loop is proved by what is kept of it, whatever happened to it; what does not fit is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import armlet
from armlet.errors import StoreError, UnknownNameError
from armlet.stores import Ledger, Loop, Memory, Store
from armlet.stores.ledger import Pending, Want
from armlet.stores.overview import details, overview
from armlet.stores.sqlite import SQLite
from armlet.stores.transaction import transaction
from armlet.stores.verify import OFTEN, verify
from support.loops import Ticks


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Memory() if request.param == "memory" else SQLite(tmp_path / "shop.db")


def play(loop: Loop, ticks: Ticks, start: int, n: int) -> None:
    """Decide and reward: in time, late, twice, too early, for another arm, and never."""
    for i in range(start, start + n):
        if i % 11 == 5:
            loop.reward(f"e{i}", 0.25)
        loop.decide(dict.fromkeys(loop.model().settings.features or (), i % 5 / 4), event=f"e{i}")
        ticks.now += 10
        if i % 3:
            loop.reward(f"e{i - i % 2}", (i % 4) / 4, played="a" if i % 7 == 1 else None)
            loop.reward(f"e{max(i - 9, start)}", (i % 4) / 4, rank=i % 2)


CHANGES: dict[str, Callable[[Store, Loop], object]] = {
    "arms": lambda _, loop: loop.change(arms=["a", "c", "d"]),
    "window": lambda _, loop: loop.change(window=45.0, default_reward=0.0),
    "features": lambda _, loop: loop.change(features=["one", "age", "new"], fill={"new": 1.0}),
    "forget": lambda _, loop: loop.forget_many([f"e{i}" for i in range(0, 40, 7)]),
    "no window": lambda _, loop: loop.change(window=None, default_reward=None, aggregation="last", early_window=60.0),
    "prune": lambda store, _: store.prune(1e9 + 300),
    "fewer features": lambda _, loop: loop.change(features=["age", "new"]),
    "refit": lambda _, loop: loop.change(policy=armlet.LinUCB(alpha=0.5), how="refit"),
    "sum": lambda _, loop: loop.change(aggregation="sum", reward_range=(-2, 9)),
}


def test_a_loop_is_proved_after_everything_that_can_happen_to_it(ledger: Ledger) -> None:
    ticks = Ticks(1e9)
    with Store(ledger, wall=ticks, elapsed=ticks) as store:
        loop = store.loop("home", arms=["a", "b"], features=["one", "age"], policy=armlet.ThompsonSampling(), seed=3)
        for at, change in enumerate(CHANGES.values()):
            play(loop, ticks, 30 * at, 30)
            change(store, loop)
            found = verify(ledger, "home")
            assert found.digest == loop.model().digest()
        play(loop, ticks, 1000, 30)
        before = loop.model().digest()
        found = verify(ledger, "home")
        assert (found.digest, found.name) == (before, "home")
        assert 0 < found.replayed <= found.rows
        assert found.outcomes > 100


def test_the_rows_after_a_snapshot_are_proved_too(ledger: Ledger) -> None:
    with Store(ledger) as store:
        loop = store.loop("home", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=30), seed=3)
        loop.decide_many([[1.0]] * 1500)
        loop.decide([0.5], event="last")
        found = verify(ledger, "home")
        assert (found.snapshot, found.rows, found.digest) == (1500, 1501, loop.model().digest())


def test_progress_is_told_in_rows_and_outcomes(ledger: Ledger) -> None:
    progress: list[tuple[int, int]] = []
    with Store(ledger) as store:
        store.loop("home", arms=["a", "b"], dim=1, seed=3).decide_many([[1.0]] * 4000)
        verify(ledger, "home", lambda done, total: progress.append((done, total)))
    assert progress == [(0, 8000), (OFTEN, 8000), (8000, 8000)]


def test_a_name_that_is_not_there_is_refused(ledger: Ledger) -> None:
    with Store(ledger) as store:
        with pytest.raises(UnknownNameError, match="there is no loop 'home': the store is empty"):
            verify(ledger, "home")
        store.loop("home", arms=["a", "b"], dim=1, seed=3)
        with pytest.raises(UnknownNameError, match="there is no loop 'hoem'; did you mean 'home'"):
            verify(ledger, "hoem")


def wrong(ledger: Ledger, change: Callable[[Pending], Pending]) -> None:
    """Write another outcome than the rows say."""
    with transaction(ledger) as tx:
        tx.enter([Want(1, events=["e"])])
        draft = tx.draft(1)
        assert draft is not None
        draft.change(change(draft.entered.decided[0].pending))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda outcome: outcome._replace(value=0.75), "'learned' with the value 0.75, but row 2 is a 'learn'"),
        (lambda outcome: outcome._replace(phase="open", value=None), "'open' with the value None, but row 2"),
        (lambda outcome: outcome._replace(phase="expired"), "'expired' with the value 0.5, but row 2 is a 'learn'"),
    ],
)
def test_an_outcome_that_no_row_says_is_found(
    ledger: Ledger, change: Callable[[Pending], Pending], message: str
) -> None:
    with Store(ledger) as store:
        loop = store.loop("home", arms=["a", "b"], dim=1, seed=3)
        loop.decide([1.0], event="e")
        loop.reward("e", 0.5)
        wrong(ledger, change)
        with pytest.raises(StoreError, match=f"the outcome of step 1 of the loop is {message}"):
            verify(ledger, "home")


def test_a_view_stays_as_it_was(ledger: Ledger) -> None:
    with Store(ledger) as store:
        loop = store.loop("home", arms=["a", "b"], dim=1, policy=armlet.LinUCB(), seed=3)
        loop.decide_many([[1.0]] * 10, events=[f"e{i}" for i in range(10)])
        with ledger.view() as view:
            record = view.loops()[0]
            before = [overview(view, record), list(view.rows(1, 0)), list(view.outcomes(1)), view.usage(1)]
            loop.reward_many([(f"e{i}", 0.5) for i in range(10)])
            loop.change(arms=["b", "c"])
            assert [overview(view, record), list(view.rows(1, 0)), list(view.outcomes(1)), view.usage(1)] == before
            found = details(view, record, 0)
        assert (found.open, found.decisions, found.arms, found.retired) == (10, 10, ("a", "b"), ())


def test_what_was_counted_is_there_for_all_to_see_after_a_forget_and_a_prune(ledger: Ledger) -> None:
    """Rows that a start model has learned are not counted again, so their counts are written with it."""
    ticks = Ticks(1e9)
    with Store(ledger, wall=ticks, elapsed=ticks) as store:
        loop = store.loop("home", arms=["a"], dim=1, policy=armlet.LinUCB(), seed=3)
        loop.decide_many([[1.0]] * 10, events=[f"e{i}" for i in range(10)])
        loop.reward_many([(f"e{i}", 0.5) for i in range(4)])
        loop.forget("e0")
        ticks.now += 10
        assert store.prune(ticks.now) == 9
        loop.decide([1.0])
        with ledger.view() as view:
            found = details(view, view.loops()[0], 0)
    assert (found.decisions, found.rewards, found.open) == (11, 4, 1)
    assert [(each.arm, each.learned, each.mean) for each in found.counts] == [("a", 3, 0.5)]
