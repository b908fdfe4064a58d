"""A shop's front page that learns: FastAPI around a durable loop, with rewards that come hours later.

Every visit asks which banner to show; an order, hours later and perhaps after a restart, says what it earned. The loop
lies in one file, and what the page has answered is there after whatever ends the process. One process serves, with as
many threads as FastAPI likes: `uvicorn web_app:app`, without `--workers`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import armlet
from armlet.stores import Loop, Status

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
    """Return the app over a store in a file; the loop is opened when the app starts, and closed when it ends."""
    opened: dict[str, Loop] = {}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with armlet.open_store(path) as store:
            opened["loop"] = store.loop(
                "front page",
                arms=BANNERS,
                features=["returning", "basket"],
                policy=armlet.ContextualEpsilonGreedy(p=100),
                window=48 * HOURS,  # a visit without an order after two days has earned nothing
                default_reward=0.0,
                reward_range=(0.0, 1.0),
            )
            yield

    app = FastAPI(lifespan=lifespan)

    # plain functions, which FastAPI runs in threads: they wait for the disk, and share its commits

    @app.post("/banner")
    def banner(visit: Visit) -> dict[str, str]:
        try:
            x = {"returning": visit.returning, "basket": visit.basket}
            decision = opened["loop"].decide(x, event=visit.event)
        except armlet.errors.EventError as error:
            raise HTTPException(409, str(error)) from error
        except armlet.errors.StoreError as error:  # a full disk, say: the page can show any banner
            raise HTTPException(503, str(error)) from error
        except armlet.ArmletError as error:  # whatever else a loop refuses
            raise HTTPException(422, str(error)) from error
        return {"banner": str(decision.arm)}

    @app.post("/order")
    def order(told: Order) -> dict[str, Status]:
        try:
            return {"status": opened["loop"].reward(told.event, told.value)}
        except armlet.errors.StoreError as error:
            raise HTTPException(503, str(error)) from error
        except armlet.ArmletError as error:
            raise HTTPException(422, str(error)) from error

    return app


app = create_app(os.environ.get("SHOP_DB", "shop.db"))
