# SPDX-License-Identifier: Apache-2.0
"""The cache: found again, rebuilt when damaged, whole whatever is killed."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ferryvm import binary
from ferryvm.backend import BackendError, Options
from ferryvm.cache import Entry
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region

from ferryvm_cc.backend import CcBackend
from ferryvm_cc.library import workplace

from .conftest import LOOP, Write
from .entering import enter

OTHERS = f"""\
import ferryvm
from ferryvm.backend import Options
from ferryvm.machine.state import Machine
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_cc.backend import CcBackend
import ctypes
program = verify(ferryvm.compile({LOOP!r}))
code = CcBackend().compile(region(program, "program"), Options())
machine = Machine(program)
ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(code.address)(machine.address)
print(machine.result()[1])
"""
"""Another process that compiles the same region, with the same cache."""


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/*.bin"))


def test_the_second_time_code_comes_from_the_cache(
    backend: CcBackend, loop: Region, cache: Path
) -> None:
    first = backend.compile(loop, Options())
    (entry,) = entries(cache)
    assert entry.name.startswith("cc-")
    second = backend.compile(loop, Options())
    assert (first.is_from_cache, second.is_from_cache) == (False, True)
    assert "compile" in first.notes
    assert "compile" not in second.notes
    assert enter(second, Machine(loop.verified)) == enter(first, Machine(loop.verified))


def test_without_the_cache_nothing_is_read_or_kept(
    backend: CcBackend, loop: Region, cache: Path
) -> None:
    for _ in range(2):
        assert not backend.compile(loop, Options(cache=False)).is_from_cache
    assert not cache.exists()


@pytest.mark.parametrize(
    "options", [Options(optimize=0), Options(counting=True), Options(observe=True)]
)
def test_other_options_are_other_entries(
    backend: CcBackend, loop: Region, cache: Path, options: Options
) -> None:
    backend.compile(loop, Options())
    assert not backend.compile(loop, options).is_from_cache
    assert len(entries(cache)) == 2


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_damaged_entry_is_told_and_built_again(
    backend: CcBackend, loop: Region, cache: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    backend.compile(loop, Options())
    file = entries(cache)[0]
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        assert not backend.compile(loop, Options()).is_from_cache
    assert "is refused and built again: it is damaged, or" in caplog.text
    assert backend.compile(loop, Options()).is_from_cache


@pytest.mark.parametrize("length", [0, 31, 1000])
def test_an_entry_that_is_cut_short_is_built_again(
    backend: CcBackend, loop: Region, cache: Path, length: int
) -> None:
    backend.compile(loop, Options())
    file = entries(cache)[0]
    file.write_bytes(file.read_bytes()[:length])
    assert not backend.compile(loop, Options()).is_from_cache


def test_in_a_directory_that_cannot_be_used_code_is_compiled_and_not_kept(
    backend: CcBackend, loop: Region, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write_text("a file")
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        for _ in range(2):
            code = backend.compile(loop, Options())
            assert not code.is_from_cache
            assert enter(code, Machine(loop.verified))[0] is Status.HALT
    (said,) = caplog.messages
    assert said.startswith(f"cc: cache {cache} cannot be used: ")
    assert "FERRYVM_CACHE_DIR to" in said
    assert said.endswith("; compiled code is not kept")


def test_processes_that_build_at_once_all_succeed(cache: Path) -> None:
    command = [sys.executable, "-c", OTHERS]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0].strip() for process in started]
    assert printed == ["499500"] * 3
    assert len(entries(cache)) == 1


def test_a_kill_while_the_compiler_runs_leaves_no_entry(
    backend: CcBackend, loop: Region, cache: Path, script: Write, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    lines = f'case "$*" in *-dM*) exec cc "$@";; esac\necho $$ > {begun}\nexec sleep 1000'
    environment = {**os.environ, "CC": script(lines)}
    command = [sys.executable, "-c", OTHERS]
    process = subprocess.Popen(command, env=environment)
    while not begun.is_file() or not begun.read_text().strip():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.kill(int(begun.read_text()), signal.SIGKILL)
    assert [file for file in entries(cache) if file.name.startswith("cc-")] == []
    assert not backend.compile(loop, Options()).is_from_cache
    assert backend.compile(loop, Options()).is_from_cache


def test_what_a_killed_process_left_is_removed_when_it_is_old(scratch: Path) -> None:
    old, new, other = scratch / "ferryvm-cc-old", scratch / "ferryvm-cc-new", scratch / "other"
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "region.c").write_text("")
    two_hours_ago = time.time() - 7200
    for folder in (old, other):
        os.utime(folder, (two_hours_ago, two_hours_ago))
    with workplace() as folder:
        assert folder.parent == scratch
    assert sorted(left.name for left in scratch.iterdir()) == ["ferryvm-cc-new", "other"]


def test_nothing_stays_in_the_temporary_folder(
    backend: CcBackend, loop: Region, scratch: Path
) -> None:
    for _ in range(2):
        backend.compile(loop, Options())
    assert list(scratch.iterdir()) == []


def test_no_temporary_folder_is_told_with_the_variable(
    backend: CcBackend, loop: Region, scratch: Path
) -> None:
    scratch.rmdir()
    with pytest.raises(BackendError, match=r"^cc: temporary files cannot .*; set TMPDIR to "):
        backend.compile(loop, Options())


def _stored(monkeypatch: pytest.MonkeyPatch, payload: bytes) -> list[bytes]:
    """The genuine payloads of entries that are stored from now on, with `payload` in their
    place."""
    payloads: list[bytes] = []
    store = Entry.try_store

    def other(entry: Entry, genuine: bytes) -> None:
        payloads.append(genuine)
        store(entry, payload)

    monkeypatch.setattr(Entry, "try_store", other)
    return payloads


@pytest.mark.parametrize("payload", [b"", b"no library", b"\x7fELF\x02\x01\x01" + bytes(500)])
def test_what_is_no_shared_object_is_not_loaded_whoever_stored_it(
    backend: CcBackend,
    loop: Region,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    payload: bytes,
) -> None:
    (genuine,) = (_stored(monkeypatch, payload), backend.compile(loop, Options()))[0]
    assert binary.fault(genuine, binary.ObjectType.SHARED) is None
    assert not backend.compile(loop, Options()).is_from_cache
    assert "is refused and built again: it" in caplog.text


def test_a_shared_object_that_is_cut_has_a_fault(
    backend: CcBackend, loop: Region, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payloads = _stored(monkeypatch, b"")
    backend.compile(loop, Options())
    for length in (16, 64, 500, len(payloads[0]) - 1):
        assert binary.fault(payloads[0][:length], binary.ObjectType.SHARED) is not None


def test_an_entry_that_cannot_be_loaded_is_named(
    backend: CcBackend, loop: Region, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.compile(loop, Options())
    (file,) = entries(cache)
    monkeypatch.setattr(Entry, "find", lambda entry, fault: b"no library")
    with pytest.raises(BackendError, match=f"^cc: cache entry {file} cannot be .*; remove it$"):
        backend.compile(loop, Options())
