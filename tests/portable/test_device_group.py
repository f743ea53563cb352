# SPDX-License-Identifier: Apache-2.0
"""Kernels with barriers in PTX and SPIR-V: their LLVM IR on the processor, a thread for each member
of a group, and validated."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

import ferryvm
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness import golden
from ferryvm.portable.harness.check import Function
from ferryvm.portable.llvm.device import OPENCL
from ferryvm.portable.llvm.emit import emit_object
from ferryvm.verify import verify

from ..tier import nightly
from .opencl_host import gpu
from .test_group import GROUPS
from .test_group import KERNELS as OF_SKIFF
from .test_program import KERNELS, exported_kernel

_AXES = "xyz"
_NUMBERS = {
    **{f"llvm.nvvm.read.ptx.sreg.{name}": name for name in ("ctaid", "nctaid", "tid")},
    "_Z12get_group_idj": "ctaid",
    "_Z14get_num_groupsj": "nctaid",
    "_Z12get_local_idj": "tid",
}


class SimulatedGroups:
    """A kernel whose LLVM IR runs on the processor, a thread for each member of a group and one
    group after the other."""

    def __init__(self, folder: Path, *, has_barriers: bool = True) -> None:
        self.manifest = golden.read_manifest(folder)
        self.is_ptx = self.manifest["target"] == "ptx"
        self._own = threading.local()
        self._has_barriers = has_barriers
        self._barrier = threading.Barrier(1)
        text = (folder / f"{self.manifest['entry']}.ll").read_text("utf-8")
        text = re.sub(r"^target triple.*$", "", text, flags=re.MULTILINE)
        text = re.sub(r" addrspace\([13]\)", "", text)
        text = re.sub(r"(ptx|spir)_(kernel|func) ", "", text)
        self._callbacks: list[Any] = []
        for name in ("llvm.nvvm.barrier0", "_Z7barrierj"):
            text = text.replace(f"@{name}(", "@simulated_barrier(")
        self._add("simulated_barrier", ctypes.CFUNCTYPE(None, ctypes.c_int32), self._wait)
        for name, number in _NUMBERS.items():
            if name.startswith("_Z"):
                text = text.replace(f"@{name}(", f"@simulated_{number}(")
                kind: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32)
                if not self.is_ptx:
                    self._add(f"simulated_{number}", kind, lambda axis, n=number: self._at(n, axis))
                continue
            for axis, letter in enumerate(_AXES):
                text = text.replace(f"@{name}.{letter}(", f"@simulated_{number}_{letter}(")
                kind = ctypes.CFUNCTYPE(ctypes.c_int32)
                self._add(
                    f"simulated_{number}_{letter}",
                    kind,
                    lambda n=number, axis=axis: self._at(n, axis),
                )
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
        module = llvm.parse_assembly(text)
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        address = self._engine.get_function_address(self.manifest["entry"])
        self._kernel: Any = ctypes.CFUNCTYPE(None)(address)
        self._kernel.argtypes = None

    def _add(self, name: str, kind: Any, function: Any) -> None:
        self._callbacks.append(kind(function))
        llvm.add_symbol(name, ctypes.cast(self._callbacks[-1], ctypes.c_void_p).value)

    def _at(self, name: str, axis: int) -> int:
        found: int = getattr(self._own, name)[axis]
        return found

    def _wait(self, flags: int) -> None:
        if self._has_barriers:
            self._barrier.wait(10)

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        launch, integers = self.manifest["launch"], golden.integers_of(self.manifest, arguments)
        items, group = (
            [golden.expression(each, integers) for each in _listed(launch[what])]
            for what in ("items", "group")
        )
        kinds = {"status": "status_pointer", **({"items": "scalar"} if self.is_ptx else {})}
        listed = [
            each | {"kind": kinds.get(each["kind"], each["kind"])}
            for each in self.manifest["arguments"]
        ]
        states = (ctypes.c_int32 * max(1, math.prod(items)))()
        counts = [count // size for count, size in zip(items, group, strict=True)]

        def run(*given: Any) -> None:
            for number in range(math.prod(counts)):
                self._run_group(_places(number, counts), counts, group, (*given, states))

        _, results = Function(run, {"arguments": listed}).call(arguments)
        return next((each for each in states if each), 0), results

    def _run_group(
        self, place: list[int], counts: list[int], group: list[int], given: tuple[Any, ...]
    ) -> None:
        self._barrier = threading.Barrier(math.prod(group))

        def run(member: int) -> None:
            self._own.ctaid, self._own.tid = place, _places(member, group)
            self._own.nctaid = [*counts, 1, 1]
            self._kernel(*given)

        members = [
            threading.Thread(target=run, args=(member,)) for member in range(math.prod(group))
        ]
        for each in members:
            each.start()
            if not self._has_barriers:
                each.join()
        for each in members:
            each.join()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _places(number: int, sizes: list[int]) -> list[int]:
    """The place of a number along each dimension, of which the first has the neighbours."""
    found = []
    for size in (*sizes, 1, 1):
        found.append(number % size)
        number //= size
    return found


def faults(kernel: SimulatedGroups, folder: Path, most: int = 12) -> list[str | None]:
    """The faults of the first vectors."""
    vectors = golden.read_vectors(folder / "vectors.txt", kernel.manifest["entry"])
    return [
        golden.fault(kernel.call, kernel.manifest, each)
        for each, _ in zip(vectors, range(most), strict=False)
    ]


def _exported(name: str, target: str, folder: Path) -> Path:
    if name in KERNELS:
        exported_kernel(name, folder, target)
    else:
        verified = verify(ferryvm.read(GROUPS))
        export_region(verified, name, folder, ExportOptions(target))
    return folder


TARGETS = ("ptx", "spirv")
USUAL = [("transpose", "ptx"), ("main/launch.2", "spirv")]
"""A mutation of smooth! is found below."""
OTHERS = [(n, t) for n in (*KERNELS, *OF_SKIFF) for t in TARGETS if (n, t) not in USUAL]


@pytest.mark.parametrize(("name", "target"), [*USUAL, *map(nightly, OTHERS)])
def test_a_kernel_with_barriers_passes_its_vectors_on_the_processor(
    tmp_path: Path, name: str, target: str
) -> None:
    folder = _exported(name, target, tmp_path / "folder")
    found = faults(SimulatedGroups(folder), folder)
    assert found
    assert {*found} == {None}


def test_a_module_in_spirv_has_nothing_of_those_before_it(tmp_path: Path) -> None:
    folder = _exported("scan", "spirv", tmp_path / "folder")
    (text,), (binary,) = folder.glob("*.ll"), folder.glob("*.spv")
    for _ in range(2):
        again = emit_object(text.read_text("utf-8"), "spirv", OPENCL.triple, OPENCL.processor)
        assert again == binary.read_bytes()


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-val is not installed")
@pytest.mark.parametrize("name", ["scan", *map(nightly, ("dct", "sums!", "histogram!"))])
def test_spirv_with_barriers_is_valid(tmp_path: Path, name: str) -> None:
    folder = _exported(name, "spirv", tmp_path / "folder")
    (binary,) = folder.glob("*.spv")
    words = ["spirv-val", "--target-env", "spv1.2", str(binary)]
    found = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr


def test_ptx_has_native_barriers_and_shared_memory(tmp_path: Path) -> None:
    folder = _exported("scan", "ptx", tmp_path / "folder")
    text = (folder / "scan.ptx").read_text("utf-8")
    assert "bar.sync" in text or "barrier.sync" in text
    assert re.search(r"\.shared .*scan", text)
    assert ".reqntid 16" in text


MUTATIONS = [
    ("smooth!", "icmp eq i32 %k.own, %k.phase", "icmp uge i32 %k.own, %k.phase"),
    ("smooth!", "icmp ne i64 %k.error, 0", "icmp eq i64 %k.error, 1"),
    ("histogram!", "icmp uge i64 %k.zero0.at, 12", "icmp uge i64 %k.zero0.at, 0"),
]
"""Faults of kernels that their vectors find: the kernel, what stands there, what is written
instead."""


@pytest.mark.parametrize(("name", "old", "new"), [MUTATIONS[0], *map(nightly, MUTATIONS[1:])])
def test_vectors_find_a_mutation_of_a_kernel_with_barriers(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    folder = _exported(name, "ptx", tmp_path / "folder")
    (source,) = folder.glob("*.ll")
    text = source.read_text("utf-8")
    assert old in text
    source.write_text(text.replace(old, new), "utf-8")
    assert {*faults(SimulatedGroups(folder), folder, 60)} != {None}


@pytest.mark.nightly
def test_vectors_find_missing_barriers(tmp_path: Path) -> None:
    folder = _exported("reverse!", "spirv", tmp_path / "folder")
    assert {*faults(SimulatedGroups(folder, has_barriers=False), folder)} != {None}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*KERNELS, *OF_SKIFF])
def test_ptx_with_barriers_proves_itself_on_a_gpu(tmp_path: Path, name: str) -> None:
    from ferryvm.portable.harness.check_ptx import check

    gpu()
    assert check(0, _exported(name, "ptx", tmp_path / "folder")) == 0
