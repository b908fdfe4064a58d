"""What is handed out: the source distribution and the wheel, their metadata, and the extras that errors name."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

import package
import release
from armlet.errors import EXTRAS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.build_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_source_distribution_holds_what_it_should(sdist: Path) -> None:
    assert package.faults(sdist) == []
    assert sdist.stat().st_size < 2_500_000  # a stray picture or model is more than the rest of the room


@pytest.mark.long  # compiles the kernel once more
def test_a_wheel_holds_every_module_and_the_kernel_and_nothing_else(wheel: Path) -> None:
    assert package.faults(wheel) == []
    files = [path for path in (ROOT / "src" / "armlet").rglob("*.*") if path.suffix in {".py", ".css", ".js"}]
    sources = {str(path.relative_to(ROOT / "src")) for path in files}
    kernel = {name for name in package.names_in(wheel) if name.endswith(".so")}
    others = {name for name in package.names_in(wheel) if ".dist-info/" not in name}
    assert others == sources | kernel | {"armlet/_kernel.pyi", "armlet/py.typed"}
    assert len(kernel) == 1


@pytest.mark.long
def test_an_index_would_take_their_metadata(sdist: Path, wheel: Path) -> None:
    assert package.metadata_faults([sdist, wheel]) == []


def test_a_distribution_that_lacks_something_or_holds_too_much_is_told(
    sdist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "IN_SDIST", ("nothing.txt",))
    monkeypatch.setattr(package, "NOT_IN_SDIST", ("README.md",))
    assert package.faults(sdist) == [f"{sdist.name} lacks nothing.txt", f"{sdist.name} holds README.md"]


def test_every_extra_that_an_error_names_exists_and_brings_the_package() -> None:
    extras = PROJECT["optional-dependencies"]
    for name, extra in EXTRAS.items():
        assert any(re.match(r"[a-z0-9]+", need)[0] in (name, "dask") for need in extras[extra]), extra  # type: ignore[index]
    everything = re.findall(r"\w+", extras["all"][0])
    assert set(everything[1:]) == set(extras) - {"all"}


def test_the_named_pythons_are_those_that_are_allowed() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert named == sorted(named, key=lambda version: int(version[2:]))


def test_links_of_the_documentation_lead_to_files() -> None:
    assert release.broken_links() == []


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("[here](there.md), [page](https://example.org), [part](#part)")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.broken_links() == ["README.md: there.md"]


def test_what_is_installed_is_this_version() -> None:
    assert importlib.metadata.version("armlet") == release.version()
