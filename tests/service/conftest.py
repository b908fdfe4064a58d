"""A service over a store in memory, with one loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from armlet.service.app import Service, create_app
from armlet.stores import Memory, Store
from support.service.calls import Caller


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Memory()) as store:
        store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], seed=7)
        yield store


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    service = Service(store)
    yield service
    service.close()


@pytest.fixture
def caller(service: Service) -> Iterator[Caller]:
    with Caller(create_app(service)) as caller:
        yield caller
