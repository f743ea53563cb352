# SPDX-License-Identifier: Apache-2.0
"""The content of the page, as the template needs it: texts and numbers, nothing to compute."""

from __future__ import annotations

import dataclasses

from ferryvm.page import shown
from ferryvm.testing.differential import Comparison, Verdict
from ferryvm.testing.report import text
from ferryvm.testing.report.result import Report, Result


@dataclasses.dataclass(frozen=True)
class Look:
    """The appearance of a verdict: never colour alone."""

    css: str
    sign: str
    label: str
    plural: str


LOOKS = {
    Verdict.AGREE: Look("agree", "✓", "agree", "agree"),
    Verdict.DISAGREE: Look("disagree", "✗", "disagree", "disagree"),
    Verdict.DIVERGE: Look("diverge", "≈", "legal divergence", "legal divergences"),
    Verdict.UNSUPPORTED: Look("unsupported", text.ABSENT, "unsupported", "unsupported"),
}
"""By verdict; the order is the page's."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One program under one column's backends."""

    look: Look
    seconds: str
    instructions: str
    moves: str
    reason: str
    anchor: str
    """Of the disagreement on the same page, empty where there is none."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One program."""

    name: str
    cells: list[Cell | None]
    verdicts: str
    """The verdicts of its cells, for the filter."""


@dataclasses.dataclass(frozen=True)
class Total:
    """One column, summed."""

    name: str
    programs: str
    instructions: str
    seconds: str
    rate: str
    share: float
    """Of the longest time, in percent."""


def rows(report: Report) -> tuple[list[str], list[Row]]:
    """Names of the columns, and a row a program."""
    columns = list(dict.fromkeys(one.backends for r in report.results for one in r.comparisons))
    found = []
    for number, result in enumerate(report.results):
        cells: list[Cell | None] = []
        for column in columns:
            at = [i for i, one in enumerate(result.comparisons) if one.backends == column]
            cells.append(_cell(result, number, at[0]) if at else None)
        verdicts = " ".join(sorted({cell.look.css for cell in cells if cell}))
        found.append(Row(shown(result.name), cells, verdicts))
    return [_column_name(column) for column in columns], found


def _column_name(backends: tuple[str, ...]) -> str:
    return shown(" ⇄ ".join(backends))


def anchor(program: int, comparison: int) -> str:
    return f"difference-{program + 1}-{comparison + 1}"


def _cell(result: Result, program: int, number: int) -> Cell:
    one = result.comparisons[number]
    ran = one.verdict is not Verdict.UNSUPPORTED
    is_conflict = one.verdict is Verdict.DISAGREE
    return Cell(
        LOOKS[one.verdict],
        text.seconds(one.seconds) if ran else "",
        text.number(one.instructions) if ran else "",
        text.plural(one.moves, "move") if ran and len(one.backends) > 1 else "",
        shown(one.reason or ""),
        anchor(program, number) if is_conflict else "",
    )


def totals(report: Report) -> list[Total]:
    """Time and work of the backend held against, then of each column, unsupported ones apart."""
    sums: dict[str, list[Comparison]] = {report.against: []}
    for result in report.results:
        for one in result.comparisons:
            ran = sums.setdefault(_column_name(one.backends), [])
            if one.verdict is not Verdict.UNSUPPORTED:
                ran.append(one)
        if result.comparisons:  # it runs once, whatever number it is held against
            first = result.comparisons[0]
            sums[report.against].append(dataclasses.replace(first, seconds=first.against_seconds))
    longest = max(sum(one.seconds for one in ran) for ran in sums.values())
    return [_total(name, ran, longest) for name, ran in sums.items()]


def _total(name: str, ran: list[Comparison], longest: float) -> Total:
    time = sum(one.seconds for one in ran)
    instructions = sum(one.instructions for one in ran)
    rate = f"{instructions / time / 1e6:.3g} M/s" if time > 0 and instructions else text.ABSENT
    return Total(
        name,
        text.number(len(ran)),
        text.number(instructions),
        text.seconds(time) if ran else text.ABSENT,
        rate,
        round(100 * time / longest, 2) if longest else 0.0,
    )
