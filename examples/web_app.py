"""A shop's front page that learns: FastAPI around a durable loop, with rewards that come hours later.

Every visit asks which banner to show; an order, hours later and perhaps after a restart, says what it earned. What the
page has answered is there after whatever ends the process. With the loop in a file, one process serves: `uvicorn
web_app:app`. With SHOP_DB=postgresql://... any number does: `uvicorn web_app:app --workers 4`. This is for applications
that have a loop inside; `armlet serve` puts loops behind HTTP without a line of code, with keys, limits and pages.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

import armlet
from armlet.stores import Loop, Status, Store

BANNERS = ["sale", "new arrivals", "free shipping"]
HOURS = 3600.0


class Visit(BaseModel):
    """Who is looking at the page."""

    event: str  # the shop's own name for this visit: a repeated request gets the same answer
    returning: float
    basket: float


class Order(BaseModel):
    """What came of a visit."""

    event: str
    value: float


def create_app(path: str) -> FastAPI:
    """Return the app over a store, the path of a file or the address of a database, open while the app runs."""
    loops: list[Loop] = []
    stores: list[Store] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with armlet.open_store(path) as store:
            loop = store.loop(
                "front page",
                arms=BANNERS,
                features=["returning", "basket"],
                policy=armlet.ContextualEpsilonGreedy(p=100),
                window=48 * HOURS,  # a visit without an order after two days has earned nothing
                default_reward=0.0,
                reward_range=(0.0, 1.0),
            )
            loops[:], stores[:] = [loop], [store]
            yield

    app = FastAPI(lifespan=lifespan)

    # no thread a request: those that wait at the same time share a commit

    @app.post("/banner")
    async def banner(visit: Visit) -> dict[str, str]:
        try:
            x = {"returning": visit.returning, "basket": visit.basket}
            decision = await loops[0].adecide(x, event=visit.event)
        except armlet.errors.EventError as error:
            raise HTTPException(409, str(error)) from error
        except armlet.errors.StoreError as error:  # a full disk, say: ask again, or show any banner
            raise HTTPException(503, str(error)) from error
        except armlet.ArmletError as error:  # whatever else a loop refuses
            raise HTTPException(422, str(error)) from error
        return {"banner": str(decision.arm)}

    @app.post("/order")
    async def order(told: Order) -> dict[str, Status]:
        try:
            return {"status": await loops[0].areward(told.event, told.value)}
        except armlet.errors.StoreError as error:
            raise HTTPException(503, str(error)) from error
        except armlet.ArmletError as error:
            raise HTTPException(422, str(error)) from error

    @app.get("/metrics")
    def metrics() -> PlainTextResponse:  # a plain function, which FastAPI runs in a thread: it waits for the store
        return PlainTextResponse(stores[0].metrics(), media_type="text/plain; version=0.0.4")

    return app


app = create_app(os.environ.get("SHOP_DB", "shop.db"))
