# SPDX-License-Identifier: Apache-2.0
"""PoCL on a processor that is newer than its LLVM, shown on a device made of plain memory."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferryvm_backends.opencl import pocl_target
from ferryvm_backends.opencl.device import POCL_DEVICES, devices, same

from .test_diagnosis import CPU

ZEN_5 = "OpenCL 3.0 PoCL HSTR: basic-x86_64-unknown-linux-gnu-generic"
SKYLAKE = "OpenCL 3.0 PoCL HSTR: basic-x86_64-unknown-linux-gnu-skylake"


class Planted:
    """1,024 bytes that stand for a device, with pointers to strings."""

    def __init__(self, *strings: bytes) -> None:
        self.strings = [ctypes.create_string_buffer(string, 16) for string in strings]
        self.words = (ctypes.c_uint64 * 128)(*[1, 0xDEAD0000, 2**64 - 8])
        for place, string in enumerate(self.strings, 80):
            self.words[place] = ctypes.addressof(string)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)


def test_the_name_is_replaced_where_it_stands() -> None:
    device = Planted(b"basic", b"generic")
    assert pocl_target.replace_name(device.address, "haswell")
    assert [string.value for string in device.strings] == [b"basic", b"haswell"]


@pytest.mark.parametrize("strings", [(b"basic",), (b"generic", b"generic"), (b"generic2",)])
def test_nothing_is_written_where_the_name_is_not_found_once(strings: tuple[bytes, ...]) -> None:
    device = Planted(*strings)
    assert not pocl_target.replace_name(device.address, "haswell")
    assert tuple(string.value for string in device.strings) == strings


def test_memory_that_cannot_be_read_is_no_device() -> None:
    assert not pocl_target.replace_name(4096, "haswell")


@pytest.mark.parametrize(
    ("version", "machine", "unknown"),
    [
        (ZEN_5, "x86_64", True),
        (SKYLAKE, "x86_64", False),
        (ZEN_5.replace("x86_64", "aarch64"), "aarch64", False),
        ("OpenCL 3.0 CUDA generic", "x86_64", False),
    ],
)
def test_a_processor_is_unknown_by_the_version_of_its_device(
    version: str, machine: str, unknown: bool
) -> None:
    assert pocl_target.is_unknown(version, machine) is unknown


def test_the_substitute_has_no_instruction_that_the_processor_lacks(tmp_path: Path) -> None:
    old = tmp_path / "cpuinfo"
    old.write_text("processor\t: 0\nflags\t\t: fpu sse2 avx\nflags\t\t: avx2\n", encoding="ascii")
    assert pocl_target.processor_flags(old) == {"fpu", "sse2", "avx"}
    assert pocl_target.substitute(pocl_target.processor_flags(old)) == "x86-64"
    assert pocl_target.substitute(pocl_target.processor_flags(tmp_path / "none")) == "x86-64"
    assert pocl_target.substitute(pocl_target._HASWELL | {"avx512f"}) == "haswell"


def test_an_unknown_processor_without_substitute_is_a_problem() -> None:
    unknown = dataclasses.replace(CPU, version=ZEN_5, target=None)
    assert unknown.problem == "its compiler is older than this processor, and builds nothing for it"


def test_every_device_of_pocl_here_has_a_processor_that_it_builds_for() -> None:
    for device in devices():
        is_unknown = pocl_target.is_unknown(device.version)
        assert device.target is not None
        assert bool(device.target) is is_unknown


def test_a_device_is_found_by_name_where_another_process_has_it_in_another_place() -> None:
    basic = dataclasses.replace(CPU, name="basic", place=0)
    pthread = dataclasses.replace(CPU, name="pthread", place=1)
    platform = CPU.platform
    assert same([basic, pthread], (platform, 0, "pthread")) is pthread
    assert same([basic, pthread], (platform, 0, "gone")) is None
    twin = dataclasses.replace(pthread, place=2)
    assert same([basic, pthread, twin], (platform, 2, "pthread")) is twin
    assert same([basic, pthread, twin], (platform, 0, "pthread")) is None


LISTED_BEFORE = """
import time
import pyopencl
listed = [d.name for p in pyopencl.get_platforms() for d in p.get_devices()]
import ferryvm
from ferryvm.engine import Engine
number = time.time_ns()  # its kernel is in no cache
execution = Engine("opencl", device=":pthread").start(ferryvm.compile(f"(print! {number})"))
result = execution.run()
print(any("pthread" in name for name in listed), result.statistics.backend)
print(result.output == f"{number}\\n")
"""


@pytest.mark.nightly
def test_a_program_runs_on_a_device_that_the_process_listed_before_ferryvm() -> None:
    """Without POCL_DEVICES: then the process lists `pthread` alone, in the place where the process
    that builds kernels has `basic`."""
    environment = {name: os.environ[name] for name in os.environ if name != POCL_DEVICES}
    done = subprocess.run(
        [sys.executable, "-c", LISTED_BEFORE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True opencl\nTrue\n", "")
