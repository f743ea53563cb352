# SPDX-License-Identifier: Apache-2.0
"""Only what this user stored is read from the cache, whoever can write to its folder."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from ferryvm import cache
from ferryvm.cache import digest, private, secret
from ferryvm.cache.private import UserFolder, user_folder

ENTRY, OTHER = cache.Entry("x", "a" * 64), cache.Entry("x", "a" + "b" * 63)
PAYLOAD = bytes(range(256))
SOMEBODY = 65534
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")


class _Noted(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the cache says, as it says it."""
    handler, log = _Noted(), logging.getLogger("ferryvm.cache")
    log.addHandler(handler)
    yield handler.lines
    log.removeHandler(handler)


@pytest.fixture
def folder(empty_cache: Path) -> Path:
    """The folder of both entries, which are stored."""
    ENTRY.store(PAYLOAD)
    OTHER.store(b"other")
    return ENTRY.path.parent


@pytest.fixture
def home(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of this test's own, with nothing in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def _elsewhere(file: Path) -> Path:
    return Path(shutil.copy2(file, file.with_name("elsewhere")))


def _link(file: Path) -> None:
    there = _elsewhere(file)
    file.unlink()
    file.symlink_to(there)


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _old_format(file: Path) -> None:
    file.write_bytes(hashlib.sha256(PAYLOAD).digest() + PAYLOAD)


def _flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (_link, "it is a link"),
    "dangling link": (lambda f: (f.unlink(), f.symlink_to("nothing")), "it is a link"),
    "pipe": (_pipe, "it is no regular file"),
    "folder": (_folder, "it is no regular file"),
    "readable by others": (lambda f: f.chmod(0o644), "it is open to others (mode 644)"),
    "writable by others": (lambda f: f.chmod(0o602), "it is open to others (mode 602)"),
    "another entry's": (lambda f: shutil.copy2(OTHER.path, f), "this user's key"),
    "old format": (_old_format, "another version"),
    "cut": (lambda f: os.truncate(f, 290), "this user's key"),
    "cut in its head": (lambda f: os.truncate(f, 20), "this user's key"),
    "empty": (lambda f: os.truncate(f, 0), "another version"),
    "another payload": (lambda f: _flip(f, -1), "this user's key"),
    "another MAC": (lambda f: _flip(f, 9), "this user's key"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_this_user_did_not_store_is_refused_in_one_line_and_built_again(
    folder: Path, said: list[str], name: str
) -> None:
    change, reason = WRONG[name]
    change(ENTRY.path)
    assert ENTRY.get(lambda: b"fresh") == b"fresh"
    assert said[0].startswith(f"cache entry {ENTRY.path} is refused and built again: ")
    assert said[0].endswith(reason)
    if name != "folder":  # that may hold what somebody else wants to keep
        assert len(said) == 1
        assert ENTRY.read() == b"fresh"
        assert stat.S_IMODE(ENTRY.path.stat().st_mode) == 0o600
    assert OTHER.read() == b"other"


@needs_root
def test_an_entry_of_another_user_is_refused(folder: Path, said: list[str]) -> None:
    os.chown(ENTRY.path, SOMEBODY, SOMEBODY)
    assert ENTRY.get(lambda: b"fresh") == b"fresh"
    (line,) = said
    assert line.endswith(f": it belongs to user {SOMEBODY}, not to user 0")
    assert ENTRY.path.stat().st_uid == 0


@needs_root
def test_a_device_is_refused(folder: Path, said: list[str]) -> None:
    ENTRY.path.unlink()
    os.mknod(ENTRY.path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    assert ENTRY.read() is None
    (line,) = said
    assert line.endswith(": it is no regular file")


@needs_root
def test_a_folder_of_another_user_is_not_used(folder: Path, said: list[str]) -> None:
    os.chown(folder, SOMEBODY, SOMEBODY)
    for _ in range(2):
        assert ENTRY.get(lambda: b"fresh") == b"fresh"
    (line,) = said
    assert f"cache folder {folder} is refused: it belongs to user {SOMEBODY}, not to" in line
    assert line.endswith("; compiled code is not kept")


def test_a_link_to_a_folder_is_not_followed(folder: Path, said: list[str], tmp_path: Path) -> None:
    folder.rename(tmp_path / "there")
    folder.symlink_to(tmp_path / "there")
    assert ENTRY.get(lambda: b"fresh") == b"fresh"
    (line,) = said
    assert f"cache folder {folder} is refused: it is a link; set FERRYVM_CACHE_DIR to" in line


def test_a_folder_is_checked_when_it_is_open(folder: Path, tmp_path: Path) -> None:
    with private.folder(str(folder)) as descriptor:
        folder.rename(tmp_path / "there")
        _old_format(tmp_path / "there" / "planted")
        (tmp_path / "there" / "planted").chmod(0o600)
        folder.mkdir()
        with private.opened("planted", descriptor) as file:
            assert private.content(file, 1000)
        with pytest.raises(FileNotFoundError), private.opened("planted", os.open(folder, 0)):
            pass


def test_an_open_cache_of_an_earlier_version_is_closed_and_that_is_told_once(
    empty_cache: Path, said: list[str]
) -> None:
    for digit in "0aF":
        (empty_cache / digit).mkdir(parents=True)
    empty_cache.chmod(0o755)
    (empty_cache / "0").chmod(0o755)
    (empty_cache / "a").chmod(0o777)
    (empty_cache / "F").chmod(0o755)
    assert ENTRY.get(lambda: PAYLOAD) == PAYLOAD
    assert said == [f"cache {empty_cache} was open to other users; now its folders are not"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in empty_cache.iterdir()}
    assert modes == {"0": 0o700, "a": 0o700, "F": 0o755}, "one is not the cache's"


def test_what_is_made_is_for_this_user_alone(empty_cache: Path) -> None:
    umask = os.umask(0)
    try:
        ENTRY.store(PAYLOAD)
    finally:
        os.umask(umask)
    for path in (empty_cache, *empty_cache.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_payload_with_a_fault_is_refused_though_this_user_stored_it(
    folder: Path, said: list[str]
) -> None:
    found = ENTRY.get(lambda: b"fresh", lambda payload: "it has a fault")
    assert found == b"fresh"
    assert said == [f"cache entry {ENTRY.path} is refused and built again: it has a fault"]


# --- the key --------------------------------------------------------------------------------


def test_entries_of_another_key_are_refused(folder: Path, home: Path, said: list[str]) -> None:
    assert ENTRY.read() is None
    assert said[0].endswith("was not stored with this user's key")


def test_the_key_is_made_once_for_this_user_alone_and_not_in_the_cache(
    home: Path, empty_cache: Path
) -> None:
    ENTRY.store(PAYLOAD)
    file = cache.key_path()
    assert file == home / "ferryvm" / "cache-key"
    content = file.read_bytes()
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_nlink) == (0o600, 1)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]
    assert content[:32] not in b"".join(p.read_bytes() for p in empty_cache.rglob("*.bin"))
    secret._secret.cache_clear()
    assert ENTRY.read() == PAYLOAD
    assert file.read_bytes() == content


KEYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "zeros, as after a power cut": (lambda f: f.write_bytes(bytes(64)), "it is damaged"),
    "empty": (lambda f: os.truncate(f, 0), "it is damaged"),
    "longer": (lambda f: os.truncate(f, 65), "it is damaged"),
    "open to others": (lambda f: f.chmod(0o640), "it is open to others (mode 640)"),
    "a link": (_link, "it is a link"),
    "a pipe": (_pipe, "it is no regular file"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_is_no_good_is_made_anew(home: Path, said: list[str], name: str) -> None:
    ENTRY.store(PAYLOAD)
    change, reason = KEYS[name]
    change(cache.key_path())
    secret._secret.cache_clear()
    assert ENTRY.get(lambda: b"fresh") == b"fresh"
    assert len(said) == 2
    assert said[0].startswith(f"cache key {cache.key_path()} is made anew: {reason}; so is what")
    assert ENTRY.read() == b"fresh"


def _unusable(home: Path, said: list[str]) -> str:
    assert ENTRY.get(lambda: PAYLOAD) == PAYLOAD
    assert ENTRY.get(lambda: b"again") == b"again"
    (line,) = said
    assert "; set XDG_STATE_HOME to a folder of your own that can be written; compiled" in line
    assert f"x: {cache.why_not_usable()}; compiled code is not kept" == line
    return line


def test_without_a_place_for_the_key_nothing_is_kept_and_that_is_told_once(
    home: Path, empty_cache: Path, said: list[str]
) -> None:
    home.write_text("a file")
    assert f"cache key {cache.key_path()}: Not a directory; " in _unusable(home, said)
    assert not empty_cache.exists()


def test_without_a_home_directory_nothing_is_kept_here_or_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "FERRYVM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # a user without an account
    monkeypatch.chdir(tmp_path)
    assert "cache key: there is no home directory; " in _unusable(tmp_path, said)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_the_key_that_others_can_write_to_is_not_used(
    home: Path, said: list[str]
) -> None:
    (home / "ferryvm").mkdir(parents=True)
    (home / "ferryvm").chmod(0o777)
    assert "its folder: others can write to it (mode 777); " in _unusable(home, said)


@needs_root
def test_a_folder_of_the_key_of_another_user_is_not_used(home: Path, said: list[str]) -> None:
    (home / "ferryvm").mkdir(parents=True)
    os.chown(home / "ferryvm", SOMEBODY, SOMEBODY)
    assert f"its folder: it belongs to user {SOMEBODY}, not to user 0; " in _unusable(home, said)


def test_where_links_cannot_be_made_the_key_is_renamed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    ENTRY.store(PAYLOAD)
    secret._secret.cache_clear()
    assert ENTRY.read() == PAYLOAD


def _proof(results: multiprocessing.Queue[bytes]) -> None:
    results.put(secret.mac("x", "y", b"z"))


def test_processes_that_make_the_key_at_once_have_the_same(home: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_proof, args=(results,)) for _ in range(8)]
    for process in processes:
        process.start()
    proofs = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert len(proofs) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked")
@pytest.mark.parametrize("given", ["", "/elsewhere", "/with space/x", " ", "relative"])
@pytest.mark.parametrize("home", ["/home/me", "/home/me/", "", "relative", None])
def test_folders_of_a_user_are_where_platformdirs_says(
    given: str, home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, given)
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    for kind, find in (
        (UserFolder.CACHE, platformdirs.user_cache_dir),
        (UserFolder.STATE, platformdirs.user_state_dir),
    ):
        assert user_folder(kind) == Path(find("ferryvm"))


def test_digests_are_those_of_hashlib() -> None:
    assert digest.sha256(PAYLOAD).digest() == hashlib.sha256(PAYLOAD).digest()
    mine = digest.blake2b(PAYLOAD, key=b"key", digest_size=32, person=b"who")
    assert (
        mine.digest()
        == hashlib.blake2b(PAYLOAD, key=b"key", digest_size=32, person=b"who").digest()
    )
    assert digest.is_equal(b"one", b"one")
    assert not digest.is_equal(b"one", b"two")
