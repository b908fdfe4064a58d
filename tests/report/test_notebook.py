"""What objects show in a notebook, asked of a real Jupyter kernel."""

from __future__ import annotations

import pytest

from support.notebook.kernel import BAR, CELLS, SETUP, Bundle, run

PLOTS = {name for name in CELLS if name.endswith("plot")}


@pytest.fixture(scope="module")
def shown() -> dict[str, list[Bundle]]:
    return run({"setup": SETUP, **CELLS, "bar": BAR})  # a kernel starts in about a second


def test_every_object_shows_html_and_text_once(shown: dict[str, list[Bundle]]) -> None:
    assert shown["setup"] == []
    for name in CELLS.keys() - PLOTS:
        (bundle,) = shown[name]
        assert {"text/html", "text/plain"} <= bundle.keys(), name
        assert "object at 0x" not in bundle["text/plain"], name
        assert len(bundle["text/plain"]) < 3000, name
        assert "<script" not in bundle["text/html"], name
        assert "<b>east</b>" not in bundle["text/html"], name


def test_a_plot_shows_itself_though_nobody_imported_pyplot(shown: dict[str, list[Bundle]]) -> None:
    for name in PLOTS:
        (bundle,) = shown[name]
        assert "image/png" in bundle


def test_what_is_shown_is_what_was_asked_for(shown: dict[str, list[Bundle]]) -> None:
    bandit = shown["bandit"][0]
    assert bandit["text/plain"].endswith("policy=ContextualEpsilonGreedy(p=60), t=200, rows=175)")
    assert "175 rows learned" in bandit["text/html"]
    assert "&lt;b&gt;east&lt;/b&gt;" in bandit["text/html"]
    assert "70 more decisions" in shown["decisions"][0]["text/html"]
    assert "Not fitted" in shown["new encoder"][0]["text/html"]
    assert "Audit: ok" in shown["audit"][0]["text/html"]
    assert "60 decisions, 60 rewarded" in shown["details"][0]["text/html"]
    assert "the store is closed; open it again" in shown["closed loop"][0]["text/html"]


def test_a_bar_is_shown_and_renewed_in_place(shown: dict[str, list[Bundle]]) -> None:
    assert [bundle["text/plain"] for bundle in shown["bar"]] == [
        "simulating: 50 %, about 2.0 s left",
        "simulating: done in 4.0 s",
    ]
    assert '<progress max="2" value="2"' in shown["bar"][1]["text/html"]
