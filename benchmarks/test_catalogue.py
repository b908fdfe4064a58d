"""The catalogue next to Vowpal Wabbit: what the environment draws, and that keeping parsed examples changes nothing.

.venv/bin/pytest benchmarks/test_catalogue.py       # part of `make bench`; installs Vowpal Wabbit if it is not there
"""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import catalogue
import catalogue_report
import text
from armlet.environments import Catalogue

FEW = catalogue.World("few", "few", horizon=300)

TEXT = """
import random, sys
import numpy as np, vowpalwabbit
from catalogue_worker import written
with np.load(sys.argv[1]) as held:
    X, Z, offered, rewards = (held[name] for name in ("X", "Z", "offered", "rewards"))
vw = vowpalwabbit.Workspace(f"--cb_explore_adf {sys.argv[2]} --quiet --random_seed 8")
draw, items = random.Random(8).choices, [written("z", row) for row in Z.tolist()]
for t, x in enumerate(X.tolist()):
    shared, lines = f"shared {written('x', x)}", [items[item] for item in offered[t]]
    chances = vw.predict([shared, *lines])
    place = draw(range(len(lines)), chances)[0]
    lines[place] = f"0:{-rewards[t, place]:.7g}:{chances[place]:.7g} {lines[place]}"
    vw.learn([shared, *lines])
    print(place)
"""


def test_what_is_drawn_is_what_the_environment_offers() -> None:
    draws = catalogue.draw(FEW, 7)
    made = Catalogue.draw(np.random.default_rng([30, 7, 0]), horizon=300)
    for t in (1, 2, 3, 150, 300):
        assert set(draws.offered[t - 1].tolist()) == set(made.offered(t).tolist())
        means = made.means(draws.X[t - 1 : t])[0][draws.offered[t - 1]]
        np.testing.assert_allclose(draws.means[t - 1], means, rtol=1e-12)
    new = catalogue_report.is_new(draws.offered, np.arange(300) % 200)
    births = np.array(made.births)[draws.offered[np.arange(300), np.arange(300) % 200]]
    assert np.array_equal(new, (births > 1) & (np.arange(1, 301) - births < catalogue_report.NEW))


@pytest.mark.parametrize("options", ["--squarecb --gamma_scale 3000 -l 20", "--epsilon 0 -l 40"])
def test_kept_examples_play_as_text_does(options: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    draws, path = catalogue.draw(FEW, 7), tmp_path_factory.mktemp("rows") / "draws.npz"
    np.savez(path, X=draws.X, Z=draws.Z, offered=draws.offered, rewards=draws.rewards)
    command = [str(catalogue.vowpal_python()), "-c", TEXT, str(path), f"-q xz {options}"]
    done = subprocess.run(command, cwd=catalogue.ROOT / "benchmarks", capture_output=True, text=True, check=True)
    ((played, _),) = catalogue.ask([catalogue.Vowpal("", options)], draws)
    assert played.tolist() == [int(line) for line in done.stdout.split()]


def test_snippets_are_told_apart_by_their_words_alone() -> None:
    snippets = text.read()
    assert len(snippets.y) == text.ROWS
    assert set(snippets.y.tolist()) == set(range(len(text.PACKAGES)))
    named = [text.PACKAGES[label] in words for words, label in zip(*snippets, strict=True)]
    assert not any(named)
    assert text.hashed([{"a", "b"}], 8).sum() == 2.0
