"""Randomness by word: a function of what is asked, the same everywhere, and no two places in the package share one."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.parallel import Seeds, _spell

KEYS = st.lists(st.text(max_size=9) | st.integers(0, 2**64 - 1), max_size=4)


def drawn(seeds: Seeds, *key: int | str) -> float:
    return float(seeds.rng("word", *key).random())


@given(KEYS, KEYS)
def test_two_keys_are_spelled_alike_only_if_they_are_the_same(one: list[int | str], two: list[int | str]) -> None:
    spelled = [[word for part in key for word in _spell(part)] for key in (one, two)]
    assert (spelled[0] == spelled[1]) == (one == two)
    assert all(0 <= word < 2**32 for word in spelled[0])  # numpy would cut a longer one into several


def test_keys_that_are_easily_confused_draw_differently() -> None:
    keys: list[tuple[int | str, ...]] = [
        (),
        (0,),
        (0, 0),
        (1,),
        (2**32,),
        (0, 1),
        ("",),
        ("\0",),
        ("0",),
        ("a", "b"),
        ("ab",),
    ]
    places = [Seeds(1), Seeds(2), Seeds(1, "word"), Seeds(2**32 + 1), Seeds(2**127)]
    found = [drawn(seeds, *key) for seeds, key in itertools.product(places, keys)]
    assert len(set(found)) == len(found)
    assert Seeds(1, "a").seed("b") != Seeds(1, "").seed("ab") != Seeds(1, "ab").seed("")


def test_a_worker_with_another_hash_seed_draws_the_same() -> None:
    code = "import sys, pickle; print(pickle.loads(bytes.fromhex(sys.argv[1])).seed('worlds', 'north', 3))"
    seeds = Seeds(12, "place")
    for hashed in ("0", "1"):
        command = [sys.executable, "-c", code, pickle.dumps(seeds).hex()]
        said = subprocess.run(command, env={"PYTHONHASHSEED": hashed}, capture_output=True, check=True, text=True)
        assert int(said.stdout) == seeds.seed("worlds", "north", 3)


def test_the_streams_of_published_figures_stay_what_they_are() -> None:
    assert Seeds(12073024, "fig-a").seed("worlds", 0) == 8656192799515696038


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_that_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=rf"numbered {number}; give a number from 0"):
        Seeds(1).rng("worlds", number)
    with pytest.raises(ValueError, match="seed is -1"):
        Seeds(-1)
