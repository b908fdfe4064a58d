"""The built site as readers meet it: `make site-check` serves `build/site`, searches it and measures every page.

Searches run the site's own search in Chromium; each has the page that must come first. At 1,280 px no block of code
and no table may be wider than its page, and at 390 px no page may scroll sideways.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import Browser, Page

from support import browser

SITE = Path(__file__).parents[1] / "build" / "site"
SEARCHES = {
    "cold start": "how-to/arms-that-come-and-go",
    "A/B test": "how-to/gate",
    "off-policy": "how-to/evaluate",
    "delayed reward": "tutorials/late-rewards",
    "drift": "explanation/against-the-others",
    "learning rate": "how-to/from-vowpal-wabbit",
    "warm start": "how-to/historic-logs",
    "non-stationary": "explanation/against-the-others",
    "confidence interval": "how-to/inference",
    "LLM routing": "how-to/embeddings",
    "hyperparameter": "how-to/how-much-to-explore",
    "propensity": "explanation/words",
}
# What a block shows without scrolling is clientWidth; fractions of a pixel are rounding.
WIDE = """() => [...document.querySelectorAll('.highlight pre, .table-wrapper')]
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => [each.matches('pre') ? 'code' : 'table', each.scrollWidth - each.clientWidth,
                  each.innerText.trim().split('\\n').sort((a, b) => b.length - a.length)[0].slice(0, 90)])"""
FINISHED = "document.querySelector('.search-summary')?.innerText.match(/found|finished|did not match/)"
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Keep the terminal for what was found."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder to this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def first_hits(page: Page, url: str, words: str, *, n: int = 3) -> list[str]:
    """Search for words as a reader does, and return the pages of the first hits."""
    page.goto(f"{url}/search.html?q={words.replace(' ', '+')}")
    page.wait_for_function(FINISHED)
    links = page.locator("#search-results ul.search li > a")
    places = [links.nth(place).get_attribute("href") or "" for place in range(min(n, links.count()))]
    return [place.partition("?")[0].removeprefix("docs/").replace(".html", "") for place in places]


def check_searches(page: Page, url: str) -> bool:
    """Print the first hits of every search; return whether each finds its page first."""
    good = True
    for words, wanted in SEARCHES.items():
        hits = first_hits(page, url, words)
        fine = bool(hits) and hits[0].partition("#")[0] == wanted
        good &= fine
        print(f"{'ok ' if fine else 'BAD'} {words:20} {', '.join(hits) or 'nothing'}")
    return good


def pages() -> list[str]:
    """List every page of the site."""
    found = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return sorted(name for name in found if not name.startswith(("_", "index", "search", "genindex", "py-modindex")))


def measured(launched: Browser, url: str, width: int, script: str) -> dict[str, object]:
    """Run a script on every page at a width."""
    page, found = launched.new_page(viewport={"width": width, "height": 900}), {}
    for name in pages():
        page.goto(f"{url}/{name}")
        found[name] = page.evaluate(script)
    page.close()
    return found


def check_widths(launched: Browser, url: str) -> bool:
    """Print what is wider than its page; return whether nothing is."""
    wide = {name: found for name, found in measured(launched, url, 1280, WIDE).items() if found}
    for name, found in wide.items():
        for kind, pixels, line in found:  # type: ignore[attr-defined]
            print(f"{kind:5} {pixels:4} px too wide at 1280  {name}: {line}")
    sideways = {name: found for name, found in measured(launched, url, 390, SIDEWAYS).items() if found}
    for name, pixels in sideways.items():
        print(f"page  {pixels:4} px too wide at 390   {name}")
    kinds = Counter(kind for found in wide.values() for kind, *_ in found)  # type: ignore[attr-defined]
    wider = f"{kinds['code']} blocks of code, {kinds['table']} tables, {len(sideways)} pages"
    print(f"{len(pages())} pages; too wide: {wider}")
    return not wide and not sideways


def main() -> int:
    """Search and measure; return 0 if all is well."""
    with served(SITE) as url, browser.launch() as launched:
        found = check_searches(launched.new_page(), url)
        return 0 if check_widths(launched, url) and found else 1


if __name__ == "__main__":
    sys.exit(main())
