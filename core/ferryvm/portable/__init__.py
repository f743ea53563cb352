# SPDX-License-Identifier: Apache-2.0
"""Exported functions: files for programs without ferryvm, with a proof of what they compute; and
back.

    Verified ─ subject: a wrapper ─┬─ plain: plain form ─> target: code, header, harnesses ─┐
                                   └─ vector: calls on the reference interpreter ───────────┴─> folder
    folder ─ imported: digests, vectors ─> a function of Python and of programs

docs/export.md is the manual, docs/decisions/2026-11-26-export.md and 2026-11-26-import.md have the
reasons. Names are imported lazily: what imports loads nothing of what exports.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ferryvm.portable.folder import Exported, ExportOptions, export_region
    from ferryvm.portable.imported.description import ImportRefusedError
    from ferryvm.portable.imported.kernel import ImportedKernel, ImportedTrapError, import_kernel
    from ferryvm.portable.refusal import ExportError

_HOMES = {
    "ExportError": "refusal",
    "ExportOptions": "folder",
    "Exported": "folder",
    "ImportRefusedError": "imported.description",
    "ImportedKernel": "imported.kernel",
    "ImportedTrapError": "imported.kernel",
    "export_region": "folder",
    "import_kernel": "imported.kernel",
}
"""The module of each name."""

__all__ = [
    "ExportError",
    "ExportOptions",
    "Exported",
    "ImportRefusedError",
    "ImportedKernel",
    "ImportedTrapError",
    "export_region",
    "import_kernel",
]


def __getattr__(name: str) -> object:
    """A public name, on its first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferryvm.portable' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"ferryvm.portable.{home}"), name)
    globals()[name] = value
    return value
