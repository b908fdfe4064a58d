"""The loop of a news page in Vowpal Wabbit and in Armlet, on the same visits.

    pip install vowpalwabbit==9.11.9
    python examples/replace_vowpal_wabbit.py

Two readers come in the morning or in the afternoon, and each likes one of seven articles best then. Visits, and which
articles would be clicked on each, are drawn beforehand, so that all loops meet the same ones. Nobody is tuned; the
second program is told the range of its costs. docs/tutorials/replace-vowpal-wabbit.md shows what this prints.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from functools import partial

import armlet

ARTICLES = ["politics", "sports", "music", "food", "finance", "health", "camping"]
LIKED = {
    ("Tom", "morning"): "politics",
    ("Tom", "afternoon"): "music",
    ("Anna", "morning"): "sports",
    ("Anna", "afternoon"): "politics",
}
VOWPAL_WABBIT = ["--epsilon 0.1", "--squarecb", "--regcbopt --mellowness 0.001"]
Visit = tuple[dict[str, str], dict[str, float]]  # who comes when, and what each article would pay


def visits(seed: int, n: int = 2000) -> list[Visit]:
    """Draw visits: a favourite is clicked half of the time, another article once in twenty."""
    rng, drawn = random.Random(seed), []
    for _ in range(n):
        (user, time), best = rng.choice(list(LIKED.items()))
        clicks = {article: float(rng.random() < (0.5 if article == best else 0.05)) for article in ARTICLES}
        drawn.append(({"who": f"{user}-{time}"}, clicks))
    return drawn


def with_vowpal_wabbit(options: str, drawn: list[Visit], seed: int) -> float:
    """Predict, draw from the probabilities, remember, learn: the loop of Vowpal Wabbit's own tutorial."""
    import vowpalwabbit  # type: ignore[import-not-found]

    rng, clicked = random.Random(seed), 0.0
    costs = "--cb_min_cost -1 --cb_max_cost 0"
    workspace = vowpalwabbit.Workspace(f"--cb_explore_adf -q UA --quiet {costs} {options} --random_seed {seed}")
    for visit, clicks in drawn:
        shared = f"shared |User who={visit['who']}"
        lines = [f"|Action article={article}" for article in ARTICLES]
        chances = workspace.predict("\n".join([shared, *lines]))
        index = rng.choices(range(len(ARTICLES)), chances)[0]
        reward = clicks[ARTICLES[index]]
        lines[index] = f"0:{-reward}:{chances[index]} {lines[index]}"
        workspace.learn("\n".join([shared, *lines]))
        clicked += reward
    workspace.finish()
    return clicked / len(drawn)


def with_armlet(drawn: list[Visit], seed: int) -> float:
    """Decide, learn."""
    encoder = armlet.Encoder().fit([visit for visit, _ in drawn])
    bandit = armlet.Bandit(ARTICLES, encoder=encoder, seed=seed)
    clicked = 0.0
    for visit, clicks in drawn:
        decision = bandit.decide(visit)
        reward = clicks[str(decision.arm)]
        bandit.learn(decision, reward)
        clicked += reward
    return clicked / len(drawn)


def line(name: str, play: Callable[[list[Visit], int], float], runs: int) -> str:
    """Play all runs and write their mean with its standard error."""
    rates = [play(visits(seed), seed) for seed in range(1, runs + 1)]
    return f"{name:46}{statistics.mean(rates):.3f} +- {statistics.stdev(rates) / runs**0.5:.3f}"


def main(settings: list[str] = VOWPAL_WABBIT, runs: int = 20) -> None:
    """Print the share of visits that were clicked, for each."""
    print(f"clicks per visit, {runs} runs of 2,000 visits (a favourite always: 0.5)")
    print(line("Armlet, nothing set", with_armlet, runs))
    for options in settings:
        print(line(f"Vowpal Wabbit {options}", partial(with_vowpal_wabbit, options), runs))


if __name__ == "__main__":
    main()
