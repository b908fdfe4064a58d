"""One virtual environment per peer under .venvs/, kept until its pins change."""

from pathlib import Path

from armlet_lab.runner.venvs import InstallError, Recipe, Venv, last_line, tree_bytes
from armlet_lab.runner.venvs import environment as make
from peers import Peer

__all__ = ["HERE", "PINS", "ROOT", "InstallError", "Venv", "environment", "last_line", "tree_bytes"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PINS = HERE / "peers.txt"


def environment(peer: Peer) -> Venv:
    """Find the environment of a peer, installed now unless that was done before with the same pins."""
    recipe = Recipe(
        name=peer.name,
        requires=peer.requires,
        without_dependencies=peer.without_dependencies,
        for_the_worker=peer.for_the_worker,
        constraints=PINS.read_text(),
    )
    return make(recipe, ROOT / ".venvs" / peer.name, lambda words: print(f"    {words}", flush=True))
