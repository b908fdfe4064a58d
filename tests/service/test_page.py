"""The page of a loop: what it says in every state, and that labels are text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.service.page.answers import BIG
from armlet.service.page.html import SCRIPT, STYLE
from armlet.service.page.words import visible
from armlet.stores import Control, Memory, Store
from armlet.stores.gains import Answer, Gain
from armlet.stores.health import Alarm
from armlet.stores.overview import Details
from armlet.types import Interval
from support.service.pages import HOSTILE, details, make_loop, play, read, shown

RANDOM = "Is the live policy better than random play?"


@pytest.fixture(scope="module")
def found() -> Details:
    return details()


def gain_of(found: Details, answer: Answer, ends: tuple[float, float] | None, **fields: Any) -> Gain:
    interval = None if ends is None else Interval(*ends)
    return replace(found.gains[0], answer=answer, interval=interval, label="random play", **fields)


# ---- what it says


@pytest.mark.parametrize(
    ("answer", "ends", "words"),
    [
        ("yes", (0.0102, 0.228), "It gains +0.01 to +0.23 per decision, so far, on average."),
        ("no", (-0.31, -0.02), "It loses: the gain is −0.31 to −0.02 per decision, so far, on average."),
        ("not yet", (-0.217, 0.263), "The gain is −0.22 to +0.26 per decision, so far, on average"),
    ],
)
def test_every_answer_is_said_in_words_with_its_gain(
    found: Details, answer: Answer, ends: tuple[float, float], words: str
) -> None:
    seen = shown(replace(found, gains=(gain_of(found, answer, ends),)))
    assert f"{RANDOM}{BIG[answer]}{words}" in seen.parts["answers"]
    assert seen.values("data-answers") == [f"{RANDOM} {BIG[answer]}."]


def test_not_yet_says_how_much_longer(found: Details) -> None:
    waiting = gain_of(found, "not yet", (-0.2, 0.3), longer=12_345)
    seen = shown(replace(found, gains=(waiting,), pace=1000.0))
    assert "an answer may take about 12,000 more decisions, 12\u00a0days at the pace so far." in seen.parts["answers"]
    seen = shown(replace(found, gains=(replace(waiting, longer=None),)))
    assert "How much longer this takes cannot be told yet." in seen.parts["answers"]


def test_nothing_to_say_says_why_and_draws_nothing(found: Details) -> None:
    note = "The policy never explores; with a share of 10 % an answer takes about 9,000 decisions."
    silent = gain_of(found, "nothing to say", None, note=note, rows=0, history=())
    seen = shown(replace(found, gains=(silent,)))
    assert f"{RANDOM}Nothing to say{note}" in seen.parts["answers"]
    assert "bands" not in seen.parts


def test_a_control_and_a_shadow_have_answers_of_their_own(found: Details) -> None:
    control = replace(gain_of(found, "no", (-0.3, -0.1)), against="control", label='always "sale"')
    shadow = replace(gain_of(found, "yes", (0.1, 0.2)), against="shadow", label="the live policy")
    seen = shown(replace(found, gains=(found.gains[0], control, shadow)))
    assert 'Is the live policy better than always "sale"?No' in seen.parts["answers"]
    assert "Is the shadow policy better than the live one?YesThe shadow gains +0.1" in seen.parts["answers"]
    assert "No control" not in seen.parts["answers"]
    assert seen.parts["bands"].count("over the control") >= 2  # at the end of its band, wide and in numbers
    assert "shadow over live" in seen.parts["bands"]


def test_without_a_control_the_page_says_that_there_is_none(found: Details) -> None:
    assert "Is it better than a control?No control" in shown(found).parts["answers"]


def test_a_fresh_loop_promises_nothing() -> None:
    seen = shown(details(0))
    assert "0 decisions" in seen.parts["title"]
    for part in ("exploring", "missing"):
        assert "No decision has been made yet." in seen.parts[part]
    assert "There is nothing to check yet." in seen.parts["health"]
    assert "There is none yet." in seen.parts["last"]


def test_exploring_is_told_as_counted_with_its_price(found: Details) -> None:
    part, exploring = shown(found).parts["exploring"], found.exploring
    assert exploring.expected is not None
    assert f"{exploring.explored} of 400 decisions" in part
    assert f"it should be about {exploring.expected:.0f}." in part
    for price, words in [
        ((12.0, 30.0), "Its price so far is 12 to 30 in rewards"),
        ((-4.0, 30.0), "Its price so far is at most 30 in rewards"),
        ((-30.0, -10.0), "It has cost nothing: explored decisions earned 10 to 30 more in all."),
    ]:
        changed = replace(found, exploring=replace(exploring, price=Interval(*price)))
        assert words in shown(changed).parts["exploring"]


def test_missing_rewards_are_told_with_what_they_could_change(found: Details) -> None:
    missing = replace(found.missing, open=30, defaulted=70, share=0.25, mean=0.5, lowest=0.375, highest=0.625)
    part = shown(replace(found, missing=missing)).parts["missing"]
    assert "100 (25\u00a0% of decisions)" in part
    assert "70 windows closed without one, and 30 decisions still wait." in part
    assert "it is between 0.38 and 0.62" in part


def test_arms_have_shares_values_and_coefficients(found: Details) -> None:
    part = shown(found).parts["arms"]
    for arm in found.by_arm:
        assert arm.value is not None
        assert str(arm.arm) in part
        assert f"{arm.decisions}" in part
        assert f"from {arm.value_rows} decisions" in part
    assert "age" in part


def test_many_arms_do_not_make_the_page_long() -> None:
    with Store(Memory()) as store:
        loop = make_loop(store, arms=tuple(range(300)))
        play(loop, 50)
        part = shown(loop.details()).parts["arms"]
    assert "And 250 more arms, with 0 decisions together." in part


def test_alarms_come_first_and_again_in_health(found: Details) -> None:
    alarm = Alarm(rule="silence", text="No reward has come since noon.", since=1_700_000_000_000_000)
    seen = shown(replace(found, alarms=(alarm,)))
    assert seen.parts["notice"] == "Something needs attentionNo reward has come since noon."
    assert "Alarm: No reward has come since noon." in seen.parts["health"]
    assert "No unusual silence of rewards." not in seen.parts["health"]
    assert "No unusual silence of rewards." in shown(found).parts["health"]


def test_a_loop_that_is_guarded_says_so() -> None:
    with Store(Memory()) as store:
        loop = make_loop(store, control=Control(arm="sale", share=0.25))
        play(loop, 100)
        loop.change(shadow=armlet.LinUCB(), how="refit")
        play(loop, 100, first=100)
        seen = shown(loop.details())
        loop.change(shadow={"bold": armlet.LinUCB(alpha=2.0), "<shy>": armlet.Greedy()}, how="refit")
        play(loop, 100, first=200)
        loop.freeze()
        frozen = shown(loop.details())
    assert "Frozen" in frozen.parts["title"]
    assert "The loop is frozen" in frozen.parts["notice"]
    assert "frozen" in frozen.parts["changes"]
    for name in ("bold", "<shy>"):
        assert f'Is the shadow "{name}" better than the live one?' in frozen.headings
        assert f"shadow {name}" in frozen.parts["settings"]
    assert "sale" in seen.parts["settings"]
    assert "in 25\u00a0% of decisions" in seen.parts["settings"]
    assert "LinUCB" in seen.parts["settings"]
    assert [asked for asked in seen.headings if asked.startswith("Is the ")][1:3] == [
        'Is the live policy better than always "sale"?',
        "Is the shadow policy better than the live one?",
    ]
    assert "control" in seen.parts["last"]


def test_changes_are_told() -> None:
    with Store(Memory()) as store:
        loop = make_loop(store)
        loop.retire_arm("new")
        part = shown(loop.details()).parts["changes"]
    assert "'new' retired" in part


def test_no_number_is_written_with_an_exponent() -> None:
    for size in (1e-7, 1e9):
        with Store(Memory()) as store:
            policy = armlet.ContextualEpsilonGreedy(p=1.0, floor=0.2)
            loop = store.loop("home", arms=["a", "b"], dim=1, policy=policy, reward_range=(0.0, size), seed=1)
            for at in range(64):
                loop.decide([float(at) * size], event=str(at))
                loop.reward(str(at), size * (at % 3) / 2)
            seen = shown(loop.details())
        assert not re.search(r"\d[eE][+-]?\d", seen.text), size


# ---- who sees what


def test_contexts_and_events_are_for_admins_only(found: Details) -> None:
    marked = replace(found.last[0], context=(7_123_456.7, -9_876_543.2))
    found = replace(found, last=(marked, *found.last[1:]))
    admin, reader = shown(found), shown(found, is_admin=False)
    assert "age 7,123,457, basket −9,876,543" in admin.parts["last"]
    assert "secret-event-399" in admin.parts["last"]
    for secret in ("7123456", "7,123,45", "9876543", "9,876,54", "secret-event"):
        assert secret not in reader.html
    assert "Events and contexts are shown to keys with the scope “admin”." in reader.parts["last"]


def test_what_was_erased_is_not_shown(found: Details) -> None:
    erased = replace(found.last[0], event=None, context=None)
    assert "erased" in shown(replace(found, last=(erased,))).parts["last"]


# ---- labels are text


def hostile_details() -> Details:
    with Store(Memory()) as store:
        policy = armlet.ContextualEpsilonGreedy(p=1.0, floor=0.2)
        features = [name for name in HOSTILE if name.strip()]
        loop = store.loop("x" * 10, arms=HOSTILE, features=features, policy=policy, seed=1)
        X = np.random.default_rng(1).normal(size=(30, len(features)))
        loop.decide_many(X, events=[f"{HOSTILE[at % 7]}{at}"[-200:] for at in range(30)])
        loop.retire_arm(HOSTILE[1])
        return loop.details()


def test_hostile_labels_are_text() -> None:
    found = hostile_details()
    gain = replace(gain_of(found, "yes", (0.1, 0.2)), against="control", label=f"always {HOSTILE[1]!r}")
    alarm = Alarm(rule="missing_rewards", text=f"Arm {HOSTILE[1]} lacks rewards\x00.", arm=HOSTILE[1])
    guards = replace(found.guards, control=f"always {HOSTILE[1]}", share=0.1, shadow=HOSTILE[6])
    for name in HOSTILE:
        seen = shown(replace(found, name=name, gains=(gain,), alarms=(alarm,), guards=guards))
        assert (seen.tags["script"], seen.tags["title"], seen.tags["style"]) == (1, 1, 0)
        assert [value for tag, at, value in seen.attributes if (tag, at) == ("script", "src")] == [SCRIPT.url]
        assert not [at for _, at, _ in seen.attributes if at.startswith("on") or at == "style"]
        for arm in HOSTILE[1:-1]:
            assert visible(arm) in seen.parts["arms"]
        assert all(letter.isprintable() or letter in "\n\u00a0" for letter in seen.text)
        assert "\u202e" not in seen.html


def test_a_label_that_is_too_long_is_cut_and_kept_as_a_title() -> None:
    seen = shown(replace(hostile_details(), name="n" * 256))
    assert "n" * 256 in seen.values("title")
    assert "n" * 100 not in seen.text


# ---- a page that everybody can use


def test_the_page_is_well_formed_and_its_references_lead_somewhere(found: Details) -> None:
    for seen in (shown(found), shown(hostile_details()), shown(details(0))):
        ids = seen.values("id")
        assert len(ids) == len(set(ids))
        assert {*seen.values("aria-labelledby"), "main"} <= set(ids)
        assert set(seen.parts) <= set(ids)
        assert seen.tags["h1"] == seen.tags["main"] == 1
        assert seen.html.startswith("<!DOCTYPE html>")
        assert 'href="#main"' in seen.html
        pictures = [at for tag, at, _ in seen.attributes if tag == "svg" and at in ("aria-label", "aria-hidden", "x")]
        assert len(pictures) == seen.tags["svg"]  # each has words or is repeated by some, or lies inside of one


def test_files_are_loaded_by_addresses_that_follow_their_content(found: Details) -> None:
    html = shown(found).html
    assert f'<link rel="stylesheet" href="{STYLE.url}">' in html
    assert f'<script src="{SCRIPT.url}" defer></script>' in html
    assert re.fullmatch(r"/static/page\.[0-9a-f]{16}\.css", STYLE.url)


def test_a_page_is_as_long_at_ten_times_the_decisions() -> None:
    """It holds sums, at most 32 spans and 100 ends of a band: what it costs does not grow with decisions."""
    short, long = (len(shown(details(n)).html) for n in (400, 4000))
    assert long < 1.25 * short
    assert read(shown(details(0)).html).tags["h1"] == 1
