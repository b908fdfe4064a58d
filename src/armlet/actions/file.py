"""What a saved `ActionBandit` is: its settings in the header of a model file, its sums and items as arrays.

The container is that of all models, `armlet.disk`; `"kind": "actions"` in the header tells them apart. Prepared tables
are named by their hashes, and their rows are in the file unless they are left out.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import numpy as np

from armlet import disk
from armlet.actions.settings import ActionSettings, read_encoder
from armlet.actions.table import ActionTable
from armlet.disk import Json
from armlet.errors import InvalidValueError, ModelFileError
from armlet.inputs.settings import check_seed, ends, one_of
from armlet.kernel import ActionRows, PairModel
from armlet.model_file import REFUSALS, listed, policy_header, read_policy, read_seed, why
from armlet.policies import find_policy
from armlet.types import Array, __version__

KIND: Final = "actions"
UNHASHED: Final = ("armlet", "kind", "seed", "streams")  # what two bandits may differ in and still be the same
ROWS: Final = "table_"  # before the numbers of arrays of prepared tables

Kept: TypeAlias = Literal["all", "names"]
"""What a file has of prepared tables: everything, or their names and hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionModel:
    """Everything that an `ActionBandit` needs to go on where it stopped."""

    settings: ActionSettings
    t: int
    seed: int
    streams: tuple[int, ...]  # other seeds whose decisions it may learn from: its own before, and merged ones
    state: PairModel
    tables: Mapping[str, ActionTable | str]  # prepared ones by name; the hash of one whose rows are elsewhere


def new_state(settings: ActionSettings) -> PairModel:
    """Return a model without rows."""
    intercepts = settings.policy.intercepts
    return PairModel(settings.dim, settings.action_dim, settings.products(), intercepts=intercepts)


def parts(model: ActionModel, tables: Kept) -> tuple[dict[str, Json], dict[str, Array]]:
    """Return the header and the arrays of a model file."""
    one_of(*get_args(Kept))("tables", tables)
    header, arrays = _header(model), state_arrays(model.state)
    if tables == "all":
        held = [(name, table) for name, table in model.tables.items() if isinstance(table, ActionTable)]
        header["table_rows"] = [[name, list(table.labels)] for name, table in held]
        arrays |= {f"{ROWS}{place}": table.features for place, (_, table) in enumerate(held)}
    return header, arrays


def state_arrays(state: PairModel) -> dict[str, Array]:
    """Return the arrays of a state as a file holds them."""
    return {name: array.view("<i8") if array.dtype.kind == "u" else array for name, array in state.arrays().items()}


def encode(model: ActionModel, tables: Kept = "all") -> bytes:
    """Return the bytes of a model file."""
    return disk.encode_model(*parts(model, tables))


def shared(model: ActionModel) -> bytes:
    """Return what was learned as a model file with a seed that nobody used, and without tables: to be merged."""
    safe = replace(model, seed=check_seed(None), streams=(), tables={})
    return encode(safe)


def digest(model: ActionModel) -> str:
    """Return the SHA-256 of a model, but for its seeds and the version that wrote it."""
    header = _header(model)
    return disk.digest({name: header[name] for name in header if name not in UNHASHED}, state_arrays(model.state))


def describe(model: ActionModel) -> dict[str, Json]:
    """Describe a bandit in plain JSON types, without its seed and its arrays."""
    header = _header(model)
    fields = {name: header[name] for name in header if name not in UNHASHED}
    return {"version": __version__, **fields, "digest": digest(model)}


def _header(model: ActionModel) -> dict[str, Json]:
    s = model.settings
    encoders = {"encoder": s.encoder, "action_encoder": s.action_encoder}
    optional: dict[str, Json] = {name: each.to_dict() for name, each in encoders.items() if each is not None}
    if model.tables:
        hashes = {name: each if isinstance(each, str) else each.hash for name, each in model.tables.items()}
        optional["tables"] = cast(Json, dict(sorted(hashes.items())))
    return optional | {
        "armlet": __version__,
        "kind": KIND,
        "policy": policy_header(s.policy),
        "dim": s.dim,
        "features": None if s.features is None else list(s.features),
        "action_dim": s.action_dim,
        "action_features": None if s.action_features is None else list(s.action_features),
        "objective": s.objective,
        "reward_range": None if s.reward_range is None else list(s.reward_range),
        "t": model.t,
        "seed": model.seed,
        "streams": list(model.streams),
    }


