# SPDX-License-Identifier: Apache-2.0
"""The cache survives damage, kills and missing permissions."""

from __future__ import annotations

import dataclasses
import errno
import logging
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from ferryvm import cache
from ferryvm.backend import BackendError

PAYLOAD = bytes(range(256)) * 4096
ENTRY, OTHER = cache.Entry("x", "a" * 64), cache.Entry("x", "b" * 64)


def _never() -> bytes:
    raise AssertionError("built again")


def test_entry_is_built_once(empty_cache: Path) -> None:
    assert ENTRY.get(lambda: PAYLOAD) == PAYLOAD
    assert ENTRY.get(_never) == PAYLOAD


def test_another_key_is_another_entry(empty_cache: Path) -> None:
    ENTRY.get(lambda: PAYLOAD)
    assert OTHER.get(lambda: b"other") == b"other"


def test_key_depends_on_every_fact_and_file(tmp_path: Path) -> None:
    source = tmp_path / "s.py"
    source.write_text("1")
    keys = {cache.key(["a", "b"], [source]), cache.key(["ab"], [source]), cache.key(["a"], [])}
    keys.add(cache.key(["b", "a"], [source]))
    source.write_text("2")
    keys.add(cache.key(["a", "b"], [source]))
    assert len(keys) == 5


def test_key_depends_on_what_a_file_is_called_and_not_on_where_it_is(tmp_path: Path) -> None:
    def key(file: str) -> str:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
        return cache.key([b"a"], [path])

    assert key("here/s.py") == key("there/s.py") != key("here/t.py")


@pytest.mark.parametrize(
    ("name", "key"), [("a/b", "a" * 64), ("", "a" * 64), ("a", "../a"), ("a", "a" * 31)]
)
def test_an_entry_that_would_be_no_file_of_the_cache_is_refused(name: str, key: str) -> None:
    with pytest.raises(
        BackendError, match=r"^cache entry .* a key is what ferryvm\.cache\.key ret"
    ):
        cache.Entry(name, key)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(5000)])
def test_damaged_entry_is_reported_and_built_again(
    empty_cache: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    ENTRY.get(lambda: PAYLOAD)
    (entry,) = empty_cache.glob("*/*.bin")
    entry.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        assert ENTRY.get(lambda: b"fresh") == b"fresh"
    assert "damaged" in caplog.text
    assert ENTRY.get(_never) == b"fresh"


def test_directory_that_cannot_be_made_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    with pytest.raises(BackendError, match=r"cache /dev/null/x.* cannot be used: Not a directory"):
        ENTRY.get(_never)


def test_an_error_names_the_backend_and_a_problem_leaves_that_to_whoever_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    reason = (
        "cache /dev/null/x cannot be used: Not a directory; "
        "set FERRYVM_CACHE_DIR to a directory that can be written"
    )
    assert ENTRY.problem() == reason
    for entry, culprit in ((ENTRY, "x"), (dataclasses.replace(ENTRY, backend="mine"), "mine")):
        assert entry.read() is None
        for attempt in (entry.check, lambda entry=entry: entry.store(b"")):
            with pytest.raises(BackendError) as caught:
                attempt()
            assert str(caught.value) == f"{culprit}: {reason}"


def test_there_is_no_problem_where_an_entry_is_or_can_be(empty_cache: Path) -> None:
    assert ENTRY.problem() is None
    ENTRY.store(PAYLOAD)
    assert ENTRY.problem() is None
    assert [file.name for file in empty_cache.glob("*/x-*.bin")] == [f"x-{'a' * 32}.bin"]


def test_an_entry_that_cannot_be_read_is_a_clear_error(empty_cache: Path) -> None:
    ENTRY.path.mkdir(parents=True)
    reason = (
        f"cache entry {ENTRY.path} cannot be read: Is a directory; "
        "remove it, or set FERRYVM_CACHE_DIR to another directory"
    )
    assert ENTRY.problem() == reason
    with pytest.raises(BackendError) as caught:
        ENTRY.get(_never)
    assert str(caught.value) == f"x: {reason}"


def test_a_damaged_entry_that_cannot_be_replaced_is_told_before_anything_is_built(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENTRY.store(PAYLOAD)
    ENTRY.path.write_bytes(b"damaged")

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(cache, "probe_file", refuse)
    with pytest.raises(BackendError, match=r"^x: cache .* cannot be used: Permission denied; set "):
        ENTRY.get(_never)


# --- kills, other processes -----------------------------------------------------------------


def _store_forever(folder: str) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    for number in range(1_000_000):
        cache.Entry("x", f"{number:064}"[::-1]).get(lambda: PAYLOAD)


def test_kill_at_any_moment_leaves_no_bad_entry(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for attempt in range(4):
        process = context.Process(target=_store_forever, args=(str(empty_cache),))
        process.start()
        while not empty_cache.exists() or len(list(empty_cache.glob("*/*.bin"))) < 10 * (
            attempt + 1
        ):
            assert process.is_alive()
            time.sleep(0.001 * (attempt + 1))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    entries = list(empty_cache.glob("*/*.bin"))
    assert len(entries) > 10
    for entry in entries:
        content = entry.read_bytes()
        assert content[32:] == PAYLOAD
