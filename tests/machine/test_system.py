# SPDX-License-Identifier: Apache-2.0
"""The standard host functions for input, output of bytes, arguments and time."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine.host import STANDARD, HostError, System
from ferryvm.machine.system import Reader

ROOT = Path(__file__).parents[2]
BACKENDS = ("reference", "switch", "threaded", "llvm")
HEAP = 16


def calling(name: str, *arguments: int) -> ferryvm.Program:
    """A program with 16 bytes of heap that calls a standard function and prints its result, then
    all of its heap."""
    function = STANDARD[name]
    pushes = "\n".join(
        f"{t}.const {value}"
        for t, value in zip(function.signature.parameters, arguments, strict=True)
    )
    results = function.signature.results
    shown = f"host print_{results[0]}" if results else ""
    return ferryvm.assemble(f"""
    .host {name} {function.signature}
    .host print_i32 (i32)
    .host print_i64 (i64)
    {"" if name == "write_bytes" else ".host write_bytes (i64 i64)"}
    .function main
        i64.const {HEAP}
        heap.alloc
        drop
        {pushes}
        host {name}
        {shown}
        i64.const 0
        i64.const {HEAP}
        host write_bytes
        halt
    """)


def run(program: ferryvm.Program, backend: str, content: bytes = b"", *arguments: str) -> str:
    """What the program prints."""
    engine = Engine(backend, input=io.BytesIO(content).read, arguments=arguments)
    return engine.start(program).run().output


CASES = {
    "a byte": ("read_byte", (), b"\xffab", "255\n"),
    "no byte": ("read_byte", (), b"", "-1\n"),
    "a line": ("read_line", (3, 8), b"ab\ncd", "3\n\0\0\0ab\n"),
    "a long line": ("read_line", (0, 3), b"abcdef\n", "3\nabc"),
    "a line that just fits": ("read_line", (0, 3), b"ab\ncd", "3\nab\n"),
    "the last line": ("read_line", (0, 16), b"ab", "2\nab"),
    "an empty line": ("read_line", (0, 16), b"\nab", "1\n\n"),
    "no line": ("read_line", (0, 16), b"", "-1\n"),
    "no room": ("read_line", (16, 0), b"ab", "0\n"),
    "count": ("argument_count", (), b"", "2\n"),
    "an argument": ("argument", (1, 2, 14), b"", "3\n\0\0\u00e9x"),
    "a long argument": ("argument", (0, 0, 2), b"", "5\nfi"),
    "no argument": ("argument", (2, 0, 2), b"", "-1\n"),
    "a negative number": ("argument", (-1, 0, 2), b"", "-1\n"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.replace(" ", "-"))
def test_functions_give_what_the_table_says(case: str) -> None:
    name, arguments, content, expected = CASES[case]
    backend = BACKENDS[list(CASES).index(case) % len(BACKENDS)]
    found = run(calling(name, *arguments), backend, content, "first", "\u00e9x")
    result, line_end, heap = found.partition("\n")
    assert result + line_end + heap.rstrip("\0") == expected


OUTSIDE = [
    ("read_line", (0, 17)),
    ("read_line", (17, 0)),
    ("write_bytes", (-1, 1)),
    ("write_bytes", (2**63 - 1, 2**63 - 1)),
    ("argument", (0, 9, 8)),
    ("argument", (9, 17, 1)),
]


@pytest.mark.parametrize(("number", "case"), list(enumerate(OUTSIDE)))
def test_bytes_outside_of_the_heap_in_use_are_one_line(
    number: int, case: tuple[str, tuple[int, ...]]
) -> None:
    name, arguments = case
    execution = Engine(BACKENDS[number % len(BACKENDS)]).start(calling(name, *arguments))
    with pytest.raises(HostError) as caught:
        execution.run()
    *_, address, size = arguments
    place = f"{size} bytes at {address} are outside of the heap, of which 16 bytes are in use"
    assert str(caught.value) == f"{name}: {place}"
    assert execution.machine.position is not None


def test_a_negative_size_is_one_line() -> None:
    with pytest.raises(HostError, match="write_bytes: a size of -1 bytes"):
        run(calling("write_bytes", 0, -1), "reference")


def test_the_clock_does_not_go_back() -> None:
    before = time.monotonic_ns()
    found = int(run(calling("clock_ns"), "switch").partition("\n")[0])
    assert before <= found <= time.monotonic_ns()


def test_a_reader_gives_bytes_and_lines_of_any_source() -> None:
    content = b"one\n\n" + b"x" * 100_000 + b"\nlast"
    for size in (1, 2, 3, 7, 1 << 16):
        source = io.BytesIO(content)
        reader = Reader(lambda most, source=source, size=size: source.read(min(most, size)))
        found = [reader.read(1, int), reader.read(50_000, int, b"\n")]
        while line := reader.read(50_000, int, b"\n"):
            found.append(line)
        assert b"".join(found) == content
        assert [len(line) for line in found] == [1, 3, 1, 50_000, 50_000, 1, 4]


def test_a_function_of_ones_own_gets_the_system() -> None:
    @ferryvm.host
    def fill(system: System, address: ferryvm.i64) -> None:
        system.heap(address, 2)[:] = b"ok"

    text = ".host fill (i64)\n.function main\ni64.const 16\nheap.alloc\nhost fill\nhalt"
    execution = Engine("threaded", hosts=[fill]).start(ferryvm.assemble(text))
    execution.run()
    assert bytes(execution.machine.memory.heap[:3]) == b"ok\0"


def test_the_page_has_the_table_of_standard_functions() -> None:
    page = (ROOT / "docs/embedding.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\(.*?)` \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(f.name, str(f.signature), f.summary) for f in STANDARD.values()]


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ferryvm.cli", *words]


def test_the_command_gives_input_and_arguments(tmp_path: Path) -> None:
    file = tmp_path / "p.fvm"
    ferryvm.save(calling("read_line", 0, 16), file)
    ended = subprocess.run(_command("run", str(file)), input=b"line\n", capture_output=True)  # noqa: PLW1510
    assert (ended.returncode, ended.stdout.rstrip(b"\0")) == (0, b"5\nline\n")
    ferryvm.save(calling("argument", 0, 0, 16), file)
    words = _command("run", str(file), "--backend", "switch", "--", "--flag", "b")
    ended = subprocess.run(words, capture_output=True)  # noqa: PLW1510
    assert (ended.returncode, ended.stdout.rstrip(b"\0")) == (0, b"6\n--flag")
    ferryvm.save(calling("argument", 0, 0, 17), file)
    ended = subprocess.run(_command("run", str(file)), capture_output=True)  # noqa: PLW1510
    assert ended.returncode == 1
    assert b": argument: 17 bytes at 0 are outside of the heap" in ended.stderr.splitlines()[0]


def test_ctrl_c_stops_a_program_that_waits_for_input(tmp_path: Path) -> None:
    file = tmp_path / "p.fvm"
    program = calling("read_byte")
    ferryvm.save(program, file)
    reader, writer = os.pipe()
    words = _command("run", str(file), "--save", str(tmp_path / "s.ferry"))
    started = subprocess.Popen(words, stdin=reader, stderr=subprocess.PIPE)
    time.sleep(2)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    os.close(reader)
    os.close(writer)
    assert (started.returncode, b"interrupted" in err) == (130, True)
    resumed = Engine("switch", input=io.BytesIO(b"A").read).resume(tmp_path / "s.ferry")
    assert resumed.run().output.startswith("65\n")
