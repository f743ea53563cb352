# SPDX-License-Identifier: Apache-2.0
"""The page of a schedule in a real browser."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ferryvm_backends.vliw.show.render import page

from ...browsing import CONTRAST, VIEWS
from .picture import drawn, with_loops

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BUNDLES = 2_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("picture")
    made = drawn("sum.skiff", folder)
    path = folder / "picture.html"
    path.write_text(page(with_loops(made.program), made.source_map), encoding="utf-8")
    return path


@dataclasses.dataclass
class Seen:
    """A page that is open, and what the browser had to say."""

    page: Page
    messages: list[str]
    requests: list[str]


def opened(browser: Browser, file: Path, width: int, scheme: str) -> Seen:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two
    )
    seen = Seen(context.new_page(), [], [])
    seen.page.on("console", lambda message: seen.messages.append(message.text))
    seen.page.on("pageerror", lambda error: seen.messages.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.goto(file.as_uri())
    return seen


@pytest.fixture(params=VIEWS)
def seen(request: pytest.FixtureRequest, browser: Browser, file: Path) -> Iterator[Seen]:
    seen = opened(browser, file, *request.param)
    yield seen
    seen.page.context.close()


@pytest.mark.nightly
def test_the_page_runs_alone_fits_the_screen_and_can_be_read(seen: Seen, file: Path) -> None:
    seen.page.locator(".op").first.click()
    assert seen.page.locator("#about").is_visible()
    assert seen.messages == []
    assert seen.requests == [file.as_uri()]
    width = seen.page.viewport_size["width"]  # type: ignore[index]  # it was given one
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.evaluate(CONTRAST) == []


@pytest.mark.nightly
def test_schemes_colour_cells_differently(browser: Browser, file: Path) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        page = opened(browser, file, 1280, scheme).page
        grounds.add(
            page.locator(".op.l0").first.evaluate("e => getComputedStyle(e).backgroundColor")
        )
        page.context.close()
    assert len(grounds) == 2


@pytest.mark.nightly
def test_a_chosen_line_is_all_that_is_coloured_until_it_is_chosen_again(seen: Seen) -> None:
    page = seen.page
    button = page.locator(".line").nth(1)
    css = button.get_attribute("data-line")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".op.picked").count() == page.locator(f".op.{css}").count() > 0
    assert page.evaluate(CONTRAST) == []
    other = page.locator(f".op:not(.{css})").first
    ground = "e => getComputedStyle(e).backgroundColor"
    assert other.evaluate(ground) == "rgba(0, 0, 0, 0)"
    button.click()
    assert page.locator(".op.picked").count() == 0
    assert other.evaluate(ground) != "rgba(0, 0, 0, 0)"


@pytest.mark.nightly
def test_a_branch_leads_to_its_block_by_keyboard(seen: Seen) -> None:
    link = seen.page.locator(".op a").last
    target = link.get_attribute("href")
    link.focus()
    assert "latency" in seen.page.locator("#about").inner_text()
    seen.page.keyboard.press("Enter")
    assert f"#{seen.page.locator('.block:target').get_attribute('id')}" == target
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator("#about").is_visible()


@pytest.mark.nightly
def test_a_kernel_has_an_edge_all_around(seen: Seen) -> None:
    rows = seen.page.locator("tr.kernel:not(.note)")
    edge = "(e, side) => getComputedStyle(e)[`border${side}Width`]"
    first, last = rows.first.locator("td").first, rows.last.locator("td").first
    assert (first.evaluate(edge, "Top"), last.evaluate(edge, "Bottom")) == ("4px", "4px")
    assert (first.evaluate(edge, "Bottom"), last.evaluate(edge, "Top")) != ("4px", "4px")
    assert rows.nth(1).locator("td").last.evaluate(edge, "Right") == "4px"
    assert "inset" in rows.nth(1).locator("th").evaluate("e => getComputedStyle(e).boxShadow")


@pytest.mark.nightly
def test_thousands_of_bundles_are_drawn_and_can_be_scrolled(
    browser: Browser, tmp_path: Path
) -> None:
    made = drawn("sum.skiff", tmp_path)
    bundles = made.program.bundles
    times = BUNDLES // len(bundles) + 1
    (loop,) = made.program.loops
    starts = [each * len(bundles) for each in range(times)]
    long = dataclasses.replace(
        made.program,
        bundles=bundles * times,
        labels={s + n: f"{t} {s}" for s in starts for n, t in made.program.labels.items()},
        loops=tuple(
            dataclasses.replace(loop, start=s + loop.start, end=s + loop.end) for s in starts
        ),
    )
    path = tmp_path / "long.html"
    path.write_text(page(long, made.source_map), encoding="utf-8")
    seen = opened(browser, path, 1280, "light")
    rows = seen.page.locator("table.schedule tbody tr")
    assert rows.locator("th[scope=row]").count() == len(bundles) * times >= BUNDLES
    assert seen.page.locator("table.schedule tr.note.kernel").count() == times
    last = seen.page.locator(".op").last
    last.scroll_into_view_if_needed()
    assert last.is_visible()
    head = seen.page.locator(".schedule").last.locator("thead th").nth(1)
    box, below = head.bounding_box(), last.bounding_box()
    assert box is not None
    assert below is not None
    assert 0 <= box["y"] < below["y"]  # names of units stay in sight
    seen.page.context.close()
