# SPDX-License-Identifier: Apache-2.0
"""Kernels in PTX and SPIR-V: assembled, validated, run on devices, and their LLVM IR on the
processor."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import ExportOptions, ImportRefusedError, export_region, import_kernel
from ferryvm.portable.harness import golden
from ferryvm.portable.harness.check import Function
from ferryvm.portable.llvm.emit import emit_text
from ferryvm.verify import Verified

from ..tier import nightly, sample

KERNELS = (
    *("axpy", "histogram", "buckets", "scaled", "roots", "narrow", "dot", "steps", "divide"),
    *("mix", "norm", "shift!", "daxpy", "dot/loop.1", "main/launch.1", "main/launch.2"),
    "main/launch.3",
)
TARGETS = ("ptx", "spirv")
BOTH = [(target, name) for name in KERNELS for target in TARGETS]

Made = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def made(kernels: Verified, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The folder of a kernel for a target."""
    folders: dict[tuple[str, str], Path] = {}

    def export(target: str, name: str) -> Path:
        if (target, name) not in folders:
            folders[target, name] = tmp_path_factory.mktemp("export") / "folder"
            options = ExportOptions(target, vectors=40)
            export_region(kernels, name, folders[target, name], options)
        return folders[target, name]

    return export


def entry(folder: Path) -> str:
    name: str = golden.read_manifest(folder)["entry"]
    return name


