"""A router for language models: LiteLLM calls them, a durable Armlet loop chooses which one answers.

    pip install 'litellm>=1.109.1' 'armlet[store]'
    python examples/litellm_router.py router.db 400

Cost is what LiteLLM bills, quality is judged forty requests later, a hard budget ends it, a session keeps its model,
and an answer counts for the model that gave it, also if another one was chosen. LiteLLM mocks the models: nothing
leaves the machine. Killed at any time, also by `kill -9`, and started again, it decides as if it had not been.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from importlib.metadata import version
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices from the package, not from the network

import litellm
from litellm.router import CustomRoutingStrategyBase, Router

import armlet
from armlet.stores import Loop, Store

MODELS = {"nano": "gpt-5-nano", "mini": "gpt-5-mini", "full": "gpt-5"}  # in the order in which they stand in
FAILS = {"nano": 0.6, "mini": 0.2, "full": 0.1}  # of the mocked models: how often an answer about code is bad
LATE, TURNS, THRIFTY = 40, 4, {"cost": -1e3}  # requests until a judgement and in a session; the dial of every tenth


class ArmletStrategy(CustomRoutingStrategyBase):  # type: ignore[misc]  # LiteLLM is not there where types are checked
    """Chooses the deployment for a request whose metadata has an event, a session and perhaps a dial."""

    def __init__(self, router: Router, loop: Loop) -> None:
        self.router, self.loop = router, loop

    async def async_get_available_deployment(self, model: str, request_kwargs: Any, messages: Any, **more: Any) -> Any:
        """Choose among those that do not cool down; asked again for a request, let the next one stand in."""
        found = await self.router.select(model, request_kwargs, kind="healthy", messages=messages, **more)
        healthy, about = {each["model_info"]["id"]: each for each in found}, request_kwargs["metadata"]
        if failed := {each["deployment_id"] for each in about.get("previous_models", ())}:
            return next((healthy[arm] for arm in MODELS if arm in healthy.keys() - failed), found[0])
        opening = messages[0]["content"]  # of the whole session, which keeps its model only while its context stays
        x = {"tokens": litellm.token_counter(text=opening), "code": float("def " in opening)}
        how = {"unit": about["session"], "weights": about.get("dial"), "eligible": list(healthy)}
        return healthy[(await self.loop.adecide(x, event=about["event"], **how)).arm]


def make_router(loop: Loop, down: str | None = None, **settings: Any) -> Router:
    """Return a router of LiteLLM over the mocked models, of which one may be down."""
    says = {arm: "litellm.RateLimitError" if arm == down else f"I am {arm}." for arm in MODELS}
    params = {arm: {"model": name, "api_key": "none", "mock_response": says[arm]} for arm, name in MODELS.items()}
    models = [{"model_name": "chat", "litellm_params": params[arm], "model_info": {"id": arm}} for arm in MODELS]
    if not hasattr(Router, "register_plugin"):
        found = version("litellm")
        sys.exit(f"litellm is {found}, whose Router has no register_plugin; pip install --upgrade 'litellm>=1.109.1'")
    router = Router(model_list=models, num_retries=len(MODELS) - 1, **settings)
    router.register_plugin(ArmletStrategy(router, loop))
    return router


async def ask(router: Router, loop: Loop, prompt: str, **about: Any) -> str:
    """Return the model that answered; its cost is durable by then. It may be repeated, and counts once."""
    answer = await router.acompletion(model="chat", messages=[{"role": "user", "content": prompt}], metadata=about)
    arm, cost = str(answer._hidden_params["model_id"]), answer._hidden_params["response_cost"]
    if await loop.areward(about["event"], {"cost": cost}, name="bill", played=arm) == "unknown":
        raise armlet.errors.BudgetError("the budget had no arm, so LiteLLM tried again, and the next model stood in")
    return arm


def make_loop(store: Store, requests: int) -> Loop:
    """Make the loop, or go on with the one in the store."""
    return store.loop(
        "models",
        arms=MODELS,
        features=["tokens", "code"],
        outcomes={"quality": 1.0, "cost": 0.0},  # the budget finds the price of cost; a dial comes on top
        budget=armlet.Budget("cost", total=6e-5 * requests, horizon=requests, hard=True),
        reward_range={"quality": (0.0, 1.0), "cost": (0.0, 3e-4)},  # no answer costs more: a hard budget keeps it back
        epoch=TURNS,  # within it a session meets one price; longer ones make the spend swing
        seed=7,
    )


async def main(path: str, requests: int) -> None:
    """Serve made requests, half of the sessions about code, and print each one when all of it is durable."""
    prompts = [random.Random(n // TURNS).choice(["def f(x): ...", "Hello!"]) for n in range(requests)]
    with armlet.open_store(path) as store:
        loop, answered = make_loop(store, requests), dict[int, str]()
        routers = [make_router(loop, arm, disable_cooldowns=True) for arm in (None, "mini")]  # which go by the clock
        for n in range(max(loop.model().t - 1 - LATE, 0), requests):  # the last ones again: they count once
            session, dial = f"session-{n // TURNS}", THRIFTY if n % 40 > 35 else None
            about = {"event": f"request-{n}", "session": session, "dial": dial}
            try:
                answered[n] = await ask(routers[n % 25 == 24], loop, prompts[n], **about)
            except armlet.errors.BudgetError as error:
                print(n, error, flush=True)
                break
            if (arm := answered.get(n - LATE)) is not None:
                good = random.Random(n).random() > FAILS[arm] * prompts[n - LATE].startswith("def")
                await loop.areward(f"request-{n - LATE}", {"quality": float(good)}, name="judge", played=arm)
            print(n, answered[n], flush=True)
        print(loop.model().budget)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
