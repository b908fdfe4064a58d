"""Several shadows beside a control by policy and a frozen live policy: rows, log, restarts, comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.errors import ArmletError
from armlet.log.exporting import write
from armlet.log.reader import read
from armlet.stores import Control, Memory, Store
from armlet.testing.stores import Place
from support.stores.guards import SEED, assert_guarded, everything_guarded, play, relearned, rows_of

SHADOWS = {"bold": armlet.LinUCB(alpha=2.0), "shy": armlet.Greedy()}
LIVE = armlet.FixedEpsilon(epsilon=0.3)


def test_everybody_together_is_what_the_rows_say(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["old", "new", "third"], features=["one", "u"], policy=LIVE, seed=SEED)
        play(loop, 0, 20)
        loop.change(control=Control(policy=armlet.LinUCB(), share=0.3), shadow=SHADOWS, how="refit")
        play(loop, 20, 20)
        assert_guarded(store, loop)
        loop.freeze()
        frozen = loop.model().state.n.tolist()
        play(loop, 40, 20)
        assert loop.model().state.n.tolist() == frozen
        assert_guarded(store, loop)
        loop.retire_arm("third")
        loop.forget("e1")
        play(loop, 60, 5)
        loop.restore_arm("third")
        before = loop._runner.cast.to_bytes()
    with Store(place()) as store:
        loop = store.loop("homepage")
        loop.model()
        cast = loop._runner.cast
        assert cast.to_bytes() == before
        assert_guarded(store, loop)
        loop.thaw()
        play(loop, 65, 10)
        assert loop.promote(gate="off", shadow="shy", control=0.2).promoted
        play(loop, 75, 10)
        assert loop.model().policy == SHADOWS["shy"]
        cast = loop._runner.cast
        assert (list(cast.shadows), cast.player and cast.player.policy) == (["bold"], LIVE)
        assert_guarded(store, loop)
        shadows = [list(row.fields.get("shadows", {})) for row in rows_of(loop, "decide")]
        assert (shadows[0], shadows[25], shadows[-1]) == ([], ["bold", "shy"], ["bold"])


def test_new_set_of_shadows_keeps_those_that_stay(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["old", "new"], features=["one", "u"], policy=LIVE, seed=SEED)
        loop.change(shadow=SHADOWS, how="refit")
        play(loop, 0, 40)
        bold = loop._runner.cast.shadows["bold"].digest()
        assert not loop.change(shadow=dict(reversed(SHADOWS.items())))
        loop.change(shadow={"bold": SHADOWS["bold"], "shadow": LIVE})
        assert loop._runner.cast.shadows["bold"].digest() == bold == relearned(loop, SHADOWS["bold"]).digest()
        gains = {gain.shadow: gain for gain in loop.gains() if gain.against == "shadow"}
        assert gains.keys() == {None, "bold"}
        assert gains["bold"].rows > 0 == gains[None].rows
        assert_guarded(store, loop)


def test_unknown_name_of_a_shadow_is_refused(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["old", "new"], features=["one", "u"], policy=LIVE, seed=SEED)
        loop.change(shadow=SHADOWS, how="refit")
        before = everything_guarded(store, loop)
        for name in (None, "none"):
            with pytest.raises(ArmletError, match=r"choose one of \['bold', 'shy'\]"):
                loop.promote(gate="off", shadow=name)
        assert everything_guarded(store, loop) == before


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_log_with_several_shadows_is_exported(ending: str, tmp_path: Path) -> None:
    with Store(Memory()) as store:
        loop = store.loop("homepage", arms=["old", "new"], features=["one", "u"], policy=LIVE, seed=SEED)
        loop.change(shadow=SHADOWS, how="refit")
        play(loop, 0, 30)
        path = tmp_path / f"log.{ending}"
        write(loop.log, path)
        there = [event for event in read(path) if event["kind"] == "decide"]
        assert there == [event for event in loop.log if event["kind"] == "decide"]
        assert all(event["shadows"].keys() == SHADOWS.keys() for event in there)
