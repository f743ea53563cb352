# SPDX-License-Identifier: Apache-2.0
"""Exported functions: files for programs without ferryvm, with a proof of what they compute.

    Verified ─ subject: a wrapper ─┬─ plain: plain form ─> target: code, header, harnesses ─┐
                                   └─ vector: calls on the reference interpreter ───────────┴─> folder

docs/export.md is the manual, docs/decisions/2026-11-26-export.md has the reasons.
"""

from __future__ import annotations

from pathlib import Path

from ferryvm.portable.folder import Exported, ExportOptions, check_directory, export_subject
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import region_subject
from ferryvm.portable.target import target
from ferryvm.verify import Verified

__all__ = ["ExportError", "ExportOptions", "Exported", "export_region"]


def export_region(
    verified: Verified, name: str, directory: Path, options: ExportOptions | None = None
) -> Exported:
    """Write a folder with a region of a program as a function.

    Raises UnknownNameError for an unknown region or target, ExportError for code that cannot be exported,
    FerryError for a folder that is not empty.
    """
    options = options or ExportOptions()
    target(options.target)
    check_directory(directory)
    return export_subject(region_subject(verified, name), directory, options)
