# SPDX-License-Identifier: Apache-2.0
"""Replacing a file: through links, next to long names, never by halves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferryvm.atomic_file import probe_file, replace_file


def test_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_longest_file_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1


def test_failure_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        replace_file(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_behind_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there already, and its name has not been returned yet; then removing it fails
    once."""
    unlink, failures = os.unlink, [MemoryError()]

    def short(*_: object) -> None:
        raise MemoryError

    def unlink_at_second_try(name: str, dir_fd: int | None = None) -> None:
        if failures:
            raise failures.pop()
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "fdopen", short)
    monkeypatch.setattr(os, "unlink", unlink_at_second_try)
    with pytest.raises(MemoryError):
        replace_file(tmp_path / "f", b"x")
    with pytest.raises(MemoryError):
        probe_file(tmp_path / "f")
    assert not failures
    assert list(tmp_path.iterdir()) == []
