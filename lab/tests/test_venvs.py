"""Environments of their own: made once by a recipe, whole or not at all."""

from __future__ import annotations

import dataclasses
import subprocess
import zipfile
from pathlib import Path

import pytest

from armlet_lab.runner.venvs import InstallError, Recipe, environment


def make_wheel(folder: Path) -> None:
    """Write a package that pip can install without an index."""
    info = "made_peer-1.0.dist-info"
    files = {
        "made_peer.py": "ANSWER = 42\n" + "#" * 2_000_000,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: made-peer\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / "made_peer-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)


def test_a_recipe_is_installed_once_and_anew_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    recipe, folder, said = Recipe(name="peer", requires=("made-peer",)), tmp_path / "venvs" / "peer", list[str]()
    made = environment(recipe, folder, said.append)
    asked = [str(made.python), "-c", "import made_peer; print(made_peer.ANSWER)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "42\n"
    assert 2.0 <= made.megabytes < 2.1
    assert environment(recipe, folder, said.append) == made
    assert "already installed" in said[-1]
    with pytest.raises(InstallError, match="Cannot install made-peer"):  # what was there stays, as it is still whole
        environment(dataclasses.replace(recipe, constraints="made-peer==2.0\n"), folder, said.append)
    assert environment(recipe, folder, said.append) == made
    assert [path.name for path in folder.parent.iterdir()] == ["peer"]
