"""Keys: who may do what to which loops. A key is 256 random bits, known to the server by its SHA-256 alone.

A hash of so many random bits cannot be inverted by guessing, so a slow one would only cost time at every request; and
finding a hash in a dictionary tells an attacker nothing that he could use. One look-up costs about a microsecond.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias, get_args

Scope: TypeAlias = Literal["decide", "reward", "read", "admin"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
COOKIE: Final = "armlet_key"  # of pages; everything else takes the header alone
PREFIX: Final = "armlet_"  # so that scanners find a key that was published by mistake
BYTES: Final = 32
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@\[\]]+))(?::[0-9]+)?")
PROXIED: Final = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the holder of a key may do.

    Examples
    --------
    >>> grant = Grant(name="web", scopes=frozenset({"decide"}), loops=frozenset({"home"}))
    >>> grant.allows("decide", "home"), grant.allows("decide", "search"), grant.allows("read", "home")
    (True, False, False)
    >>> grant.allows("decide", None), grant.has("decide")
    (False, True)
    """

    name: str
    scopes: frozenset[Scope]
    loops: frozenset[str] | None = None  # None: all there are and will be
    propensity: bool = True  # whether answers carry it; not for keys that are in browsers
    expires: float | None = None  # seconds since 1970

    def allows(self, scope: Scope, loop: str | None) -> bool:
        """Whether it may do that to a loop; to all of them, those of the future included, if None."""
        return scope in self.scopes and (self.loops is None or loop in self.loops)

    def has(self, scope: Scope) -> bool:
        """Whether it may do that to some loop."""
        return scope in self.scopes


OPEN: Final = Grant(name="loopback", scopes=frozenset(SCOPES))
"""What everyone may do where there are no keys: everything, on loopback only."""


class Keyring:
    """The keys of a server.

    Parameters
    ----------
    grants
        What each key may do, by the SHA-256 of the key, 32 bytes.
    wall
        Seconds since 1970, for keys that expire.

    Examples
    --------
    >>> key = new_key()
    >>> keyring = Keyring({digest(key): Grant(name="web", scopes=frozenset({"decide"}))})
    >>> keyring.find(key).name, keyring.find("armlet_guess"), keyring.anonymous
    ('web', None, None)
    >>> Keyring({}).anonymous.name
    'loopback'
    """

    def __init__(self, grants: Mapping[bytes, Grant], *, wall: Callable[[], float] = time.time) -> None:
        self._grants, self._wall = dict(grants), wall

    def find(self, token: str) -> Grant | None:
        """Return what a key may do; None if there is no such key, or if it has expired."""
        grant = self._grants.get(digest(token))
        if grant is None or (grant.expires is not None and grant.expires <= self._wall()):
            return None
        return grant

    @property
    def anonymous(self) -> Grant | None:
        """What requests without a key may do: nothing as soon as there are keys, also if all of them have expired."""
        return None if self._grants else OPEN

    def __len__(self) -> int:
        return len(self._grants)


def new_key() -> str:
    """Make a key of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def digest(token: str) -> bytes:
    """Return the SHA-256 of a key; text of any kind has one.

    Examples
    --------
    >>> digest("armlet_x").hex()[:16]
    '73e0ddf36d493d8a'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@lru_cache(maxsize=256)  # asked at every request
def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else: "localhost", or a loopback address, with or without a port.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost:8080", "127.0.0.2", "[::1]:80", "::1", "0.0.0.0", "evil.example")]
    [True, True, True, True, False, False]
    """
    parts = _HOST.fullmatch(host.strip().lower())
    name = host if parts is None else parts[1] or parts[2]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_local(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request without a key may be taken for one of this machine's own, by its headers in small letters.

    A proxy brings requests of others to loopback, and a page on the web can make a browser send some there, under a
    name that leads to 127.0.0.1 or from another site.

    Examples
    --------
    >>> is_local({b"host": b"127.0.0.1:8080"})
    True
    >>> is_local({b"host": b"rebound.example"}), is_local({b"host": b"localhost", b"x-forwarded-for": b"192.0.2.1"})
    (False, False)
    >>> is_local({b"host": b"localhost:8080", b"origin": b"https://evil.example"})
    False
    """
    if any(name in headers for name in PROXIED) or not is_loopback(headers.get(b"host", b"").decode("latin-1")):
        return False
    origin = headers.get(b"origin")  # browsers send it with all that could change something
    return origin is None or is_loopback(origin.decode("latin-1").rpartition("//")[2])
