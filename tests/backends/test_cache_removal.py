# SPDX-License-Identifier: Apache-2.0
"""The cache does not grow for ever: what nobody reads goes, and nothing else does."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from ferryvm import cache

PAYLOAD = bytes(range(256)) * 4096
ENTRY, OTHER = cache.Entry("x", "a" * 64), cache.Entry("x", "b" * 64)
DAY = 86400


def _age(file: Path, days: float) -> float:
    """Make a file that old; returns the time that it then has."""
    then = float(int(time.time() - days * DAY))
    os.utime(file, (then, then))
    return then


def _plant(folder: Path, name: str, days: float) -> Path:
    """A whole entry under that name, or a file that looks like one, last read days ago."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_bytes(hashlib.sha256(PAYLOAD[:99]).digest() + PAYLOAD[:99])
    _age(file, days)
    return file


def test_reading_an_entry_notes_it_once_a_day(empty_cache: Path) -> None:
    ENTRY.store(PAYLOAD)
    this_morning = _age(ENTRY.path, 0.9)
    assert ENTRY.read() == PAYLOAD
    assert ENTRY.path.stat().st_mtime == this_morning
    _age(ENTRY.path, 1.1)
    began = int(time.time())
    assert ENTRY.read() == PAYLOAD
    assert ENTRY.path.stat().st_mtime >= began


def test_an_entry_that_cannot_be_noted_as_read_is_read(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENTRY.store(PAYLOAD)
    _age(ENTRY.path, 2)

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "utime", refuse)
    assert ENTRY.read() == PAYLOAD


def test_storing_removes_entries_that_nobody_has_read_for_90_days(empty_cache: Path) -> None:
    unread = _plant(empty_cache, f"x-{'1' * 32}.bin", 91)
    read = _plant(empty_cache, f"x-{'2' * 32}.bin", 91)
    younger = _plant(empty_cache, f"some-other.name-{'3' * 32}.bin", 89)
    assert cache.Entry("x", "2" * 64).read() == PAYLOAD[:99]
    ENTRY.store(PAYLOAD)
    assert not unread.exists()
    assert set(empty_cache.iterdir()) == {read, younger, ENTRY.path}


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "x.bin", f"x-{'1' * 31}.bin", f"x-{'G' * 32}.bin", f"x-{'1' * 32}.bin.old"],
)
def test_files_that_are_not_the_caches_stay(empty_cache: Path, name: str) -> None:
    file = _plant(empty_cache, name, 1000)
    ENTRY.store(PAYLOAD)
    assert file.exists()


def test_what_cannot_be_removed_is_left_and_the_rest_goes(empty_cache: Path) -> None:
    folders = [empty_cache / f"x-{digit * 32}.bin" for digit in "02"]
    for folder in folders:
        folder.mkdir(parents=True)
        _age(folder, 1000)
    old = [_plant(empty_cache, f"x-{digit * 32}.bin", 1000) for digit in "13"]
    ENTRY.store(PAYLOAD)
    assert [file.exists() for file in (*folders, *old)] == [True, True, False, False]


def test_a_process_looks_for_what_can_go_once(empty_cache: Path) -> None:
    ENTRY.store(PAYLOAD)
    old = _plant(empty_cache, f"x-{'1' * 32}.bin", 91)
    ENTRY.store(PAYLOAD)
    assert old.exists()
    process = multiprocessing.get_context("spawn").Process(target=OTHER.store, args=(b"",))
    process.start()
    process.join()
    assert not old.exists()
    assert set(empty_cache.iterdir()) == {ENTRY.path, OTHER.path}


def test_leftovers_of_killed_processes_are_removed_once_they_are_old(empty_cache: Path) -> None:
    empty_cache.mkdir()
    old, young = empty_cache / ".ferry-old.part", empty_cache / ".ferry-young.part"
    for part in (old, young):
        part.write_bytes(b"half")
    an_hour_and_a_bit_ago = time.time() - 4000
    os.utime(old, (an_hour_and_a_bit_ago, an_hour_and_a_bit_ago))
    ENTRY.get(lambda: PAYLOAD)
    assert not old.exists()
    assert young.exists()


# --- kills, other processes -----------------------------------------------------------------


def _killed_at_removal(folder: str, number: int) -> None:
    """Store an entry, and be killed when so many others have been removed on the way."""
    os.environ["FERRYVM_CACHE_DIR"] = folder
    removed = 0
    unlink = os.unlink

    def counted(path: str) -> None:
        nonlocal removed
        if removed == number:
            os.kill(os.getpid(), signal.SIGKILL)
        unlink(path)
        removed += 1

    os.unlink = counted
    ENTRY.store(PAYLOAD)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_kill_while_entries_are_removed_takes_no_other_with_them(
    empty_cache: Path, number: int
) -> None:
    young = [_plant(empty_cache, f"young-{digit:032x}.bin", 89) for digit in range(4)]
    old = [_plant(empty_cache, f"old-{digit:032x}.bin", 91) for digit in range(4)]
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_killed_at_removal, args=(str(empty_cache), number))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert sum(file.exists() for file in old) == 4 - number
    OTHER.store(PAYLOAD)
    assert set(empty_cache.iterdir()) == {*young, OTHER.path}


def _store_together(folder: str, start: Barrier, number: int) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    start.wait()  # for the others
    cache.Entry("x", f"{number:064x}"[::-1]).store(PAYLOAD)


def test_processes_that_remove_entries_at_once_all_succeed(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    young = _plant(empty_cache, f"young-{'0' * 32}.bin", 89)
    for number in range(1000):
        _plant(empty_cache, f"old-{number:032x}.bin", 91)
    start = context.Barrier(3)
    processes = [
        context.Process(target=_store_together, args=(str(empty_cache), start, number))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert young.exists()
    assert len(list(empty_cache.iterdir())) == 4
