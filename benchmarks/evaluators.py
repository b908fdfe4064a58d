"""Other packages that evaluate from logs, each in an environment of its own: rows out as a file, JSON back."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from armlet_lab.runner.venvs import Recipe
from armlet_lab.runner.venvs import environment as make
from venvs import HERE, PINS, ROOT

RECIPES = {
    "obp": Recipe(
        name="obp-evaluation",
        requires=("numpy", "scikit-learn", "pandas"),
        without_dependencies=("obp",),
        constraints=PINS.read_text(),
    ),
    "vw_estimators": Recipe(name="vw-estimators", requires=("vw-estimators", "numpy"), constraints=PINS.read_text()),
}
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def ask(package: str, question: str, **arrays: Any) -> Any:
    """Put a question to a package: `evaluators_<package>.py` answers it in the package's own environment.

    Parameters
    ----------
    question
        The name of a function of that script.
    arrays
        What it is about.
    """
    recipe = RECIPES[package]
    place = make(recipe, ROOT / ".venvs" / recipe.name, lambda words: print(f"    {words}", flush=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, **arrays)
        command = [str(place.python), str(HERE / f"evaluators_{package}.py"), question, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])
