# SPDX-License-Identifier: Apache-2.0
"""Large heaps: saving, loading and copying cost what was touched, and a save that ends early
nothing."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine, Execution
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.image import ImageError, container
from ferryvm.image.container import pack, unpack
from ferryvm.machine.memory import Limits
from ferryvm.machine.sparse import GRANULE

FAR = (1 << 32) - 8
SPARSE = f".data {FAR} i8 1\n.function main\nnop\nhalt"
"""Its heap has 4 GiB from the start, of which one page is touched."""


def stopped(text: str) -> Execution:
    execution = Engine("reference").start(ferryvm.assemble(text))
    execution.run(fuel=1)
    return execution


SCRIPT = """
import resource, sys
import ferryvm
from ferryvm import Engine
engine = Engine("reference")
execution = engine.start(ferryvm.assemble(sys.argv[1]))
execution.machine.memory.heap[1 << 30 : (1 << 30) + (1 << 20)] = b"x" * (1 << 20)
execution.run(fuel=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
execution.save(sys.argv[2])
copy = engine.resume(sys.argv[2])
fork = copy.fork()
assert fork.machine.snapshot() == execution.machine.snapshot()
assert fork.machine.memory.heap[(1 << 32) - 8] == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="Linux tells pages")
def test_four_gigabytes_of_which_one_is_used_take_a_few_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "s.ferry"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, SPARSE, path], capture_output=True, text=True, check=True
    )
    assert path.stat().st_size < (1 << 20) + 10_000
    assert int(done.stdout) < 30_000  # KiB; file, copy, fork and snapshots are 1 MiB each


DENSE = """
import resource, sys
import ferryvm
from ferryvm import Engine
execution = Engine("reference").start(ferryvm.assemble(".function main\\ni64.const 30000000\\nheap.alloc\\nhalt"))
execution.run()
execution.machine.memory.heap[: 30_000_000] = b"x" * 30_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
execution.save(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.nightly
def test_saving_copies_nothing_of_a_large_heap(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DENSE, tmp_path / "s.ferry"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "s.ferry").stat().st_size > 30_000_000
    assert int(done.stdout) < 15_000  # KiB


def test_copy_has_no_data_where_the_program_has_made_it_zero() -> None:
    execution = stopped(".data 65528 i64 7\n.function main\nnop\nhalt")
    execution.machine.memory.heap[65528] = 0
    for other in (
        execution.fork().machine,
        unpack_state(pack_state(execution.machine, None), Limits(), "s")[0],
    ):
        assert other.snapshot() == execution.machine.snapshot()
        assert not any(other.memory.heap[:65536])


@pytest.mark.parametrize("where", ["hash", "write"])
def test_interrupt_of_a_save_leaves_the_old_file(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ferry"
    execution = stopped(SPARSE)
    execution.save(path)
    old = path.read_bytes()

    def stop(*_: object) -> bytes:
        raise KeyboardInterrupt

    if where == "hash":
        monkeypatch.setattr(container, "_checksum", stop)
    else:
        monkeypatch.setattr(os, "fsync", stop)
    execution.machine.memory.heap[0] = 1
    with pytest.raises(KeyboardInterrupt):
        execution.save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_state_can_be_written_to_a_pipe() -> None:
    execution = stopped(SPARSE)
    reader, writer = os.pipe()
    execution.save(f"/dev/fd/{writer}")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    assert content == pack_state(execution.machine, 1)


def test_state_of_the_first_version_is_refused_in_one_line() -> None:
    content = bytearray(pack_state(stopped(SPARSE).machine, 1))
    content[8] = 1
    content[24:56] = hashlib.sha256(content[8:24] + content[56:]).digest()
    with pytest.raises(ImageError) as caught:
        unpack_state(bytes(content), Limits(), "s")
    assert str(caught.value) == "s: a saved ferryvm state (.ferry) of version 1; this is 5"


PAGE = b"x" * GRANULE
HP = 4 * GRANULE


def section(*runs: tuple[int, int], content: bytes, count: int | None = None) -> bytes:
    numbers = [len(runs) if count is None else count, HP, *(n for run in runs for n in run)]
    return struct.pack(f"<{len(numbers)}Q", *numbers) + content


LIES = [
    (b"", "0 bytes in section HEAP, 16 at least"),
    (section(content=b"", count=1 << 60), f"16 bytes in section HEAP, which is to have {1 << 60} runs"),
    (section((8, GRANULE), content=PAGE), f"a run of {GRANULE} bytes at byte 8 of the heap"),
    (section((0, 8), content=PAGE[:8]), "a run of 8 bytes at byte 0 of the heap"),
    (section((0, 0), content=b""), "a run of 0 bytes at byte 0 of the heap"),
    (section((0, HP + 8), content=PAGE * 4 + PAGE[:8]), f"a run of {HP + 8} bytes at byte 0 of the heap"),
    (section((HP, GRANULE), content=PAGE), f"a run of {GRANULE} bytes at byte {HP} of the heap"),
    (
        section((0, GRANULE), (GRANULE, GRANULE), content=2 * PAGE),
        f"a run of {GRANULE} bytes at byte {GRANULE} of the heap",
    ),
    (
        section((2 * GRANULE, GRANULE), (0, GRANULE), content=2 * PAGE),
        f"a run of {GRANULE} bytes at byte 0 of the heap",
    ),
    (section((0, GRANULE), content=PAGE[:-1]), "the run at byte 0 of the heap ends early, or is zero in part"),
    (
        section((0, 2 * GRANULE), content=PAGE + bytes(GRANULE)),
        "the run at byte 0 of the heap ends early, or is zero in part",
    ),
    (section((0, GRANULE), content=PAGE + b"y"), "1 bytes after the last run of the heap"),
]  # fmt: skip


@pytest.mark.parametrize(("heap", "message"), LIES, ids=range(len(LIES)))
def test_heap_that_no_writer_writes_is_refused(heap: bytes, message: str) -> None:
    execution = stopped(f".function main\ni64.const {HP}\nheap.alloc\nhalt")
    execution.run()
    sections = unpack(STATE, pack_state(execution.machine, 1), "s")
    good = section((GRANULE, GRANULE), content=PAGE)
    machine, _ = unpack_state(pack(STATE, {**sections, "HEAP": good}), Limits(), "s")
    assert machine.memory.heap[:HP] == bytes(GRANULE) + PAGE + bytes(2 * GRANULE)
    with pytest.raises(ImageError) as caught:
        unpack_state(pack(STATE, {**sections, "HEAP": heap}), Limits(), "s")
    assert str(caught.value) == f"s: not a state of its program: {message}"
