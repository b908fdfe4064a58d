"""The reference, a page a class: pages of `docs/reference/api` name what is public, with the directives of autodoc.

Modules of which all members are asked for are written out first, so that every name is known before a page is read.
Each class then gets a page of its own, its methods in a table on top, and a line in a table of the page that names it.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import armlet
from armlet.policies import POLICIES as REGISTRY
from armlet_lab.literature import POLICIES as LITERATURE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

API = Path(__file__).parents[1] / "reference" / "api"
CLASSES = "classes"
OPTIONS = r"((?:[ ]{3}.*\n|\n(?=[ ]{3}))*)"
MODULE = re.compile(rf"^\.\. automodule:: (\S+)\n{OPTIONS}", re.MULTILINE)
ENTRY = re.compile(rf"^\.\. auto(class|function|exception|data):: (\S+)\n{OPTIONS}\n*", re.MULTILINE)
RUN = re.compile(rf"(?:^\.\. auto(?:class|function|exception|data):: \S+\n{OPTIONS}\n*)+", re.MULTILINE)
NESTED = re.compile(r"\.\. auto(?:method|property):: \S+\.(\w+)")
ALL, SOME = re.compile(r":members:\n"), re.compile(r"(?<!-):members: (.+)\n")


class Entry(NamedTuple):
    """One thing that a page documents: its kind, the name that it is found under, and how it is shown."""

    kind: str
    name: str
    options: str

    def directive(self) -> str:
        """Write it as autodoc reads it; short names in its signature are those of its module."""
        home = f".. currentmodule:: {self.name.rpartition('.')[0]}"
        return f"{home}\n\n.. auto{self.kind}:: {self.name}\n{self.options.rstrip()}\n"


def found(name: str) -> object:
    """Return what a dotted name stands for.

    Examples
    --------
    >>> found("armlet.Bandit.decide").__name__
    'decide'
    """
    thing: object = import_module(name.partition(".")[0])
    for dot in [place for place, letter in enumerate(name) if letter == "."]:
        before, part = name[:dot], name[dot + 1 :].partition(".")[0]
        thing = getattr(thing, part) if hasattr(thing, part) else import_module(f"{before}.{part}")
    return thing


def kind_of(thing: object) -> str | None:
    """Return how autodoc calls a class, an exception or a function, and None for anything else.

    Examples
    --------
    >>> kind_of(armlet.Bandit), kind_of(armlet.load), kind_of(armlet.ArmletError), kind_of(armlet)
    ('class', 'function', 'exception', None)
    """
    if isinstance(thing, type):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if inspect.isroutine(inspect.unwrap(thing)) else None  # type: ignore[arg-type]


def public(module: str) -> list[str]:
    """List the classes and functions of a module: those of its `__all__`, else those made in it or below it.

    Examples
    --------
    >>> public("armlet.advice")
    ['Advice', 'Pilot', 'Prior', 'advise']
    """
    inside = import_module(module)
    made_here = [name for name, thing in vars(inside).items() if getattr(thing, "__module__", "").startswith(module)]
    names = getattr(inside, "__all__", made_here)
    return [name for name in names if not name.startswith("_") and kind_of(getattr(inside, name))]


def written_out(page: str) -> str:
    r"""Name the members of every module of which a page wants some, one by one.

    Examples
    --------
    >>> print(written_out(".. automodule:: armlet.advice\n   :members: advise\n"))
    .. automodule:: armlet.advice
    <BLANKLINE>
    .. autofunction:: armlet.advice.advise
    <BLANKLINE>
    """

    def replace(match: re.Match[str]) -> str:
        module, options = match.groups()
        some = SOME.search(options)
        names = some[1].split(", ") if some else public(module) if ALL.search(options) else []
        left = [f"{module}.{name}" for name in names if f":: {module}.{name}\n" not in page]
        return "\n".join([f".. automodule:: {module}", *map(_entry, left), ""])

    return MODULE.sub(replace, page)


def _entry(name: str) -> str:
    kind = kind_of(found(name))
    return f"\n.. auto{kind}:: {name}" + ("\n   :members:" if kind == "class" else "")


def unlisted(page: str) -> list[str]:
    """List what `armlet` offers and neither a page of the reference nor the module of another one has.

    Examples
    --------
    >>> left = unlisted(".. autoclass:: armlet.Bandit")
    >>> [name in left for name in ("load", "Bandit", "LinUCB", "Log", "log", "errors")]
    [True, False, False, False, False, False]
    """
    stems = {path.stem for path in API.glob("*.rst")} - {"armlet", "lab"}
    modules = [import_module(f"armlet.{stem}") for stem in stems]
    pages = "\n".join([page, *((API / f"{stem}.rst").read_text() for stem in stems)])
    listed = set(re.findall(r":: armlet\.(\w+)$", pages, re.MULTILINE))
    names = [name for name in vars(armlet)["__all__"] if name not in listed and kind_of(getattr(armlet, name))]
    return [name for name in names if all(getattr(each, name, None) is not getattr(armlet, name) for each in modules)]


def read(stem: str) -> str:
    """Read a page with every name that it documents: of modules, of the registries, and what nobody else lists."""
    text = (API / f"{stem}.rst").read_text()
    if stem == "policies":
        of_both = [f"armlet.policies.{name}" for name in REGISTRY] + [f"armlet_lab.literature.{n}" for n in LITERATURE]
        text += "".join(f"\n.. autoclass:: {name}\n" for name in of_both)
    if stem == "armlet" and (names := unlisted(text)):
        text += "\nMore\n----\n" + "".join(f"\n.. auto{kind_of(getattr(armlet, n))}:: armlet.{n}\n" for n in names)
    return written_out(text)


def entries(text: str) -> list[Entry]:
    r"""List what a page documents, in its order.

    Examples
    --------
    >>> entries(".. autoclass:: armlet.Bandit\n   :members:\n.. autofunction:: armlet.load\n")
    [Entry(kind='class', name='armlet.Bandit', options='   :members:\n'), Entry(kind='function', ...)]
    """
    return [Entry(*each) for each in ENTRY.findall(text)]


def documented() -> set[str]:
    """Return every name that has an entry in the reference."""
    return {entry.name for path in API.glob("*.rst") for entry in entries(read(path.stem))}


def summary(names: list[str]) -> str:
    """Write a table of names, each with the first sentence of what it does."""
    head = [".. currentmodule:: None", "", ".. autosummary::", "   :signatures: none", ""]
    return "\n".join([*head, *(f"   ~{name}" for name in names), "", ""])


def methods(entry: Entry) -> list[str]:
    r"""List what the page of a class shows of it: methods and properties, by name.

    Examples
    --------
    >>> methods(Entry("class", "armlet.bandit.Arms", "   :members: retired, subset\n"))
    ['retired', 'subset']
    """
    kind, some = found(entry.name), SOME.search(entry.options)
    names = dir(kind) if "inherited" in entry.options else vars(kind)
    static = {name: inspect.getattr_static(kind, name) for name in names if not name.startswith("_")}
    asked = set(NESTED.findall(entry.options)) | (set(some[1].split(", ")) if some else set())
    return [
        name
        for name, thing in static.items()
        if (name in asked or ALL.search(entry.options))
        and (inspect.isroutine(thing) or inspect.isdatadescriptor(thing))
        and inspect.getdoc(thing)
    ]


def page_of(entry: Entry) -> str:
    """Write the page of a class: its name, a table of its methods, and then all of it."""
    title = f"{entry.name}\n{'=' * len(entry.name)}\n"
    table = [summary([f"{entry.name}.{name}" for name in methods(entry)])] if methods(entry) else []
    return "\n".join([title, *table, entry.directive()])


def shortened(text: str) -> str:
    """Leave of every class of a page its line in a table; functions and errors stay, below that table."""

    def replace(match: re.Match[str]) -> str:
        run = entries(match[0])
        stay = [entry.directive() for entry in run if entry.kind != "class"]
        return "\n".join([summary([entry.name for entry in run if entry.kind != "data"]), *stay, ""])

    pages = [f"   {CLASSES}/{entry.name}" for entry in entries(text) if entry.kind == "class"]
    contents = ["", ".. toctree::", "   :hidden:", "", *pages, ""] if pages else []
    return "\n".join([RUN.sub(replace, text), *contents])


def pages() -> Iterator[tuple[str, str]]:
    """Return the name and the text of every page of a class."""
    for path in sorted(API.glob("*.rst")):
        for entry in entries(read(path.stem)):
            if entry.kind == "class":
                yield f"{entry.name}.rst", page_of(entry)


def _on_tree(app: Sphinx, tree: Any) -> None:
    """Say which of several things of one name is meant where a signature has it as its module writes it."""
    homes = {id(found(name)): name for name in app.config.documented_names}
    for link in tree.findall(lambda node: node.tagname == "pending_xref" and node.get("py:module")):
        thing = getattr(import_module(link["py:module"]), link["reftarget"], None)
        link["reftarget"] = homes.get(id(thing), link["reftarget"])


def _on_start(app: Sphinx) -> None:
    app.config.documented_names = sorted(documented())
    folder, wanted = API / CLASSES, dict(pages())
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    place = Path(docname)
    if place.parent == Path("docs/reference/api"):
        source[0] = shortened(read(place.name))


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages of classes before any page is looked for."""
    app.add_config_value("documented_names", [], "", list)
    app.connect("builder-inited", _on_start)
    app.connect("doctree-read", _on_tree)
    app.connect("source-read", _on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
