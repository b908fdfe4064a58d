"""What many write themselves: FastAPI with models of Pydantic, and a bandit of MABWiser's that learns in memory."""

from collections.abc import Callable, Mapping

from fastapi import FastAPI
from mabwiser.mab import MAB, LearningPolicy
from pydantic import BaseModel

from serve_client import ARMS, DECIDE, DIM, FEATURES, REWARD

Choose = Callable[[Mapping[str, float], str], str]
Learn = Callable[[str, float], None]


class Decide(BaseModel):
    """A request for a decision."""

    context: dict[str, float]
    event: str


class Decided(BaseModel):
    """A decision."""

    event: str
    arm: str
    propensity: float
    explored: bool


class Reward(BaseModel):
    """The reward of an event."""

    loop: str
    event: str
    value: float


class Rewards(BaseModel):
    """A request with rewards."""

    items: list[Reward]


class Judged(BaseModel):
    """What became of a reward."""

    status: str


class RewardsJudged(BaseModel):
    """What became of rewards."""

    items: list[Judged]


def application(choose: Choose, learn: Learn) -> FastAPI:
    """Return an application; its routes run in the event loop, which costs less than a thread each."""
    app = FastAPI()

    @app.post(DECIDE)
    async def decide(asked: Decide) -> Decided:
        return Decided(event=asked.event, arm=choose(asked.context, asked.event), propensity=0.5, explored=False)

    @app.post(REWARD)
    async def reward(asked: Rewards) -> RewardsJudged:
        for item in asked.items:
            learn(item.event, item.value)
        return RewardsJudged(items=[Judged(status="accepted") for _ in asked.items])

    return app


def echo() -> FastAPI:
    """Return what decides and learns nothing."""
    return application(lambda _, __: ARMS[0], lambda _, __: None)


def mabwiser() -> FastAPI:
    """Return LinUCB in memory; what waits for its reward is in a dict."""
    bandit = MAB(ARMS, LearningPolicy.LinUCB(alpha=1.0), seed=1)
    bandit.fit(ARMS, [0.0] * len(ARMS), [[0.0] * DIM] * len(ARMS))  # it decides nothing before
    waiting: dict[str, tuple[str, list[list[float]]]] = {}

    def choose(context: Mapping[str, float], event: str) -> str:
        x = [[context[name] for name in FEATURES]]
        arm = str(bandit.predict(x))
        waiting[event] = (arm, x)
        return arm

    def learn(event: str, value: float) -> None:
        arm, x = waiting.pop(event)
        bandit.partial_fit([arm], [value], x)

    return application(choose, learn)
