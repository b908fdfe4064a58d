"""Signatures of the compiled part for the reference, from its stub: at run time it has none to ask for."""

from __future__ import annotations

import ast
import re
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from armlet.stores import Loop
from armlet.stores import loop as loops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

STUB = Path(__file__).parents[2] / "src" / "armlet" / "_kernel.pyi"
Signature = tuple[str, str | None]
BEFORE_NUMPYDOC = 100
ALIAS = re.compile(r"TypeAliasForwardRef\('([\w.]+)'\)")


def signature(function: ast.FunctionDef) -> Signature:
    """Write a function's arguments but `self`, and what it returns.

    Examples
    --------
    >>> signature(ast.parse("def f(self, x: int, *, y: str = 'a') -> float: ...").body[0])
    ("(x: int, *, y: str='a')", 'float')
    """
    given = function.args
    if given.posonlyargs and given.posonlyargs[0].arg in ("self", "cls"):
        del given.posonlyargs[0]
    elif given.args and given.args[0].arg in ("self", "cls"):
        del given.args[0]
    return f"({ast.unparse(given)})", ast.unparse(function.returns) if function.returns else None


def signatures(stub: str) -> Iterator[tuple[str, Signature]]:
    r"""Find the signature of every method of a stub.

    Examples
    --------
    >>> dict(signatures("class Engine:\n    def learn(self, reward: float) -> None: ..."))
    {'Engine.learn': ('(reward: float)', 'None')}
    """
    for kind in ast.parse(stub).body:
        for part in kind.body if isinstance(kind, ast.ClassDef) else ():
            if isinstance(part, ast.FunctionDef):
                yield f"{kind.name}.{part.name}", signature(part)


def named(given: str) -> str:
    """Write an alias that Sphinx left as it found it by its name.

    Examples
    --------
    >>> named("(steps: TypeAliasForwardRef('ArrayLike') | None = None)")
    '(steps: ArrayLike | None = None)'
    """
    return ALIAS.sub(r"\1", given)


def _on_signature(
    app: Sphinx, what: str, _: str, thing: object, __: object, given: str | None, returned: str | None
) -> Signature | None:
    origin = getattr(thing, "__objclass__", thing)
    if what == "method" and getattr(origin, "__module__", "") == "armlet._kernel":
        return app.config.kernel_signatures.get(getattr(thing, "__qualname__", ""))
    return (named(given), returned) if given and ALIAS.search(given) else None


def _read(app: Sphinx, *_: object) -> None:
    app.config.kernel_signatures = dict(signatures(STUB.read_text()))


def _show_made_signatures(_: Sphinx) -> None:
    """Show a method whose signature is made of declared options by that signature, not by what its source says."""
    from sphinx.ext.autodoc._dynamic import _signatures
    from sphinx.pycode import ModuleAnalyzer

    read_defaults = _signatures.update_default_value

    def update_default_value(thing: object, bound_method: bool) -> None:
        if "__signature__" not in getattr(thing, "__dict__", {}):
            read_defaults(thing, bound_method)

    _signatures.update_default_value = update_default_value
    analyzer = ModuleAnalyzer.for_module(Loop.__module__)
    analyzer.analyze()
    for name in [name for name in analyzer.overloads if hasattr(attrgetter(name)(loops), "__signature__")]:
        del analyzer.overloads[name]


def setup(app: Sphinx) -> dict[str, bool]:
    """Return compiled methods the signatures of their stub."""
    app.connect("builder-inited", _show_made_signatures)
    app.add_config_value("kernel_signatures", {}, "", dict)
    app.connect("config-inited", _read)
    app.connect("autodoc-process-signature", _on_signature, priority=BEFORE_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
