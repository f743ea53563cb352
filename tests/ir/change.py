# SPDX-License-Identifier: Apache-2.0
"""What a pass makes of the blocks of a region, both as text."""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.ir.graph import Body
from ferryvm.ir.parse import parse_module
from ferryvm.ir.text import module_text
from ferryvm.ir.verify import verify_module

HEAD = "module m\n\nregion r function=0 entry=0"


def changed(change: Callable[[Body], object], blocks: str, result: str = "") -> str:
    """The text of the blocks after a pass; the module is verified before and after.

    `result`: the type that the region returns, i64 where blocks return something.
    """
    result = result or ("i64" if "return %" in blocks else "")
    head = f"{HEAD} -> {result}" if result else HEAD
    module = parse_module(f"{head}{blocks}")
    verify_module(module)
    change(module.root)
    verify_module(module)
    text = module_text(module)
    assert text.startswith(f"{head}\n")
    return text[len(head) :]
