# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file that needs nothing else, no network and no other file.

Its template escapes every text, its script is the only one that the page allows (by its hash, in
a content security policy), and the same policy forbids to load anything.
"""

from __future__ import annotations

import base64
import collections
import functools
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from ferryvm.durable import replace_file
from ferryvm.errors import FerryError
from ferryvm.isa import INSTRUCTIONS
from ferryvm.testing.report import text, view
from ferryvm.testing.report.conflict import conflicts
from ferryvm.testing.report.coverage import Coverage, total
from ferryvm.testing.report.edge import EDGE_COUNT, EDGES
from ferryvm.testing.report.result import Report

_CHAPTERS = {
    "variable": "Constants, locals, statics, operand stack",
    "numeric": "Arithmetic and comparison",
    "conversion": "Conversions",
    "heap": "Heap and vectors",
    "control": "Control",
}
"""Titles by chapter of the instruction table; the order is the page's."""


def _file(name: str) -> str:
    return (resources.files(__package__) / "template" / name).read_text(encoding="utf-8")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["number"] = text.number
    environment.filters["plural"] = text.plural
    return environment.get_template("page.html")


def page(report: Report) -> str:
    """The page of a report, as HTML."""
    script = _file("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    columns, rows = view.rows(report)
    found = collections.Counter(
        one.verdict for result in report.results for one in result.comparisons
    )
    everything = total(r.coverage for r in report.results if r.coverage is not None)
    return _template().render(
        report=report,
        made=report.made.strftime("%Y-%m-%d %H:%M %Z"),
        against=text.shown(report.against),
        versions=[(text.shown(n), text.shown(v)) for n, v in report.versions.items()],
        script=script,
        style=_file("style.css"),
        digest=digest,
        counts=[(look, found[verdict]) for verdict, look in view.LOOKS.items()],
        comparisons=found.total(),
        columns=columns,
        rows=rows,
        totals=view.totals(report),
        conflicts=conflicts(report),
        instructions=sum(one.instructions for r in report.results for one in r.comparisons),
        covered=len(everything.counts),
        instruction_count=len(INSTRUCTIONS),
        edges_met=everything.edge_count,
        edge_count=EDGE_COUNT,
        is_whole=everything.is_whole,
        chapters=_chapters(everything),
        runs=_runs(report),
        data=_data(report, everything),
    )


def write(path: Path, report: Report) -> None:
    """Write the page to a file: whoever reads it sees the old file or the new one.

    Raises FerryError where it cannot be written.
    """
    content = page(report).encode()
    try:
        replace_file(path, content)
    except OSError as error:
        raise FerryError(f"{path}: cannot be written: {error.strerror}") from None


def _chapters(everything: Coverage) -> list[dict[str, Any]]:
    """The grid: each chapter with its instructions."""
    found = []
    for chapter, title in _CHAPTERS.items():
        rows = [row for row in INSTRUCTIONS if row.chapter == chapter]
        cells: list[dict[str, Any]] = []
        for row in rows:
            met = everything.edges.get(row.opcode, {})
            edges = EDGES[row.opcode].all
            cells.append(
                {
                    "opcode": row.opcode,
                    "mnemonic": row.mnemonic,
                    "count": everything.counts.get(row.opcode, 0),
                    "met": len(met),
                    "edges": len(edges),
                    "share": round(100 * len(met) / len(edges)) if edges else 0,
                }
            )
        run = sum(cell["count"] > 0 for cell in cells)
        found.append({"name": chapter, "title": title, "cells": cells, "run": run})
    return found


def _runs(report: Report) -> list[dict[str, Any]]:
    """What each program exercised, in numbers."""
    found = []
    for result in report.results:
        coverage = result.coverage
        found.append(
            {
                "name": text.shown(result.name),
                "is_seen": coverage is not None,
                "instructions": len(coverage.counts) if coverage else 0,
                "edges": coverage.edge_count if coverage else 0,
                "observed": coverage.observed if coverage else 0,
                "is_whole": coverage.is_whole if coverage else False,
            }
        )
    return found


def _data(report: Report, everything: Coverage) -> dict[str, Any]:
    """What the script shows on demand: run 0 is all programs together."""
    coverages = [everything, *(result.coverage for result in report.results)]
    return {
        "instructions": [
            {
                "effect": row.effect,
                "summary": row.summary,
                "edges": [[edge.group, edge.name] for edge in EDGES[row.opcode].all],
            }
            for row in INSTRUCTIONS
        ],
        "runs": [
            {"counts": dict(c.counts), "edges": {o: dict(met) for o, met in c.edges.items()}}
            if c is not None
            else {"counts": {}, "edges": {}}
            for c in coverages
        ],
    }
