# SPDX-License-Identifier: Apache-2.0
"""What the tests of Skiff share: running a text, reading its code, collecting its faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm import RunResult, SourceError
from ferryvm.listing import Label
from ferryvm.skiff import parse_listing


@pytest.fixture
def run() -> Callable[..., RunResult]:
    """Compile and run a text."""

    def run(text: str, backend: str = "reference", optimize: bool = True) -> RunResult:
        return ferryvm.run(ferryvm.compile(text, "test", optimize), backend=backend)

    return run


@pytest.fixture
def code() -> Callable[..., list[str]]:
    """The instructions of a function, as `mnemonic operand` and `label:`, before the peephole."""

    def code(text: str, name: str = "main") -> list[str]:
        listing = parse_listing(text, "test")
        function = next(f for f in listing.functions if f.name == name)
        lines = []
        for item in function.items:
            if isinstance(item, Label):
                lines.append(f"{item.name}:")
            elif item.operand is None:
                lines.append(item.row.mnemonic)
            else:
                lines.append(f"{item.row.mnemonic} {item.operand}")
        return lines

    return code


@pytest.fixture
def faults() -> Callable[[str], list[str]]:
    """The faults of a text as `line:column: message`."""

    def faults(text: str) -> list[str]:
        with pytest.raises(SourceError) as caught:
            parse_listing(text, "test")
        found = []
        for fault in caught.value.diagnostics:
            found.append(f"{fault.position.line}:{fault.position.column}: {fault.message}")
        return found

    return faults
