"""Vowpal Wabbit itself, in its environment: what the bake-off makes of its answers.

.venv/bin/pytest benchmarks/test_vowpal.py       # part of `make bench`; installs Vowpal Wabbit if it is not there
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armlet.datasets import read_table
from armlet.parallel import Seeds
from armlet_lab.contests import vowpal
from armlet_lab.contests.classification import shuffled
from support.tables import made_text

TABLE = read_table("balanced/made", made_text(1, 400))
ORDER = shuffled(Seeds(1), TABLE.name, 0, len(TABLE), 400)


@pytest.mark.parametrize("group", list(vowpal.GROUPS))
def test_every_setting_of_the_bake_off_is_taken(group: str) -> None:
    found = vowpal.mistakes(TABLE, ORDER[:20], vowpal.GROUPS[group], seed=1)
    assert len(found) == len(vowpal.GROUPS[group])


def test_it_learns_what_can_be_learned_and_answers_the_same_again() -> None:
    found = vowpal.mistakes(TABLE, ORDER, vowpal.USUAL, seed=1)
    assert min(each.mean() for each in found) < 0.25  # uniform play: 2/3
    again = vowpal.mistakes(TABLE, ORDER, vowpal.USUAL[::-1], seed=1)[::-1]
    assert np.array_equal(found, again)  # whatever was played before in the same process


def test_mistakes_are_the_progressive_loss_that_it_reports_itself() -> None:
    frame = f"--cbify {TABLE.n_arms} --cb_explore_adf --random_seed 1 -b 24 --quiet"
    program = (
        "import sys, vowpalwabbit\n"
        f"vw = vowpalwabbit.Workspace({f'{frame} {vowpal.USUAL[0].options}'!r})\n"
        "for line in sys.stdin: vw.learn(line)\n"
        "print(vw.get_sum_loss())\n"
    )
    rows = "".join(vowpal.lines(TABLE.X[ORDER], TABLE.y[ORDER]))
    asked = [str(vowpal.prepare()), "-c", program]
    reported = float(subprocess.run(asked, input=rows, capture_output=True, text=True, check=True).stdout)
    assert vowpal.mistakes(TABLE, ORDER, vowpal.USUAL[:1], seed=1)[0].sum() == reported


def test_told_costs_it_plays_as_if_told_classes() -> None:
    options = vowpal.USUAL[0].options
    arms = vowpal.choices(TABLE.X[ORDER], 1 - TABLE.rewards()[ORDER], options, seed=1)
    (wrong,) = vowpal.mistakes(TABLE, ORDER, vowpal.USUAL[:1], seed=1)
    assert np.array_equal(arms != TABLE.y[ORDER], wrong == 1)


def test_the_tutorial_shows_what_both_programs_earn() -> None:
    root, asked = Path(__file__).parents[1], "import vowpalwabbit; print(vowpalwabbit.__path__[0])"
    found = subprocess.run([str(vowpal.prepare()), "-c", asked], capture_output=True, text=True, check=True)
    both = {**os.environ, "PYTHONPATH": str(Path(found.stdout.strip()).parent)}
    example = [sys.executable, str(root / "examples" / "replace_vowpal_wabbit.py")]
    printed = subprocess.run(example, env=both, capture_output=True, text=True, check=True).stdout
    assert printed.count("\n") == 5
    assert printed in (root / "docs" / "tutorials" / "replace-vowpal-wabbit.md").read_text()
