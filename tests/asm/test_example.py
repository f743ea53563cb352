# SPDX-License-Identifier: Apache-2.0
"""The assembly examples run, and survive disassembly and the peephole."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from pathlib import Path

import pytest

import ferryvm
from ferryvm import asm
from ferryvm.image import to_bytes
from ferryvm.verify import verify

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OUTPUT = {
    "factorial": "".join(f"{n}\n" for n in accumulate(range(1, 21), mul)),
    "hello": 'Hello, "ferry"!\n',
    "integrate": "0.3333332499999999\n3.1416035449129067\n",
    "looptest": "80\n",
}


def text_of(name: str) -> str:
    text = (EXAMPLES / f"{name}.fasm").read_text(encoding="utf-8")
    if name == "looptest":  # 100 million turns are too many for the reference
        text = text.replace("PUSH_WORD 1000\n", "PUSH_WORD 4\n")
        text = text.replace("PUSH_WORD 100\n", "PUSH_WORD 5\n")
    return text


def test_every_example_has_its_output_here() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.fasm")) == sorted(OUTPUT)


@pytest.mark.parametrize("name", OUTPUT)
def test_example_prints_its_output(name: str) -> None:
    program = asm.assemble(text_of(name), name, optimize=True)
    result = ferryvm.run(program, backend="reference")
    assert (result.output, result.value) == (OUTPUT[name], None)


@pytest.mark.parametrize("name", OUTPUT)
@pytest.mark.parametrize("optimize", [False, True])
def test_example_verifies_and_its_disassembly_is_the_same_program(
    name: str, optimize: bool
) -> None:
    program = asm.assemble(text_of(name), name, optimize)
    verify(program)
    assert to_bytes(asm.assemble(asm.disassemble(program))) == to_bytes(program)


def test_trap_is_at_the_line_of_the_text() -> None:
    text = ".static s i64\n.function main\ni64.const 1\n i64.const 0\n  i64.div_s\nhalt"
    for optimize in (False, True):
        with pytest.raises(ferryvm.TrapError) as caught:
            ferryvm.run(asm.assemble(text, "t.fasm", optimize), backend="reference")
        assert str(caught.value.position) == "t.fasm:5:3"
