"""Count what a reader has to hold in mind: lines and files of every room, words of every folder of the docs, imports.

    python tools/rooms.py            the counts, next to their limits
    python tools/rooms.py --imports  the modules that only one other imports
    python tools/rooms.py --check    the limits, and the table of rooms; ends with 1 if one is not kept (`make lint`)
    python tools/rooms.py --write    the table of rooms, from the import contracts, into CONTRIBUTING.md

Limits stand in `pyproject.toml`, `[tool.armlet.budget]`: to raise one, edit it and give the reason in the commit.
`tools/walks.py` counts the modules that a main path enters.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
LIBRARY: Final = ROOT / "src" / "armlet"
LABORATORY: Final = ROOT / "lab" / "armlet_lab"
CODE: Final = (".py", ".cpp", ".hpp")
BEGIN: Final = "<!-- rooms: python tools/rooms.py --write -->"
END: Final = "<!-- end of rooms -->"
TESTS: Final = ("tests", "lab/tests")
MODULES: Final = "modules"
"""The room of files that lie in no folder of the library."""


def lines_of(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def code_in(folder: Path) -> list[Path]:
    """List the source files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in CODE)


def rooms() -> dict[str, list[Path]]:
    """Return the files of each room: folders of the library, its other modules, the kernel, the laboratory, tests.

    Examples
    --------
    >>> found = rooms()
    >>> LIBRARY / "bandit.py" in found["modules"], LIBRARY / "log" / "log.py" in found["log"]
    (True, True)
    """
    found = {MODULES: sorted(LIBRARY.glob("*.py"))}
    found |= {folder.name: code_in(folder) for folder in sorted(LIBRARY.iterdir()) if any(folder.rglob("*.py"))}
    found["library"] = code_in(LIBRARY)
    found["kernel"] = code_in(ROOT / "kernel")
    found["laboratory"] = code_in(LABORATORY)
    return found | {name: code_in(ROOT / name) for name in TESTS}


def words() -> Counter[str]:
    """Count the words of the docs by folder; pages without one, README and CHANGELOG among them, stand alone."""
    found: Counter[str] = Counter()
    for path in (ROOT / "docs").rglob("*.md"):
        place = path.relative_to(ROOT / "docs")
        found[f"docs/{place.parts[0]}" if len(place.parts) > 1 else f"docs/{place}"] += _words(path)
    for path in ROOT.glob("*.md"):
        found[path.name] = _words(path)
    return found


def _words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


# ---- imports and types of the library


@cache
def trees() -> dict[Path, ast.Module]:
    """Parse the modules of the library."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(LIBRARY.rglob("*.py"))}


def local_imports() -> int:
    """Count the imports inside functions of the library."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    imports = {
        id(node)
        for tree in trees().values()
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(imports)


def uses(name: str) -> int:
    """Count the places of the library's code where a function is called, or a type is named, imports aside.

    Examples
    --------
    >>> uses("no_such_name")
    0
    """
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    names = nodes if name == "Any" else [node.func for node in nodes if isinstance(node, ast.Call)]
    return sum(isinstance(node, ast.Name) and node.id == name for node in names)


def single_importers() -> dict[str, str]:
    """Return the modules of library and laboratory that exactly one module imports, and that one."""
    import grimp

    graph = grimp.build_graph("armlet", "armlet_lab")
    importers = {module: graph.find_modules_that_directly_import(module) for module in sorted(graph.modules)}
    return {module: next(iter(found)) for module, found in importers.items() if len(found) == 1}


def longest_chain() -> int:
    """Return the number of modules of the library in the longest chain of imports that run when one is imported."""
    modules = {_module(path): _imported(tree.body) for path, tree in trees().items()}
    lengths: dict[str, int] = {}

    def length(module: str) -> int:
        if module not in lengths:
            lengths[module] = 0  # should a package import its own modules, which import it
            named = {name if name in modules else name.rpartition(".")[0] for name in modules[module]}
            lengths[module] = 1 + max((length(name) for name in sorted(named) if name in modules), default=0)
        return lengths[module]

    return max(map(length, modules))


def _module(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(body: list[ast.stmt]) -> set[str]:
    """Return what statements of a module import, but for types alone."""
    names = set()
    for node in body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Try):
            names |= _imported(node.body)
    return names


# ---- the table of rooms


