"""Errors that know which arguments they speak of, so that a command line can call them what its user does."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter


class ArgumentError(ValueError):
    """A value that cannot be, told with the name of its argument.

    Parameters
    ----------
    text
        With arguments and values in braces: what is not among the values is an argument.
    values
        What stands in the text beside the names.

    Examples
    --------
    >>> error = ArgumentError("{n_arms} is {value}; give at least 2", value=1)
    >>> print(error)
    n_arms is 1; give at least 2
    >>> error.told({"n_arms": "--arms"})
    '--arms is 1; give at least 2'
    """

    def __init__(self, text: str, **values: object) -> None:
        self._text, self._values = text, values
        super().__init__(self.told({}))

    def told(self, names: Mapping[str, str]) -> str:
        """Give the text with other names for some arguments."""
        fields = {name for _, name, _, _ in Formatter().parse(self._text) if name is not None}
        arguments = {name: names.get(name, name) for name in fields - self._values.keys()}
        return self._text.format(**arguments, **self._values)
