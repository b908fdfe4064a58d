"""Stats: what a loop says of itself, as text, as JSON, and in the text exposition format of Prometheus."""

from __future__ import annotations

import json
import re

import pytest

from armlet.bandit import Bandit
from armlet.stores.folds import Tally
from armlet.stores.stats import Stats, WriterStats, prometheus
from armlet.types import Arm
from support.stores.tally_rows import decide, tell

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
WRITER = WriterStats(commits=4, calls=130, failed=1, largest_batch=64, commit_seconds=0.25, queue_depth=2)


def played(arms: list[Arm], decisions: int = 40) -> Tally:
    """Return the tally of a loop whose decisions are rewarded with 1 after three seconds, every second one."""
    tally, bandit = Tally(), Bandit(arms, dim=1, seed=3)
    for step in range(decisions):
        at = NOW + step * SECOND
        decision = bandit.decide([1.0])
        row = decide(tally, decision, at)
        if step % 2:
            tell(tally, row, "learn", at + 3 * SECOND, reward=1.0, status="accepted")
    return tally


def stats_of(tally: Tally, name: str = "shop") -> Stats:
    return Stats.of(name, tally, NOW + 60 * SECOND, oldest_open_at=NOW, rows_since_snapshot=7, size=8192)


# ---- a strict parser of the format: https://prometheus.io/docs/instrumenting/exposition_formats/

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\})')
SAMPLE = re.compile(rf"({NAME})(\{{?)")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parse(text: str) -> tuple[Series, dict[str, str]]:
    """Return all series with their values, and the types of metrics; anything that the format forbids is an error."""
    assert text.endswith("\n")
    series, kinds, current = Series(), dict[str, str](), None
    for line in text[:-1].split("\n"):
        if match := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            current = match[1]
            assert current not in kinds
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
            assert match[1] == current
            kinds[match[1]] = match[2]
        else:
            name, labels, value = parse_sample(line)
            assert name == current
            assert (name, labels) not in series
            series[name, labels] = value
    return series, kinds


def parse_sample(line: str) -> tuple[str, frozenset[tuple[str, str]], float]:
    head = SAMPLE.match(line)
    assert head is not None, line
    at, labels, more = head.end(), list[tuple[str, str]](), bool(head[2])
    while more:
        label = LABEL.match(line, at)
        assert label is not None, line[at:]
        labels.append((label[1], re.sub(r"\\.", lambda found: ESCAPES[found[0]], label[2])))
        at, more = label.end(), label[3] == ","
    assert len(dict(labels)) == len(labels)
    value = re.fullmatch(r" (NaN|[+-]Inf|[-+0-9.e]+)", line[at:])
    assert value is not None, line[at:]
    return head[1], frozenset(labels), float(value[1])


def test_the_parser_refuses_what_the_format_forbids() -> None:
    good = '# HELP a b\n# TYPE a gauge\na{x="1"} 2.0\n'
    assert parse(good)[0] == {("a", frozenset({("x", "1")})): 2.0}
    for bad in (good[:-1], good + 'a{x="1"} 3\n', good.replace("gauge", "number"), good.replace('"1"', '"\\t"')):
        with pytest.raises(AssertionError):
            parse(bad)


def test_prometheus_text_holds_every_number() -> None:
    stats = stats_of(played(["north", "south"]))
    series, kinds = parse(prometheus([stats], WRITER))
    loop = ("loop", "shop")
    assert series["armlet_rewards_total", frozenset({loop, ("status", "accepted")})] == 20
    assert series["armlet_open_decisions", frozenset({loop})] == 20
    assert series["armlet_oldest_open_seconds", frozenset({loop})] == 60.0
    assert series["armlet_rewarded_share", frozenset({loop, ("seconds", "4")})] == 0.5
    assert series["armlet_size_bytes", frozenset({loop})] == 8192
    for arm in stats.arms:
        labels = frozenset({loop, ("arm", str(arm.arm)), ("arm_type", "str")})
        assert series["armlet_decisions_total", labels] == arm.decisions
        assert series["armlet_mean_reward", labels] == 1.0
    assert series["armlet_calls_total", frozenset()] == 130
    assert series["armlet_commit_seconds_total", frozenset()] == 0.25
    assert {name.endswith("_total") for name, kind in kinds.items() if kind == "counter"} == {True}
    assert {name.endswith("_total") for name, kind in kinds.items() if kind == "gauge"} == {False}


HOSTILE = ['quo"te', "back\\slash", "new\nline", "\\n", 'end\\"', "{},=", "ü 😀", "", "\r\t", "\\"]


def test_hostile_labels_come_back_as_they_were() -> None:
    arms: list[Arm] = [*HOSTILE, 1, "1", -7]
    loops = [stats_of(played(arms, 400), name) for name in ('a"b', "a\\b", "a\nb")]
    series, _ = parse(prometheus(loops, WRITER))
    found = {dict(labels)["arm"] for name, labels in series if name == "armlet_decisions_total"}
    assert found == {*HOSTILE, "1", "-7"}
    assert {dict(labels)["loop"] for _, labels in series if labels} == {'a"b', "a\\b", "a\nb"}


def test_arms_of_the_same_text_are_two_series() -> None:
    series, _ = parse(prometheus([stats_of(played([1, "1"]))], WRITER))
    kinds = {dict(labels)["arm_type"] for name, labels in series if name == "armlet_decisions_total"}
    assert kinds == {"int", "str"}


def test_half_of_a_pair_of_surrogates_is_written_in_bytes_that_utf_8_has() -> None:
    text = prometheus([stats_of(played(["a", "b"]), "\ud800")], WRITER)
    assert {dict(labels)["loop"] for _, labels in parse(text)[0] if labels} == {"\\ud800"}
    text.encode()


def test_a_loop_without_decisions_has_no_samples_without_a_value() -> None:
    empty = Stats.of("new", Tally(), NOW, oldest_open_at=None, rows_since_snapshot=0, size=0)
    series, _ = parse(prometheus([empty], WRITER))
    names = {name for name, labels in series if labels}
    assert names == {
        "armlet_learned_total",
        "armlet_open_decisions",
        "armlet_rows_since_snapshot",
        "armlet_size_bytes",
    }


def test_stats_are_plain_json() -> None:
    stats = stats_of(played(["north", 2]))
    fields = stats.to_dict()
    assert json.loads(json.dumps(fields)) == fields
    assert fields["decisions"] == 40
    assert [arm["arm"] for arm in fields["arms"]] == [arm.arm for arm in stats.arms]
    assert json.loads(json.dumps(WRITER.to_dict()))["mean_batch"] == 32.5


def test_stats_are_readable() -> None:
    lines = str(stats_of(played(["north", 2]))).splitlines()
    assert lines[0].startswith("loop 'shop': 40 decisions, ")
    assert lines[0].endswith("20 rewards (20 accepted)")
    assert lines[1] == "open: 20, the oldest for 1 min"
    assert "50% within 4 s" in lines[2]
    assert lines[5].split() == ["arm", "decisions", "explored", "rewards", "defaults", "mean"]
    assert {line.split()[0] for line in lines[6:]} == {"'north'", "2"}
    assert len({len(line) for line in lines[5:]}) == 1
