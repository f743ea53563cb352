# SPDX-License-Identifier: Apache-2.0
"""Images as files: written whole or not at all."""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Program
from ferryvm.image import ImageError, to_bytes


def test_saved_program_loads_and_overwrites(tmp_path: Path, program: Program) -> None:
    path = tmp_path / "a.fvm"
    path.write_bytes(b"old")
    ferryvm.save(program, path)
    assert path.read_bytes() == to_bytes(program)
    assert to_bytes(ferryvm.load(path)) == to_bytes(program)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.fvm"]


def test_saved_file_is_readable_by_all_whom_the_umask_allows(
    tmp_path: Path, program: Program
) -> None:
    path, plain = tmp_path / "a.fvm", tmp_path / "plain"
    plain.touch()
    ferryvm.save(program, path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (lambda folder: folder / "absent" / "a.fvm", "No such file or directory"),
        (lambda folder: folder / "file" / "a.fvm", "Not a directory"),
        (lambda folder: folder / "folder", "Is a directory"),
        (lambda folder: folder / ("x" * 300), "File name too long"),
        (lambda _: Path("/proc/a.fvm"), "No such file or directory"),
    ],
    ids=["no folder", "file as folder", "folder as file", "long name", "no place"],
)
def test_target_that_cannot_be_written_is_named_and_nothing_is_left(
    tmp_path: Path, program: Program, place: Callable[[Path], Path], message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    path = place(tmp_path)
    with pytest.raises(ImageError, match=f"^{re.escape(f'{path}: cannot be written: {message}')}$"):
        ferryvm.save(program, path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_pipe_is_written_to_and_not_replaced(tmp_path: Path, program: Program) -> None:
    # As would be /dev/null, /dev/stdout and the like.
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(path.read_bytes)
        ferryvm.save(program, path)
        assert read.result() == to_bytes(program)
    assert path.is_fifo()


def test_disk_that_is_full_leaves_the_old_content(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.fvm"
    ferryvm.save(program, path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ImageError, match=r"cannot be written: No space left on device$"):
        ferryvm.save(Program(), path)
    assert path.read_bytes() == to_bytes(program)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.fvm"]


SAVE_FOR_EVER = """
import sys
from pathlib import Path
from ferryvm import Program, save
from ferryvm.program import Code

path = Path(sys.argv[1])
programs = [Program(Code(bytes(16 * count))) for count in (2, 40_000)]
save(programs[0], path)
print("started", flush=True)
while True:
    for program in programs:
        save(program, path)
"""


def test_killed_while_saving_leaves_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "a.fvm"
    rng = random.Random(1)
    for _ in range(10):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", SAVE_FOR_EVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"started\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(rng.uniform(0, 0.05))
            child.kill()
        assert len(ferryvm.load(path).code) in (2, 40_000)
