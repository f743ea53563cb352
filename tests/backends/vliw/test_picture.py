# SPDX-License-Identifier: Apache-2.0
"""The page of a schedule: every operation in its place, lines in the legend, loops framed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from ferryvm.backend import BackendError, Options
from ferryvm.program import SourceMap
from ferryvm_backends.vliw import VliwBackend
from ferryvm_backends.vliw.code.text import slot_text
from ferryvm_backends.vliw.show.render import page
from ferryvm_backends.vliw.show.view import NO_LINE, picture

from .picture import REASON, TEXT, Drawn, Page, drawn, with_loops
from .program import whole

EVIL = "' \" x </script><script>alert(1)</script>\u202e<img src=x>.skiff"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return drawn("sum.skiff", tmp_path_factory.mktemp("picture"))


@pytest.fixture(scope="module")
def shown(made: Drawn) -> Page:
    return Page(page(made.program, made.source_map))


def slots(made: Drawn) -> list[tuple[int, int, str]]:
    """Cycle, unit and text of each operation."""
    program = made.program
    return [
        (number, slot.unit, slot_text(program, slot))
        for number, bundle in enumerate(program.bundles)
        for slot in bundle
    ]


def test_every_operation_is_a_cell_in_the_row_of_its_cycle_and_the_column_of_its_unit(
    made: Drawn,
) -> None:
    found = []
    for block in picture(made.program, made.source_map).blocks:
        for row in block.rows:
            assert len(row.cells) == len(block.units)
            found += [
                (row.number, unit, cell.tip.splitlines()[0])
                for unit, cell in zip(block.units, row.cells, strict=True)
                if cell is not None
            ]
    units = made.program.machine.units
    assert found == [
        (number, units[unit].name, f"{units[unit].name}: {text}")
        for number, unit, text in slots(made)
    ]


def test_page_has_as_many_cells_as_there_are_slots_and_as_many_rows_as_bundles(
    made: Drawn, shown: Page
) -> None:
    assert len(shown.of("td", "op")) == len(slots(made))
    heads = [text for attributes, text in shown.of("th") if attributes.get("scope") == "row"]
    loops = [loop.label for loop in made.program.loops]
    assert loops
    assert heads == [*loops, *(str(number) for number in range(len(made.program.bundles)))]
    assert len(shown.of("tr", "stall")) == sum(not bundle for bundle in made.program.bundles) > 0


def test_cell_says_the_operation_its_latency_pc_and_line(made: Drawn, shown: Page) -> None:
    tips = [attributes["title"].split("\n") for attributes, _ in shown.of("td", "op")]
    multiplied = [tip for tip in tips if "=mul.i64" in tip[0]]
    assert multiplied
    for unit, latency, where, text in multiplied:
        assert unit.startswith("alu")
        assert latency == "latency 3"
        assert re.fullmatch(r"pc \d+, .*sum\.skiff:5", where)
        assert text == "(set! s (+ s (* i 3)))"


def test_cell_has_the_number_and_the_colour_of_its_line(shown: Page) -> None:
    colours = {text: attributes["data-line"] for attributes, text in shown.of("button", "line")}
    lines = set()
    for attributes, text in shown.of("td", "op"):
        tip = attributes["title"].split("\n")
        line = re.search(r"sum\.skiff:(\d+)$", tip[2])
        number = line[1] if line else NO_LINE
        assert text.endswith(number)
        assert attributes["class"].split() == ["op", colours[number]]
        lines.add(number)
    assert lines == set(colours)
    assert {"4", "5", "6", "7", NO_LINE} <= lines


def test_legend_has_each_line_once_with_its_text_and_its_operations(
    made: Drawn, shown: Page
) -> None:
    legend = picture(made.program, made.source_map).legend
    numbers = [int(entry.number) for entry in legend if entry.number != NO_LINE]
    assert numbers == sorted(set(numbers))
    assert sum(entry.operations for entry in legend) == len(slots(made))
    for entry in legend:
        if entry.number != NO_LINE:
            assert entry.text == TEXT.splitlines()[int(entry.number) - 1].strip()
    assert [text for _, text in shown.of("button", "line")] == [e.number for e in legend]
    hues = {entry.hue for entry in legend if entry.hue is not None}
    assert len(hues) == len(numbers)


def test_every_link_leads_to_a_block_and_every_branch_has_one(made: Drawn, shown: Page) -> None:
    anchors = [attributes["id"] for attributes, _ in shown.of("section", "block")]
    assert anchors == [f"b{first}" for first in sorted(made.program.labels)]
    ids = [attributes["id"] for _, attributes, _ in shown.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = [attributes["href"] for attributes, _ in shown.of("a")]
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    branches = [
        (f"#b{slot.target}", f"→ {made.program.labels[slot.target]}")
        for bundle in made.program.bundles
        for slot in bundle
        if slot.target is not None
    ]
    found = [(attributes["href"], text) for attributes, text in shown.of("a")]
    assert [link for link in found if link[1].startswith("→")] == branches
    assert branches


def test_a_return_says_where_it_may_go_on_and_these_blocks_say_so() -> None:
    calling = drawn("call.skiff", text="(define (f n) (if (< n 2) n (+ (f (- n 1)) 1)))\n(f 9)\n")
    program = calling.program
    labels = [program.labels[bundle] for bundle in program.returns]
    assert len(labels) > 1
    found = picture(program, calling.source_map)
    assert [block.label for block in found.blocks if block.is_return] == labels
    cells = [cell for block in found.blocks for row in block.rows for cell in row.cells if cell]
    tips = [cell.tip.splitlines()[-1] for cell in cells if cell.name == "jump_to"]
    assert set(tips) == {f"goes on in one of: {', '.join(labels)}"}


def test_page_names_nothing_to_load(shown: Page) -> None:
    for tag, attributes, _ in shown.elements:
        assert "src" not in attributes, tag
        assert tag != "link" or attributes["href"] == "data:,"
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = [a for a, _ in shown.of("meta") if "http-equiv" in a]
    assert policy["content"].startswith("default-src 'none'; ")
    assert "url(" not in shown.of("style")[0][1]


def test_names_and_lines_cannot_become_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<b>"
    folder.mkdir()
    evil = drawn(EVIL.replace("/", "_"), folder)
    named = drawn(EVIL)
    for one in (evil, named):
        text = page(one.program, one.source_map)
        shown = Page(text)
        assert len(shown.of("script")) == 1
        assert not shown.of("img")
        assert not shown.of("b")
        assert "\u202e" not in text
        for attributes, _ in shown.of("button"):
            assert list(attributes) == ["type", "class", "data-line", "aria-pressed", "title"]
        assert "\\u202e<img src=x>.skiff" in shown.text
    shown = Page(page(evil.program, evil.source_map))
    text = "(print! s) ; <b>&amp;\"'</b>"
    assert text in shown.text
    tips = [attributes["title"].split("\n") for attributes, _ in shown.of("td", "op")]
    assert {tip[3] for tip in tips if tip[2].endswith(":8")} == {text}


def test_a_source_that_is_not_there_leaves_positions(tmp_path: Path) -> None:
    gone = drawn("gone.skiff")
    legend = picture(gone.program, gone.source_map).legend
    assert {entry.text for entry in legend} == {""}
    assert "gone.skiff:5" in Page(page(gone.program, gone.source_map)).text
    shorter = drawn("short.skiff", tmp_path)
    (tmp_path / "short.skiff").write_bytes(b"one line\n\xff")
    assert picture(shorter.program, shorter.source_map).legend[0].text == ""


def test_a_program_without_positions_has_one_line_in_its_legend() -> None:
    program = drawn("any.skiff").program
    (entry,) = picture(program, SourceMap()).legend
    assert (entry.number, entry.position) == (NO_LINE, "no source line")


def test_lines_of_several_files_are_told_with_their_files(made: Drawn) -> None:
    rows = made.source_map.rows
    half = len(rows) // 2
    moved = [(pc, int(n >= half), line, column) for n, (pc, _, line, column) in enumerate(rows)]
    source_map = SourceMap(("one/a.skiff", "two/b.skiff"), tuple(moved))
    numbers = [entry.number for entry in picture(made.program, source_map).legend]
    assert {number.partition(":")[0] for number in numbers} == {"a.skiff", "b.skiff", NO_LINE}


def test_a_kernel_is_framed_and_said_with_its_interval_and_bounds(made: Drawn) -> None:
    program = with_loops(made.program)
    kernel, plain = program.loops
    shown = Page(page(program, made.source_map))
    framed = [a["class"].split() for a, _ in shown.of("tr", "kernel") if "note" not in a["class"]]
    assert len(framed) == kernel.end - kernel.start
    assert ["first" in css for css in framed] == [True, False, False, False]
    assert ["last" in css for css in framed] == [False, False, False, True]
    notes = [text for _, text in shown.of("tr", "note")]
    assert notes[0].endswith(
        ": II 2, at least 1 by resources (memory), at least 2 by recurrences, 3 stages"
    )
    assert notes[0].startswith("kernel of ")
    assert notes[1].endswith(
        f": II {plain.end - plain.start}, at least 3 by resources (alu), "
        f"at least 4 by recurrences, not pipelined: {REASON}"
    )
    assert len(notes) == 2
    assert len(shown.of("tr", "loop")) == plain.end - plain.start + 1
    assert "f" not in [text for _, text in shown.of("i")]


def test_loops_are_listed_with_links_to_their_blocks(made: Drawn) -> None:
    program = with_loops(made.program)
    shown = Page(page(program, made.source_map))
    (table,) = [text for _, text in shown.of("table", "loops")]
    for loop in program.loops:
        start = max(first for first in program.labels if first <= loop.start)
        links = [a["href"] for a, text in shown.of("a") if text == loop.label]
        assert links.count(f"#b{start}") >= 2  # in the list, the index and at the block
        assert loop.label in table
    assert REASON in table
    without = dataclasses.replace(program, loops=())
    assert not Page(page(without, made.source_map)).of("table", "loops")


def test_a_loop_that_is_pipelined_is_a_kernel_however_many_passes_are_under_way(
    made: Drawn, shown: Page
) -> None:
    loops = made.program.loops
    notes = [note for _, note in shown.of("tr", "note")]
    for loop, note in zip(loops, notes, strict=True):
        assert loop.is_pipelined
        assert note.startswith("kernel of ")
        assert note.endswith(
            f"sum.skiff:4: II {loop.interval}, "
            f"at least {loop.resource_bound} by resources ({loop.resource}), "
            f"at least {loop.recurrence_bound} by recurrences, {loop.stages} stages"
        )
    rows = [a["class"].split() for a, _ in shown.of("tr", "kernel") if "note" not in a["class"]]
    assert len(rows) == sum(loop.copies * loop.interval for loop in loops)
    assert not shown.of("tr", "loop")
    alone = dataclasses.replace(loops[0], stages=1)
    program = dataclasses.replace(made.program, loops=(alone,))
    ((_, note),) = Page(page(program, made.source_map)).of("tr", "note")
    assert note.endswith(", 1 stage")


def test_what_a_pipelined_loop_begins_with_and_its_ways_out_are_outside_its_frame(
    made: Drawn,
) -> None:
    *_, loop = made.program.loops
    rows = {
        row.number: row for b in picture(made.program, made.source_map).blocks for row in b.rows
    }
    start = next(number for number, label in made.program.labels.items() if label == loop.label)
    assert start < loop.start
    assert {rows[number].kind for number in range(start, loop.start)} == {""}
    assert {rows[number].kind for number in range(loop.start, loop.end)} == {"kernel"}
    exits = [number for number, text in made.program.labels.items() if text.count(".") > 1]
    assert exits
    assert all(rows[number].kind == "" for number in exits)
    (back,) = [slot for slot in made.program.bundles[loop.end - 4] if slot.name == "repeat"]
    assert back.again == loop.start


def test_a_stage_without_a_picture_is_refused() -> None:
    with pytest.raises(BackendError, match="backend 'vliw' has no picture of 'ir'; it has: vliw"):
        VliwBackend().picture(whole("1"), Options(), "ir")
