"""Every world by name. To add one: write its file, add its line."""

from __future__ import annotations

from armlet.environments.figure_a import FigureA

ENVIRONMENTS: dict[str, type[FigureA]] = {
    "FigureA": FigureA,
}

__all__ = ["ENVIRONMENTS", "FigureA"]
