"""Vowpal Wabbit in the catalogue of catalogue.py, in an environment of its own; prints one line of JSON.

    python benchmarks/catalogue_worker.py DRAWS.npz TASKS.json OUT.npz

DRAWS has contexts X (T, d), items Z (K, f), which of them are offered (T, n), and what each would pay (T, n). A task
has options, whether the actions also have their own name as a feature (`ids`), and a seed. OUT has the place of what
was played among those offered, (tasks, T), and the CPU time of a step in microseconds.

Text is parsed only where it is new: the context, an item that came, and the one that was played and has a label now.
The other examples are kept from step to step, which takes a quarter of the time of text for each call, and plays the
same.
"""

import json
import random
import sys
from pathlib import Path
from time import process_time

import numpy as np
import vowpalwabbit


def written(space: str, row: list[float]) -> str:
    """Write numbers as the features of a namespace."""
    return f"|{space} " + " ".join(f"{space}{place}:{value:.7g}" for place, value in enumerate(row))


def play(
    options: str, seed: int, items: list[str], X: np.ndarray, offered: np.ndarray, rewards: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return what one setting played, and its CPU time a step."""
    vw = vowpalwabbit.Workspace(f"--cb_explore_adf {options} --quiet --random_seed {seed}")
    draw, places = random.Random(seed).choices, range(offered.shape[1])
    played = np.empty(len(X), dtype=np.int32)
    lists, paid = offered.tolist(), rewards.tolist()
    kept, before, played_last = [], [-1] * len(places), -1
    started = process_time()
    for t, x in enumerate(X.tolist()):
        new = [place for place in places if lists[t][place] != before[place] or place == played_last]
        parsed = vw.parse("\n".join([f"shared {written('x', x)}", *(items[lists[t][place]] for place in new)]))
        kept[:1] = parsed[:1]
        for place, example in zip(new, parsed[1:], strict=True):
            kept[place + 1 : place + 2] = [example]
        chances = vw.predict(kept)
        place = draw(places, chances)[0]
        kept[place + 1].set_label_string(f"0:{-paid[t][place]:.7g}:{chances[place]:.7g}")
        vw.learn(kept)
        played[t], played_last, before = place, place, lists[t]
    spent = process_time() - started
    vw.finish()
    return played, 1e6 * spent / len(X)


def main(draws: str, tasks: str, out: str) -> dict[str, int]:
    """Play all tasks."""
    with np.load(draws) as held:
        X, Z, offered, rewards = (held[name] for name in ("X", "Z", "offered", "rewards"))
    plain = [written("z", row) for row in Z.tolist()]
    named = [f"{line} |i i{item}" for item, line in enumerate(plain)]
    asked = json.loads(Path(tasks).read_text())
    found = [
        play(task["options"], task["seed"], named if task["ids"] else plain, X, offered, rewards) for task in asked
    ]
    np.savez(out, played=np.array([played for played, _ in found]), us=np.array([us for _, us in found]))
    return {"tasks": len(asked)}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
