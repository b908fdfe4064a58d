"""What `armlet advise` says of an advice, and the page that it writes."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import pytest

from armlet import cli
from armlet.advice import Advice, words
from armlet.report.numbers import show
from support import advices

KNOWN = ["advise", "--horizon", "2000", "--environment", "FigureA", "--problems", "3", "--runs", "2", "--seed", "1"]


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advices.usual()


@pytest.fixture(scope="module")
def far(advice: Advice) -> Advice:
    return advices.far(advice)


def test_what_is_missing_is_said_to_be_missing(far: Advice) -> None:
    sentences = dict(words.about_p(far))
    assert sentences["Best arm found"].startswith("not within 2,000 decisions: ")
    assert sentences["Half or twice"] == "half of it would not try every arm; twice of it takes too long to simulate."
    late = dict(words.about_p(dataclasses.replace(far, p=501.0)))  # 2 p is beyond half of the horizon
    assert late["Half or twice"].endswith("twice of it is too much for so few decisions.")
    assert sentences["The theorem"] == "Theorem 2 gives no p here: two arms are alike."
    text = "\n".join(words.lines(far))
    assert text.count("[-∞ to ∞]") == 6  # the average gain of five policies, and in words of the best
    assert "they disagree" in text


def test_the_theorem_is_called_useless_only_beyond_the_horizon(advice: Advice) -> None:
    beyond = dict(words.about_p(dataclasses.replace(advice, theorem_p=2e4)))["The theorem"]
    assert beyond.endswith(
        "p = 20,000, 10 times the horizon: every decision would be random, so it is useless in practice."
    )
    within = dict(words.about_p(dataclasses.replace(advice, theorem_p=200.0)))["The theorem"]
    # 200 (1 + ln 10) of 2,000 decisions are explored, up to a thousandth
    assert "asks for p = 200, which explores 33 % of all decisions and loses " in within
    assert "useless" not in within


@pytest.fixture(scope="module")
def pages(advice: Advice, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return advices.write_pages(advice, tmp_path_factory.mktemp("pages"))


def test_the_command_writes_the_page(
    pages: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "page.html"
    assert cli.main([*KNOWN, "--out", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Page: {path}"
    typed, called = (
        re.subn(r"<dt>command</dt><dd>.*?</dd>", "", page.read_text("utf-8")) for page in (path, pages["usual"])
    )
    assert typed == called
    assert typed[1] == 1
    assert f"<dd>armlet {' '.join(KNOWN)} --out {path}</dd>" in path.read_text("utf-8")
    assert cli.main([*KNOWN, "--out", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["horizon"] == 2000
    assert "Page" not in err


@pytest.mark.parametrize("name", ["usual", "far", "near"])
def test_nothing_is_loaded_from_anywhere(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text(encoding="utf-8")
    links = set(re.findall(r"https?://[^\"'&]*", text)) - {"http://evil.example/a.png"}  # which is text on that page
    assert links == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(script|link|img|iframe|object|image|b)\b", text)
    assert "default-src 'none'" in text


def test_every_figure_has_words_for_those_who_cannot_see_it(pages: dict[str, Path], advice: Advice) -> None:
    text = pages["usual"].read_text(encoding="utf-8")
    said = re.findall(r'<svg [^>]*aria-label="([^"]*)"', text)
    assert len(said) == text.count("<svg ") == text.count("<figcaption>") == 3
    assert f"{show(advice.policies.over_time.policy.mean[-1])} rewards by the default policy" in said[0]
    assert f"p = {advice.p:g} is recommended" in said[1]
    assert f"for {advice.bill.explored:,.0f} explored decisions" in said[2]


def test_the_page_opens_with_the_answer_and_folds_the_rest(pages: dict[str, Path], advice: Advice) -> None:
    text = html.unescape(pages["usual"].read_text(encoding="utf-8"))
    order = [f'<p class="answer">{words.headline(advice)}</p>', words.for_a_log(advice), "<svg ", "yours will be one"]
    places = [text.lower().index(part.lower()) for part in [*order, "<details>", "What made this"]]
    assert places == sorted(places)
    assert text.count("<details>") >= 4
    assert "<h2" not in text[: places[2]]


def test_lines_are_named_at_their_ends(advice: Advice) -> None:
    drawn = {text.get_text() for text in advice.plot().axes[0].texts}
    assert drawn == {"the default", "A/B test", "best possible", "doing nothing"}


def test_the_theorems_p_is_marked_where_it_is_or_by_an_arrow_at_the_edge(pages: dict[str, Path]) -> None:
    marked = {name: re.findall(r">(Theorem 2: p = [^<]*)<", path.read_text("utf-8")) for name, path in pages.items()}
    assert marked["far"] == []
    assert [words.endswith("→") for words in marked["usual"] + marked["near"]] == [True, False]
