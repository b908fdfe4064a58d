"""Randomness by word: no two places of the packages share one, and nothing else makes generators."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from armlet_lab.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
LIBRARY, LAB = ROOT / "src" / "armlet", ROOT / "lab" / "armlet_lab"
ROOMS = [
    *(LIBRARY / room for room in ("simulation", "advice")),
    *(LAB / room for room in ("paper", "contests", "validation", "runner")),
]


def places_of(path: Path) -> tuple[str, ...]:
    """Return the rooms whose words must differ from those of a file: shared ones meet every experiment's."""
    if not path.is_relative_to(LAB):
        return ("shared",)
    room, name, *_ = path.relative_to(LAB).parts
    return (room, name.removesuffix(".py"))


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def files() -> list[Path]:
    found = [path for room in ROOMS for path in room.rglob("*.py")]
    assert len(found) > 40
    return found


def asks(call: ast.Call) -> bool:
    """Return whether a call asks for randomness by word: x.rng(word, ...) or x.seed(word, ...)."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("rng", "seed")
        and ast.unparse(call.args[0]) != "word"
    )


def test_every_word_is_asked_for_at_one_place() -> None:
    words: dict[tuple[str, ...], list[str]] = {}
    for path in files():
        for call in filter(asks, calls(path)):
            assert isinstance(call.args[0], ast.Constant), f"{path.name}: {ast.unparse(call)} must name its word"
            words.setdefault(places_of(path), []).append(str(call.args[0].value))
    shared = words.pop(("shared",))
    assert len(words) >= len(
        {places_of(LAB.parent / f"{module.replace('.', '/')}.py") for module in EXPERIMENTS.values()}
    )
    for place, mine in {("shared",): [], **words}.items():
        twice = [word for word, times in Counter([*shared, *mine]).items() if times > 1]
        assert not twice, f"{place}: {twice} are asked for at several places; give each a word of its own"


def test_nothing_else_makes_generators() -> None:
    makers = ("default_rng", "SeedSequence")
    made = {
        f"{path.relative_to(ROOT)}: {ast.unparse(call)}"
        for path in files()
        for call in calls(path)
        if ast.unparse(call.func).endswith(makers)
    }
    # an environment asked for by name is the one that its users draw from the same seed in Python
    allowed = {"src/armlet/simulation/compare.py: np.random.default_rng(seed)"}
    assert made == allowed, "ask for randomness by word, of lab.rng or Seeds"
