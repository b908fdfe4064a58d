"""Draws the figures of docs/how-to/how-much-to-explore.md.

    python docs/explore_figures.py results/explore docs/figures

takes the rates from the experiment in the first folder, and asks the advisor about two customers.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from armlet.advice import advise
from armlet.advice.command import regret_by_p
from armlet.environments import Customers

if __name__ == "__main__":
    found, figures = map(Path, sys.argv[1:])
    shutil.copy(found / "figures" / "section42-online-2.svg", figures / "explore-rates.svg")
    advice = advise(Customers.draw, horizon=100_000, seed=1, unit="clicks")
    (figures / "explore-clicks.svg").write_text(regret_by_p(advice).svg, encoding="utf-8")
