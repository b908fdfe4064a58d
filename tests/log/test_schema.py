"""One table says what events hold, for writers and readers; what it does not allow is refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.errors import LogError
from armlet.log.reader import LogFile
from armlet.log.writer import Flush
from armlet.record.contradictions import Shape
from armlet.record.events import check_event
from armlet.record.faults import InvalidEventError
from armlet.record.kinds import LOGGED, OF_TABLES, fields_of
from armlet.record.values import Event
from support.lives import Life, new_bandit

WEIGHED: Event = {"weights": [["quality", 1.0], ["cost", -2.0]]}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Return events of every kind, as a bandit's log has them."""
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    policy = armlet.ContextualEpsilonGreedy(p=20)
    bandit, log = new_bandit(policy, path)
    Life(bandit).live(300)
    decision = bandit.decide([1.0, 0.0, 0.5], probabilities="all")
    log.note(decision, outcomes={"latency": 0.5}, source="checkout", more=[1, None])
    bandit.learn(decision, 1.0)
    bandit.correct(decision, 1.0, 0.5)
    bandit.forget(decision, 0.5)
    other = armlet.Bandit(["x"], 3, policy=policy, seed=3)
    bandit.merge(other)
    bandit.partial_fit([[1.0, 0.0, 0.5]], ["x"], [0.25], explored=True)
    bandit.replace(t=bandit.t + 5)
    bandit.retire_arm("x")
    bandit.restore_arm("x")
    bandit.remove_arm("x")
    bandit.add_arm("y")
    row = bandit.decide([0.5, 0.0, 1.0]).to_dict() | {"reward": 0.75}
    bandit.partial_fit({name: [row[name]] for name in ("t", "x", "arm", "reward", "propensity", "explored", "tag")})
    bandit.expire(bandit.decide([0.5, 0.0, 1.0]))
    bandit.replace(policy=armlet.ContextualEpsilonGreedy(p=30))
    log.close()
    return [*LogFile(path), {"seq": 1, "kind": "bill", "at": 0, "id": decision.id, "cost": 0.5}]  # of a budget


def test_every_kind_is_written_and_checked(events: list[Event]) -> None:
    assert {event["kind"] for event in events} == LOGGED - OF_TABLES - {"resync"}


def test_what_a_kind_does_not_allow_is_refused_by_field(events: list[Event]) -> None:
    by_kind = {event["kind"]: event for event in events}
    for kind, event in by_kind.items():
        for name, field in fields_of(kind).items():
            with pytest.raises(InvalidEventError, match=rf"event {event['seq']} of a\.jsonl \({kind}\).*{name} is "):
                check_event({**event, name: [{}]}, event["seq"], "a.jsonl")
            without = {other: value for other, value in event.items() if other != name}
            if field.is_optional and (kind, name) != ("replace", "policy"):  # one thing is replaced
                check_event(without, event["seq"], "a.jsonl")
            elif kind == "replace":
                with pytest.raises(InvalidEventError, match="it has nothing"):
                    check_event(without, event["seq"], "a.jsonl")
            else:
                with pytest.raises(InvalidEventError, match=f"{name} is missing"):
                    check_event(without, event["seq"], "a.jsonl")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"t": 2**63}, "t is 9223372036854775808, not a whole number"),
        ({"at": -1}, "at is -1, not microseconds"),
        ({"seq": True}, "its number is True"),
        ({"kind": "dance"}, "its kind is 'dance', which this version does not know"),
        ({"id": "7-00ff00ff00ff00ff"}, "its id is 7-00ff00ff00ff00ff, but its step 1"),
        ({"x": [1.0]}, "x has 1 values, but contexts have 3"),
        ({"x": [1.0, 1, 0.0]}, "x is .*, not a list of numbers"),
        ({"x": [1.0, 1e41, 0.0]}, "x is .*, up to 1e40|and up to 1e40 in size"),
        ({"propensity": 1.5}, "propensity is 1.5, not a number from 0.0 to 1.0"),
        ({"arm": True}, "arm is True, not a text or a whole number"),
        ({"eligible": []}, "eligible is .., not a list of at least one arm, or null"),
        ({"tag": 10**5000}, "tag is too long to be told, not a whole number of 64 bits"),
    ],
)
def test_ranges_and_contradictions_are_refused(events: list[Event], changed: Event, why: str) -> None:
    decide = next(event for event in events if event["kind"] == "decide")
    with pytest.raises(InvalidEventError, match=why) as refused:
        check_event({**decide, **changed}, decide["seq"], "a.jsonl", Shape(3))
    assert "\n" not in str(refused.value)


OF_OUTCOMES: dict[str, Event] = {
    "start": {"outcomes": WEIGHED, "budget": {"outcome": "cost", "total": 5.0, "horizon": 9, "period": None}},
    "decide": {"weights": {"quality": 1.0, "cost": -2.0}},
    "learn": {"reward": {"quality": 0.5}},
    "correct": {"old_reward": {"quality": 0.5}, "new_reward": {"quality": 0.75}},
    "forget": {"reward": {"quality": 0.5, "cost": 1.0}},
    "partial_fit": {"rewards": {"quality": [0.5], "cost": [1.0]}},
}


