# SPDX-License-Identifier: Apache-2.0
"""A page about a comparison: verdicts, coverage, and each disagreement in detail.

Differ ── compare ──> comparisons ── examine ──> Result ┐
                                         (each program) ├── report ──> Report ── write ──> file
                                                      … ┘
"""

from ferryvm.testing.report.coverage import MOST_OBSERVED, Coverage, observe, total
from ferryvm.testing.report.evidence import Evidence
from ferryvm.testing.report.render import page, write
from ferryvm.testing.report.result import Report, Result, examine, report

__all__ = [
    "MOST_OBSERVED",
    "Coverage",
    "Evidence",
    "Report",
    "Result",
    "examine",
    "observe",
    "page",
    "report",
    "total",
    "write",
]
