# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what stands there after its script ran, and how it looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS
from ferryvm.isa.manual import CHAPTERS
from ferryvm.testing.report import Report, total
from ferryvm.testing.report.edge import EDGES

from ...browsing import CONTRAST, VIEWS
from .conftest import NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Seen:
    """A page that is open, and what the browser had to say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.messages.append(f"dialog: {dialog.message}"))


@pytest.fixture(params=VIEWS)
def seen(request: pytest.FixtureRequest, browser: Browser, file: Path) -> Iterator[Seen]:
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale="en"
    )
    seen = Seen(context.new_page())
    seen.page.goto(file.as_uri())
    yield seen
    context.close()


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """At the width of a desktop."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en")
    opened = context.new_page()
    opened.goto(file.as_uri())
    yield opened
    context.close()


def test_the_page_runs_alone_and_has_nothing_to_complain_of(seen: Seen, file: Path) -> None:
    cell = seen.page.locator(".cell.run").first
    cell.click()
    assert seen.page.locator(".panel").is_visible()
    assert seen.messages == []
    assert seen.requests == [file.as_uri()]


def test_nothing_is_wider_than_the_screen(seen: Seen) -> None:
    seen.page.locator(".cell.run").first.click()
    width = seen.page.viewport_size["width"]  # type: ignore[index] - the fixture sets one
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    wider = seen.page.evaluate(
        """(width) => [...document.querySelectorAll("body *")].filter((element) =>
            element.checkVisibility() && getComputedStyle(element).clipPath === "none" &&
            !element.closest(".hidden, .skip, thead") &&
            element.getBoundingClientRect().right > width + 0.5).map((e) => e.outerHTML)""",
        width,
    )
    assert wider == []


def test_text_has_contrast(seen: Seen) -> None:
    seen.page.locator(".cell.run").first.click()
    assert seen.page.evaluate(CONTRAST) == []


@pytest.mark.nightly
def test_schemes_differ(browser: Browser, file: Path) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        opened = context.new_page()
        opened.goto(file.as_uri())
        grounds.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(grounds) == 2


def test_every_program_is_a_row_with_a_verdict_a_backend(page: Page) -> None:
    rows = page.locator(".matrix tbody tr")
    assert rows.count() == len(NAMES)
    heads = page.locator(".matrix thead th").all_inner_texts()
    assert heads == ["program", "threaded", "wrong", "picky", "small"]
    verdicts = rows.first.locator(".chip").all_inner_texts()
    assert verdicts == ["✓ agree", "✗ disagree", "– unsupported", "✓ agree"]  # noqa: RUF001 - the sign
    assert rows.nth(2).locator(".chip").last.inner_text() == "≈ legal divergence"
    reason = rows.first.locator(".reason").inner_text()
    assert reason == "backend 'picky' refuses the program: it has no <floats> & never will"


def test_names_stand_as_they_are_and_run_nothing(page: Page) -> None:
    names = page.locator(".matrix tbody th .name").all_inner_texts()
    assert names[1] == "<script>alert(1)</script>.fasm"
    assert names[3] == "\\u202egnirts\\udcff\\n&amp;\"'{{ 7 * 7 }}.skiff"
    assert page.locator("script").count() == 2  # the data and the page's own


def test_the_first_difference_is_marked_where_it_is(seen: Seen) -> None:
    page = seen.page
    marked = page.locator(".traces tr.first")
    assert marked.count() == page.locator(".conflict").count() == 1
    marked.scroll_into_view_if_needed()
    flag = marked.locator(".flag")
    assert flag.inner_text() == "first difference"
    row, sign = marked.bounding_box(), flag.bounding_box()
    assert row is not None
    assert sign is not None
    assert row["y"] <= sign["y"] < sign["y"] + sign["height"] <= row["y"] + row["height"]
    ground = "element => getComputedStyle(element).backgroundColor"
    assert marked.evaluate(ground) != page.locator(".traces tr.same").first.evaluate(ground)
    for side, effect in (("good", "0.0 0.5 → 0.5"), ("bad", "0.0 0.5 → -0.5")):
        cell = marked.locator("td").nth(0 if side == "good" else 1)
        assert cell.locator("b").inner_text() == "f64.add"
        assert cell.locator(".effect").inner_text() == effect
        assert cell.is_visible()


@pytest.mark.nightly
def test_both_traces_stand_side_by_side_on_a_wide_screen(page: Page) -> None:
    rows = page.locator(".traces tbody tr")
    assert 1 < rows.count() <= 20
    for row in rows.all():
        good, bad = (row.locator("td").nth(number).bounding_box() for number in (0, 1))
        assert good is not None
        assert bad is not None
        assert good["x"] + good["width"] <= bad["x"] + 1
        assert good["y"] == bad["y"]
    assert rows.locator(".source").first.inner_text().startswith("main ")


