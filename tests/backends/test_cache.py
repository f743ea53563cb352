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
    assert "is refused and built again: it is damaged" in caplog.text
    assert ENTRY.get(_never) == b"fresh"


def test_an_error_names_the_backend(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    reason = (
        "cache /dev/null/x cannot be used: Not a directory; "
        "set FERRYVM_CACHE_DIR to a folder of your own that can be written"
    )
    assert cache.why_not_usable() == reason
    for entry, culprit in ((ENTRY, "x"), (dataclasses.replace(ENTRY, backend="mine"), "mine")):
        assert entry.read() is None
        with pytest.raises(BackendError) as caught:
            entry.store(b"")
        assert str(caught.value) == f"{culprit}: {reason}"


def test_an_entry_lies_in_the_folder_of_its_first_digit(empty_cache: Path) -> None:
    assert cache.why_not_usable() == ""
    ENTRY.store(PAYLOAD)
    assert [file.name for file in empty_cache.glob("a/x-*.bin")] == [f"x-{'a' * 32}.bin"]
    assert [file.name for file in empty_cache.glob("0/*")] == [], "left by asking"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_full_or_broken_disk_costs_time_and_one_line(
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: int,
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with caplog.at_level(logging.WARNING, "ferryvm.cache"):
        for _ in range(2):
            assert ENTRY.get(lambda: PAYLOAD) == PAYLOAD
    (said,) = caplog.messages
    remedy = "make room, or set" if code in (errno.ENOSPC, errno.EDQUOT) else "set"
    assert f" cannot be used: {os.strerror(code)}; {remedy} FERRYVM_CACHE_DIR to " in said
    assert said.endswith("; compiled code is not kept")
    assert [path for path in empty_cache.glob("a/*") if path.name != "last-tidied"] == []


# --- kills, other processes -----------------------------------------------------------------


def _store_forever(folder: str) -> None:
    os.environ["FERRYVM_CACHE_DIR"] = folder
    for number in range(1_000_000):
        cache.Entry("x", f"{number:064}"[::-1]).get(lambda: PAYLOAD)


def test_kill_at_any_moment_leaves_no_bad_entry(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for attempt in range(2):
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
        digits = entry.stem.removeprefix("x-")
        assert cache.Entry("x", digits + "0" * 32).read() == PAYLOAD
