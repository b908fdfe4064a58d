"""Vowpal Wabbit on one table in one order; run by the Python of its own environment, which has nothing of ours.

    python vowpal_worker.py < '{"settings": [["rows.vw", "--cbify 3 --cb_explore_adf --regcbopt"]]}'

Every setting reads its file once, predicting each row before it learns from it, and answers one line of JSON: the
class that it chose in every row, counted from 1.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path


def choices(rows: str, options: str) -> list[int]:
    """Play the rows of a file in order."""
    vowpal = importlib.import_module("vowpalwabbit")
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "chosen.txt"
        workspace = vowpal.Workspace(f"{options} --quiet -d {rows} -p {chosen}")
        workspace.run_parser()
        workspace.finish()
        return [int(float(word)) for word in chosen.read_text().split()]


def main() -> None:
    """Answer what was asked."""
    for rows, options in json.load(sys.stdin)["settings"]:
        print(json.dumps(choices(rows, options)), flush=True)


if __name__ == "__main__":
    main()
