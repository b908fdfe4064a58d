"""The page of an evaluation: what it shows and what it holds back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armlet.evaluation.checks import Check, Word
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.page import Story, limits, render
from armlet.policies import ContextualEpsilonGreedy
from armlet.testing.logs import Held
from support import stories
from support.decided import played


@pytest.fixture(scope="module")
def usual() -> Story:
    return stories.usual()


@pytest.fixture(scope="module")
def far(usual: Story) -> Story:
    return stories.far(usual)


@pytest.fixture(scope="module")
def pages(usual: Story, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return stories.write_pages(usual, tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", ["usual", "far", "bare"])
def test_nothing_is_loaded_from_anywhere(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'&]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(script|link|img|iframe|object|image|b)\b", text)


def test_the_same_story_gives_the_same_bytes(usual: Story) -> None:
    assert render(usual) == render(usual)


def test_a_refused_policy_has_neither_value_nor_interval(pages: dict[str, Path]) -> None:
    text = pages["far"].read_text(encoding="utf-8")
    assert "refused: see the checks" in text
    assert "nan" not in text


def test_every_check_is_told_with_its_word_and_number(pages: dict[str, Path], usual: Story) -> None:
    text = pages["usual"].read_text(encoding="utf-8")
    for check in usual.checks:
        assert check.sentence.replace("'", "&#x27;") in text
    assert text.count('<tr role="row"><th') >= len(usual.checks)


def test_limits_depend_on_what_was_found(usual: Story, far: Story) -> None:
    assert not any("No range of rewards" in told for told in limits(usual))
    assert any("No range of rewards" in told for told in limits(far))
    drifted = Check(name="drift of rewards", word=Word.WARNING, sentence="It drifts.", number=0.0, unit="p-value")
    assert any("The environment changed" in told for told in limits(replace(usual, checks=(drifted,))))


def test_little_support_is_grey(pages: dict[str, Path]) -> None:
    assert "too few effective rows" in pages["usual"].read_text(encoding="utf-8")
    assert "too few effective rows" not in pages["bare"].read_text(encoding="utf-8")


def test_an_evaluation_saves_a_page_whose_bands_end_where_its_sequences_do(tmp_path: Path) -> None:
    log = Held(played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500), range(3), (0.0, 1.0))
    result = evaluate(log, {"always 0": 0})
    (path,) = result.paths
    assert (path.low[-1], path.high[-1]) == pytest.approx(result["always 0"].anytime)
    result.save(tmp_path / "page.html")
    assert "Bands hold at all looks" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert np.isnan(evaluate(log, {"always 0": 0}, interval="fixed").paths[0].low).all()
