"""Whether this tree may be released: `make release-check` prints every answer and ends with 1 if one is no.

Version and changelog, a clean tree, links of the documentation, contents and metadata of the source distribution and of
the wheels in dist/ that `make wheels` built.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from package import ROOT, build_sdist, faults, metadata_faults

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


def main() -> int:
    """Ask every question."""
    questions: dict[str, Callable[[], list[str]]] = {
        "the changelog has a dated section for the version": changelog,
        "the version is the same everywhere": versions,
        "the tree is clean": uncommitted,
        "links of the documentation lead to files": broken_links,
        "the source distribution holds what it should": source,
        "the wheels in dist/ hold what they should": wheels,
    }
    found = {question: ask() for question, ask in questions.items()}
    for question, faults_found in found.items():
        print(
            f"{'no ' if faults_found else 'yes'}  {question}", *(f"       {fault}" for fault in faults_found), sep="\n"
        )
    return 1 if any(found.values()) else 0


def version() -> str:
    """Read the version that pyproject.toml names."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def changelog() -> list[str]:
    """Require `## [0.1.0] - 2026-01-31`."""
    dated = rf"^## \[{re.escape(version())}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(dated, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    return [] if found else [f"CHANGELOG.md has no line `## [{version()}] - YYYY-MM-DD`"]


def versions() -> list[str]:
    """Compare the packages and the citation with pyproject.toml."""
    texts = {
        "src/armlet/types.py": f'__version__ = "{version()}"',
        "lab/pyproject.toml": f'version = "{version()}"\n',
        "CITATION.cff": f"version: {version()}",
    }
    return [f"{name} does not say {text}" for name, text in texts.items() if text not in (ROOT / name).read_text()]


def uncommitted() -> list[str]:
    """Ask git."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else [done.stderr.strip()]


def broken_links() -> list[str]:
    """Follow every relative link of README, CHANGELOG, CONTRIBUTING and docs/."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [(page, target) for page in pages for target in LINK.findall(page.read_text())]
    return [f"{page.relative_to(ROOT)}: {target}" for page, target in links if not (page.parent / target).exists()]


def source() -> list[str]:
    """Build the source distribution and look into it."""
    with tempfile.TemporaryDirectory() as folder:
        made = build_sdist(Path(folder))
        return faults(made) + metadata_faults([made])


def wheels() -> list[str]:
    """Look into the wheels of this version."""
    made = sorted((ROOT / "dist").glob(f"armlet-{version()}-*.whl"))
    if not made:
        return ["there are none; make wheels builds them"]
    return [fault for wheel in made for fault in faults(wheel)] + metadata_faults(made)


if __name__ == "__main__":
    sys.exit(main())
