# SPDX-License-Identifier: Apache-2.0
"""The page of a report."""

from __future__ import annotations

import collections
import functools
from pathlib import Path
from typing import Any

import jinja2

import ferryvm.page
from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.manual import CHAPTERS
from ferryvm.page import shown
from ferryvm.testing.report import text, view
from ferryvm.testing.report.conflict import conflicts
from ferryvm.testing.report.coverage import Coverage, total
from ferryvm.testing.report.edge import EDGE_COUNT, EDGES
from ferryvm.testing.report.result import Report


@functools.cache
def _template() -> jinja2.Template:
    return ferryvm.page.template(__package__, {"number": text.number, "plural": text.plural})


def page(report: Report) -> str:
    """The page of a report, as HTML."""
    columns, rows = view.rows(report)
    found = collections.Counter(
        one.verdict for result in report.results for one in result.comparisons
    )
    everything = total(r.coverage for r in report.results if r.coverage is not None)
    return _template().render(
        report=report,
        made=report.made.strftime("%Y-%m-%d %H:%M %Z"),
        against=shown(report.against),
        versions=[(shown(n), shown(v)) for n, v in report.versions.items()],
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
    """Write the page to a file, as `ferryvm.page.write`."""
    ferryvm.page.write(path, page(report))


def _chapters(everything: Coverage) -> list[dict[str, Any]]:
    """The grid: each chapter with its instructions."""
    found = []
    for chapter, title in CHAPTERS.items():
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
    """The coverage of each program, in numbers."""
    found = []
    for result in report.results:
        coverage = result.coverage
        found.append(
            {
                "name": shown(result.name),
                "is_seen": coverage is not None,
                "instructions": len(coverage.counts) if coverage else 0,
                "edges": coverage.edge_count if coverage else 0,
                "observed": coverage.observed if coverage else 0,
                "is_whole": coverage.is_whole if coverage else False,
            }
        )
    return found


def _data(report: Report, everything: Coverage) -> dict[str, Any]:
    """The data that the script shows on demand: run 0 is all programs together."""
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
