# SPDX-License-Identifier: Apache-2.0
"""A compiler that is missing, fails, hangs or writes nonsense is one line with culprit and
remedy."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from ferryvm.backend import BackendError, Options
from ferryvm.region.region import Region

from ferryvm_cc.backend import CcBackend
from ferryvm_cc.compiler import COMMAND, TIMEOUT, find, run

from .conftest import Write

ANSWER = 'case "$*" in *-dM*) echo "#define __VERSION__ \\"1\\""; exit 0;; esac'
"""What makes a script look like a compiler when it is asked what it predefines."""


def failure(backend: CcBackend, region: Region) -> str:
    """The one line with which a compilation fails."""
    with pytest.raises(BackendError) as caught:
        backend.compile(region, Options())
    message = str(caught.value)
    assert message.startswith("cc: ")
    assert "\n" not in message
    return message


def test_a_compiler_that_is_there_is_usable(backend: CcBackend) -> None:
    assert backend.probe() is None
    assert "__VERSION__" in find().identity


def test_no_compiler_is_told_with_the_names_looked_for(
    backend: CcBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(COMMAND, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert backend.probe() == (
        "no C compiler here (looked for cc, gcc, clang); install one, or set CC to it"
    )


def test_a_compiler_that_is_not_there_is_named(
    backend: CcBackend, loop: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, "gcc-of-nowhere -O2")
    expected = (
        "CC names 'gcc-of-nowhere', which is not there or cannot be run; "
        "set it to a C compiler, or unset it"
    )
    assert backend.probe() == expected
    assert failure(backend, loop) == f"cc: {expected}"


def test_a_command_that_cannot_be_split_is_told(
    backend: CcBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, "gcc 'half")
    assert backend.probe() == "CC=gcc 'half cannot be read as a command: No closing quotation"


def test_what_is_no_compiler_is_not_usable(
    backend: CcBackend, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, script("echo hello"))
    reason = backend.probe()
    assert reason is not None
    assert "is no compiler that this backend knows (gcc, clang); set CC to one" in reason


def test_what_cannot_be_started_is_told(
    backend: CcBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "empty"
    file.write_bytes(b"\x7fELF")
    file.chmod(0o755)
    monkeypatch.setenv(COMMAND, str(file))
    reason = backend.probe()
    assert reason is not None
    assert reason.startswith(f"cannot start '{file}': ")
    assert reason.endswith("; set CC to a C compiler that works")


def test_the_first_error_and_the_command_are_told(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = f'{ANSWER}\necho "in file x:" >&2\necho "x:1: error: no space" >&2\nexit 1'
    monkeypatch.setenv(COMMAND, script(lines))
    message = failure(backend, loop)
    assert "failed: x:1: error: no space; set CC to a C compiler that works (command: " in message
    assert " -O2 " in message


def test_a_compiler_that_says_nothing_is_told_by_its_exit_code(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, script(f"{ANSWER}\nexit 3"))
    assert "failed: exit code 3;" in failure(backend, loop)


def test_a_compiler_that_is_killed_is_told_by_the_signal(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, script(f"{ANSWER}\nkill -SEGV $$"))
    assert "failed: it was ended by SIGSEGV;" in failure(backend, loop)


def test_a_compiler_that_writes_nothing_is_told(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, script(ANSWER))
    assert "says that it succeeded but wrote nothing; set CC to" in failure(backend, loop)


NONSENSE = (
    f'{ANSWER}\nwhile [ "$1" != -o ]; do shift; done\n'
    'if [ "$2" != - ]; then echo "this is no shared object" > "$2"; fi'
)


def test_nonsense_is_not_loaded_and_not_kept(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv(COMMAND, script(NONSENSE))
    message = failure(backend, loop)
    assert "wrote cannot be loaded: " in message
    assert message.endswith("; set CC to a C compiler for this machine")
    assert not list(cache.glob("*"))


def test_a_library_without_the_entry_is_told(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find().command[0]
    lines = (
        f'{ANSWER}\nwhile [ "$1" != -o ]; do shift; done\n'
        f'echo "int other;" | {real} -shared -fPIC -x c - -o "$2"'
    )
    monkeypatch.setenv(COMMAND, script(lines))
    assert "wrote has no ferry_region; set CC to" in failure(backend, loop)


def test_a_compiler_that_hangs_is_ended_with_all_that_it_started(
    backend: CcBackend, loop: Region, script: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    monkeypatch.setenv(COMMAND, script(f"{ANSWER}\nsleep 1000 &\necho $! > {child}\nwait"))
    monkeypatch.setenv(TIMEOUT, "0.5")
    message = failure(backend, loop)
    assert "did not finish in 0.5 s; set CC to a C compiler that works, or FERRYVM_CC_T" in message
    pid = int(child.read_text())
    for _ in range(500):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.strip()
        if not state or state.startswith("Z"):
            break
        time.sleep(0.01)
    else:
        pytest.fail(f"process {pid} is still there: {state}")


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_timeout_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(TIMEOUT, text)
    with pytest.raises(BackendError, match=f"^cc: FERRYVM_CC_TIMEOUT={text} is not a number of"):
        run(["true"])


def test_messages_are_one_line_of_what_can_be_printed(script: Write) -> None:
    command = script("printf 'error: \\033[31mred\\033[0m\\001\\n' >&2\nexit 1")
    with pytest.raises(BackendError) as caught:
        run([command])
    assert "\x1b" not in str(caught.value)
    assert "error: ?[31mred?[0m?" in str(caught.value)


def test_other_flags_of_the_user_are_other_code(
    backend: CcBackend, loop: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not backend.compile(loop, Options()).is_from_cache
    monkeypatch.setenv(COMMAND, f"{os.environ.get(COMMAND) or find().command[0]} -DOTHER")
    assert not backend.compile(loop, Options()).is_from_cache


def test_a_compiler_that_computes_inexactly_is_refused(
    backend: CcBackend, loop: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND, f"{find().command[0]} -D__FAST_MATH__")
    assert "told not to keep IEEE 754 results (-ffast-math)" in failure(backend, loop)
