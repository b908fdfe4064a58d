"""The report: well-formed, whole, safe with any text, and the same for the same input."""

from __future__ import annotations

import dataclasses
import functools
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from armlet.report import plots
from armlet.report.numbers import show
from armlet.report.plots import Curve, Picture
from armlet.types import Estimate
from armlet_lab.runner.experiment import Claim, Criterion, Role, Section, Statistic, Verdict
from armlet_lab.runner.page import render

VOID = {"meta", "br", "hr", "img", "link", "input"}
HOSTILE = '</style><script>alert(\'x\')</script><img src=http://evil.example/a.png onerror="y"> & "quoted"'


class Page(HTMLParser):
    """Reads a page, and fails on an end tag that does not close what is open."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def claim(key: str, text: str) -> Claim:
    return Claim(key=key, where=f"where {text}", says=f"says {text}", reading=f"reading {text}")


@functools.cache
def picture(key: str, text: str = "a curve") -> Picture:
    band = np.array([[0.0, 1.0], [0.0, 0.9], [0.0, 1.1]])
    figure = plots.regret([Curve(f"a curve whose name is {text}", np.array([1.0, 10.0]), band)])
    return plots.picture(figure, key=key, alt=f"alt {text}", caption=f"caption {text}")


def sample(text: str = "plain") -> tuple[list[Section], list[Verdict]]:
    near, far = Estimate(1.0, 0.9, 1.1), Estimate(2.0, 1.9, 2.1)
    rule = Criterion("within", 0.8, 1.3)
    found = {"one": (near, near), "two": (far, near), "three": (far, far), "four": (None, None)}
    verdicts = [
        Verdict(
            claim=claim(key, text),
            statistics=(Statistic(f"ratio {text}", first, rule), Statistic("slope", second, rule, Role.READING)),
        )
        for key, (first, second) in found.items()
    ]
    sections = [
        Section(claim=key, heading=f"heading {key} {text}", pictures=(picture(key, text),), notes=(f"note {text}",))
        for key in found
    ]
    return sections, verdicts


MANIFEST = {"seed": 7, "settings": {"runs": 20, "p": [24, 600]}, "machine": "2 cores"}


def page(text: str = "plain") -> str:
    return render(f"title {text}", *sample(text), {**MANIFEST, f"name {text}": text})


def test_the_page_is_well_formed() -> None:
    read = Page(page())
    assert read.open == []
    assert page().startswith("<!DOCTYPE html>\n<html lang=")
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_anywhere() -> None:
    text = page()
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    read = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "image"} & {tag for tag, _ in read.tags}
    assert all("src" not in attributes for _, attributes in read.tags)
    policies = [each["content"] for each in read.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert [policy is not None and policy.startswith("default-src 'none'") for policy in policies] == [True]


def test_every_verdict_stands_in_the_table_and_links_to_its_section() -> None:
    read, (sections, verdicts) = Page(page()), sample()
    ids = {attributes["id"] for _, attributes in read.tags if "id" in attributes}
    targets = [str(attributes["href"]).removeprefix("#") for attributes in read.all("a")]
    ways = ["content", "verdicts", "claims", *(f"claim-{verdict.claim.key}" for verdict in verdicts)]
    assert targets == [*ways, *("verdicts" for _ in verdicts)]  # a way back from each
    assert set(targets) <= ids
    for section, verdict in zip(sections, verdicts, strict=True):
        parts = (section.heading, *section.notes, verdict.claim.says, verdict.claim.reading, verdict.claim.where)
        assert [part for part in (*parts, verdict.reason, str(verdict.outcome)) if part not in read.text] == []
        for statistic in verdict.statistics:
            assert show(statistic.estimate) in read.text
            assert statistic.passes_if in read.text


def test_every_figure_is_present_with_a_caption_and_words_for_those_who_cannot_see_it() -> None:
    read, (sections, _) = Page(page()), sample()
    pictures = [each for section in sections for each in section.pictures]
    assert len(read.all("figure")) == len(read.all("figcaption")) == len(read.all("svg")) == len(pictures)
    assert all(each["role"] == "img" and each["aria-label"] for each in read.all("svg"))
    assert all(each.svg in page() for each in pictures)


def test_the_page_can_be_heard_and_suits_screens_of_every_kind() -> None:
    read = Page(page())
    assert read.all("html") == [{"lang": "en"}]
    assert len(read.all("h1")) == len(read.all("title")) == len(read.all("main")) == 1
    assert all("scope" in attributes for attributes in read.all("th"))
    assert len(read.all("caption")) == len(read.all("table"))
    assert any(attributes.get("name") == "viewport" for attributes in read.all("meta"))
    for rule in ("prefers-color-scheme: dark", "max-width: 39.99rem", "color-scheme: light dark"):
        assert rule in page()


def test_hostile_words_stay_words() -> None:
    read = Page(page(HOSTILE))
    assert read.open == []
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in Page(page()).tags]
    assert not {"script", "img"} & {tag for tag, _ in read.tags}
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    for words in ("title", "says", "reading", "where", "note", "caption", "ratio", "name"):
        assert f"{words} {HOSTILE}" in read.text


def test_the_same_input_gives_the_same_bytes() -> None:
    first = page()
    picture.cache_clear()
    assert page() == first


def test_the_manifest_is_told_in_full() -> None:
    text = Page(page()).text
    assert "seed 7" in text
    assert "runs: 20 p: [24, 600]" in text
    assert "machine 2 cores" in text


def test_a_verdict_without_a_section_is_not_dropped_in_silence() -> None:
    sections, verdicts = sample()
    for shown, judged in ((sections[1:], verdicts), (sections, verdicts[1:]), ([*sections, sections[0]], verdicts)):
        with pytest.raises(ValueError, match="give one each"):
            render("t", shown, judged, {})


def test_figures_that_share_names_are_refused() -> None:
    sections, verdicts = sample()
    sections[1] = dataclasses.replace(sections[1], pictures=(picture("one"),))
    with pytest.raises(ValueError, match="pictures share the name 'one-figure_1'; draw each with a key of its own"):
        render("t", sections, verdicts, {})


START = '<svg xmlns="http://www.w3.org/2000/svg" aria-label="x">'


@pytest.mark.parametrize(
    "svg",
    [
        "<p>not a figure</p>",
        '<?xml version="1.0"?><svg aria-label="x"/>',
        "<svg ><g/></svg>",
        f"{START}<script/></svg>",
        f'{START}<g onclick="f()"/></svg>',
        f'{START}<image href="#a"/></svg>',
        f'{START}<use href="http://evil.example/a.svg#a"/></svg>',
        f'{START}<g style="fill: url(http://evil.example/a)"/></svg>',
        f"{START}<!-- --></svg>",
    ],
)
def test_a_figure_that_could_run_or_load_something_is_refused(svg: str) -> None:
    sections, verdicts = sample()
    bad = dataclasses.replace(sections[0], pictures=(Picture(svg, b"", "caption"),))
    with pytest.raises(ValueError, match="a picture"):
        render("t", [bad, *sections[1:]], verdicts, {})


def test_a_page_without_claims_is_still_a_page() -> None:
    assert Page(render("t", [], [], {})).open == []
