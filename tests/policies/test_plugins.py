"""Policies that other packages bring: found by name, and refused by name where they clash or are broken."""

from __future__ import annotations

import importlib.metadata
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import armlet
from armlet import disk
from armlet.errors import ModelFileError, PolicyError, UnknownNameError
from armlet.policies import GROUP, LinUCB, find_policy, is_registered, plugged_policies


class Brought(LinUCB):
    """A policy of another package."""


@dataclass
class Point:
    """An entry point, as far as it is looked at."""

    brings: Any
    name: str = "mine"
    value: str = "my_package:POLICIES"

    def load(self) -> Any:
        if isinstance(self.brings, Exception):
            raise self.brings
        return self.brings


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let entry points be these."""

    def put(*points: Point) -> None:
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: list(points) if group == GROUP else [])
        plugged_policies.cache_clear()

    yield put
    plugged_policies.cache_clear()


def test_a_brought_policy_is_found_wherever_names_are_looked_up(install: Any) -> None:
    install(Point({"Brought": Brought}))
    assert find_policy("Brought") is armlet.Brought is armlet.policies.Brought is Brought  # type: ignore[attr-defined]
    bandit = armlet.Bandit(["a", "b"], 1, policy=Brought(), seed=1)
    assert is_registered(bandit.policy)
    assert type(armlet.from_bytes(bandit.to_bytes()).policy) is Brought
    install()
    with pytest.raises(ModelFileError, match=r"there is no policy 'Brought'.*pip install armlet-lab"):
        armlet.from_bytes(bandit.to_bytes())


@pytest.mark.parametrize(
    ("brings", "message"),
    [
        (ImportError("no module named spam"), r"plug-in 'mine' \(my_package:POLICIES\) cannot be loaded: no module"),
        (["Brought"], r"plug-in 'mine' .* is \['Brought'\]; it must be a mapping"),
        ({"LinUCB": Brought}, "plug-in 'mine' .* brings LinUCB, a name that is in use"),
        ({"Brought": 3}, "plug-in 'mine' .* brings Brought, which is not a class of policies"),
        ({"Brought": dict}, "plug-in 'mine' .* brings Brought, which is not a class of policies"),
    ],
    ids=["broken", "a list", "a name of the library", "a number", "another class"],
)
def test_a_plug_in_that_cannot_be_used_is_refused_by_name(install: Any, brings: Any, message: str) -> None:
    install(Point(brings))
    with pytest.raises(PolicyError, match=message):
        find_policy("Brought")
    assert find_policy("LinUCB") is LinUCB  # the library's own need no plug-in


def test_two_plug_ins_that_bring_one_name_are_refused(install: Any) -> None:
    install(Point({"Brought": Brought}), Point({"Brought": Brought}, name="other"))
    with pytest.raises(PolicyError, match=r"plug-in 'other' .* brings Brought, a name that is in use"):
        find_policy("Brought")


def test_without_plug_ins_the_package_of_the_literature_is_named(install: Any) -> None:
    install()
    sentence = "policies of the literature are in the package armlet-lab: pip install armlet-lab"
    with pytest.raises(UnknownNameError, match=sentence):
        find_policy("EXP4")
    with pytest.raises(AttributeError, match=sentence):
        armlet.EXP4  # type: ignore[attr-defined]  # noqa: B018
    header, arrays = disk.decode_model(armlet.Bandit(["a", "b"], 1, policy=LinUCB(), seed=1).to_bytes())
    header["policy"] = json.loads('{"name": "EXP4", "settings": {}}')
    with pytest.raises(ModelFileError, match=sentence):
        armlet.load(io.BytesIO(disk.encode_model(header, arrays)))
