# SPDX-License-Identifier: Apache-2.0
"""The cache of native code survives damage, kills and missing permissions."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from ferryvm.backend import BackendError
from ferryvm_backends._llvm import cache

PAYLOAD = bytes(range(256)) * 4096


def _never() -> bytes:
    raise AssertionError("built again")


def test_entry_is_built_once(empty_cache: Path) -> None:
    assert cache.get("x", "a" * 64, lambda: PAYLOAD) == PAYLOAD
    assert cache.get("x", "a" * 64, _never) == PAYLOAD


def test_another_key_is_another_entry(empty_cache: Path) -> None:
    cache.get("x", "a" * 64, lambda: PAYLOAD)
    assert cache.get("x", "b" * 64, lambda: b"other") == b"other"


def test_key_depends_on_every_fact_and_file(tmp_path: Path) -> None:
    source = tmp_path / "s.py"
    source.write_text("1")
    keys = {cache.key(["a", "b"], [source]), cache.key(["ab"], [source]), cache.key(["a"], [])}
    source.write_text("2")
    keys.add(cache.key(["a", "b"], [source]))
    assert len(keys) == 4


@pytest.mark.parametrize("damage", [b"", b"short", bytes(5000)])
def test_damaged_entry_is_reported_and_built_again(
    empty_cache: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache.get("x", "a" * 64, lambda: PAYLOAD)
    (entry,) = empty_cache.iterdir()
    entry.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        assert cache.get("x", "a" * 64, lambda: b"fresh") == b"fresh"
    assert "damaged" in caplog.text
    assert cache.get("x", "a" * 64, _never) == b"fresh"


def test_directory_that_cannot_be_made_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    with pytest.raises(BackendError, match=r"cache /dev/null/x.* cannot be used: Not a directory"):
        cache.get("x", "a" * 64, _never)


def test_leftovers_of_killed_processes_are_removed_once_they_are_old(empty_cache: Path) -> None:
    empty_cache.mkdir()
    old, young = empty_cache / ".ferry-old.part", empty_cache / ".ferry-young.part"
    for part in (old, young):
        part.write_bytes(b"half")
    an_hour_and_a_bit_ago = time.time() - 4000
    os.utime(old, (an_hour_and_a_bit_ago, an_hour_and_a_bit_ago))
    cache.get("x", "a" * 64, lambda: PAYLOAD)
    assert not old.exists()
    assert young.exists()


def _store_forever(folder: str) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    for number in range(1_000_000):
        cache.get("x", f"{number:064}"[::-1], lambda: PAYLOAD)


def test_kill_at_any_moment_leaves_no_bad_entry(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for attempt in range(4):
        process = context.Process(target=_store_forever, args=(str(empty_cache),))
        process.start()
        while not empty_cache.exists() or len(list(empty_cache.iterdir())) < 10 * (attempt + 1):
            assert process.is_alive()
            time.sleep(0.001 * (attempt + 1))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    entries = list(empty_cache.glob("*.bin"))
    assert len(entries) > 10
    for entry in entries:
        content = entry.read_bytes()
        assert content[32:] == PAYLOAD
