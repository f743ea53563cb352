# SPDX-License-Identifier: Apache-2.0
"""All passes together: what they come to, and that they are checked where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import IrError
from ferryvm.ir.passes import optimise, pipeline
from ferryvm.ir.text import module_text
from ferryvm.region.region import region
from ferryvm.verify import verify

PROGRAM = verify(
    ferryvm.read(Path(__file__).resolve().parents[2] / "benchmarks" / "programs" / "nbody.skiff")
)


def lifted() -> Module:
    return lift(region(PROGRAM, "advance"))


def count(module: Module, name: str = "", but: tuple[str, ...] = ()) -> int:
    """Operations of a name, or all; `but`: how labels of blocks begin that do not count."""
    return sum(
        not name or operation.name == name
        for body in module.bodies
        for block in body.blocks
        if not block.label.startswith(but or ("none.",))
        for operation in block.operations
    )


def test_nothing_is_done_at_level_0() -> None:
    module = lifted()
    text = module_text(module)
    optimise(module, 0)
    assert module_text(module) == text


def test_passes_remove_operations_and_checks() -> None:
    sizes = []
    for level in (0, 1, 2):
        module = lifted()
        optimise(module, level)
        sizes.append((count(module), count(module, "trap_if"), count(module, "header_word")))
    before, first, second = sizes
    assert first[0] < 0.85 * before[0]
    assert second[1] == first[1] < 0.75 * before[1]
    assert second[2] < before[2]
    assert count(module, "element_load", but=("unchecked.",)) == count(lifted(), "element_load")


def test_the_second_version_of_a_nest_or_loop_has_no_check() -> None:
    module = lifted()
    optimise(module, 2)
    operations = [
        operation.name
        for body in module.bodies
        for block in body.blocks
        if block.label.startswith("unchecked.")
        for operation in block.operations
    ]
    assert operations.count("element_store") == 6 + 3, "those of the nest, and of a loop after it"
    assert "trap_if" not in operations


def test_level_3_is_level_2() -> None:
    texts = []
    for level in (2, 3):
        module = lifted()
        optimise(module, level)
        texts.append(module_text(module))
    assert texts[0] == texts[1]


def test_optimising_twice_changes_nothing_more() -> None:
    module = lifted()
    optimise(module, 1)
    text = module_text(module)
    optimise(module, 1)
    assert module_text(module) == text


def spoil(body: Body) -> None:
    body.blocks[-1].terminator = None


def test_a_pass_that_spoils_a_module_is_found_where_checks_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "defer_canonicalisation", spoil)
    optimise(lifted(), 1, PROGRAM)
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")
    with pytest.raises(IrError, match="it has no terminator"):
        optimise(lifted(), 1, PROGRAM)
