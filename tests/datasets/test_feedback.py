"""Decisions that were really made: read from a wheel that is never imported, and made a log of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armlet import datasets
from armlet.cli import main
from armlet.datasets import feedback, table
from armlet.errors import ArgumentError, InvalidValueError
from armlet.log import from_dataset, from_obp, read
from support.tables import made_recommendations, made_trial, make_wheel, pinned_to

ROWS = 30


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with the made logs of both collections, to which they are pinned."""
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    places = feedback.OPEN_BANDIT.files
    logs = {place: made_recommendations(ROWS, 4, seed) for seed, place in enumerate(places.values())}
    trial = {place: made_trial(12) for place in feedback.ACTG175.files.values()}
    for module, name, texts in ((feedback, "OPEN_BANDIT", logs), (feedback, "ACTG175", trial)):
        wheel = make_wheel(tmp_path, texts, getattr(module, name))
        pinned = pinned_to(wheel, getattr(module, name))
        monkeypatch.setattr(module, name, pinned)
        monkeypatch.setitem(datasets.COLLECTIONS, pinned.name, pinned)
        datasets.fetch(pinned, wheel=wheel)


@pytest.mark.usefixtures("fetched")
def test_an_open_bandit_log_has_its_rows_in_the_order_of_time() -> None:
    rows = datasets.open_bandit("bts", "men")
    assert (len(rows), rows.n_arms, rows.labels) == (ROWS, 4, (0, 1, 2, 3))  # item 3 is never shown, and there
    assert rows.at is not None
    assert rows.slots is not None
    assert np.all(np.diff(rows.at) == 1_000_000)
    assert rows.at[-1] == 1_574_557_199_500_000
    assert rows.slots.tolist()[-3:] == [3, 2, 1]
    assert set(rows.propensities) == {0.25}
    assert rows.X.sum(axis=1).tolist() == [4.0] * ROWS  # a flag for each of the four features of the user


@pytest.mark.usefixtures("fetched")
def test_both_loggers_of_a_campaign_share_their_features() -> None:
    first, second = datasets.open_bandit("random", "women"), datasets.open_bandit("bts", "women")
    assert first.features == second.features
    assert not np.array_equal(first.X, second.X)


def test_items_of_a_campaign_have_features_in_the_order_of_its_arms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    text = ",item_id,item_feature_0,item_feature_1\n0,1,0.5,shirt\n1,0,-2,shoe\n"
    wheel = make_wheel(tmp_path, dict.fromkeys(feedback.ITEMS.files.values(), text), feedback.ITEMS)
    monkeypatch.setattr(feedback, "ITEMS", pinned_to(wheel, feedback.ITEMS))
    datasets.fetch(feedback.ITEMS, wheel=wheel)
    names, Z = datasets.open_bandit_items("men")
    assert names == ("item_feature_0", "item_feature_1=shirt", "item_feature_1=shoe")
    assert Z.tolist() == [[-2.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    with pytest.raises(InvalidValueError, match="campaign is 'kids'; choose from all, men, women"):
        datasets.open_bandit_items("kids")  # type: ignore[arg-type]


@pytest.mark.usefixtures("fetched")
def test_the_trial_pays_the_change_of_cd4() -> None:
    rows = datasets.actg175()
    assert rows.rewards.tolist() == [50.0 * (arm == 1) for arm in rows.arms]
    assert (rows.n_arms, rows.dim, set(rows.propensities)) == (4, 16, {0.25})
    assert not {"cd420", "cd496", "arms"} & set(rows.features)  # nothing that was known only afterwards


@pytest.mark.usefixtures("fetched")
def test_a_log_of_one_slot_has_its_rows_and_names() -> None:
    rows = datasets.open_bandit("random", "all")
    assert rows.slots is not None
    events = list(from_dataset(rows, slot=2))
    decisions = [event for event in events if event["kind"] == "decide"]
    of_slot = np.flatnonzero(rows.slots == 2)
    assert [event["x"] for event in decisions] == rows.X[of_slot].tolist()
    assert [event["arm"] for event in decisions] == rows.arms[of_slot].tolist()
    assert [event["reward"] for event in events if event["kind"] == "learn"] == rows.rewards[of_slot].tolist()
    assert events[0]["features"] == list(rows.features)
    theirs = [event for event in from_obp(rows.as_obp(), slot=1) if event["kind"] == "decide"]
    assert [event["x"] for event in theirs] == [event["x"] for event in decisions]


@pytest.mark.usefixtures("fetched")
def test_a_slot_is_asked_for_where_there_are_several_and_refused_where_there_are_none() -> None:
    with pytest.raises(ArgumentError, match=r"slot is missing, and rows are of the slots \[1, 2, 3\]"):
        from_dataset(datasets.open_bandit())
    with pytest.raises(ArgumentError, match="slot is 4"):
        from_dataset(datasets.open_bandit(), slot=4)
    with pytest.raises(ArgumentError, match="actg175 has no slots"):
        from_dataset(datasets.actg175(), slot=1)


@pytest.mark.usefixtures("fetched")
def test_the_command_lists_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "list", "open-bandit"])
    assert "     30     4" in capsys.readouterr().out
    main(["data", "log", "actg175", "actg175", str(tmp_path / "trial.jsonl")])
    assert read(tmp_path / "trial.jsonl").about["arms"] == list(feedback.TREATMENTS)
    for wrong in (["open-bandit", "random/men"], ["keel", "balanced/iris"]):
        with pytest.raises(SystemExit, match="2"):
            main(["data", "log", *wrong, str(tmp_path / "none.jsonl")])
    with pytest.raises(SystemExit, match="1"):
        main(["data", "log", "open-bandit", "random/children", str(tmp_path / "none.jsonl")])
    assert "it has bts/all" in capsys.readouterr().err


@pytest.mark.usefixtures("fetched")
def test_wrong_names_are_named() -> None:
    with pytest.raises(ValueError, match="logger is 'ucb'; choose from random, bts"):
        datasets.open_bandit("ucb")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"open-bandit has no classes but decisions.*datasets.open_bandit\(\)"):
        datasets.load("open-bandit", "random/men")
    with pytest.raises(ValueError, match="keel has no decisions; choose from actg175, open-bandit"):
        datasets.load_feedback("keel", "balanced/iris")


def test_what_is_not_fetched_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path))
    with pytest.raises(datasets.DatasetError, match="armlet data fetch actg175"):
        datasets.actg175()


@pytest.mark.parametrize("name", datasets.SKLEARN.tables)
def test_tables_of_scikit_learn_are_bandits(name: str) -> None:
    table = datasets.load("sklearn", name)
    assert table.X.shape == (len(table), table.dim)
    assert table.y.max() + 1 == table.n_arms
    assert table.rewards().sum() == len(table)


def test_without_scikit_learn_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "find_spec", lambda _: None)
    with pytest.raises(datasets.DatasetError, match="pip install scikit-learn"):
        datasets.load("sklearn", "digits")
    with pytest.raises(datasets.DatasetError, match="no table 'boston'"):
        datasets.load("sklearn", "boston")
    with pytest.raises(SystemExit, match="2"):
        main(["data", "fetch", "sklearn"])
