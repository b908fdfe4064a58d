"""A table that nobody encoded, valued with models that carry an encoder: it goes through theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from armlet.bandit import Bandit, load
from armlet.errors import ArgumentError

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder

L = TypeVar("L")


def through_encoders(log: L, *targets: object) -> L:
    """Return a log whose contexts are what the models among the targets make of them; other logs as they are.

    Parameters
    ----------
    log
        What `armlet.log.from_table` gave without an encoder, or any other log.
    targets
        As `evaluate` takes them: alone, in lists or in mappings.

    Examples
    --------
    >>> through_encoders("decisions.parquet", "uniform")
    'decisions.parquet'
    """
    encode = getattr(log, "encoded", None)
    if encode is None:
        return log
    found = {name: encoder for each in targets for name, encoder in _encoders(each)}
    if not found:
        return log
    (first, encoder), *others = found.items()
    for name, other in others:
        if other != encoder:
            text = "{targets} has {first!r} and {name!r}, whose encoders differ; value them apart"
            raise ArgumentError(text, first=first, name=name)
    encoded: L = encode(encoder)
    return encoded


def _encoders(target: object) -> list[tuple[str, Encoder]]:
    if isinstance(target, Mapping):
        return [found for each in target.values() for found in _encoders(each)]
    if isinstance(target, list | tuple):
        return [found for each in target for found in _encoders(each)]
    name = os.fspath(target) if isinstance(target, os.PathLike) else str(target)
    if isinstance(target, os.PathLike) or (isinstance(target, str) and target.endswith(".armlet")):
        target = load(name)
    encoder = target.encoder if isinstance(target, Bandit) else None
    return [] if encoder is None else [(name, encoder)]
