"""The examples run, and show what they say they show; the web app and the router have tests in `stores`, `routing`."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet import datasets
from support.streams import CONTEXTS, make_stream

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_every_example_is_tested_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "algorithm_1",
        "clinical_trial",
        "digits",
        "late_clicks",
        "litellm_router",
        "merge_regions",
        "replace_vowpal_wabbit",
        "web_app",
    }


@pytest.mark.parametrize("contexts", CONTEXTS)
@pytest.mark.parametrize(("dim", "n_arms", "p", "seed"), [(1, 1, 1, 0), (3, 6, 8.5, 2013), (9, 4, 30, 2**127 + 5)])
def test_the_page_of_numpy_plays_what_the_kernel_plays(
    dim: int, n_arms: int, p: float, seed: int, contexts: str
) -> None:
    """Arms, propensities, sums and estimates with ==, ties and singular systems included."""
    slow = runpy.run_path(str(EXAMPLES / "algorithm_1.py"))["Algorithm1"](n_arms, dim, p, seed)
    fast = armlet.Bandit(range(n_arms), dim, policy=armlet.Algorithm1(p=p), seed=seed)
    stream = make_stream(120, dim, n_arms, seed=dim, contexts=contexts)
    for x, rewards in zip(stream.contexts, stream.rewards, strict=True):
        arm, propensity, explored = slow.decide(x)
        decision = fast.decide(x)
        assert (arm, propensity, explored) == (decision.arm, decision.propensity, decision.explored)
        fast.learn(decision, float(rewards[arm]))
        if explored:
            slow.learn(x, arm, float(rewards[arm]))
    for name in ("n", "A", "b"):
        np.testing.assert_array_equal(getattr(slow, name), getattr(fast.state, name))
    np.testing.assert_array_equal(slow.estimates(), fast.state.estimates())
    assert 0 < slow.n.sum() < 120


def test_the_page_of_numpy_loses_less_than_chance(capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(EXAMPLES / "algorithm_1.py"))["main"]
    assert main(steps=600, p=60.0) < main(steps=600, p=600.0) / 2  # with p = T every step explores
    assert "600 steps, 600 explored" in capsys.readouterr().out


def test_every_example_is_linked_from_the_docs() -> None:
    pages = "".join(page.read_text() for page in (EXAMPLES.parent / "docs").rglob("*.md"))
    assert [path.name for path in EXAMPLES.glob("*.py") if f"](../../examples/{path.name})" not in pages] == []


def test_late_clicks_beat_a_random_ad(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "late_clicks.py"))
    # a share of 20,000 clicks at about 10 % has a standard deviation of 0.2 %
    assert example["main"]() > example["random_rate"]() + 0.01
    assert "explored impressions" in capsys.readouterr().out


def test_merged_regions_know_the_sum_of_what_each_knew(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "merge_regions.py"))
    both = example["main"]()
    parts = [example["learn_a_region"](1, 3000), example["learn_a_region"](2, 5000)]
    assert both.state.n.tolist() == [sum(rows) for rows in zip(*(part.state.n for part in parts), strict=True)]
    assert both.t == 8000
    assert "both: 8000 decisions" in capsys.readouterr().out


def test_a_treatment_policy_is_valued_on_patients_that_it_has_not_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a made trial in which one treatment helps everybody, which is what the page says of the real one."""
    rng = np.random.default_rng(0)
    arms = rng.integers(2, size=400)
    made = datasets.Feedback(
        name="made",
        X=rng.normal(size=(400, 2)),
        arms=arms,
        rewards=50.0 * arms + rng.normal(size=400),
        propensities=np.full(400, 0.5),
        labels=("zidovudine", "zidovudine+didanosine"),
        features=("age", "wtkg"),
    )
    monkeypatch.setattr(datasets, "actg175", lambda: made)
    runpy.run_path(str(EXAMPLES / "clinical_trial.py"))["main"]()
    printed = capsys.readouterr().out
    assert "200 of 200 decisions have a reward" in printed
    assert "from zidovudine+didanosine" in printed
    assert "not clear" in printed


def test_docs_show_what_the_loop_without_vowpal_wabbit_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of Vowpal Wabbit itself are compared in `benchmarks/test_vowpal.py`, which installs it."""
    runpy.run_path(str(EXAMPLES / "replace_vowpal_wabbit.py"))["main"](settings=[])
    printed = capsys.readouterr().out
    assert printed.count("\n") == 2
    assert printed in (EXAMPLES.parent / "docs" / "tutorials" / "replace-vowpal-wabbit.md").read_text()


def test_docs_show_what_the_digits_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLES / "digits.py"))
    earned = example["main"](out=tmp_path / "digits.svg")
    assert earned["the default"] > 0.7  # a guess earns 0.1
    assert (tmp_path / "digits.svg").read_text().startswith("<?xml")
    page = (EXAMPLES.parent / "docs" / "tutorials" / "digits.md").read_text()
    assert capsys.readouterr().out in page
