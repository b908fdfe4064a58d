"""Tables of actions: labels and a row of features for each, in an order of their own, named by a hash.

A table is frozen, so decisions, logs and stores name it by its hash and keep it once. Rows are sorted by label: the
order in which they were given never matters. O(n d) to make, hash included; a change names
only what is new again.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError, UnknownNameError, choices
from armlet.inputs.columns import check_label, listed, plain_labels
from armlet.inputs.contexts import ContextReader
from armlet.kernel import ActionRows, action_keys
from armlet.types import Arm, Bool, Float64

UInt64 = npt.NDArray[np.uint64]

NAMED: Final = 3  # labels that a repr has


class ActionTable:
    """Actions that may be chosen: a label and a row of features each; nothing of it ever changes.

    Parameters
    ----------
    labels
        Of the actions, str or int, no two alike.
    Z
        One row of numbers an action, in the same order: a matrix, or a list of rows.
    names
        Of the features, if they have some.

    Examples
    --------
    >>> table = ActionTable(["tea", "coffee"], [[0.0, 2.5], [1.0, 3.0]], names=["caffeine", "price"])
    >>> table.labels, table["tea"], "milk" in table
    (('coffee', 'tea'), array([0. , 2.5]), False)
    >>> table.hash == ActionTable(["coffee", "tea"], [[1.0, 3.0], [0.0, 2.5]], names=["caffeine", "price"]).hash
    True
    >>> table.changed(add={"milk": [0.0, 2.0]}, remove=["tea"]).labels
    ('coffee', 'milk')
    """

    __slots__ = ("_hash", "_keys", "_places", "_rows", "features", "labels", "names")

    labels: tuple[Arm, ...]
    """The labels in order: numbers first, then texts by the alphabet."""
    features: Float64
    """(n, d): one row an action in the order of `labels`; read-only."""
    names: tuple[str, ...] | None
    """What the features are called, if they have names."""

    def __init__(self, labels: Iterable[Arm], Z: npt.ArrayLike, *, names: Iterable[str] | None = None) -> None:
        plain = plain_labels(listed("labels", labels))
        known = None if names is None else _names(names)
        width = _width(Z) if known is None else len(known)
        self._fill(plain, ContextReader(width, known, "action").matrix(Z), known)

    @classmethod
    def _of(
        cls, labels: list[Arm], Z: Float64, names: tuple[str, ...] | None, keys: UInt64 | None = None
    ) -> ActionTable:
        """Make a table of checked labels and numbers, with their keys where they are known."""
        table = cls.__new__(cls)
        table._fill(labels, Z, names, keys)
        return table

    def _fill(self, labels: list[Arm], Z: Float64, names: tuple[str, ...] | None, keys: UInt64 | None = None) -> None:
        if len(labels) != len(Z):
            raise InvalidValueError(f"actions have {len(labels)} labels and {len(Z)} rows of features; give as many")
        if not labels:
            raise InvalidValueError("actions is empty; give at least one action to choose from")
        places = {label: place for place, label in enumerate(labels)}
        if len(places) < len(labels):
            twice = next(label for label, count in Counter(labels).items() if count > 1)
            raise InvalidValueError(f"actions has {twice!r} more than once; labels must differ")
        order = _order(labels)
        if order is not None:
            labels, Z, keys = [labels[place] for place in order], Z[order], None if keys is None else keys[order]
            places = {label: place for place, label in enumerate(labels)}
        self.labels, self.names, self._places = tuple(labels), names, places
        self.features = np.add(Z, 0.0)  # a copy of our own, in which -0.0 is 0.0: equal rows have equal bytes
        self.features.setflags(write=False)
        self._hash: str | None = None
        self._keys: UInt64 | None = keys
        if keys is not None:
            keys.setflags(write=False)
        self._rows: ActionRows | None = None

    @property
    def rows(self) -> ActionRows:
        """What the kernel keeps of it."""
        if self._rows is None:
            self._rows = ActionRows(self.features, self.keys)
        return self._rows

    @property
    def hash(self) -> str:
        """SHA-256 of labels, names and features, in hexadecimal digits: equal for equal tables, on any machine."""
        if self._hash is None:
            head = json.dumps([self.labels, self.names], ensure_ascii=False, separators=(",", ":"))
            digest = hashlib.sha256(head.encode(errors="surrogatepass") + b"\n")
            digest.update(_little(self.features))
            self._hash = digest.hexdigest()
        return self._hash

    @property
    def keys(self) -> UInt64:
        """(n,): what the model calls each action, a hash of its label and features: others have another key."""
        if self._keys is None:
            self._keys = action_keys(self.labels, self.features)
            self._keys.setflags(write=False)
        return self._keys

    @property
    def dim(self) -> int:
        """How many features an action has."""
        return int(self.features.shape[1])

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Arm]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._places

    def __getitem__(self, label: Arm) -> Float64:
        """Return the features of an action, (d,)."""
        row: Float64 = self.features[self.place(label)]
        return row

    def place(self, label: Arm) -> int:
        """Return the row of a label."""
        try:
            return self._places[label]
        except KeyError:
            near = choices(str(label), map(str, self.labels))
            raise UnknownNameError(f"the table has no action {label!r}; {near}") from None
        except TypeError:
            raise InvalidTypeError(
                f"an action is named {label!r}, a {type(label).__name__}; use a str or an int"
            ) from None

    def mask(self, eligible: Iterable[Arm] | Bool) -> Bool:
        """Return which rows may be played, (n,): labels, or a boolean for each row in order.

        Examples
        --------
        >>> ActionTable(["a", "b"], [[1.0], [2.0]]).mask(["b"])
        array([False,  True])
        """
        if isinstance(eligible, np.ndarray) and eligible.dtype == np.bool_:
            if eligible.shape != (len(self),):
                raise InvalidValueError(
                    f"eligible has shape {eligible.shape}; give a boolean for each of {len(self)} actions"
                )
            allowed = eligible.copy()
        else:
            if callable(eligible):
                raise InvalidTypeError(f"eligible is {eligible!r}, which cannot be replayed; give labels, or booleans")
            allowed = np.zeros(len(self), dtype=np.bool_)
            allowed[[self.place(check_label(label)) for label in listed("eligible", eligible)]] = True
        if not allowed.any():
            raise InvalidValueError("eligible is empty; at least one action must be playable")
        return allowed

    def changed(self, add: ActionTable | Mapping[Arm, Any] | None = None, remove: Iterable[Arm] = ()) -> ActionTable:
        """Return the table with some actions more, or with other features, and without some others.

        Parameters
        ----------
        add
            Features by label; a label that is there already gets these features.
        remove
            Labels that the table has.
        """
        gone = {self.labels[self.place(check_label(label))] for label in listed("remove", remove)}
        more = {} if add is None else _rows(add, self)
        places = [place for label, place in self._places.items() if label not in gone and label not in more]
        labels = [self.labels[place] for place in places] + list(more)
        new = np.array(list(more.values())).reshape(len(more), self.dim) + 0.0
        keys = None if self._keys is None else np.concatenate([self._keys[places], action_keys(list(more), new)])
        return ActionTable._of(labels, np.concatenate([self.features[places], new]), self.names, keys)

    # ---- records

    def fields(self, base: ActionTable | None = None) -> dict[str, Any]:
        """Return the table as plain JSON types, or as what is other than in a base, where that is shorter.

        `hash`, `labels` and `Z`, a list of rows, and `names` if there are some; or instead of labels and Z `from`, the
        hash of the base, `add`, labels and Z of what is new or has other features, and `remove`, labels that are gone.

        Examples
        --------
        >>> base = ActionTable(["a", "b", "c"], [[1.0], [2.0], [3.0]])
        >>> fields = base.changed(add={"d": [4.0]}).fields(base)
        >>> fields["add"], fields["remove"], ActionTable.from_fields(fields, lambda hash: base).labels
        ({'labels': ['d'], 'Z': [[4.0]]}, [], ('a', 'b', 'c', 'd'))
        """
        fields = {"hash": self.hash} | ({} if self.names is None else {"names": list(self.names)})
        if base is not None and base.names == self.names and base.dim == self.dim:
            new = np.flatnonzero(~np.isin(self.keys, base.keys, kind="sort"))
            gone = [label for label in base.labels if label not in self._places]
            if 2 * (len(new) + len(gone)) <= len(self):
                add = {"labels": [self.labels[place] for place in new.tolist()], "Z": self.features[new].tolist()}
                return {**fields, "from": base.hash, "add": add, "remove": gone}
        return {**fields, "labels": list(self.labels), "Z": self.features.tolist()}

    @staticmethod
    def from_fields(fields: Mapping[str, Any], find: Callable[[str], ActionTable] | None = None) -> ActionTable:
        """Restore what `fields` returned; `find` leads from the hash of a base to its table.

        Raises InvalidValueError if the table has another hash than the fields say.
        """
        if not isinstance(fields, Mapping):
            raise InvalidTypeError(f"fields is {reprlib.repr(fields)} ({type(fields).__name__}); give those of a table")
        try:
            table = _restored(fields, find)
        except (KeyError, TypeError) as error:
            raise InvalidValueError(
                f"a table of actions is {reprlib.repr(dict(fields))}, which lacks {error}"
            ) from error
        if table.hash != fields.get("hash", table.hash):
            raise InvalidValueError(f"a table of actions has hash {table.hash}, but is said to have {fields['hash']}")
        return table

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ActionTable) and self.hash == other.hash)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self) -> tuple[Any, ...]:
        return ActionTable._of, (list(self.labels), self.features, self.names)

    def _repr_html_(self) -> str:
        from armlet.report.actions import action_table_html  # not before something is shown

        return action_table_html(self)

    def __repr__(self) -> str:
        labels = ", ".join(map(repr, self.labels[:NAMED])) + (", ..." if len(self) > NAMED else "")
        return f"<ActionTable of {len(self):,} actions with {self.dim} features: {labels}>"


def action_key(label: Arm, z: Float64) -> int:
    """Return what the model calls an action: eight bytes of BLAKE2b of its label and features, little-endian.

    Examples
    --------
    >>> action_key("tea", np.array([1.0])) == action_key("tea", np.array([2.0]))
    False
    """
    return int(action_keys([label], z[np.newaxis])[0])


def _little(values: Float64) -> bytes:
    return values.tobytes() if sys.byteorder == "little" else values.astype("<f8").tobytes()


def _order(labels: list[Arm]) -> list[int] | None:
    """Return the places of labels in order, numbers before texts; None if they are in it."""
    places = range(len(labels))
    if len({type(label) for label in labels}) == 1:
        order = sorted(places, key=labels.__getitem__)
    else:
        order = sorted(places, key=lambda place: (isinstance(labels[place], str), labels[place]))
    return None if order == list(places) else order


def _names(names: Any) -> tuple[str, ...]:
    names = listed("names", names)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"names has {name!r} ({type(name).__name__}); give texts")
    return tuple(map(str, names))


def _width(Z: Any) -> int:
    shape = getattr(Z, "shape", None)
    if shape is not None and len(shape) == 2:
        return int(shape[1])
    rows = list(Z) if isinstance(Z, Sequence) and not isinstance(Z, str) else []
    if rows and hasattr(rows[0], "__len__"):
        return len(rows[0])
    raise InvalidTypeError(f"Z is {reprlib.repr(Z)} ({type(Z).__name__}); give a matrix, one row an action")


def _rows(actions: ActionTable | Mapping[Arm, Any], table: ActionTable) -> dict[Arm, Float64]:
    """Return the features of more actions by label."""
    if isinstance(actions, ActionTable):
        if actions.dim != table.dim:
            raise InvalidValueError(f"add has {actions.dim} features and the table {table.dim}; give as many")
        return dict(zip(actions.labels, actions.features, strict=True))
    if not isinstance(actions, Mapping):
        raise InvalidTypeError(f"add is {reprlib.repr(actions)} ({type(actions).__name__}); give features by label")
    labels = [check_label(label) for label in actions]
    rows = ContextReader(table.dim, table.names, "action").matrix(list(actions.values()))
    return dict(zip(labels, rows, strict=True))


def _restored(fields: Mapping[str, Any], find: Callable[[str], ActionTable] | None) -> ActionTable:
    if "from" not in fields:
        return ActionTable(fields["labels"], fields["Z"], names=fields.get("names"))
    if find is None:
        raise InvalidValueError(f"a table of actions is said to change {fields['from']}, which is not there")
    base, add = find(fields["from"]), fields["add"]
    more = dict(zip(add["labels"], add["Z"], strict=True))
    return base.changed(more, fields["remove"])
