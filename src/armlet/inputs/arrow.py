"""Decisions as an Arrow table, made with pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armlet.errors import InvalidTypeError, load_package

if TYPE_CHECKING:
    from armlet.kernel import Decisions


def decisions_table(decisions: Decisions) -> Any:
    """Return a pyarrow.Table; what a policy has not is null. `marginal` is there only if it is False in some row."""
    pa = load_package("pyarrow", "decisions become a table by")
    n, X = len(decisions), decisions.X
    labels = pa.array(decisions.arms, type=_label_type(pa, decisions))
    eligible = None if decisions.eligible is None else list(decisions.eligible)
    return pa.table(
        {
            "id": pa.array(decisions.ids, pa.string()),
            "t": decisions.t,
            "x": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1]),
            "eligible": pa.array([eligible] * n, pa.list_(labels.type)),
            "arm": labels,
            "propensity": decisions.propensities,
            "explored": decisions.explored,
            "optimistic": decisions.optimistic,
            "exploration_rate": _known(pa, decisions.exploration_rates),
            "exploration_propensity": _known(pa, decisions.exploration_propensities),
            "min_exploration_probability": _known(pa, decisions.min_exploration_probabilities),
            "greedy": pa.array(decisions.greedy, pa.bool_()),
            "design": pa.array(decisions.designs, pa.string()),
            "tag": decisions.tags,
            **({} if decisions.marginal.all() else {"marginal": decisions.marginal}),
            **_units(pa, decisions),
        }
    )


def _units(pa: Any, decisions: Decisions) -> dict[str, Any]:
    if decisions.units is None:
        return {}
    return {"unit": pa.array(decisions.units, pa.string()), "epoch": pa.array(decisions.epochs, pa.int64())}


def _label_type(pa: Any, decisions: Decisions) -> Any:
    kinds = {type(label) for label in [*decisions.arms, *(decisions.eligible or ())]}
    if kinds <= {int} and kinds:
        return pa.int64()
    if kinds <= {str}:
        return pa.string()
    raise InvalidTypeError(
        "arms are named by str and by int, and a column of a table holds one of them; rename the arms"
    )


def _known(pa: Any, values: Any) -> Any:
    return pa.array(values, mask=np.isnan(values))
