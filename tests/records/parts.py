"""All parts, by name."""

from __future__ import annotations

from typing import Final

from records import digests, evaluations, exchanges, files, pages, refusals, stores
from records.record import Part

PARTS: Final = {
    part.name: part
    for part in (
        Part("stores", stores.make, stores.leave),
        Part("http", exchanges.make),
        Part("files", files.make, files.leave),
        Part("pages", pages.make),
        Part("refusals", refusals.make),
        Part("digests", digests.make),
        Part("evaluations", evaluations.make),
    )
}