class Simulated:
    """A kernel whose LLVM IR runs on the processor, one work-item after the other."""

    def __init__(self, folder: Path) -> None:
        self.manifest = golden.read_manifest(folder)
        text = (folder / f"{self.manifest['entry']}.ll").read_text("utf-8")
        text = re.sub(r"^target triple.*$", "", text, flags=re.MULTILINE)
        text = text.replace(" addrspace(1)", "").replace(".p1", ".p0")
        text = re.sub(r"(ptx|spir)_(kernel|func) ", "", text)
        text = re.sub(
            r"^declare (i\d+) @(?:llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x|_Z13get_(global_id)j)\((.*)\)",
            lambda found: (
                f"@{found[2] or found[3]} = global {found[1]} 0\n"
                f"define {found[1]} @get_{found[2] or found[3]}({found[4]}) {{\n"
                f"  %r = load {found[1]}, ptr @{found[2] or found[3]}\n  ret {found[1]} %r\n}}"
            ),
            text,
            flags=re.MULTILINE,
        )
        text = re.sub(r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x", r"@get_\1", text)
        text = text.replace("@_Z13get_global_idj", "@get_global_id")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
        module = llvm.parse_assembly(text)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        self.kernel: Any = ctypes.CFUNCTYPE(None)(
            self.engine.get_function_address(self.manifest["entry"])
        )
        self.kernel.argtypes = None

    def _variable(self, name: str, kind: Any) -> Any:
        return kind.from_address(self.engine.get_global_value_address(name))

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        launch = self.manifest["launch"]
        items = 1
        if launch is not None:
            items = golden.expression(launch["items"], golden.integers_of(self.manifest, arguments))
        states = (ctypes.c_int32 * max(1, items))()
        listed = [
            each | {"kind": "status_pointer" if each["kind"] == "status" else each["kind"]}
            for each in self.manifest["arguments"]
        ]
        function = Function(self._for_all(items, launch, states), {"arguments": listed})
        _, results = function.call(arguments)
        return next((each for each in states if each), 0), results

    def _for_all(self, items: int, launch: Any, states: Any) -> Any:
        def run(*given: Any) -> None:
            if launch is None:
                self.kernel(*given, states)
                return
            group = launch.get("group")
            if group is None:
                for item in range(items):
                    self._variable("global_id", ctypes.c_int64).value = item
                    self.kernel(*given, states)
                return
            self._variable("ntid", ctypes.c_int32).value = group
            for item in range(-(-items // group) * group):
                self._variable("ctaid", ctypes.c_int32).value = item // group
                self._variable("tid", ctypes.c_int32).value = item % group
                self.kernel(*given, states)

        return run


@pytest.mark.parametrize(("target", "name"), sample(BOTH, 6))
def test_the_kernel_passes_its_vectors_on_the_processor(made: Made, target: str, name: str) -> None:
    folder = made(target, name)
    kernel = Simulated(folder)
    vectors = golden.read_vectors(folder / "vectors.txt", entry(folder))
    faults = {each.number: golden.fault(kernel.call, kernel.manifest, each) for each in vectors}
    assert len(faults) == 40
    assert {*faults.values()} == {None}, faults


@pytest.mark.parametrize("name", sample(KERNELS, 4))
def test_ptx_rounds_each_operation(made: Made, name: str) -> None:
    folder = made("ptx", name)
    text = (folder / f"{entry(folder)}.ptx").read_text("utf-8")
    module = (folder / f"{entry(folder)}.ll").read_text("utf-8")
    assert f".visible .entry {entry(folder)}(" in text
    assert len(re.findall(r"\bfma\.rn\.f", text)) == module.count("call float @llvm.fma") + (
        module.count("call double @llvm.fma")
    )
    operations = re.findall(r"\b(?:add|sub|mul|div|sqrt)\.[\w.]*f(?:32|64)", text)
    assert all(".rn.f" in each for each in operations), operations


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("name", sample(KERNELS, 2))
def test_ptxas_takes_the_kernel(made: Made, name: str) -> None:
    folder = made("ptx", name)
    words = ["ptxas", "-arch=sm_90", f"{entry(folder)}.ptx", "-o", "/dev/null"]
    subprocess.run(words, cwd=folder, check=True, timeout=60)


def has_driver() -> bool:
    """True if the driver of CUDA is here."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


NEEDS_DRIVER = pytest.mark.skipif(not has_driver(), reason="the driver of CUDA is not here")


@pytest.mark.gpu
@NEEDS_DRIVER
@pytest.mark.parametrize("name", KERNELS)
def test_a_graphics_processor_passes_the_vectors_of_ptx(made: Made, name: str) -> None:
    folder = made("ptx", name)
    words = [sys.executable, "check.py"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 vectors pass" in done.stdout


@pytest.mark.gpu
@NEEDS_DRIVER
def test_a_kernel_in_ptx_is_imported(made: Made) -> None:
    np = pytest.importorskip("numpy")
    x, y = np.arange(300.0), np.zeros(300)
    kernel = import_kernel(made("ptx", "main/launch.1"))
    kernel(300, x, np.arange(300)[::-1].copy(), y, 2.5)
    assert y.tolist() == [2.5 * each for each in x[::-1]]


@pytest.mark.skipif(has_driver(), reason="the driver of CUDA is here")
def test_without_the_driver_an_import_of_ptx_is_refused(made: Made) -> None:
    with pytest.raises(ImportRefusedError, match="the driver of CUDA is not here"):
        import_kernel(made("ptx", "axpy"))


@pytest.mark.parametrize("name", sample(KERNELS, 2))
def test_a_module_of_spirv_begins_with_its_version(made: Made, name: str) -> None:
    folder = made("spirv", name)
    content = (folder / f"{entry(folder)}.spv").read_bytes()
    assert content[:8] == b"\x03\x02\x23\x07\x00\x02\x01\x00"
    assert entry(folder).encode() in content


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-tools are not installed")
@pytest.mark.parametrize("name", sample(KERNELS, 4))
def test_spirv_val_takes_the_module(made: Made, name: str) -> None:
    folder = made("spirv", name)
    words = ["spirv-val", "--target-env", "spv1.2", f"{entry(folder)}.spv"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def spirv_device() -> str | None:
    """The name of a device that takes SPIR-V."""
    opencl: Any = pytest.importorskip("pyopencl")
    for platform in opencl.get_platforms():
        for device in platform.get_devices():
            try:
                if "SPIR-V" in device.il_version:
                    return str(device.name)
            except opencl.Error:
                continue
    return None


@pytest.mark.parametrize("name", sample(KERNELS, 3))
def test_a_device_passes_the_vectors_of_spirv(made: Made, name: str) -> None:
    device = spirv_device()
    if device is None:
        pytest.skip("no OpenCL device here takes SPIR-V")
    assert import_kernel(made("spirv", name), device=device).vectors == 40


def test_a_target_that_llvm_lacks_is_refused_by_name() -> None:
    with pytest.raises(FerryError, match=r"target 'ptx': the LLVM [\d.]+ of llvmlite cannot make"):
        emit_text("", "ptx", "nothing64-unknown", "")


def scale(x: Any, a: float) -> None:
    for i in range(len(x)):
        x[i] *= a


@pytest.mark.parametrize("target", TARGETS)
def test_a_python_function_becomes_a_kernel(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "folder"
    ferryvm.export(scale, ("float32[:]", float), folder, target=target, vectors=10)
    kernel = Simulated(folder)
    for each in golden.read_vectors(folder / "vectors.txt", "scale"):
        assert golden.fault(kernel.call, kernel.manifest, each) is None


def square_of(z: Any, c: Any) -> Any:
    return z * z + c


@pytest.mark.parametrize("target", [TARGETS[0], *map(nightly, TARGETS[1:])])
def test_a_map_of_complex_numbers_becomes_a_kernel(tmp_path: Path, target: str) -> None:
    folder, kinds = tmp_path / "folder", ("complex64[:]", "complex64[:]")
    ferryvm.export(square_of, kinds, folder, target=target, elements=2, vectors=30)
    kernel = Simulated(folder)
    vectors = golden.read_vectors(folder / "vectors.txt", "square_of")
    assert [golden.fault(kernel.call, kernel.manifest, each) for each in vectors] == [None] * 30
