"""The diagrams of the docs, as plain SVG: text as text, on a card that is light or dark as the reader's system is.

    python docs/diagrams.py          # writes docs/figures/*.svg; a test compares them with what is committed

A card has its own background, so a diagram can be read on any page, also where a page's theme is not the system's. All
are at most 560 units wide, so that letters of 15 units can be read on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import hypot
from pathlib import Path

import numpy as np

from armlet.inference.intervals import t_quantile
from armlet.inference.sequences import MeanSequence
from armlet.types import Float64, Interval

FIGURES = Path(__file__).parent / "figures"
WIDTH = 560
STYLE = """
svg {
  --paper: #ffffff; --ink: #1b2726; --soft: #566564; --rule: #b9c6c5;
  --fill: #eaf4f3; --accent: #0b6e69; --warn: #a8480f;
}
@media (prefers-color-scheme: dark) {
  svg {
    --paper: #15191a; --ink: #e8eeed; --soft: #a8b7b6; --rule: #4a5756;
    --fill: #1d2f2e; --accent: #5cc8bf; --warn: #f2a56c;
  }
}
text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.card { fill: var(--paper); stroke: var(--rule); }
.box { fill: var(--fill); stroke: var(--accent); stroke-width: 1.5; }
.plain { fill: none; stroke: var(--rule); stroke-width: 1.5; }
.bar { fill: var(--accent); }
.none { fill: var(--rule); }
.band { fill: var(--accent); opacity: 0.2; }
.title { font-weight: 650; }
.code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 12px; }
.soft { fill: var(--soft); font-size: 13.5px; }
.accent { fill: var(--accent); }
.warn { fill: var(--warn); }
.line { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.strong { fill: none; stroke: var(--accent); stroke-width: 2; }
.alarm { fill: none; stroke: var(--warn); stroke-width: 2; }
.dashed { stroke-dasharray: 5 4; }
.head { fill: var(--soft); }
"""
Point = tuple[float, float]


@dataclass(slots=True)
class Card:
    """A drawing on a card: its size, what it is called, what it shows in words, and its elements in order."""

    height: float
    title: str
    description: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write a line; x is its start, middle or end, y its baseline."""
        at = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
        self.parts.append(f'<text {at} class="{kind}">{escape(words)}</text>')

    def lines(self, x: float, y: float, words: Iterable[str], kind: str = "", anchor: str = "start") -> None:
        """Write lines below each other."""
        for i, line in enumerate(words):
            self.text(x, y + 19 * i, line, kind, anchor)

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box", radius: float = 8) -> None:
        """Draw a rectangle."""
        size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"'
        self.parts.append(f'<rect {size} class="{kind}"/>')

    def path(self, points: Iterable[Point], kind: str = "line") -> None:
        """Draw a line through points."""
        self.parts.append(f'<polyline points="{_written(points)}" class="{kind}"/>')

    def area(self, points: Iterable[Point], kind: str) -> None:
        """Fill a polygon."""
        self.parts.append(f'<polygon points="{_written(points)}" class="{kind}"/>')

    def dot(self, x: float, y: float, kind: str = "bar", radius: float = 5) -> None:
        """Draw a disc."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')

    def arrow(self, *points: Point) -> None:
        """Draw a line that ends in an arrow."""
        self.path(points)
        (x0, y0), (x1, y1) = points[-2:]
        length = hypot(x1 - x0, y1 - y0)
        u, v = (x1 - x0) / length, (y1 - y0) / length
        back = (x1 - 9 * u, y1 - 9 * v)
        self.area([(x1, y1), (back[0] - 5 * v, back[1] + 5 * u), (back[0] + 5 * v, back[1] - 5 * u)], "head")

    def svg(self) -> str:
        """Return the whole file."""
        size = f'viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" height="{self.height:g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">'
        words = f'<title id="title">{escape(self.title)}</title>\n<desc id="desc">{escape(self.description)}</desc>'
        card = f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1:g}" rx="10" class="card"/>'
        return "\n".join([head, words, f"<style>{STYLE}</style>", card, *self.parts, "</svg>", ""])


def _written(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.6g},{y:.6g}" for x, y in points)


def loop() -> Card:
    """Draw the loop of every bandit: decide, act, late reward, learn."""
    card = Card(
        height=316,
        title="The loop of a bandit",
        description="Decide gives an arm and its probability for a context; you act; the reward comes, now, late or "
        "never; learn adds it to the sums of that arm, and the next decision uses them.",
    )
    boxes = [
        (22, 24, "1  Decide", "a context in, an arm out"),
        (342, 24, "2  Act", "show it, route it, treat"),
        (342, 214, "3  Reward", "of the chosen arm alone"),
        (22, 214, "4  Learn", "add to the arm's sums"),
    ]
    for x, y, title, words in boxes:
        card.box(x, y, 196, 78)
        card.text(x + 98, y + 33, title, "title", "middle")
        card.text(x + 98, y + 57, words, "soft", "middle")
    card.arrow((218, 63), (340, 63))
    card.arrow((440, 102), (440, 212))
    card.arrow((342, 253), (220, 253))
    card.arrow((120, 214), (120, 104))
    card.lines(279, 33, ["arm and its", "propensity"], "soft", "middle")
    card.lines(430, 150, ["now, tomorrow,", "or never"], "soft", "end")
    card.text(279, 243, "late, twice,", "soft", "middle")
    card.text(279, 273, "or corrected", "soft", "middle")
    card.lines(130, 150, ["the next decision", "uses it"], "soft")
    return card


def rows() -> Card:
    """Draw what rows of a log tell about other policies, by the probabilities that its arms had."""
    card = Card(
        height=408,
        title="Which rows of a log tell what",
        description="Bars are the probabilities of three arms. An explored row has all arms and tells about every "
        "policy; a row of the default where two arms contend tells about those two; a greedy row tells about its arm "
        "alone; with a floor every arm stays possible, at a large weight.",
    )
    card.text(22, 32, "A row of the log", "title")
    card.text(200, 32, "probabilities", "title")
    card.text(336, 32, "tells about", "title")
    kinds: list[tuple[str, str, Sequence[float], list[str]]] = [
        ("explored", "drawn regardless of x", (1 / 3, 1 / 3, 1 / 3), ["every policy"]),
        ("contended", "estimate or optimism", (0.8, 0.2, 0.0), ["policies that play", "one of these two here"]),
        ("greedy", "one arm, for certain", (1.0, 0.0, 0.0), ["policies that play", "this arm here"]),
        (
            "floor=0.02",
            "greedy, or any arm",
            (0.98 + 0.02 / 3, 0.02 / 3, 0.02 / 3),
            ["every policy, but a rare", "arm has weight 50 K"],
        ),
    ]
    for i, (name, words, chances, tells) in enumerate(kinds):
        y = 50 + 88 * i
        card.path([(22, y), (WIDTH - 22, y)], "plain")
        card.text(22, y + 38, name, "title")
        card.text(22, y + 60, words, "soft")
        _bars(card, 206, y + 70, chances)
        card.lines(336, y + 38, tells, "accent" if "every" in tells[0] else "")
    return card


def _bars(card: Card, x: float, y: float, chances: Sequence[float]) -> None:
    for j, chance in enumerate(chances):
        left, tall = x + 38 * j, max(1.5, 46 * chance)
        card.box(left, y - tall, 26, tall, "bar" if chance else "none", 1)
        card.text(left + 13, y + 14, "abc"[j], "soft", "middle")


def which_policy() -> Card:
    """Draw the choice of a policy as four questions."""
    card = Card(
        height=452,
        title="Which policy?",
        description="Will you evaluate other policies from this log? The default with floor=0.02, or "
        "AutoEpsilonGreedy. Do you need a theorem? OccasionalOptimism with radius proved, or Algorithm1. Can you "
        "simulate and tune? LinUCB or ThompsonSampling. Does only the cheapest step count? ContextualEpsilonGreedy. "
        "Otherwise the default.",
    )
    asked = [
        (
            ["Will you evaluate other", "policies from this log?"],
            ["OccasionalOptimism(floor=0.02)", "AutoEpsilonGreedy()"],
        ),
        (["Do you need a theorem", "about its regret?"], ["OccasionalOptimism(radius=...)", "Algorithm1(p=...)"]),
        (["Can you simulate your", "environment, and tune?"], ["LinUCB(alpha=...)", "ThompsonSampling(v=...)"]),
        (["Does only the cheapest", "step count?"], ["ContextualEpsilonGreedy(p=...)"]),
    ]
    for i, (question, answers) in enumerate(asked):
        y = 20 + 86 * i
        card.box(20, y, 196, 60)
        card.lines(118, y + 26, question, anchor="middle")
        card.arrow((216, y + 30), (268, y + 30))
        card.text(240, y + 22, "yes", "soft", "middle")
        card.box(270, y, 270, 60, "plain")
        card.lines(284, y + (35 if len(answers) == 1 else 26), answers, "code")
        card.arrow((118, y + 60), (118, y + 84))
        card.text(128, y + 78, "no", "soft")
    card.box(20, 364, 520, 66)
    card.text(36, 392, "Leave policy= out: OccasionalOptimism()", "title")
    card.text(36, 415, "nothing to set; rewards may come late, in blocks, or not at all", "soft")
    return card


def windows() -> Card:
    """Draw when a decision of a loop is learned: window, late reward, default, early reward."""
    card = Card(
        height=418,
        title="Windows and late rewards on a time line",
        description="A reward within the window is learned when the window closes. Without one, the default reward is "
        "learned then; a late reward replaces it. A reward that comes before its decision waits for it.",
    )
    left, closes = 134.0, 346.0
    card.box(left, 44, closes - left, 352, "band", 0)
    card.text(left, 34, "decide", "title", "middle")
    card.text((left + closes) / 2, 34, "window", "soft", "middle")
    card.text(closes, 34, "closes", "title", "middle")
    lanes: list[tuple[float | None, str, list[str]]] = [
        (236, "accepted", ["learned when the", "window closes"]),
        (None, "no reward", ["default_reward is", "learned, and stays"]),
        (440, "late", ["replaces the default", "that was learned"]),
        (50, "early", ["waits early_window", "for its decision"]),
    ]
    for i, (reward, status, words) in enumerate(lanes):
        _lane(card, 88 + 86 * i, (left, closes), reward, status, words)
    return card


def _lane(card: Card, y: float, window: Point, reward: float | None, status: str, words: list[str]) -> None:
    """Draw one decision, its reward, and what is learned when."""
    card.arrow((22, y), (WIDTH - 16, y))
    card.dot(window[0], y)
    card.path([(window[1], y - 12), (window[1], y + 12)], "strong")
    if reward is None:
        card.text(sum(window) / 2, y - 12, status, "soft", "middle")
    else:
        card.area([(reward, y - 9), (reward + 9, y), (reward, y + 9), (reward - 9, y)], "warn")
        card.text(max(reward, 76), y - 14, f'reward: "{status}"', "soft", "middle")
    card.text(window[1] + 10, y + 24, words[0], "")
    card.text(window[1] + 10, y + 43, words[1], "")


STREAM, LEVEL, TRUTH = 2000, 0.95, 0.5
LOOKS = np.arange(40, STREAM + 1, 40)
STREAMS = 100


def clicks(stream: int) -> Float64:
    """Draw the rewards of a stream: 0 or 1, with equal probability."""
    return (np.random.default_rng(stream).random(STREAM) < TRUTH).astype(np.float64)


def fixed(rewards: Float64) -> list[Interval]:
    """Return the ordinary interval of the mean at each look, by Student's t."""
    found = []
    for n in LOOKS:
        mean, spread = float(rewards[:n].mean()), float(rewards[:n].std(ddof=1))
        half = t_quantile(1 - (1 - LEVEL) / 2, int(n) - 1) * spread / float(np.sqrt(n))
        found.append(Interval(mean - half, mean + half))
    return found


def anytime(rewards: Float64) -> list[Interval]:
    """Return the confidence sequence of the mean at each look."""
    sequence, found, before = MeanSequence((0.0, 1.0), scores="0 or 1", level=LEVEL), [], 0
    for n in LOOKS:
        sequence.add(rewards[before:n])
        found.append(sequence.interval())
        before = int(n)
    return found


def ever_wrong(intervals: Callable[[Float64], list[Interval]]) -> float:
    """Return the share of streams in which the interval of some look does not contain the truth."""
    wrong = [any(not low <= TRUTH <= high for low, high in intervals(clicks(s))) for s in range(STREAMS)]
    return float(np.mean(wrong))


def sequence() -> Card:
    """Draw a fixed interval next to a confidence sequence, both of stream 0, at all looks."""
    shares = {name: f"{100 * ever_wrong(each):.0f}" for name, each in (("fixed", fixed), ("any", anytime))}
    card = Card(
        height=420,
        title="A fixed interval next to a confidence sequence",
        description="Two intervals for the same 2,000 rewards whose mean is 0.5, looked at 50 times. The fixed 95 % "
        "interval excludes 0.5 for a while; the confidence sequence is wider and never does. The fixed interval is "
        f"wrong at some look in {shares['fixed']} of {STREAMS} such streams, the sequence in {shares['any']}.",
    )
    wide, narrow = anytime(clicks(0)), fixed(clicks(0))
    plot = Plot(left=56, top=64, right=540, bottom=330, x=(0, STREAM), y=(0.35, 0.65))
    card.text(22, 32, "95 % intervals of the same rewards, at 50 looks", "title")
    card.text(22, 51, "mean reward", "soft")
    for value in (0.4, 0.5, 0.6):
        card.path([plot.at(0, value), plot.at(STREAM, value)], "plain")
        card.text(48, plot.at(0, value)[1] + 5, f"{value:.1f}", "soft", "end")
    for n in (500, 1000):
        card.text(plot.at(n, 0)[0], 350, f"{n:,}", "soft", "middle")
    card.text(540, 350, f"{STREAM:,} rewards", "soft", "end")
    card.area([*plot.along([i.low for i in wide]), *reversed(plot.along([i.high for i in wide]))], "band")
    for end in (0, 1):
        card.path(plot.along([interval[end] for interval in wide]), "strong")
        card.path(plot.along([interval[end] for interval in narrow]), "line dashed")
    for look, (low, high) in zip(LOOKS, narrow, strict=True):
        if not low <= TRUTH <= high:
            card.dot(*plot.at(int(look), TRUTH), "warn", 3.5)
    card.path([(22, 374), (50, 374)], "line dashed")
    card.text(58, 379, f"fixed: wrong at some look in {shares['fixed']} of {STREAMS} streams", "soft")
    card.dot(524, 374, "warn", 4)
    card.text(514, 379, "excludes 0.5", "soft", "end")
    card.path([(22, 398), (50, 398)], "strong")
    card.text(58, 403, f"confidence sequence: wrong at some look in {shares['any']} of {STREAMS}", "soft")
    return card


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Where values lie on a card."""

    left: float
    top: float
    right: float
    bottom: float
    x: Point
    y: Point

    def at(self, x: float, y: float) -> Point:
        """Return where a value lies, cut to the frame from above and below."""
        share_x = (x - self.x[0]) / (self.x[1] - self.x[0])
        share_y = min(1.0, max(0.0, (y - self.y[0]) / (self.y[1] - self.y[0])))
        return self.left + share_x * (self.right - self.left), self.bottom - share_y * (self.bottom - self.top)

    def along(self, values: Sequence[float]) -> list[Point]:
        """Return where the values of all looks lie."""
        return [self.at(int(n), value) for n, value in zip(LOOKS, values, strict=True)]


DIAGRAMS: dict[str, Callable[[], Card]] = {
    "loop": loop,
    "rows-of-a-log": rows,
    "which-policy": which_policy,
    "windows": windows,
    "confidence-sequence": sequence,
}


if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (FIGURES / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
        print(FIGURES / f"{name}.svg")
