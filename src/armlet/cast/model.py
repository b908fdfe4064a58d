"""A cast as bytes: a header, and the model files of its bandits, the live one first.

A bandit that is alone has the bytes of its model file. One more bandit and no name to remember have the older form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from armlet.bandit import Bandit
from armlet.cast.cast import LENGTH, MAGIC, PAIR_MAGIC, SHADOW, Cast
from armlet.cast.control import Control
from armlet.errors import ArmletError, ModelFileError
from armlet.loading import from_bytes
from armlet.types import Policy


def read_cast(data: bytes, *, policy: Policy | None = None) -> Cast:
    """Read a cast back from its bytes, or from those of a bandit; `policy` if it is not one of Armlet's own.

    Examples
    --------
    >>> import armlet
    >>> cast = Cast(armlet.Bandit(["old", "new"], 1, seed=1), control=Control(arm="old"))
    >>> read_cast(cast.to_bytes()).digest() == cast.digest()
    True
    """
    magic = next((each for each in (MAGIC, PAIR_MAGIC) if data.startswith(each)), None)
    if magic is None:
        return Cast(from_bytes(data, policy=policy))
    try:
        header, models = _parts(data, len(magic))
        roles = header["others"] if magic == MAGIC else [[header["role"], SHADOW]] if header["role"] else []
        return _assembled(header, roles, models, policy)
    except ModelFileError:
        raise
    except (ArmletError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ModelFileError(f"the model of a bandit with guards is damaged: {error}") from error


def _parts(data: bytes, start: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the models that follow it."""
    size = int.from_bytes(data[start : start + LENGTH], "little")
    start += LENGTH
    header, end = json.loads(data[start : start + size]), start + size
    models = []
    for size in header["sizes"]:
        models.append(data[end : end + size])
        end += size
    if end != len(data):
        raise ValueError(f"it has {len(data):,} bytes instead of {end:,}")
    return header, models


def _assembled(
    header: Mapping[str, Any], roles: Sequence[Sequence[str]], models: Sequence[bytes], policy: Policy | None
) -> Cast:
    """Return the cast of a header, with the role and name of each model but the live one's."""
    live, *others = models
    shadows: dict[str, Bandit] = {}
    player = learner = None
    for (role, name), model in zip(roles, others, strict=True):
        if role == "learner":
            learner = from_bytes(model, policy=policy)
        elif role == "control":
            player = from_bytes(model)
        elif role == "shadow":
            shadows[name] = from_bytes(model)
        else:
            raise ValueError(f"a bandit has the role {role!r}")
    control = None if header["control"] is None else Control(**header["control"])
    if player is not None:
        control = Control(policy=player.policy, share=header["share"])
    return Cast(from_bytes(live, policy=policy), control=control, player=player, shadows=shadows, learner=learner)
