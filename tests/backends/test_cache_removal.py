# SPDX-License-Identifier: Apache-2.0
"""The cache does not grow for ever: what nobody reads goes, and nothing else does."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from ferryvm import cache
from ferryvm.cache import tidy

PAYLOAD = bytes(range(256)) * 4096
ENTRY, OTHER = cache.Entry("x", "a" * 64), cache.Entry("x", "a" + "b" * 63)
DAY = 86400
HEAD = b"ferryvm\x02" + bytes(32)
"""As long as what files of entries begin with."""


@pytest.fixture
def folder(empty_cache: Path) -> Path:
    """Where entries are whose keys begin as those of ENTRY and OTHER do."""
    return empty_cache / "a"


def _whole(file: Path, entry: cache.Entry) -> Path:
    """Make it an entry that can be read, of the age that it has."""
    then = file.stat().st_mtime
    entry.store(PAYLOAD[:99])
    (file.parent / "last-tidied").unlink()
    os.utime(file, (then, then))
    return file


def _age(file: Path, days: float) -> float:
    """Make a file that old; returns the time that it then has."""
    then = float(int(time.time() - days * DAY))
    os.utime(file, (then, then))
    return then


def _plant(folder: Path, name: str, days: float) -> Path:
    """A file that looks like an entry, last read days ago."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(HEAD + PAYLOAD[:99])
    _age(file, days)
    return file


def test_reading_an_entry_notes_it_once_a_day(folder: Path) -> None:
    ENTRY.store(PAYLOAD)
    this_morning = _age(ENTRY.path, 0.9)
    assert ENTRY.read() == PAYLOAD
    assert ENTRY.path.stat().st_mtime == this_morning
    _age(ENTRY.path, 1.1)
    began = int(time.time())
    assert ENTRY.read() == PAYLOAD
    assert ENTRY.path.stat().st_mtime >= began


def test_an_entry_that_cannot_be_noted_as_read_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENTRY.store(PAYLOAD)
    _age(ENTRY.path, 2)

    def refuse(descriptor: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "utime", refuse)
    assert ENTRY.read() == PAYLOAD


def test_storing_removes_entries_that_nobody_has_read_for_90_days(folder: Path) -> None:
    unread = _plant(folder, f"x-{'1' * 32}.bin", 91)
    used = cache.Entry("x", "a" + "2" * 63)
    read = _whole(_plant(folder, f"x-a{'2' * 31}.bin", 91), used)
    younger = _plant(folder, f"some-other.name-{'3' * 32}.bin", 89)
    assert used.read() == PAYLOAD[:99]
    ENTRY.store(PAYLOAD)
    assert not unread.exists()
    assert set(folder.glob("*.bin")) == {read, younger, ENTRY.path}


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "x.bin", f"x-{'1' * 31}.bin", f"x-{'G' * 32}.bin", f"x-{'1' * 32}.bin.old"],
)
def test_files_that_are_not_the_caches_stay(folder: Path, name: str) -> None:
    file = _plant(folder, name, 1000)
    ENTRY.store(PAYLOAD)
    assert file.exists()


def test_what_cannot_be_removed_is_left_and_the_rest_goes(folder: Path) -> None:
    folders = [folder / f"x-{digit * 32}.bin" for digit in "02"]
    for each in folders:
        each.mkdir(parents=True)
        _age(each, 1000)
    old = [_plant(folder, f"x-{digit * 32}.bin", 1000) for digit in "13"]
    ENTRY.store(PAYLOAD)
    assert [file.exists() for file in (*folders, *old)] == [True, True, False, False]


def _store_elsewhere(entry: cache.Entry) -> None:
    process = multiprocessing.get_context("spawn").Process(target=entry.store, args=(b"",))
    process.start()
    process.join()


def test_what_can_go_is_looked_for_once_a_day_by_all_processes(folder: Path) -> None:
    ENTRY.store(PAYLOAD)
    old = _plant(folder, f"x-{'1' * 32}.bin", 91)
    ENTRY.store(PAYLOAD)
    _store_elsewhere(OTHER)
    assert old.exists()
    (stamp,) = set(folder.iterdir()) - {old, ENTRY.path, OTHER.path}
    _age(stamp, 1.1)
    _store_elsewhere(OTHER)
    assert set(folder.iterdir()) == {ENTRY.path, OTHER.path, stamp}


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_was_wrong_does_not_stop_removal(folder: Path, days: int) -> None:
    ENTRY.store(PAYLOAD)
    old = _plant(folder, f"x-{'1' * 32}.bin", 91)
    (stamp,) = set(folder.iterdir()) - {old, ENTRY.path}
    _age(stamp, days)
    ENTRY.store(PAYLOAD)
    assert not old.exists()


def test_of_too_many_bytes_what_was_read_longest_ago_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(HEAD) + 99
    files = [_plant(folder, f"x-{days:032x}.bin", days) for days in range(1, 11)]
    other = _plant(folder, "notes.txt", 80)
    monkeypatch.setattr(tidy, "_MOST_BYTES", 8 * size)
    ENTRY.store(PAYLOAD)
    assert [file.exists() for file in files] == [True] * 6 + [False] * 4
    assert other.exists()
    assert ENTRY.read() == PAYLOAD


def test_as_many_bytes_as_may_be_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [_plant(folder, f"x-{days:032x}.bin", days) for days in range(1, 11)]
    monkeypatch.setattr(tidy, "_MOST_BYTES", 10 * (len(HEAD) + 99))
    ENTRY.store(PAYLOAD)
    assert all(file.exists() for file in files)


def test_leftovers_of_killed_processes_are_removed_once_they_are_old(folder: Path) -> None:
    folder.mkdir(parents=True)
    old, young = folder / ".ferry-old.part", folder / ".ferry-young.part"
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

    def counted(path: str, dir_fd: int) -> None:
        nonlocal removed
        if removed == number:
            os.kill(os.getpid(), signal.SIGKILL)
        unlink(path, dir_fd=dir_fd)
        removed += 1

    os.unlink = counted
    ENTRY.store(PAYLOAD)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_kill_while_entries_are_removed_takes_no_other_with_them(
    folder: Path, number: int
) -> None:
    young = [_plant(folder, f"young-{digit:032x}.bin", 89) for digit in range(4)]
    old = [_plant(folder, f"old-{digit:032x}.bin", 91) for digit in range(4)]
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_killed_at_removal, args=(str(folder.parent), number))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert sum(file.exists() for file in old) == 4 - number
    OTHER.store(PAYLOAD)
    assert set(folder.glob("*.bin")) == {*young, OTHER.path}


def _store_together(folder: str, start: Barrier, number: int) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    start.wait()  # for the others
    cache.Entry("x", f"a{number}" + "0" * 62).store(PAYLOAD)


@pytest.mark.nightly
def test_processes_that_remove_entries_at_once_all_succeed(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    young = _plant(folder, f"young-{'0' * 32}.bin", 89)
    for number in range(1000):
        _plant(folder, f"old-{number:032x}.bin", 91)
    start = context.Barrier(3)
    processes = [
        context.Process(target=_store_together, args=(str(folder.parent), start, number))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert young.exists()
    assert len(list(folder.glob("*.bin"))) == 4
