# SPDX-License-Identifier: Apache-2.0
"""The pages that mirror the code agree with it, and every link leads somewhere."""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from benchmarks.__main__ import main as benchmarks

import ferryvm
from ferryvm.cli.command import ferry
from ferryvm.engine import RunResult
from ferryvm.engine.saved import STATE
from ferryvm.engine.transition import SiteState
from ferryvm.engine.transition import markdown as markdown_of_transitions
from ferryvm.image.program import PROGRAM
from ferryvm.isa import INSTRUCTIONS, Trap
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.manual import markdown
from ferryvm.machine.control import SCRATCH_WORDS, ControlBlock, Status

from ..tier import together
from .source import nodes

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.glob("**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
)
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

REQUIRED_TERMS = """artifact, backend, cell, control block, emitter, engine, execution, frame, fuel,
fused instruction, handler, image, immediate, instruction table, listing, machine, meaning, pc,
plugin, program, saved state, slot, stack map, status, transfer, trap, verified, handler builder"""


def _text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def _section(page: str, heading: str) -> str:
    """The text under a heading, up to the next one of any level."""
    found = re.search(
        rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#+ |\Z)", _text(page), re.MULTILINE | re.DOTALL
    )
    assert found, f"{page} has no heading {heading!r}"
    return found[1]


def _rows(text: str, columns: int) -> list[list[str]]:
    """Cells of the tables with that many columns, without their heads; backquotes removed."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == columns:
            rows.append(cells)
    return rows[1:]


# --- tables that mirror code ----------------------------------------------------------------


def test_the_instruction_set_page_is_what_the_table_generates() -> None:
    assert _text("isa.md") == markdown(), "run `make docs`"


def test_the_folder_table_names_every_package_and_no_other() -> None:
    section = _section("architecture.md", "Folders, in the order in which data flows")
    named = [row[0] for row in _rows(section, 2)]
    roots = [ROOT / "core" / "ferryvm", ROOT / "backends" / "ferryvm_backends"]
    folders = {
        str(file.parent.relative_to(ROOT)) for root in roots for file in root.glob("*/**/*.py")
    }
    assert sorted(named) == sorted(folders)


def test_the_architecture_page_names_every_single_module_of_core() -> None:
    section = _section("architecture.md", "Folders, in the order in which data flows")
    modules = {file.stem for file in (ROOT / "core" / "ferryvm").glob("*.py")} - {"__init__"}
    missing = {module for module in modules if f"`{module}`" not in section}
    assert not missing


def test_the_control_block_table_has_every_field_at_its_offset() -> None:
    section = _section("architecture.md", "Control block")
    documented = [(int(row[0]), row[1], row[2]) for row in _rows(section, 5)]
    names: dict[Any, str] = {
        ctypes.c_uint32: "uint32",
        ctypes.c_uint64: "uint64",
        ctypes.c_int64: "int64",
        ctypes.c_uint64 * SCRATCH_WORDS: f"uint64[{SCRATCH_WORDS}]",
    }
    declared: list[tuple[str, Any]] = [(field[0], field[1]) for field in ControlBlock._fields_]
    fields = [(getattr(ControlBlock, name).offset, name, names[t]) for name, t in declared]
    assert documented == fields
    assert f"a C struct of {ctypes.sizeof(ControlBlock)} bytes" in section


def test_the_descriptor_table_has_every_field() -> None:
    rows = _rows(_section("architecture.md", "Control block"), 3)
    assert [(int(row[0]), row[1]) for row in rows] == [(f.value, f.name) for f in FunctionField]


def test_the_status_table_has_every_status() -> None:
    rows = _rows(_section("architecture.md", "Transfers"), 4)
    assert [(row[0], int(row[1])) for row in rows] == [(s.name, s.value) for s in Status]
    assert all(row[2] and row[3] for row in rows)


def test_the_states_of_a_site_and_their_transitions_are_those_of_the_table() -> None:
    documented = [row[0] for row in _rows(_section("mixed-execution.md", "Sites"), 2)]
    assert documented == list(SiteState)
    hint = (
        "paste what `python -c 'from ferryvm.engine.transition import *; print(markdown())'` prints"
    )
    assert markdown_of_transitions() in _section("mixed-execution.md", "Transitions"), hint


def test_the_states_of_explain_are_those_that_a_site_in_the_journal_can_have() -> None:
    rows = _rows(_section("explain.md", "Line by line"), 2)
    named = {name for row in rows for name in re.findall(r"[a-z ]+", row[0])}
    assert set(SiteState) - named == {SiteState.COLD}


def test_the_trap_table_has_every_trap_with_its_message() -> None:
    rows = _rows(_section("running.md", "Traps"), 4)
    traps = [(trap.value, trap.name, trap.message) for trap in Trap if trap is not Trap.NONE]
    assert [(int(row[0]), row[1], row[2]) for row in rows] == traps


def test_the_sections_of_both_files_are_documented_in_their_order() -> None:
    text = _text("image.md")
    headings = re.findall(r"^### ([A-Z]{4})$", text, re.MULTILINE)
    assert tuple(headings) == tuple(PROGRAM.tags)
    states = [row[0] for row in _rows(_section("image.md", "Saved states"), 2)]
    assert tuple(states) == tuple(STATE.tags)
    for kind in (PROGRAM, STATE):
        assert kind.magic.hex(" ").upper() in text


def _commands() -> dict[str, click.Command]:
    context = click.Context(ferry)
    found = {name: ferry.get_command(context, name) for name in ferry.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@pytest.mark.parametrize("name", ["run", "resume"])
def test_the_options_of_the_command_are_documented(name: str) -> None:
    section = _section("running.md", "From the command line")
    options = {
        option
        for parameter in _commands()[name].params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    assert not {option for option in options if f"`{option}" not in section}


def test_every_command_is_documented() -> None:
    section = _section("running.md", "From the command line")
    assert not {name for name in _commands() if not re.search(rf"ferry {name}\b", section)}


def test_each_benchmark_has_a_line_of_the_benchmarks_page() -> None:
    listed = re.findall(
        r"^    python -m benchmarks (\w+) {2,}\S", _text("benchmarks.md"), re.MULTILINE
    )
    assert sorted(listed) == sorted(benchmarks.commands)


def test_every_field_of_a_result_is_documented() -> None:
    names = {name for row in _rows(_text("running.md"), 2) for name in re.findall(r"\w+", row[0])}
    assert set(RunResult.__dataclass_fields__) | {"value"} <= names


def test_the_readme_states_the_number_of_instructions() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"each of the {len(INSTRUCTIONS)} instructions" in text


def test_the_changelog_has_an_entry_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(ferryvm.__version__)}\b", text, re.MULTILINE)


# --- glossary -------------------------------------------------------------------------------


def test_the_glossary_is_sorted_and_has_each_term_once() -> None:
    terms = [row[0] for row in _rows(_text("glossary.md").partition("\n## ")[0], 2)]
    assert terms == sorted(set(terms))


def _names(path: Path) -> Iterator[str]:
    """The names that a module defines: its own, classes, functions, parameters, attributes,
    variables."""
    yield path.parent.name if path.stem == "__init__" else path.stem
    for node in nodes(path):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                yield name


FIELD_NAMES = {
    "FLOAT_ROUND": "rounding of floats",
    "FrontEnd": "a front end of a compiler",
    "SourceSpan": "a span of source text",
    "StraightLineArithmetic": "straight-line code",
    "_front_end": "a front end of a compiler",
    "_round": "rounding of floats",
    "_straight_line": "straight-line code",
    "front": "the Pareto front of a sweep",
    "front_end": "a front end of a compiler",
    "keep_alive": "an object that must not be freed",
}
"""Names with a word that the glossary replaces which is a term of the field there, with the
term."""


def test_names_avoid_the_words_that_the_glossary_replaces() -> None:
    page = _text("glossary.md").partition("## Words that are not used")[2]
    words = {word.strip() for row in _rows(page, 2) for word in row[0].split(",")}
    assert len(words) >= 50
    found = {
        name: f"{path.relative_to(ROOT)}: {name}"
        for folder in ("core", "backends", "plugins/ferryvm-cc/src")
        for path in (ROOT / folder).rglob("*.py")
        for name in _names(path)
        if words & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    }
    assert sorted(found[name] for name in found.keys() - FIELD_NAMES) == []
    assert sorted(FIELD_NAMES.keys() - found.keys()) == [], "exceptions that nothing needs"


def _docstrings(path: Path) -> Iterator[str]:
    """Docstrings of a module, its classes and functions, and of variables and attributes."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield text


