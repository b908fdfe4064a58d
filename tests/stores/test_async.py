"""Event loops: calls without a thread that waits, from several loops and threads at once; full queues, deadlines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

import armlet
from armlet.errors import EventError, QueueFullError, StoreError, UncertainError
from armlet.stores import Loop, Memory, Store
from armlet.testing.stores import Place
from support.bandits import facts
from support.held import Held
from support.loops import Learned, assert_learned, assert_replays, context, reward

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": UCB, "seed": 3}
SOON = 2.0  # seconds of a deadline that is to pass; the writer must begin within it on a busy machine
T = TypeVar("T")


async def pair(loop: Loop, i: int) -> Learned:
    decision = await loop.adecide(context(i, 2), event=f"e{i}")
    assert await loop.areward(f"e{i}", reward(i)) == "accepted"
    return Learned(context(i, 2), decision.arm, reward(i))


def test_calls_of_an_event_loop_are_those_of_a_thread(place: Place) -> None:
    with Store(place()) as store:
        one, two = (store.loop(name, **MADE) for name in ("one", "two"))

        async def main() -> list[armlet.Decision]:
            found = []
            for i in range(10):
                found.append(await two.adecide(context(i, 2), event=f"e{i}", probabilities="all"))
                assert await two.areward(f"e{i}", reward(i), name="paid", rank=1) == "accepted"
            assert await two.areward("e1", reward(1), name="paid", rank=1) == "duplicate"
            assert await two.areward("nobody", 0.5) == "unknown"
            return found

        expected = []
        for i in range(10):
            expected.append(one.decide(context(i, 2), event=f"e{i}", probabilities="all"))
            one.reward(f"e{i}", reward(i), name="paid", rank=1)
        assert [facts(each) for each in asyncio.run(main())] == [facts(each) for each in expected]
        assert one.model().to_bytes() == two.model().to_bytes()
        assert_replays(store, two)


def test_several_event_loops_and_threads_share_a_loop(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        learned: list[Learned] = []

        async def many(first: int) -> list[Learned]:
            return await asyncio.gather(*(pair(loop, i) for i in range(first, first + 60)))

        def in_a_loop(first: int) -> None:
            learned.extend(asyncio.run(many(first)))

        def in_a_thread(first: int) -> None:
            for i in range(first, first + 30):
                arm = loop.decide(context(i, 2), event=f"e{i}").arm
                loop.reward(f"e{i}", reward(i))
                learned.append(Learned(context(i, 2), arm, reward(i)))

        run_all(
            [lambda k=k: in_a_loop(1000 * k) for k in (1, 2, 3)] + [lambda k=k: in_a_thread(1000 * k) for k in (4, 5)]
        )
        assert len(learned) == 3 * 60 + 2 * 30
        assert_learned(loop.model(), learned)
        assert_replays(store, loop)


def run_all(works: list[Callable[..., None]]) -> None:
    failed: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_thousand_requests_need_no_thread_of_their_own(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        before = threading.active_count()

        async def main() -> int:
            tasks = [asyncio.create_task(loop.adecide(context(i, 2), event=f"e{i}")) for i in range(1000)]
            await asyncio.sleep(0)  # all of them are handed over
            seen = threading.active_count()
            decisions = await asyncio.gather(*tasks)
            assert [decision.t for decision in decisions] == list(range(1, 1001))  # in the order of the calls
            return seen

        commits = store._writer.counts.commits
        assert asyncio.run(main()) == before
        assert store._writer.counts.commits - commits < 100


def test_calls_of_one_turn_of_an_event_loop_share_a_commit(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            commits = store._writer.counts.commits
            await asyncio.gather(*(loop.adecide(context(i, 2), event=f"e{i}") for i in range(200)))
            assert store._writer.counts.commits - commits == 1

        asyncio.run(main())


def test_what_is_asked_for_at_once_is_not_all_in_one_commit(place: Place) -> None:
    """Maintenance has its turn meanwhile, and a database does not wait for long."""
    ledger = Held(place())
    with Store(ledger) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> list[int]:
            calls = [loop.adecide_many([context(i, 2)] * 600) for i in range(4)]
            ledger.hold()
            begun = asyncio.create_task(loop.adecide(context(0, 2)))
            await asyncio.to_thread(ledger.is_waiting.wait)
            tasks = [asyncio.create_task(call) for call in calls]
            while store._writer._queue.qsize() == 0:
                await asyncio.sleep(0)  # until they are handed over
            commits = store._writer.counts.commits
            ledger.let_go()
            await asyncio.gather(begun, *tasks)
            statuses = await store.areward_many([{"loop": "homepage", "event": "nobody", "value": 0.5}] * 2500)
            assert statuses == ["unknown"] * 2500
            return [store._writer.counts.commits - commits, store._writer.counts.largest]

        assert asyncio.run(main()) == [1 + 2 + 3, 1024]


def test_a_store_that_is_closed_before_calls_are_handed_over_refuses_them(place: Place) -> None:
    store = Store(place())
    loop = store.loop("homepage", **MADE)

    async def main() -> None:
        calls: list[Awaitable[object]] = [loop.adecide(context(1, 2)), loop.areward("e", 0.5)]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)  # they are asked for, and would be handed over next
        store.close()
        for each in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(each, StoreError)
            assert str(each) == "the store is closed; open it again"

    asyncio.run(main())


def test_an_event_loop_that_ends_before_it_hands_over_takes_no_place_in_the_queue() -> None:
    with Store(Memory(), queue=1) as store:
        loop = store.loop("homepage", **MADE)
        ended = asyncio.new_event_loop()
        task = ended.create_task(loop.adecide(context(1, 2), event="lost"))
        ended.call_soon(ended.stop)
        ended.run_forever()
        ended.close()
        assert store._writer.depth == 1
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        assert loop.decide(context(2, 2), event="e").t == 1
        assert store._writer.depth == 0


def test_what_a_call_raises_is_raised_where_it_is_awaited(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            await loop.adecide(context(1, 2), event="e")
            calls: list[Awaitable[object]] = [
                loop.adecide(context(2, 2), event="e"),
                loop.areward("e", 0.5, played="z"),
                loop.adecide([1.0], event="f"),
                loop.adecide(context(1, 2), event=""),
                loop.areward("e", float("nan")),
                loop.adecide(context(3, 2), event="g"),
                loop.areward("e", 0.5),
            ]
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(each) for each in found[:2]] == [EventError, EventError]
            assert all(isinstance(each, ValueError) for each in found[2:5])
            assert isinstance(found[5], armlet.Decision)
            assert found[6] == "accepted"

        asyncio.run(main())
        assert_replays(store, loop)


def test_a_policy_that_raises_what_no_future_takes_does_not_hang_its_caller() -> None:
    class Stops(armlet.Uniform):
        def decide(self, *_: Any) -> Any:
            raise StopIteration

        def rule(self) -> None:  # type: ignore[override]
            return None

    with Store(Memory()) as store:
        loop = store.loop("homepage", **(MADE | {"policy": Stops()}))
        with pytest.raises((RuntimeError, StopIteration)):
            asyncio.run(asyncio.wait_for(loop.adecide(context(1, 2)), 30.0))


def test_what_is_cancelled_before_it_is_begun_is_left_undone(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            ledger.hold()
            first = asyncio.create_task(loop.adecide(context(1, 2), event="begun"))
            await asyncio.to_thread(ledger.is_waiting.wait)
            second = asyncio.create_task(loop.adecide(context(2, 2), event="not begun"))
            await asyncio.sleep(0)
            for task in (first, second):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            ledger.let_go()
            assert (await loop.adecide(context(1, 2), event="begun")).t == 1
            assert await loop.areward("not begun", 0.5) == "unknown"

        asyncio.run(main())
        assert loop.model().t == 1
        assert_replays(store, loop)


def test_an_event_loop_that_ended_meanwhile_disturbs_nobody(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger) as store:
        loop = store.loop("homepage", **MADE)

        async def leave() -> None:
            ledger.hold()
            task = asyncio.create_task(loop.adecide(context(1, 2), event="e"))
            await asyncio.to_thread(ledger.is_waiting.wait)
            task.cancel()

        asyncio.run(leave())
        ledger.let_go()
        assert loop.decide(context(1, 2), event="e").t == 1


# --- batches ---------------------------------------------------------------------------------------------------------


def test_batches_of_an_event_loop_are_those_of_a_thread(place: Place) -> None:
    with Store(place()) as store:
        one, two = (store.loop(name, **MADE) for name in ("one", "two"))
        X, names = [context(i, 2) for i in range(20)], [f"e{i}" for i in range(20)]
        rewards = [(name, reward(i)) for i, name in enumerate(names)]

        async def main() -> None:
            expected = [facts(each) for each in one.decide_many(X, events=names)]
            assert [facts(each) for each in await two.adecide_many(X, events=names)] == expected
            assert await two.areward_many(rewards) == one.reward_many(rewards) == ["accepted"] * 20

        asyncio.run(main())
        assert one.model().to_bytes() == two.model().to_bytes()
        assert_replays(store, two)


def test_a_batch_of_an_event_loop_is_kept_whole_or_not_at_all(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        first = loop.decide(context(1, 2), event="e")

        async def main() -> None:
            with pytest.raises(EventError, match="another context"):
                await loop.adecide_many([context(2, 2), context(3, 2)], events=["f", "e"])
            with pytest.raises(EventError, match="played is 'z'"):
                await loop.areward_many([("e", 0.5), {"event": "e", "value": 0.5, "played": "z"}])
            with pytest.raises(ValueError, match="2 names for 1 contexts"):
                await loop.adecide_many([context(2, 2)], events=["f", "g"])

        asyncio.run(main())
        assert loop.reward("f", 0.5) == "unknown"
        assert loop.model().t == 1
        assert_learned(loop.model(), [])
        assert loop.reward("e", 0.5) == "accepted"
        assert_learned(loop.model(), [Learned(context(1, 2), first.arm, 0.5)])


def test_rewards_of_several_loops_are_answered_one_by_one(place: Place) -> None:
    with Store(place()) as store:
        home, exits = (store.loop(name, **MADE) for name in ("home", "exits"))
        arms = [loop.decide(context(1, 2), event="e").arm for loop in (home, exits)]
        commits = store._writer.counts.commits
        rewards: list[dict[str, Any]] = [
            {"loop": "home", "event": "e", "value": 0.5, "name": "paid"},
            {"loop": "nowhere", "event": "e", "value": 0.5},
            {"loop": "exits", "event": "e", "value": 0.25, "played": "z"},
            {"loop": "exits", "event": "e", "value": 0.25},
            {"loop": "exits", "event": "nobody", "value": 0.25},
            {"loop": "home", "event": "e", "value": 0.5, "name": "paid"},
            {"loop": "home", "event": "e", "value": float("nan")},
            {"loop": "home", "value": 0.5},
            {"event": "e", "value": 0.5},
            {"loop": ["home"], "event": "e", "value": 0.5},
        ]
        found = asyncio.run(store.areward_many(rewards))
        statuses = [each if isinstance(each, str) else type(each).__name__ for each in found]
        assert statuses == [
            "accepted",
            "UnknownNameError",
            "EventError",
            "accepted",
            "unknown",
            "duplicate",
            "InvalidValueError",
            "InvalidTypeError",
            "InvalidTypeError",
            "InvalidTypeError",
        ]
        assert store._writer.counts.commits - commits == 1
        assert_learned(home.model(), [Learned(context(1, 2), arms[0], 0.5)])
        assert_learned(exits.model(), [Learned(context(1, 2), arms[1], 0.25)])
        for loop in (home, exits):
            assert_replays(store, loop)


def test_too_many_rewards_at_once_are_refused() -> None:
    with Store(Memory()) as store, pytest.raises(ValueError, match="rewards has 10,001 items; give 10,000 at most"):
        asyncio.run(store.areward_many([{}] * 10_001))


def test_rewards_that_are_cancelled_before_they_are_begun_are_left_undone(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger) as store:
        loop = store.loop("homepage", **MADE)
        loop.decide_many([context(1, 2), context(2, 2)], events=["a", "b"])

        async def main() -> None:
            ledger.hold()
            begun = asyncio.create_task(loop.areward("a", 0.5))
            await asyncio.to_thread(ledger.is_waiting.wait)
            task = asyncio.create_task(store.areward_many([{"loop": "homepage", "event": "b", "value": 0.5}] * 3))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            ledger.let_go()
            assert await begun == "accepted"
            assert await loop.areward("b", 0.25) == "accepted"

        asyncio.run(main())
        assert_replays(store, loop)


# --- full queues -----------------------------------------------------------------------------------------------------


def test_calls_that_find_the_queue_full_are_refused_and_leave_nothing(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger, queue=2) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            ledger.hold()
            begun = asyncio.create_task(loop.adecide(context(0, 2), event="begun"))
            await asyncio.to_thread(ledger.is_waiting.wait)
            waiting = [asyncio.create_task(loop.adecide(context(i, 2), event=f"e{i}")) for i in (1, 2)]
            await asyncio.sleep(0)
            refused: list[Awaitable[object]] = [
                loop.adecide(context(3, 2), event="f"),
                loop.areward("begun", 0.5),
                loop.adecide_many([context(3, 2)] * 2, events=["g", "h"]),
                loop.areward_many([("begun", 0.5)]),
                store.areward_many([{"loop": "homepage", "event": "begun", "value": 0.5}]),
            ]
            for each in await asyncio.gather(*refused, return_exceptions=True):
                assert isinstance(each, QueueFullError)
                assert str(each) == "nothing of this call was kept: 2 calls wait already; try again in a second"
            with pytest.raises(QueueFullError):
                loop.decide(context(3, 2), event="f")
            ledger.let_go()
            assert [each.t for each in await asyncio.gather(begun, *waiting)] == [1, 2, 3]
            assert await loop.areward("begun", 0.5) == "accepted"

        asyncio.run(main())
        assert [loop.reward(event, 0.5) for event in "fgh"] == ["unknown"] * 3
        assert loop.model().t == 3
        assert_replays(store, loop)


def test_maintenance_and_what_only_looks_enter_a_full_queue(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger, queue=1) as store:
        loop = store.loop("homepage", **MADE)
        loop.decide(context(0, 2), event="old")

        async def main() -> list[object]:
            ledger.hold()
            begun = asyncio.create_task(loop.adecide(context(1, 2)))
            await asyncio.to_thread(ledger.is_waiting.wait)
            waiting = asyncio.create_task(loop.adecide(context(2, 2)))
            await asyncio.sleep(0)
            works: list[Callable[[], object]] = [lambda: loop.forget("old"), loop.stats, loop.health]
            others = [asyncio.create_task(asyncio.to_thread(work)) for work in works]
            while store._writer._queue.qsize() < 1 + len(works):
                await asyncio.sleep(0)  # until they are handed over
            with pytest.raises(QueueFullError, match="1 calls wait already"):
                await loop.adecide(context(3, 2))
            ledger.let_go()
            await asyncio.gather(begun, waiting)
            return await asyncio.gather(*others)

        forgotten, _, alarms = asyncio.run(main())
        assert forgotten is True
        assert alarms == []


def test_a_batch_counts_for_as_many_calls_as_it_has(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger, queue=10) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            ledger.hold()
            begun = asyncio.create_task(loop.adecide(context(0, 2)))
            await asyncio.to_thread(ledger.is_waiting.wait)
            large = asyncio.create_task(loop.adecide_many([context(1, 2)] * 10))
            await asyncio.sleep(0)
            with pytest.raises(QueueFullError, match="10 calls wait already"):
                await loop.areward("e", 0.5)
            ledger.let_go()
            await asyncio.gather(begun, large)
            assert len(await loop.adecide_many([context(1, 2)] * 100)) == 100  # where nobody waits, any batch may

        asyncio.run(main())
        assert loop.model().t == 111


@pytest.mark.parametrize("queue", [0, -1, 1.5, "many", True])
def test_a_queue_that_nobody_fits_in_is_refused(queue: Any) -> None:
    with pytest.raises(ValueError, match=r"queue is .*; give how many calls may wait"):
        Store(Memory(), queue=queue)


# --- deadlines -------------------------------------------------------------------------------------------------------


def held_up(ledger: Held, call: Callable[[], T]) -> BaseException | T:
    """Hold a ledger until a call has ended."""
    try:
        return call()
    except StoreError as error:
        return error
    finally:
        ledger.let_go()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_was_begun_is_uncertain_and_can_be_repeated(place: Place, is_async: bool) -> None:
    ledger = Held(place())
    with Store(ledger, deadline=SOON) as store:
        loop = store.loop("homepage", **MADE)

        def decide() -> armlet.Decision:
            if is_async:
                return asyncio.run(loop.adecide(context(1, 2), event="e"))
            return loop.decide(context(1, 2), event="e")

        ledger.hold()
        error = held_up(ledger, decide)
        assert isinstance(error, UncertainError)
        assert "it is not known whether this call was kept" in str(error)
        again = loop.decide(context(1, 2), event="e")
        assert again.t == 1
        assert loop.model().t == 1
        logged = [event for event in loop.log if event["kind"] == "decide"]
        assert [event["id"] for event in logged] == [again.id]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_was_not_begun_is_not_kept(place: Place, is_async: bool) -> None:
    ledger = Held(place())
    with Store(ledger, deadline=SOON) as store:
        loop = store.loop("homepage", **MADE)
        ledger.hold()
        first = threading.Thread(target=lambda: held_up(Held(Memory()), lambda: loop.decide(context(1, 2), event="e")))
        first.start()
        ledger.is_waiting.wait()

        def decide() -> armlet.Decision:
            if is_async:
                return asyncio.run(loop.adecide(context(2, 2), event="f"))
            return loop.decide(context(2, 2), event="f")

        error = held_up(ledger, decide)
        first.join()
        assert type(error) is StoreError
        assert str(error) == f"nothing of this call was kept: it was not begun within {SOON:g} seconds"
        assert loop.reward("f", 0.5) == "unknown"
        assert loop.model().t == 1


def test_a_reward_whose_answer_was_lost_counts_once(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger, deadline=SOON) as store:
        loop = store.loop("homepage", **MADE, aggregation="sum")
        arm = loop.decide(context(1, 2), event="e").arm
        ledger.hold()
        error = held_up(ledger, lambda: loop.reward("e", 0.5, name="paid"))
        assert isinstance(error, UncertainError)
        assert loop.reward("e", 0.5, name="paid") == "duplicate"
        assert_learned(loop.model(), [Learned(context(1, 2), arm, 0.5)])


def test_one_timer_serves_the_deadlines_of_all_calls(place: Place) -> None:
    with Store(place(), deadline=60.0) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            here = asyncio.get_running_loop()
            timers: list[float] = []
            call_at = here.call_at

            def counted(when: float, *rest: Any) -> asyncio.TimerHandle:
                timers.append(when)
                return call_at(when, *rest)

            here.call_at = counted  # type: ignore[method-assign,assignment]
            for first in range(0, 200, 50):
                await asyncio.gather(*(pair(loop, i) for i in range(first, first + 50)))
            assert len(timers) == 1
            assert not store._writer._desks[here]._waiting  # what is answered is let go of

        asyncio.run(main())


def test_each_call_has_a_deadline_of_its_own(place: Place) -> None:
    ledger = Held(place())
    with Store(ledger, deadline=SOON) as store:
        loop = store.loop("homepage", **MADE)

        async def main() -> None:
            now = asyncio.get_running_loop().time
            started = now()
            await loop.adecide(context(0, 2), event="quick")  # its timer is set, and finds nothing later
            ledger.hold()
            begun = asyncio.create_task(loop.adecide(context(1, 2), event="begun"))
            await asyncio.to_thread(ledger.is_waiting.wait)
            asked = now()
            calls: list[Awaitable[object]] = [
                loop.adecide(context(2, 2), event="f"),
                store.areward_many([{"loop": "homepage", "event": "quick", "value": 0.5}] * 2),
            ]
            late, rewards = await asyncio.gather(*calls, return_exceptions=True)
            assert now() - asked >= SOON - 0.01  # a timer may be a little early
            assert type(late) is StoreError
            assert isinstance(rewards, list)
            assert [type(each) for each in rewards] == [StoreError] * 2
            with pytest.raises(UncertainError):
                await begun
            assert now() - started >= SOON
            ledger.let_go()
            assert (await loop.adecide(context(1, 2), event="begun")).t == 2
            assert await loop.areward("quick", 0.5) == "accepted"
            assert await loop.areward("f", 0.5) == "unknown"

        asyncio.run(main())
        assert_replays(store, loop)
