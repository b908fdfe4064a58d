"""All parts, by name."""

from __future__ import annotations

from typing import Final

from records import exchanges, files, stores
from records.record import Part

PARTS: Final = {
    part.name: part
    for part in (
        Part("stores", stores.make, stores.leave),
        Part("http", exchanges.make),
        Part("files", files.make, files.leave),
    )
}
