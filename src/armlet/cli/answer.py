"""What a command found: the same values as text for people and, with `--json`, as JSON for programs.

The JSON of every command is one object on one line: what `to_dict` of its result returns, null for what is not a finite
number, the same keys in every run. Exit codes do not depend on the form.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

TONES: Final = {"good": "32", "bad": "31", "open": "33"}  # green, red, yellow, as every terminal has them


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command.

    Parameters
    ----------
    data
        What `--json` prints: a result, or what `to_dict` of one would return.
    text
        What is printed otherwise: lines, or anything that has a text; the result itself if left out.
    code
        The exit code.
    tones
        Words of the text that are verdicts: "good", "bad" or "open". A terminal shows them in colours.

    Examples
    --------
    >>> Answer({"loops": 2, "mean": float("nan")}, ["loops: 2", "mean: -"]).write(sys.stdout, form="json")
    {"loops": 2, "mean": null}
    """

    data: object
    text: object = None
    code: int = 0
    tones: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def write(self, stream: TextIO, *, form: str) -> None:
        """Print it as "json" or as "text"."""
        if form == "json":
            from armlet.report.result import plain

            print(json.dumps(plain(self.data), ensure_ascii=False, allow_nan=False), file=stream)
            return
        words = [self.data] if self.text is None else self.text if isinstance(self.text, list) else [self.text]
        text = "\n".join(map(str, words))
        print(tinted(text, self.tones) if self.tones and takes_colours(stream) else text, file=stream)


def takes_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and NO_COLOR is not set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tinted(text: str, tones: Mapping[str, str]) -> str:
    r"""Return a text with its verdicts in colours, wherever they begin or end a line.

    Examples
    --------
    >>> tinted("keep: it gains, which is a reason to keep it", {"keep": "good"})
    '\x1b[32mkeep\x1b[0m: it gains, which is a reason to keep it'
    """
    either = "|".join(map(re.escape, sorted(tones, key=len, reverse=True)))
    return re.sub(
        rf"(?m)^(?:{either})\b|\b(?:{either})$", lambda match: f"\x1b[{TONES[tones[match[0]]]}m{match[0]}\x1b[0m", text
    )


def written(path: Path) -> Answer:
    """Say which file was written."""
    size = path.stat().st_size
    return Answer({"written": path, "bytes": size}, f"{path}: {size:,} bytes")


def say(arguments: Any, words: object) -> None:
    """Print a note next to the result, on stderr, unless `--quiet` is given."""
    if not arguments.quiet:
        print(words, file=sys.stderr, flush=True)
