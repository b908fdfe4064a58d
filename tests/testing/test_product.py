"""Features meet in random lives; and the product test finds faults that were put there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.bandit import Bandit
from armlet.cast.cast import Cast
from armlet.kernel import Engine
from armlet.policies import carrying
from armlet.record.kinds import KINDS
from armlet.stores import Store
from armlet.stores.refit import _Relearning
from armlet.stores.rows.replay import Replay
from armlet.stores.spec import LoopChange
from armlet.testing import check_product
from armlet.testing.product import case_of

pytestmark = pytest.mark.spread
BATCH = 25  # cases of a test, about two seconds


@pytest.mark.parametrize("batch", range(10))
def test_lives_of_all_features_keep_their_promises(batch: int) -> None:
    played = check_product(range(BATCH * batch, BATCH * (batch + 1)))
    assert played.lives == BATCH
    assert played.judged["sums"] > 50


@pytest.mark.long
@pytest.mark.parametrize("batch", range(int(os.environ.get("ARMLET_PRODUCT", "200"))))
def test_many_lives_of_all_features_keep_their_promises(batch: int) -> None:
    check_product(range(10_000 + BATCH * batch, 10_000 + BATCH * (batch + 1)))


# ---- faults that were put there

Patch = pytest.MonkeyPatch


def squares_in_another_order(patch: Patch) -> None:
    carry = carrying.CARRIERS["squares"]
    patch.setitem(carrying.CARRIERS, "squares", lambda plan, arrays: np.asfortranarray(carry(plan, arrays)))


def a_repeated_change_is_written_as_another(patch: Patch) -> None:
    apply = LoopChange.apply

    def wrong(self: LoopChange, cast: Cast) -> Any:
        done, moved = apply(self, cast)
        is_idle = self.reward_range is not None and not done and cast.live.settings.outcomes is not None
        return ([{"reward_range": [-1.0, 1.0]}] if is_idle else done), moved

    patch.setattr(LoopChange, "apply", wrong)


def a_restart_loses_early_rewards(patch: Patch) -> None:
    close = Store.close

    def lossy(self: Store) -> None:
        records = self._ledger.loops()

        def lose(tx: Any, _: Any) -> None:
            for each in records:
                tx.direct(each.id).drop_early(each.id, 2**62, 10_000)

        if not self._is_closed:
            self._writer.do(lose)
        close(self)

    patch.setattr(Store, "close", lossy)


def a_replay_passes_over_corrections(patch: Patch) -> None:
    patch.setitem(KINDS, "correct", replace(KINDS["correct"], play=lambda *_: None))


def a_shadow_learns_twice(patch: Patch) -> None:
    def twice(self: Cast, decision: Any, reward: Any, *, weight: float = 1.0) -> None:
        weights = {id(each): 2.0 * weight for each in self.shadows.values()}
        self._teach(decision, lambda bandit, each: bandit.learn(each, reward, weight=weights.get(id(bandit), weight)))

    patch.setattr(Cast, "learn", twice)


def a_frozen_policy_learns(patch: Patch) -> None:
    learn = Cast.learn

    def both(self: Cast, decision: Any, reward: Any, *, weight: float = 1.0) -> None:
        if self.learner is not None:
            Engine.learn(self.live, type(decision).from_dict(decision.to_dict()), reward)
        learn(self, decision, reward, weight=weight)

    patch.setattr(Cast, "learn", both)


def a_merge_forgets_streams(patch: Patch) -> None:
    def merge(self: Any, state: Any, arms: Any, retired: Any, t: int, seeds: Any, *more: Any) -> None:
        del seeds
        Engine._merge(self, state, arms, retired, t, [], *more)

    patch.setattr(Bandit, "_merge", merge, raising=False)


def a_message_is_pythons(patch: Patch) -> None:
    retire = Bandit.retire_arm

    def raw(self: Bandit, arm: Any) -> None:
        if arm not in self.arms:
            list[int]()[arm]
        retire(self, arm)

    patch.setattr(Bandit, "retire_arm", raw)


def ranges_are_applied_to_old_decisions(patch: Patch) -> None:
    patch.setattr(Replay, "_has_columns", property(lambda self: self._can_have_columns))


def a_refit_plays_bills(patch: Patch) -> None:
    patch.setattr(_Relearning, "_events", Replay._events)


def a_frozen_policy_spends_nothing(patch: Patch) -> None:
    patch.setattr(Cast, "_follow_spending", lambda _: None)


def actions_lose_a_row(patch: Patch) -> None:
    forget = ActionBandit.forget

    def twice(self: ActionBandit, decision: Any, reward: Any, **how: Any) -> None:
        twin = ActionDecision.from_dict(decision.to_dict())
        forget(self, decision, reward, **how)
        if self.state.n > 1.0:
            forget(self, twin, reward, **how)

    patch.setattr(ActionBandit, "forget", twice)


MUTANTS: Mapping[Callable[[Patch], None], str] = {
    squares_in_another_order: "bandit",
    a_repeated_change_is_written_as_another: "loop",
    a_restart_loses_early_rewards: "loop",
    a_replay_passes_over_corrections: "bandit",
    a_shadow_learns_twice: "loop",
    a_frozen_policy_learns: "loop",
    a_merge_forgets_streams: "bandit",
    a_message_is_pythons: "bandit",
    ranges_are_applied_to_old_decisions: "loop",
    a_refit_plays_bills: "loop",
    a_frozen_policy_spends_nothing: "loop",
    actions_lose_a_row: "actions",
}
MOST = 250  # cases in which a fault must show


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_product_finds_a_fault(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    numbers = [number for number in range(MOST) if case_of(number).kind == MUTANTS[mutant]]
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=r"^case \d+: "):
        check_product(numbers)