HIDDEN_SUBJECT = re.compile(
    r"(What|Whether|Have|Who|Whom|Whose|Whoever|Whatever|How|Why|Where|Which|When|That|Those"
    r"|All that|Everything that|Something that|Somebody)\b"
)
"""Beginnings of a docstring that hide the thing that it describes."""


def test_docstrings_begin_with_the_thing_and_not_with_a_question() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for folder in ("core", "backends", "plugins/ferryvm-cc/src")
        for path in (ROOT / folder).rglob("*.py")
        for text in _docstrings(path)
        if HIDDEN_SUBJECT.match(text)
    }
    assert sorted(found) == []


HIDDEN_ACTOR = re.compile(r"\b([Ww]hoever|[Ww]hatever (is|it|was) |[Tt]hat which|[Tt]hose who)\b")
"""Phrases in place of the name of a thing or of the code that acts."""


def test_docstrings_and_pages_name_who_acts() -> None:
    texts = {
        str(path.relative_to(ROOT)): "\n".join(_docstrings(path))
        for folder in ("core", "backends", "plugins/ferryvm-cc/src")
        for path in (ROOT / folder).rglob("*.py")
    }
    texts |= {page.name: _prose(page) for page in DOCS.glob("*.md") if page.name != "glossary.md"}
    found = {
        f"{name}: {match[0]}" for name in texts for match in HIDDEN_ACTOR.finditer(texts[name])
    }
    assert sorted(found) == []


def test_the_glossary_has_the_words_that_the_other_pages_rely_on() -> None:
    terms = {row[0] for row in _rows(_text("glossary.md"), 2)}
    assert not {term.strip() for term in REQUIRED_TERMS.split(",")} - terms


# --- links ----------------------------------------------------------------------------------


def _anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


@together("page", PAGES, label=lambda page: page.name)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(_prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert not broken


def test_every_page_is_linked_from_the_index() -> None:
    linked = {
        (DOCS / target.partition("#")[0]).resolve()
        for target in LINK.findall(_prose(DOCS / "README.md"))
    }
    pages = {page for page in DOCS.glob("**/*.md") if page != DOCS / "README.md"}
    assert not {str(page.relative_to(ROOT)) for page in pages - linked}


def test_decisions_are_dated_in_their_name_and_in_their_text() -> None:
    for page in (DOCS / "decisions").glob("*.md"):
        date = re.match(r"(\d{4}-\d{2}-\d{2})-[a-z-]+\.md$", page.name)
        assert date, page.name
        assert f"\n{date[1]}\n" in page.read_text(encoding="utf-8"), page.name
