"""Arguments that no call wants: arrays, frames and sparse matrices where a word or a number is meant, and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from armlet.testing import arguments_of, fault_of

HOSTILE: dict[str, Any] = {
    "vector": np.array([1.0, 2.0]),
    "matrix": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "words": np.array(["a", "b"]),
    "number as an array": np.array(1.5),
    "duration": np.timedelta64(1, "D"),
    "series": pd.Series([1.0, 2.0]),
    "frame": pd.DataFrame({"a": [1.0, 2.0]}),
    "sparse matrix": scipy.sparse.csr_matrix(np.eye(2)),
    "number": 5,
    "negative": -1,
    "fraction": 1.5,
    "nan": float("nan"),
    "word": "word",
    "bytes": b"x",
    "list": [],
    "mapping": {},
    "tuple": (),
    "object": object(),
    "list of None": [None],
    "mapping to None": {"a": None},
    "mapping to an array": {"quality": np.array([1.0, 2.0])},
    "mapping to an object": {"cost": {"a": object()}},
    "ragged": [[1], [1, 2]],
    "true": True,
    "huge": 10**400,
    "function": len,
}


def fault_in(call: Callable[..., Any], given: dict[str, Any], nouns: set[str]) -> str | None:
    """Make a call; return its fault, unless it answers or refuses by the name of an argument or a noun."""
    try:
        call(**given)
    except Exception as error:
        why = fault_of(error, arguments_of(call) | nouns)
        return None if why is None else f"{call.__name__}: {why}: {error!r}"
    return None
