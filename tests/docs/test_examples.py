# SPDX-License-Identifier: Apache-2.0
"""Every program in the documentation runs and prints what the page says.

A page writes a program as a fenced block of `skiff` or `fasm`; a block of `text` that comes right
after it is its exact output. A program without such a block prints nothing.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import ferryvm

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])
BLOCK = re.compile(
    r"^```(?P<language>skiff|fasm)\n(?P<program>.*?)^```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Example:
    """A program on a page and what it prints."""

    language: str
    program: str
    output: str


def _examples() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            example = Example(match["language"], match["program"], match["output"] or "")
            line = text.count("\n", 0, match.start()) + 1
            found.append(pytest.param(example, id=f"{page.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("example", _examples())
def test_program_on_the_page_prints_what_the_page_says(example: Example) -> None:
    translate = ferryvm.compile if example.language == "skiff" else ferryvm.assemble
    result = ferryvm.run(translate(example.program, "page"), backend="reference")
    assert result.output == example.output


def test_the_language_reference_has_examples_for_every_chapter_with_forms() -> None:
    text = (ROOT / "docs" / "skiff.md").read_text(encoding="utf-8")
    chapters = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    without = {chapter.split("\n")[0] for chapter in chapters if "```skiff" not in chapter}
    assert without == {"Text", "Errors", "Sessions"}