def contracts() -> list[list[list[str]]]:
    """Return the layers of modules, from the top, of every import contract that has some."""
    contracts: list[dict[str, Any]] = settings()["tool"]["importlinter"]["contracts"]
    return [
        [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
    ]


def table_of_rooms() -> str:
    """Lay out the rooms of both packages, those above others first, with what their docstrings say they are."""
    lines = ["| room | holds |", "|---|---|"]
    for layers in contracts():
        for names in layers:
            lines += [f"| {', '.join(f'`{name}`' for name in names)} | {'<br>'.join(map(summary, names))} |"]
    return "\n".join(lines)


def summary(name: str) -> str:
    """Return the first sentence of a module's docstring.

    Examples
    --------
    >>> summary("armlet.report")
    'What every HTML page is made of: document, tables, pictures, plots.'
    """
    parts = name.split(".")
    place = (LIBRARY if parts[0] == LIBRARY.name else LABORATORY).joinpath(*parts[1:])
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise SystemExit(f"{path.relative_to(ROOT)} has no docstring; say in a sentence what the room holds")
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()))[0].replace("|", "\\|")


def with_rooms(page: str) -> str:
    """Return CONTRIBUTING.md with the table of rooms as it follows from the contracts."""
    start, rest = page.split(BEGIN)
    return f"{start}{BEGIN}\n\n{table_of_rooms()}\n\n{END}{rest.split(END)[1]}"


# ---- limits


def settings() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def counts() -> dict[str, dict[str, int]]:
    """Return all counts by the table of their limits."""
    found = rooms()
    return {
        "lines": {room: sum(map(lines_of, paths)) for room, paths in found.items()},
        "files": {room: len(paths) for room, paths in found.items()},
        "words": dict(sorted(words().items())),
        "code": {
            "modules with one importer": len(single_importers()),
            "longest chain of imports": longest_chain(),
            "function-local imports": local_imports(),
            **{f"uses of {name}": uses(name) for name in ("cast", "getattr", "Any")},
        },
    }


def limits() -> dict[str, dict[str, int]]:
    """Read the limits."""
    budget: dict[str, dict[str, int]] = settings()["tool"]["armlet"]["budget"]
    return budget


def wheel_limit() -> int:
    """Return the bytes that a wheel may have."""
    return limits()["wheel"]["bytes"]


def excesses(counted: dict[str, dict[str, int]], allowed: dict[str, dict[str, int]]) -> Iterator[str]:
    """Say which counts exceed their limits, which have none, and which limits are of nothing.

    Examples
    --------
    >>> list(excesses({"lines": {"log": 12}}, {"lines": {"log": 12}}))
    []
    >>> for line in excesses({"lines": {"log": 12, "new": 3}}, {"lines": {"log": 11, "old": 5}}):
    ...     print(line)
    lines of log: 12, more than 11; delete some, or raise the limit in pyproject.toml and say why in the commit
    lines of new: 3, without a limit; give it one in pyproject.toml, [tool.armlet.budget.lines]
    lines of old: a limit of something that is not there; delete it in pyproject.toml
    """
    for table, numbers in counted.items():
        most = allowed.get(table, {})
        for name, number in numbers.items():
            if name not in most:
                fix = f"give it one in pyproject.toml, [tool.armlet.budget.{table}]"
                yield f"{table} of {name}: {number:,}, without a limit; {fix}"
            elif number > most[name]:
                fix = "delete some, or raise the limit in pyproject.toml and say why in the commit"
                yield f"{table} of {name}: {number:,}, more than {most[name]:,}; {fix}"
        for name in most.keys() - numbers.keys():
            yield f"{table} of {name}: a limit of something that is not there; delete it in pyproject.toml"


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, or compare them with their limits."""
    parser = argparse.ArgumentParser(prog="tools/rooms.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="say which counts exceed their limits, and nothing else")
    parser.add_argument("--write", action="store_true", help="write the table of rooms into CONTRIBUTING.md")
    parser.add_argument("--imports", action="store_true", help="list the modules that only one other imports")
    options = parser.parse_args(arguments)
    if options.imports:
        print(*(f"{module} <- {importer}" for module, importer in single_importers().items()), sep="\n")
        return 0
    path = ROOT / "CONTRIBUTING.md"
    page = path.read_text(encoding="utf-8")
    if options.write:
        path.write_text(with_rooms(page), encoding="utf-8")
        return 0
    counted, allowed = counts(), limits()
    if not options.check:
        for table, numbers in counted.items():
            print(table)
            for name, number in numbers.items():
                print(f"    {name:28}{number:>9,}{allowed.get(table, {}).get(name, 0):>9,}")
    lines = list(excesses(counted, allowed))
    if with_rooms(page) != page:
        lines.append("CONTRIBUTING.md has other rooms than the import contracts; call python tools/rooms.py --write")
    print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
