"""What scikit-learn asks of a transformer, without scikit-learn: settings by name, names of outputs, DataFrames."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidValueError
from armlet.types import Float64

Output: TypeAlias = Literal["default", "pandas", "polars"]


class Estimator:
    """A transformer whose settings are the arguments of its `__init__`, kept under their names."""

    _output: Output = "default"

    @classmethod
    def _settings(cls) -> dict[str, Any]:
        """Give the names of the settings and their defaults."""
        given = inspect.signature(cls.__init__).parameters.values()
        return {each.name: each.default for each in given if each.name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Give the settings by name."""
        return {name: getattr(self, name) for name in self._settings()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; what was fitted stays until it is fitted anew."""
        known = self._settings()
        for name in params:
            if name not in known:
                raise InvalidValueError(f"{type(self).__name__} has no setting {name!r}; it has {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def set_output(self, *, transform: Output | None = None) -> Self:
        """Say what `transform` gives: "default", a numpy matrix; "pandas" or "polars", a DataFrame. None: as before."""
        if transform not in (None, "default", "pandas", "polars"):
            raise InvalidValueError(f"transform is {transform!r}; choose 'default', 'pandas' or 'polars'")
        if transform is not None:
            self._output = transform
        return self

    def _shown(self, values: Float64, names: tuple[str, ...], source: object) -> Any:
        if self._output == "default":
            return values
        make = importlib.import_module(self._output).DataFrame
        if self._output == "polars":
            return make(values, schema=list(names))
        index = getattr(source, "index", None)  # of a list, it is a method
        return make(values, columns=list(names), index=None if callable(index) else index)

    def __sklearn_tags__(self) -> Any:
        utils = importlib.import_module("sklearn.utils")
        tags = utils.Tags(
            estimator_type="transformer",
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(),
        )
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.no_validation = True  # texts and missing values are refused in our own words
        return tags

    def __repr__(self) -> str:
        told = [
            f"{name}={getattr(self, name)!r}"
            for name, usual in self._settings().items()
            if getattr(self, name) != usual
        ]
        return f"{type(self).__name__}({', '.join(told)})"


def object_array(names: Sequence[str]) -> npt.NDArray[np.object_]:
    """Give names in an array of objects, as scikit-learn has them."""
    return np.array(names, dtype=np.object_)
