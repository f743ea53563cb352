# SPDX-License-Identifier: Apache-2.0
"""Explanations of Python functions: their versions, what the engine did with them, where CPython
ran.

    versions by kinds ── placements of their instances ──> regions ──┐
    calls that CPython ran, refusals ── counted by reason ───────────┴──> text, or HTML in a notebook

`ferryvm.engine.explain` is the same for a program, and makes the part about regions.
"""

from __future__ import annotations

import dataclasses
import html
import linecache
from collections.abc import Iterator

from ferryvm.engine.explain import Explained
from ferryvm.engine.region_report import aligned, how_often, rows, title
from ferryvm.page import shown

_INDENT = 4
_STYLE = "text-align: left; vertical-align: top; padding: 0 1em 0 0"


@dataclasses.dataclass(frozen=True)
class VersionExplanation:
    """A version of a function: the code for certain kinds of arguments."""

    signature: str
    """With the kinds of arguments and results: `half(x: int) -> float`."""
    regions: tuple[Explained, ...]
    """Its parts that ran long enough to be compiled, as of `ferryvm.engine.explain`."""


@dataclasses.dataclass(frozen=True)
class FunctionExplanation:
    """The versions of a function, and the calls that CPython ran or that were refused; `str` has it
    as text, and a notebook shows it as HTML."""

    name: str
    versions: tuple[VersionExplanation, ...]
    notes: tuple[str, ...]
    """A line for each reason that CPython ran it, or that it was refused, with the number of
    calls."""

    def __str__(self) -> str:
        return "\n".join(self._lines()) or f"{self.name} has not been called"

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        for version in self.versions:
            yield version.signature
            for region in version.regions:
                yield f"{'':{_INDENT}}{title(region)}: {region.state}"
                yield from aligned(_rows(region), 2 * _INDENT)
        yield from self.notes

    def _repr_html_(self) -> str:
        """The same as HTML, for notebooks."""
        parts = []
        for version in self.versions:
            parts.append(f"<div><b>{_escaped(version.signature)}</b></div>")
            parts += [_region_html(region) for region in version.regions]
        parts += [f"<div>{_escaped(note)}</div>" for note in self.notes]
        if not parts:
            parts.append(f"<div>{_escaped(str(self))}</div>")
        return f'<div style="font-family: monospace">{"".join(parts)}</div>'


def counted(what: str, count: int, reason: str) -> str:
    """A line about calls: what happened, how often, why."""
    return f"{what} {how_often(count)}: {reason}"


def _rows(region: Explained) -> list[tuple[str, str]]:
    """The lines about a region, with the line of Python on which it begins."""
    found = rows(region, is_observed=False)
    file, _, place = (region.position or "").rpartition(":")[0].rpartition(":")
    text = linecache.getline(file, int(place)).strip() if place.isdecimal() else ""
    return [("line", text), *found] if text else found


def _region_html(region: Explained) -> str:
    summary = _escaped(f"{title(region)}: {region.state}")
    lines, before = [], ""
    for key, text in _rows(region):
        cells = ("" if key == before else key, text)
        made = "".join(f'<td style="{_STYLE}">{_escaped(cell)}</td>' for cell in cells)
        lines.append(f"<tr>{made}</tr>")
        before = key
    table = f'<table style="margin-left: 2em">{"".join(lines)}</table>'
    return f"<details open><summary>{summary}</summary>{table}</details>"


def _escaped(text: str) -> str:
    """A text as HTML: what it holds may come from a file's name, or from an exception."""
    return html.escape(shown(text))
