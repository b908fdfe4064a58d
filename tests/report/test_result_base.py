"""What every result has: text, HTML for a notebook, plain data, a data frame, a figure and files."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from armlet.errors import InvalidValueError
from armlet.report import notebook
from armlet.report.result import Columns, Result


@dataclasses.dataclass(frozen=True, repr=False)
class Counted(Result):
    arms: list[str]
    counts: list[float]

    def columns(self) -> Columns:
        return {"arm": self.arms, "count": self.counts}


FOUND = Counted(["<b>a</b>", "b"], [12345.678, float("nan")])


def test_a_table_is_escaped_in_html_and_brings_its_own_style() -> None:
    shown = FOUND._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "<b>a</b>" not in shown
    assert "12,346" in shown
    assert "<style>" in shown
    assert "<script" not in shown


def test_a_long_table_is_cut_and_says_so() -> None:
    many = Counted([f"arm {i}" for i in range(100)], [1.0] * 100)
    assert many._repr_html_().count("<tr>") == 1 + notebook.MOST
    assert "70 more rows" in many._repr_html_()
    assert repr(many).endswith("... 61 more lines: print() shows them")
    assert len(str(many).splitlines()) == 101


@pytest.mark.parametrize("ending", [".html", ".JSON", ".csv"])
def test_a_result_is_saved_by_the_ending_of_the_name(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"found{ending}"
    FOUND.save(path)
    text = path.read_text()
    if ending == ".html":
        assert text.startswith("<!DOCTYPE html>")
        assert "Counted" in text
    elif ending == ".csv":
        assert list(csv.reader(text.splitlines())) == [["arm", "count"], ["<b>a</b>", "12345.678"], ["b", "nan"]]
    else:
        assert json.loads(text) == {"arms": ["<b>a</b>", "b"], "counts": [12345.678, None]}


def test_an_ending_that_nothing_writes_is_refused_with_those_that_something_does(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"found.png'; give a name that ends in .html, .json or .csv$"):
        FOUND.save(tmp_path / "found.png")  # it has no plot
    assert list(tmp_path.iterdir()) == []


def test_a_missing_pandas_is_named_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("armlet.report.result.importlib.import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="data frames need pandas; pip install pandas"):
        FOUND.to_pandas()
