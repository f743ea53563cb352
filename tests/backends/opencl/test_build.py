# SPDX-License-Identifier: Apache-2.0
"""A build that fails, hangs or dies is one line; what was built before is found again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferryvm import cache
from ferryvm.backend import BackendError, Options, RefusalError
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm_backends.opencl import OpenClBackend, build
from ferryvm_backends.opencl.device import Device

from ...tier import sample
from .entering import enter, whole

GOOD = "__kernel void ferry_region(__global uchar *a, ulong b, __global uchar *c, ulong d, "
GOOD += "__global uchar *e, ulong f, ulong g, __global uchar *h, ulong i) {}\n"


@pytest.fixture(scope="module")
def child() -> Iterator[build.Builder]:
    """A process of these tests' own, which a test may kill: the next one starts another."""
    made = build.Builder()
    yield made
    made.service.end()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    return tmp_path


def failure(child: build.Builder, device: Device, source: str) -> str:
    with pytest.raises(BackendError) as caught:
        child.build(device, source)
    message = str(caught.value)
    assert message.startswith("opencl: ")
    assert "\n" not in message
    return message


def test_an_error_names_the_line_of_the_program(child: build.Builder, device: Device) -> None:
    source = f"/* mine.skiff:4: 7 i64.add */\nvoid f() {{ int x = nothing; }}\n{GOOD}"
    message = failure(child, device, source)
    assert "does not build the kernel" in message
    assert "nothing" in message
    assert message.endswith("(line 2, of mine.skiff:4)")


def test_a_process_builds_one_text_after_another(child: build.Builder, device: Device) -> None:
    failure(child, device, "int x = nothing;")
    first = child.build(device, GOOD)
    assert child.build(device, GOOD) == first


def _stopped(child: build.Builder, device: Device) -> int:
    child.build(device, GOOD)
    assert child.service.child is not None
    return child.service.child.pid


def test_a_build_that_hangs_is_given_up(
    child: build.Builder, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = _stopped(child, device)
    os.kill(process, signal.SIGSTOP)
    monkeypatch.setenv(build.TIMEOUT, "0.3")
    message = failure(child, device, GOOD)
    assert "did not build the kernel in 0.3 s; set FERRYVM_OPENCL_TIMEOUT to more" in message
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    monkeypatch.delenv(build.TIMEOUT)
    child.build(device, GOOD)  # by another process


def test_a_driver_that_crashes_is_told(child: build.Builder, device: Device) -> None:
    process = _stopped(child, device)
    os.kill(process, signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (process, signal.SIGKILL)).start()  # it has been asked by then
    message = failure(child, device, GOOD)
    assert "broke while it built the kernel: it was ended by SIGKILL" in message
    child.build(device, GOOD)


@pytest.mark.nightly
def test_who_waits_for_a_build_when_all_ends_is_told(device: Device) -> None:
    child = build.Builder()
    os.kill(_stopped(child, device), signal.SIGSTOP)
    threading.Timer(0.2, child.service.close).start()
    with pytest.raises(RefusalError, match="the process ends"):
        child.build(device, GOOD)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_timeout_that_is_none_is_an_error(
    child: build.Builder, device: Device, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(build.TIMEOUT, text)
    assert f"{build.TIMEOUT}={text} is not a number of seconds" in failure(child, device, GOOD)


@pytest.mark.rotate("backend", most=1)
def test_what_was_built_is_found_again(backend: OpenClBackend, empty: Path) -> None:
    region = whole("(define i 0) (while (< i 5) (print! i) (set! i (+ i 1)))")
    assert not backend.compile(region, Options()).is_from_cache
    assert len(list(empty.rglob("kernel-*.bin"))) == 1
    assert backend.compile(region, Options()).is_from_cache
    assert not backend.compile(region, Options(cache=False)).is_from_cache


def test_the_cache_keeps_no_code_that_the_driver_keeps(device: Device, empty: Path) -> None:
    if not device.caches_builds:
        pytest.skip(f"the driver of {device} keeps nothing")
    OpenClBackend().compile(whole("(print! 7)"), Options())
    (file,) = empty.rglob("kernel-*.bin")
    assert file.stat().st_size < 100


def test_a_binary_is_kept_for_a_driver_that_keeps_nothing(
    device: Device, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    from ferryvm_backends import opencl

    forgetful = dataclasses.replace(device, caches_builds=False)
    monkeypatch.setattr("ferryvm_backends.opencl.device.find", lambda name="": forgetful)
    region = whole("(+ 1 (* 2 3))")
    for is_found in (False, True):
        code = opencl.OpenClBackend().compile(region, Options())
        assert code.is_from_cache is is_found
        machine = Machine(region.verified)
        assert enter(code, machine) is Status.HALT
        assert machine.result()[1] == 7  # type: ignore[index]  # it has one
    (file,) = empty.rglob("kernel-*.bin")
    assert file.stat().st_size > 1000


def test_a_damaged_entry_is_built_again(backend: OpenClBackend, empty: Path) -> None:
    region = whole("(print! 8)")
    backend.compile(region, Options())
    (file,) = empty.rglob("kernel-*.bin")
    file.write_bytes(b"nonsense" * 9)
    assert not backend.compile(region, Options()).is_from_cache


@pytest.mark.parametrize("payload", sample([b"", b"\x7fEL", b"nonsense", b"built?"], 2))
def test_what_is_no_binary_is_given_to_no_driver_whoever_stored_it(
    backend: OpenClBackend, empty: Path, monkeypatch: pytest.MonkeyPatch, payload: bytes
) -> None:
    region = whole("(print! 9)")
    store = cache.Entry.try_store
    monkeypatch.setattr(cache.Entry, "try_store", lambda entry, _: store(entry, payload))
    backend.compile(region, Options())
    assert not backend.compile(region, Options()).is_from_cache


def test_a_binary_of_an_unknown_form_is_not_kept_and_that_is_told_once(
    device: Device, empty: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(build, "fault", lambda payload: "it is of no form that is known")
    for _ in range(2):
        assert not OpenClBackend().compile(whole("(print! 10)"), Options()).is_from_cache
    (said,) = caplog.messages
    assert said == f"opencl: what {device} builds is not kept: it is of no form that is known"
    assert list(empty.rglob("kernel-*.bin")) == []


def test_the_process_ends_with_its_parent() -> None:
    script = (
        "import os, ferryvm_backends.opencl.build as b\n"
        "from ferryvm_backends.opencl.device import find\n"
        f"child = b.Builder(); child.build(find(), {GOOD!r})\n"
        "print(child.service.child.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    process = int(done.stdout)
    for _ in range(500):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        signal.sigtimedwait([], 0.01)
    pytest.fail("it is still there")
