"""What `examples/litellm_router.py` asks of LiteLLM, in forty lines: the package is too large for every test run.

`benchmarks/test_litellm.py` runs the example with the package, in an environment of its own, and compares the two.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

A_TOKEN = {"gpt-5-nano": (5e-8, 4e-7), "gpt-5-mini": (2.5e-7, 2e-6), "gpt-5": (1.25e-6, 1e-5)}  # in, out
PRICES = {model: 10 * into + 20 * out for model, (into, out) in A_TOKEN.items()}  # so long are mocked answers
TOKENS = {"Hello!": 2, "def f(x): ...": 5}


class Router:
    """Tries the deployments that a strategy chooses until one answers."""

    def __init__(self, model_list: Sequence[Any], num_retries: int, **_: Any) -> None:
        self.model_list, self.attempts = model_list, 1 + num_retries

    def register_plugin(self, plugin: Any) -> None:
        self.plugin = plugin

    async def select(self, model: str, *_: Any, kind: str, **__: Any) -> list[Any]:
        return [each for each in self.model_list if each["model_name"] == model and kind == "healthy"]

    async def acompletion(self, model: str, messages: Any, metadata: Any) -> Any:
        failed: tuple[Any, ...] = ()
        for _ in range(self.attempts):
            about = {"metadata": {**metadata, **({"previous_models": failed} if failed else {})}}
            one = await self.plugin.async_get_available_deployment(
                model=model, messages=messages, specific_deployment=None, request_kwargs=about
            )
            arm, params = one["model_info"]["id"], one["litellm_params"]
            if params["mock_response"] != "litellm.RateLimitError":
                return SimpleNamespace(_hidden_params={"model_id": arm, "response_cost": PRICES[params["model"]]})
            failed = (*failed, {"deployment_id": arm})
        raise RuntimeError("no model answered")


def stand_in() -> None:
    """Let imports find this in place of the package."""
    package, router = ModuleType("litellm"), ModuleType("litellm.router")
    package.token_counter = lambda text: TOKENS[text]  # type: ignore[attr-defined]
    router.Router, router.CustomRoutingStrategyBase = Router, object  # type: ignore[attr-defined]
    sys.modules |= {"litellm": package, "litellm.router": router}


if __name__ == "__main__":  # with the example and its arguments
    stand_in()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
