"""The page of an evaluation: what it shows and what it holds back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armlet.evaluation.checks import Check, Word
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.page import limits, render
from armlet.evaluation.result import Evaluation
from armlet.evaluation.rows import HeldBlocks
from armlet.policies import ContextualEpsilonGreedy
from support import evaluations
from support.decided import played


@pytest.fixture(scope="module")
def usual() -> Evaluation:
    return evaluations.usual()


@pytest.fixture(scope="module")
def far(usual: Evaluation) -> Evaluation:
    return evaluations.far(usual)


@pytest.fixture(scope="module")
def pages(usual: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return evaluations.write_pages(usual, tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", ["usual", "far", "bare"])
def test_nothing_is_loaded_from_anywhere(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'&]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(script|link|img|iframe|object|image|b)\b", text)


def test_the_answer_comes_first_then_the_picture_and_what_made_it_last(
    pages: dict[str, Path], usual: Evaluation
) -> None:
    text = pages["usual"].read_text(encoding="utf-8")
    order = ["<h1>", usual.answer, "<figure>", usual.counts(), "<details>", "What made this", "a.jsonl", "sha256 0f0f"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert text.count("<details>") == 5
    assert "<details open" not in text
    assert "armlet evaluate a.jsonl --policy own" in text


def test_a_count_is_the_same_wherever_its_word_stands() -> None:
    """Effective rows in the table are those of the check; explored decisions those of the log."""
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 600)
    result = evaluate(HeldBlocks(rows, range(3), {"reward_range": (0.0, 1.0)}), {"always 0": 0, "always 1": 1})
    text = re.sub(r"<[^>]*>", " ", render(result))
    for name in ("always 0", "always 1"):
        assert f"as much as {result[name].ess:,.0f} of equal weight" in text
        assert f"{result[name].ess:,.0f} effective rows" in text
    assert re.findall(r"([\d,]+) explored, ([\d,]+) of them rewarded", text) == [
        (f"{result.explored:,}", f"{result.explored_rewarded:,}")
    ]
    assert f"Of {result.explored:,} explored decisions" in text


def test_the_same_result_gives_the_same_bytes(usual: Evaluation) -> None:
    assert render(usual) == render(usual)


def test_a_refused_policy_has_neither_value_nor_interval(pages: dict[str, Path]) -> None:
    text = pages["far"].read_text(encoding="utf-8")
    assert "refused: see the checks" in text
    assert "nan" not in text


def test_every_check_is_told_with_its_word_and_number(pages: dict[str, Path], usual: Evaluation) -> None:
    text = pages["usual"].read_text(encoding="utf-8")
    for check in usual.checks:
        assert check.sentence.replace("'", "&#x27;") in text
    assert text.count('<tr role="row"><th') >= len(usual.checks)


def test_limits_depend_on_what_was_found(usual: Evaluation, far: Evaluation) -> None:
    assert not any("No range of rewards" in limit for limit in limits(usual))
    assert any("No range of rewards" in limit for limit in limits(far))
    drifted = Check(name="drift of rewards", word=Word.WARNING, sentence="It drifts.", number=0.0, unit="p-value")
    assert any("The environment changed" in limit for limit in limits(replace(usual, checks=(drifted,))))


def test_little_support_is_grey(pages: dict[str, Path]) -> None:
    assert "too few effective rows" in pages["usual"].read_text(encoding="utf-8")
    assert "too few effective rows" not in pages["bare"].read_text(encoding="utf-8")


def test_an_evaluation_saves_a_page_whose_bands_end_where_its_sequences_do(tmp_path: Path) -> None:
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    log = HeldBlocks(rows, range(3), {"reward_range": (0.0, 1.0)})
    result = evaluate(log, {"always 0": 0})
    (path,) = result.paths
    assert (path.low[-1], path.high[-1]) == pytest.approx(result["always 0"].anytime)
    result.save(tmp_path / "page.html")
    assert "Bands are anytime-valid at 95 %" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert np.isnan(evaluate(log, {"always 0": 0}, interval="fixed").paths[0].low).all()
