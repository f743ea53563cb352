# SPDX-License-Identifier: Apache-2.0
"""Constructor signatures of `ferryvm.record` dataclasses in the API reference.

An extension of Griffe (mkdocs.yml), no module of the package. Griffe derives the signature of a
class from its fields where the decorator is `dataclasses.dataclass`, by that path alone;
`record.dataclass` means the same to readers, so it gets that path before classes are looked at.
"""

from __future__ import annotations

from typing import Any

from griffe import Class, Expr, ExprCall, ExprName, Extension

_OURS, _PYTHONS = "ferryvm.record.dataclass", "dataclasses.dataclass"


class RecordExtension(Extension):
    """Read `record.dataclass` as `dataclasses.dataclass`."""

    def on_class_instance(self, *, cls: Class, **_: Any) -> None:
        """Replace the decorator of a class."""
        for decorator in cls.decorators:
            value = decorator.value
            if not isinstance(value, Expr) or value.canonical_path != _OURS:
                continue
            if isinstance(value, ExprCall):
                value.function = ExprName(_PYTHONS)
            else:
                decorator.value = ExprName(_PYTHONS)
