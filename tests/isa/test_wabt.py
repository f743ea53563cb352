# SPDX-License-Identifier: Apache-2.0
"""WebAssembly's own interpreter (wabt) agrees with the numeric golden cases."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ferryvm.isa import Trap, Type
from ferryvm.isa.type import CANONICAL_NAN
from ferryvm.testing.conformance.golden import GoldenCase, cases

TRAPS = {
    "integer overflow": Trap.INTEGER_OVERFLOW,
    "integer divide by zero": Trap.INTEGER_DIVIDE_BY_ZERO,
    "invalid conversion to integer": Trap.INVALID_CONVERSION,
}
OURS = ("fma", "min_number", "max_number")
"""Instructions of these chapters that WebAssembly does not have."""
KEEPS_NAN = ("abs", "neg", "copysign", "reinterpret")
"""Instructions that work on bits; others may give any NaN, and wabt gives what the host does."""


def _function(number: int, case: GoldenCase) -> str:
    """A WebAssembly function that yields the case's result as an integer."""
    code = []
    for t, bits in zip(case.row.pops, case.operands, strict=True):
        assert isinstance(t, Type)
        code.append(f"{t.integer}.const {bits:#x}")
        if t.is_float:
            code.append(f"{t}.reinterpret_{t.integer}")
    code.append(case.row.mnemonic)
    (pushed,) = case.row.pushes
    assert isinstance(pushed, Type)
    if pushed.is_float:
        code.append(f"{pushed.integer}.reinterpret_{pushed}")
    result = f"(result {pushed.integer})"
    return f'(func (export "case{number}") {result} {" ".join(code)})'


def _agrees(case: GoldenCase, answer: str) -> bool:
    if answer.startswith("error: "):
        return case.outcome.trap is TRAPS.get(answer.removeprefix("error: "))
    if case.outcome.trap:
        return False
    ((t, expected),) = case.outcome.stack
    found = int(answer.partition(":")[2]) & t.mask
    if t.is_float and not case.row.mnemonic.partition(".")[2].startswith(KEEPS_NAN):
        magnitude = found & (t.mask >> 1)
        infinity = 0x7F80_0000 if t is Type.F32 else 0x7FF0_0000_0000_0000
        if magnitude > infinity:
            return expected == CANONICAL_NAN[t]
    return found == expected


@pytest.mark.skipif(
    not (shutil.which("wat2wasm") and shutil.which("wasm-interp")),
    reason="needs wat2wasm and wasm-interp of wabt, which only this test uses",
)
@pytest.mark.parametrize("chapter", ["numeric", "conversion"])
def test_wabt_agrees_with_the_golden_cases(chapter: str, tmp_path: Path) -> None:
    chosen = [
        case
        for case in cases()
        if case.row.chapter == chapter and case.code is None
        if case.row.mnemonic.partition(".")[2] not in OURS
    ]
    text, module = tmp_path / "cases.wat", tmp_path / "cases.wasm"
    functions = "\n".join(_function(number, case) for number, case in enumerate(chosen))
    text.write_text(f"(module\n{functions})")
    subprocess.run(["wat2wasm", text, "-o", module], check=True)
    run = subprocess.run(
        ["wasm-interp", module, "--run-all-exports"], check=True, capture_output=True, text=True
    )
    answers = [line.partition(" => ")[2] for line in run.stdout.splitlines()]
    assert len(answers) == len(chosen)
    differing = [
        f"{case}: wabt says {answer}"
        for case, answer in zip(chosen, answers, strict=True)
        if not _agrees(case, answer)
    ]
    assert not differing, "\n".join(differing)
