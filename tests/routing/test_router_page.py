"""What the page on routing says about HTTP, run as it stands there; its Python is run as doctests."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.service.servers import ask, serving

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "router.md").read_text()
BY_CHANCE = ("arm", "propensity", "explored")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def test_requests_of_the_page_have_the_answers_that_it_shows(tmp_path: Path) -> None:
    serve, requests = (shlex.split(block.replace("\\\n", " ")) for block in blocks("bash"))
    bodies = [(urlsplit(word).path, requests[n + 4]) for n, word in enumerate(requests) if word.startswith("http")]
    with serving(*serve[2:], folder=tmp_path) as server:
        found = [ask(server.url, "POST", path, json.loads(body)).json for path, body in bodies]
    text, shown = blocks("json")[0], list[Any]()
    while text := text.strip():
        value, end = json.JSONDecoder().raw_decode(text)
        shown.append(value)
        text = text[end:]
    assert len(found) == 2
    for answer in (found[0], shown[0]):
        assert all(type(answer.pop(name)) is kind for name, kind in zip(BY_CHANCE, (str, float, bool), strict=True))
    assert found == shown