@pytest.mark.parametrize(
    ("kind", "changed", "why"),
    [
        ("start", {"outcomes": {}}, "outcomes is {}, not an object with weights, pairs of a name and a number"),
        ("start", {"outcomes": {"weights": [["quality", 1]]}}, "outcomes is .*, not an object with weights"),
        ("start", {"outcomes": {"weights": [[5, 1.0]]}}, "outcomes is .*, not an object with weights"),
        ("start", {"outcomes": {**WEIGHED, "known": {"cost": {"a": 1.0}}}}, "outcomes is .*, not an object"),
        (
            "start",
            {"outcomes": {**WEIGHED, "known": {"speed": [["a", 1.0]]}}},
            "known has 'speed', which is no outcome",
        ),
        ("start", {"outcomes": {**WEIGHED, "ranges": {"cost": [1.0]}}}, "outcomes is .*, not an object"),
        ("start", {"outcomes": {**WEIGHED, "ranges": {"cost": [1.0, 0.0]}}}, "give .lowest, highest."),
        ("start", {"budget": {"outcome": "cost", "total": 5.0}}, "budget is .*, not an object with outcome, total"),
        ("start", {"budget": {"outcome": "cost", "total": -5.0, "horizon": 9}}, "budget is .*, not an object with"),
        ("start", {"budget": {"outcome": "speed", "total": 5.0, "horizon": 9}}, "budget is of 'speed', which is no"),
        ("start", {"budget": {"outcome": "cost", "total": 5.0, "period": 9, "hard": True}}, "nothing bounds 'cost'"),
        ("decide", {"weights": {}}, "weights is {}, not an object of outcomes and numbers"),
        ("decide", {"weights": {"quality": True}}, "weights is .*, not an object of outcomes and numbers"),
        ("decide", {"weights": {"quality": 1e41}}, "weights is .*, not an object of outcomes and numbers"),
        ("learn", {"reward": {}}, "reward is {}, not a number .*, or an object of outcomes"),
        ("learn", {"reward": {"quality": None}}, "reward is .*, or an object of outcomes and such numbers"),
        ("correct", {"new_reward": {"cost": 1.0}}, "which are not of the same outcomes"),
        ("correct", {"new_reward": 1.0}, "which are not of the same outcomes"),
        ("forget", {"reward": {"quality": "1"}}, "reward is .*, or an object of outcomes"),
        ("partial_fit", {"rewards": {"quality": 0.5}}, "rewards is .*, or an object of outcomes and such lists"),
    ],
)
def test_outcomes_that_cannot_be_are_refused(events: list[Event], kind: str, changed: Event, why: str) -> None:
    event = {**next(event for event in events if event["kind"] == kind), **OF_OUTCOMES[kind]}
    check_event(event, event["seq"], "a.jsonl")
    with pytest.raises(InvalidEventError, match=why) as refused:
        check_event({**event, **changed}, event["seq"], "a.jsonl")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"outcomes": WEIGHED, "budget": {"outcome": "cost", "total": 5.0, "horizon": 9}},
            "it has outcomes and budget",
        ),
        ({"outcomes": {"weights": [["quality", 0.0]]}}, "weighs nothing"),
    ],
)
def test_replacements_of_outcomes_that_cannot_be_are_refused(fields: Event, why: str) -> None:
    with pytest.raises(InvalidEventError, match=why):
        check_event({"seq": 3, "kind": "replace", "at": 5, **fields}, 3, "a.jsonl")


@pytest.mark.parametrize("name", ["kind", "seq", "at", "crc", "id"])
@pytest.mark.parametrize("flush", ["block", "line"])
def test_a_note_cannot_take_the_names_of_a_log(tmp_path: Path, name: str, flush: Flush) -> None:
    with armlet.Log(tmp_path / "a.jsonl", flush=flush) as log:
        bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
        decision = bandit.decide([1.0])
        with pytest.raises(ValueError, match=f"a note has a field '{name}', which is the log's own") as refused:
            log.note(decision, **{name: "late"})
    assert isinstance(refused.value, LogError)
    assert [event["kind"] for event in log] == ["start", "decide", "checkpoint"]
    assert armlet.audit(log, log.start_path).ok


@pytest.mark.parametrize(
    ("decision", "fields", "why"),
    [
        (5, {}, "decision is 5; give a decision or its id"),
        ("somewhere", {}, "id is 'somewhere', not a step"),
        (None, {"source": 5}, "source is 5, not a text"),
        (None, {"outcomes": [1.0]}, "outcomes is .*, not an object"),
        (None, {"more": float("nan")}, "a number is not finite"),
        (None, {"more": {1, 2}}, "a value is of type set"),
        (None, {"more": "\ud800"}, "a note cannot be written"),
    ],
)
def test_a_note_that_no_reader_would_take_is_refused(
    tmp_path: Path, decision: object, fields: dict[str, object], why: str
) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
        made = bandit.decide([1.0])
        with pytest.raises(LogError, match=why):
            log.note(made if decision is None else decision, **fields)  # type: ignore[arg-type]
    assert armlet.audit(log, log.start_path).ok