def test_the_differing_field_stands_with_both_values_and_its_bits(page: Page) -> None:
    first = page.locator(".conflict .fields.first tbody tr").first
    assert first.locator("th bdi").inner_text() == "operand 0 of main"
    assert first.locator("td").all_inner_texts() == ["0x3fe0000000000000", "0xbfe0000000000000"]
    around = page.locator(".groups tr.differs")
    assert around.locator("th bdi").all_inner_texts() == ["operand 0 of main"]
    assert around.locator("mark").all_inner_texts() == ["3", "b"]
    registers = page.locator(".groups table").first.locator("tbody th").all_inner_texts()
    assert registers == ["status", "trap", "pc", "sp", "fp", "hp", "fuel left"]


@pytest.mark.nightly
def test_link_of_a_disagreement_leads_to_it(page: Page) -> None:
    page.locator(".matrix a").click()
    assert page.locator(".conflict:target").is_visible()


def test_programs_are_filtered_by_verdict_and_name(page: Page) -> None:
    rows = page.locator(".matrix tbody tr:visible")
    page.locator("#verdict").select_option("disagree")
    assert rows.locator("th").all_inner_texts() == ["floats.skiff"]
    assert page.locator("#shown").inner_text() == "1 of 4"
    page.locator("#verdict").select_option("")
    page.locator("#name").fill("SCRIPT>")
    assert rows.count() == 1
    page.locator("#name").fill("nothing is called so")
    assert rows.count() == 0


@pytest.mark.nightly
def test_grid_has_every_instruction_with_what_was_counted(page: Page, made: Report) -> None:
    coverage = total(result.coverage for result in made.results if result.coverage is not None)
    cells = page.locator(".cell")
    assert cells.locator(".mnemonic").all_inner_texts() == sorted(
        (row.mnemonic for row in INSTRUCTIONS),
        key=lambda name: list(CHAPTERS).index(BY_MNEMONIC[name].chapter),
    )
    for opcode, count in coverage.counts.items():
        cell = page.locator(f'.cell[data-opcode="{opcode}"]')
        assert cell.locator(".count").inner_text() == f"{count:,}"
        met, edges = len(coverage.edges.get(opcode, {})), len(EDGES[opcode].all)
        shown = f"{met} of {edges} edges" if edges else "no edges"
        assert cell.locator(".edges").inner_text() == shown
    assert page.locator(".cell.run").count() == len(coverage.counts)
    assert page.locator(".cell:not(.run) .count").all_inner_texts() == ["not run"] * (
        len(INSTRUCTIONS) - len(coverage.counts)
    )


@pytest.mark.nightly
def test_an_instruction_shows_its_edge_classes_by_keyboard(page: Page) -> None:
    cell = page.locator(f'.cell[data-opcode="{BY_MNEMONIC["f64.add"].opcode}"]')
    cell.focus()
    page.keyboard.press("Enter")
    assert cell.get_attribute("aria-expanded") == "true"
    met = page.locator(".panel .edge.met").all_inner_texts()
    assert met == ["zero ×2", "zero ×1", "integral and a half ×1", "equal ×1"]  # noqa: RUF001 - times
    assert page.locator(".panel .edge:not(.met)").first.text_content() == "negative zero not met"
    page.keyboard.press("Escape")
    assert page.locator(".panel").count() == 0
    assert cell.get_attribute("aria-expanded") == "false"
    assert cell.evaluate("element => element === document.activeElement")


@pytest.mark.nightly
def test_coverage_is_shown_by_program(page: Page, made: Report) -> None:
    page.locator("#run").select_option("2")
    coverage = made.results[1].coverage
    assert coverage is not None
    assert page.locator(".cell.run").count() == len(coverage.counts)
    chapters = page.locator(".chapter-run").all_inner_texts()
    assert sum(map(int, chapters)) == len(coverage.counts)


@pytest.mark.nightly
def test_what_was_not_watched_is_said(page: Page) -> None:
    assert page.locator(".warn").inner_text().startswith("Not all of it was watched.")
    watched = page.locator(".runs tbody tr td:last-child").all_inner_texts()
    assert watched[1] == "the first 1,000 instructions only"
    assert watched[3].startswith("all ")


@pytest.mark.nightly
def test_tables_can_be_read_without_seeing_them(page: Page) -> None:
    for table in page.locator("table").all():
        assert table.locator("caption").inner_text().strip() or table.get_attribute("aria-label")
        for head in table.locator("th").all():
            assert head.get_attribute("scope") in ("col", "row")
    assert page.evaluate("document.documentElement.lang") == "en"
    for control in page.locator("select, input").all():
        assert control.evaluate("element => element.labels.length") == 1


@pytest.mark.nightly
def test_print_leaves_out_what_paper_cannot_do(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".controls").first.is_visible()
    assert not page.locator(".contents").is_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRAST) == []
