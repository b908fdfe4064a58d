"""The files that pages load: a style sheet and a script, each at an address that its content determines.

So a browser may keep them forever, and a new version of Armlet has new addresses.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final, NamedTuple

MEDIA_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
FOLDER: Final = "/static"
DIGITS: Final = 16  # of the hash: enough that no two versions share an address


class Asset(NamedTuple):
    """A file that pages load."""

    name: str  # the last part of its address
    media_type: str
    body: bytes

    @property
    def url(self) -> str:
        """Its address."""
        return f"{FOLDER}/{self.name}"


def _read(stem: str, ending: str) -> Asset:
    body = files(__package__).joinpath("static", f"{stem}.{ending}").read_bytes()
    return Asset(f"{stem}.{hashlib.sha256(body).hexdigest()[:DIGITS]}.{ending}", MEDIA_TYPES[ending], body)


STYLE: Final = _read("page", "css")
SCRIPT: Final = _read("page", "js")
ASSETS: Final = {asset.name: asset for asset in (STYLE, SCRIPT)}
