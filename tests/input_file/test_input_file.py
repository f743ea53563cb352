# SPDX-License-Identifier: Apache-2.0
"""Files that users name: what is no file, or too large, ends in one line before it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError
from ferryvm.input_file import read_bytes, read_text

NAMES: dict[str, tuple[str, Callable[[str], list[str]]]] = {
    "skiff": ("p.skiff", lambda path: ["run", path]),
    "assembly": ("p.fasm", lambda path: ["dis", path]),
    "image": ("p.fvm", lambda path: ["verify", path]),
    "state": ("s.ferry", lambda path: ["resume", path]),
    "policy": ("p.toml", lambda path: ["policy", "check", path]),
    "disagreement": ("d.json", lambda path: ["replay", path]),
    "machine": ("m.toml", lambda path: ["compile", "x.skiff", "--emit", "vliw", "--backend", "vliw",
                                        "--device", path]),
    "weights": ("w.toml", lambda path: ["fuzz", "--programs", "1", "--weights", path]),
}  # fmt: skip


def complaint(kind: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command that reads such a file says to standard error."""
    monkeypatch.chdir(path.parent)
    Path("x.skiff").write_text("1", encoding="utf-8")
    done = CliRunner().invoke(ferry, NAMES[kind][1](str(path)))
    is_error = isinstance(done.exception, FerryError)  # `main` writes it and exits with 2
    assert is_error or done.exit_code == 2, done.output
    return str(done.exception) if is_error else done.stderr.strip()


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("what", ["device", "pipe", "folder", "sparse"])
def test_what_is_no_file_of_that_kind_is_one_line(
    kind: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAMES[kind][0]
    if what == "device":
        path.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(10_000_000_000)
    said = complaint(kind, path, monkeypatch)
    assert "\n" not in said
    assert str(path) in said


def test_messages_say_what_it_is_and_what_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    for where, message in [
        (path, f"{path}: cannot be read: it has 5 bytes, 4 at most are allowed"),
        (Path("/dev/zero"), "/dev/zero: cannot be read: it is a device, not a file"),
        (tmp_path, f"{tmp_path}: cannot be read: Is a directory"),
        (tmp_path / "g", f"{tmp_path / 'g'}: cannot be read: No such file or directory"),
    ]:
        with pytest.raises(FerryError) as caught:
            read_bytes(where, 4)
        assert str(caught.value) == message


def test_file_without_an_end_that_claims_none_is_read_to_the_bound() -> None:
    with pytest.raises(FerryError, match="100 at most are allowed"):
        read_bytes(Path("/proc/self/mountinfo"), 100)  # its size is 0, it says


def test_text_is_that_of_any_editor(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(path) == "a\nb\nc\n"
    path.write_bytes(b"a\xff")
    with pytest.raises(FerryError, match=r"not UTF-8 text \(byte 1\)"):
        read_text(path)
