# SPDX-License-Identifier: Apache-2.0
"""Native code from the cache: no loader is given what is no object, whatever proves it genuine."""

from __future__ import annotations

import logging
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ferryvm
from ferryvm import binary, cache
from ferryvm.backend import Compiler, Options
from ferryvm.binary import ObjectType
from ferryvm.region.region import region
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends._llvm import cache_entry, ir, native
from ferryvm_backends._llvm.build import compile_module
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends.llvm.region_code import fault

GARBAGE = cache_entry.packed(b"[[], []]", b"not an object")
LOOP = "(define i 0) (while (< i 9) (set! i (+ i 1))) i"


@pytest.fixture(scope="module")
def object_code() -> bytes:
    """A function that calls another and reads a variable."""
    module = ir.Module("small")
    word = ir.IntType(64)
    variable = ir.GlobalVariable(module, word, "counter")
    variable.initializer = ir.Constant(word, 7)
    other = ir.Function(module, ir.FunctionType(word, [word]), "other")
    function = ir.Function(module, ir.FunctionType(word, [word]), "function")
    for each in (other, function):
        builder = ir.IRBuilder(each.append_basic_block())
        builder.ret(builder.add(each.args[0], builder.load(variable)))
    return compile_module(module, merge_tails=True)


def test_an_object_is_recognised(object_code: bytes) -> None:
    assert binary.fault(object_code, ObjectType.RELOCATABLE) is None
    ObjectCode(object_code).address("function")
    assert binary.fault(object_code, ObjectType.SHARED) == "its type is 1 instead of 3"


@pytest.mark.parametrize("length", [0, 3, 16, 63, 64, 200, -1])
def test_no_part_of_an_object_is_one(object_code: bytes, length: int) -> None:
    assert binary.fault(object_code[:length], ObjectType.RELOCATABLE) is not None


_WITHOUT_MEMORY = """
import pathlib, sys, _testcapi
from ferryvm import binary
content = pathlib.Path(sys.argv[1]).read_bytes()
for call in range(1, 2000):
    _testcapi.set_nomemory(call, call + 1)
    try:
        found = binary.fault(content, binary.ObjectType.RELOCATABLE)
    except MemoryError:
        found = "out of memory"
    finally:
        _testcapi.remove_mem_hooks()
    if found is None:
        break
print(call)
"""


def test_each_allocation_of_the_check_may_fail(object_code: bytes, tmp_path: Path) -> None:
    pytest.importorskip("_testcapi", reason="some distributions leave CPython's tests out")
    file = tmp_path / "object"
    file.write_bytes(object_code)
    command = [sys.executable, "-c", _WITHOUT_MEMORY, str(file)]
    calls = int(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert 20 < calls < 2000, "an allocation fails each time until there are no more"


def test_an_object_of_another_machine_is_none(object_code: bytes) -> None:
    other = bytearray(object_code)
    other[18:20] = struct.pack("<H", 8)
    assert binary.fault(bytes(other), ObjectType.RELOCATABLE).startswith(
        "it is for machine 8 instead"
    )  # type: ignore[union-attr]  # it has a fault


def _tables(content: bytes) -> Iterator[int]:
    """Places of all that describes the object: header, sections, symbols, relocations."""
    yield from range(64)
    (start,) = struct.unpack_from("<Q", content, 40)
    yield from range(start, len(content))
    for section in range(start, len(content), 64):
        kind, offset, size = struct.unpack_from("<4xI16xQQ", content, section)
        if kind in (2, 4):
            yield from range(offset, offset + size)


def test_random_damage_to_an_object_is_a_fault_or_harmless_and_never_raises(
    object_code: bytes,
) -> None:
    rng, places = random.Random(1), list(_tables(object_code))
    faults = 0
    for _ in range(3000):
        content = bytearray(object_code)
        content[rng.choice(places)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        faults += binary.fault(bytes(content), ObjectType.RELOCATABLE) is not None
    assert faults > 500


def test_garbage_that_this_user_stored_is_told_and_built_again(
    empty_cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "ferryvm_backends.switch"
    monkeypatch.setattr(native, "build_in_process", lambda *_: built)
    built = cache_entry.packed(b"notes", compile_module(ir.Module("empty"), merge_tails=True))
    cache.Entry("switch", native.key(package)).store(GARBAGE)
    for _ in range(2):
        assert native.load_or_build(package)[1] == b"notes"
    (told,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told.endswith(" is refused and built again: it is no ELF file")


def test_threads_that_need_an_interpreter_at_once_build_it_once(
    empty_cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    builds: list[str] = []

    def build(package: str, merge_tails: bool) -> bytes:
        builds.append(package)
        while len(caplog.records) < 3:  # until the others wait
            time.sleep(0.001)
        return built

    monkeypatch.setattr(native, "build_in_process", build)
    built = cache_entry.packed(b"notes", compile_module(ir.Module("empty"), merge_tails=True))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(native.load_or_build, ["ferryvm_backends.switch"] * 3))
    assert [notes for _, notes in found] == [b"notes"] * 3
    assert builds == ["ferryvm_backends.switch"]
    assert len({record.message for record in caplog.records}) == 1


def test_an_interpreter_is_built_by_each_process_where_the_cache_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, empty_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FERRYVM_CACHE_DIR", "/dev/null/x")
    built = cache_entry.packed(b"notes", compile_module(ir.Module("empty"), merge_tails=True))
    monkeypatch.setattr(native, "build_in_process", lambda *_: built)
    for _ in range(2):
        assert native.load_or_build("ferryvm_backends.switch")[1] == b"notes"
    (told,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told == (
        "switch: cache /dev/null/x cannot be used: Not a directory; set FERRYVM_CACHE_DIR to a "
        "folder of your own that can be written; compiled code is not kept"
    )


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        (b'[0, [], [], [0, 0, "", [[], []]]]', "it is no ELF file"),
        (b"[0, [], []]", "guards"),
        (b"[]", "guards"),
        (b"[1, 2", "guards"),
        (b"{}", "guards"),
        (b"[0, [true], []]", "guards"),
    ],
)
def test_a_region_with_garbage_in_it_is_refused(notes: bytes, reason: str) -> None:
    found = fault(cache_entry.packed(notes, b"not an object"))
    assert found is not None
    assert reason in found


@pytest.mark.parametrize("payload", [b"", b"short", b"\xff" * 8, b"\xff" * 99, GARBAGE])
def test_a_region_of_garbage_that_this_user_stored_is_compiled_again(
    empty_cache: Path, caplog: pytest.LogCaptureFixture, payload: bytes
) -> None:
    llvm = Registry().get("llvm")
    assert isinstance(llvm, Compiler)
    whole = region(verify(ferryvm.compile(LOOP)), "program")
    llvm.compile(whole, Options())
    (file,) = empty_cache.glob("*/region-*.bin")
    name, _, digits = file.stem.rpartition("-")
    from ferryvm_backends.llvm.key import region_key

    full = region_key(whole, Options())
    assert full.startswith(digits)
    cache.Entry(name, full).store(payload)
    assert not llvm.compile(whole, Options()).is_from_cache
    assert llvm.compile(whole, Options()).is_from_cache
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