def restore(name: str, header: dict[str, Any], arrays: dict[str, Array]) -> ActionModel:
    """Return the model of a file, or say what is wrong with it."""
    try:
        settings = _settings(header)
        seed, *streams = (read_seed(each) for each in (header["seed"], *listed(header, "streams")))
        if type(header["t"]) is not int or not 0 <= header["t"] < 2**63:
            raise InvalidValueError(f"the clock is {header['t']!r}, not a number of decisions")
        tables = _tables(header, settings, arrays)
        own = {each: array for each, array in arrays.items() if not each.startswith(ROWS)}
        state = _state(settings, own)
    except REFUSALS as error:
        raise ModelFileError(f"{name}: the file does not describe a usable bandit: {why(error)}") from error
    return ActionModel(settings=settings, t=header["t"], seed=seed, streams=tuple(streams), state=state, tables=tables)


def _settings(header: dict[str, Any]) -> ActionSettings:
    names, action_names = (None if header[key] is None else tuple(listed(header, key)) for key in FEATURES)
    reward_range = header["reward_range"]
    return ActionSettings(
        policy=read_policy(header["policy"], lambda name: find_policy(name, "pairs"), None),
        dim=header["dim"],
        features=names,
        action_dim=header["action_dim"],
        action_features=action_names,
        objective=header["objective"],
        reward_range=None if reward_range is None else ends("reward_range", reward_range),
        encoder=read_encoder(header.get("encoder")),
        action_encoder=read_encoder(header.get("action_encoder")),
    )


FEATURES: Final = ("features", "action_features")


def _state(settings: ActionSettings, arrays: dict[str, Array]) -> PairModel:
    state = new_state(settings)
    kinds = {name: array.dtype for name, array in state.arrays().items()}
    if "folded_keys" in arrays:  # where some were
        kinds["folded_keys"] = kinds["item_keys"]
    if set(arrays) != set(kinds):
        raise InvalidValueError(f"it holds the arrays {sorted(arrays)} where its policy keeps {sorted(kinds)}")
    wrong = [each for each, array in arrays.items() if array.dtype.kind == "f" and not np.isfinite(array).all()]
    if wrong:
        raise InvalidValueError(f"its array {wrong[0]!r} has values that are not finite")
    state.restore_arrays({each: array.view(kinds[each]) for each, array in arrays.items()})
    _try(settings, state)
    return state


def _try(settings: ActionSettings, state: PairModel) -> None:
    """Require numbers where nothing is unusual: arrays may be of the right shapes and yet those of no rows."""
    for value in (0.0, 0.5):
        x, Z = np.full(settings.dim, value), np.full((1, settings.action_dim), value)
        rows = ActionRows(Z, np.zeros(1, dtype=np.uint64))
        numbers = [*state.estimates(x, rows).tolist(), *state.widths(x, rows).tolist(), state.sigma]
        if not np.isfinite(numbers).all():
            raise InvalidValueError(f"its arrays lead to the estimate, width and noise {numbers}")


def _tables(header: dict[str, Any], settings: ActionSettings, arrays: dict[str, Array]) -> dict[str, ActionTable | str]:
    tables: dict[str, ActionTable | str] = {}
    for name, known in (header.get("tables") or {}).items():
        if not isinstance(known, str):
            raise InvalidValueError(f"the hash of table {name!r} is {reprlib.repr(known)}, not text")
        tables[name] = known
    for place, (name, labels) in enumerate(header.get("table_rows") or ()):
        table = ActionTable(labels, arrays[f"{ROWS}{place}"], names=settings.action_features)
        if table.hash != tables.get(name):
            raise InvalidValueError(f"table {name!r} has another hash than {tables.get(name)}")
        tables[name] = table
    return tables
