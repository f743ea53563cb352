# SPDX-License-Identifier: Apache-2.0
"""Strings that a program writes: one host call each, without NumPy, recorded and replayed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ferryvm import Engine, HostLog, ReplayError, TrapError, assemble, compile
from ferryvm.isa import Trap
from ferryvm.machine.host import HostError

TEXT = """
(define large (make-array u8 5000 66))
(print! "Grüß" "" large)
(write-string! "no line") (write-string! "") (write-string! " end\\n")
"""
WRITTEN = f"Grüß\n\n{'B' * 5000}\nno line end\n"


@pytest.mark.parametrize("backend", ["reference", "switch", "threaded", "llvm", "vliw"])
def test_each_string_is_one_call_on_every_backend(backend: str) -> None:
    log = HostLog()
    execution = Engine(backend).start(compile(TEXT), record=log)
    assert execution.run().output == WRITTEN
    names = ["print_string"] * 3 + ["write_string"] * 3
    assert [call.function.name for call in log] == names


def test_a_replay_writes_the_strings_and_finds_another_one() -> None:
    log = HostLog()
    Engine("threaded").start(compile(TEXT), record=log).run()
    assert Engine("reference").start(compile(TEXT), replay=log).run().output == WRITTEN
    other = compile(TEXT.replace("no line", "no lime"))
    with pytest.raises(ReplayError, match=r"call 4 is write_string\(u8\[\] of 7 bytes, CRC-32 0x"):
        Engine("switch").start(other, replay=log).run()


def test_a_collection_before_the_call_moves_the_string() -> None:
    text = '(define s (array-append "abc" "def")) (define i 0) (while (< i 3) (make-array i64 9) (print! s) (set! i (+ i 1)))'
    execution = Engine("threaded").start(compile(text))
    assert execution.machine.objects is not None
    execution.machine.objects.force()
    assert execution.run().output == "abcdef\n" * 3


def test_null_traps_in_skiff_and_is_an_error_of_the_host_function_elsewhere() -> None:
    with pytest.raises(TrapError) as caught:
        Engine("threaded").start(compile("(print! (cast string null))")).run()
    assert caught.value.kind is Trap.NULL_REFERENCE
    program = assemble(
        ".host write_string (u8[])\n.function main\n ref.null u8[]\n host write_string\n halt"
    )
    with pytest.raises(HostError, match="write_string: argument 1 is null"):
        Engine("threaded").start(program).run()


def test_a_program_that_prints_strings_needs_no_numpy() -> None:
    code = (
        "import sys, ferryvm; ferryvm.run(ferryvm.compile('(print! \"a\")'), backend='reference'); "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "False\n"
