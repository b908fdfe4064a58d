"""What a misspelt word was probably meant to be: the end of many errors."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is closest to a word, whatever its case and punctuation; None if none is close.

    Examples
    --------
    >>> closest("lin-ubc", ["OFUL", "LinUCB"]), closest("spam", ["OFUL", "LinUCB"])
    ('LinUCB', None)
    """
    from difflib import get_close_matches  # only an error needs it

    known = {_bare(name): name for name in names}
    found = get_close_matches(_bare(word), known, n=1, cutoff=0.65)
    return known[found[0]] if found else None


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word.lower()))


def choices(word: str, names: Iterable[str]) -> str:
    """Return what an error says after a name that is none: the closest one, or all that there are.

    Examples
    --------
    >>> choices("LinUBC", ["OFUL", "LinUCB"]), choices("spam", ["OFUL", "LinUCB"])
    ("did you mean 'LinUCB'?", 'choose one of OFUL, LinUCB')
    """
    known = list(names)
    found = closest(word, known)
    return f"choose one of {', '.join(known)}" if found is None else f"did you mean {found!r}?"
