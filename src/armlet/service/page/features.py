"""What a loop's page says of features that Personalizer's clients sent or did not send; nothing if all fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from armlet.service.page import words
from armlet.service.page.layout import Column, Viewer, card, more, table, text

if TYPE_CHECKING:
    from armlet.service.personalizer.features import FeatureCounts

NAMES: Final = 30  # that are shown, those that were counted most
OF: Final = {"context": "context", "actions": "action"}
WHAT: Final = {"unknown": "sent, but not read", "missing": "read, but not sent"}
_COLUMNS: Final = (Column("feature", "name"), Column("of"), Column("what"), Column("times", "n"))


def features_card(counts: FeatureCounts | None, viewer: Viewer) -> str:
    """Return how often features did not fit; their names, which may hold texts of users, to those who may see them."""
    if counts is None or not counts.totals:
        return '<div id="features" data-part hidden></div>'  # which the script may replace
    totals = {what: sum(n for (_, fault), n in counts.totals.items() if fault == what) for what in WHAT}
    summary = (
        f"Since the server started, {words.count(totals['unknown'])} values were sent that the loop does not read, and "
        f"{words.count(totals['missing'])} that it reads were not sent. A name that is always unknown is misspelt, or "
        "missing in the settings of the loop."
    )
    rows = [
        (words.label(name, 60), OF[side], WHAT[fault], words.count(n))
        for (side, fault, name), n in counts.names.most_common(NAMES)
    ]
    parts = [text(summary)]
    if viewer.is_admin:
        parts.append(more("feature-names", "Which ones", [table(_COLUMNS, rows)]))
    else:
        parts.append(text("Their names are shown to keys with the scope “admin”.", "soft small"))
    return card("features", "Features that do not fit", parts)
