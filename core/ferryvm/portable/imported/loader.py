# SPDX-License-Identifier: Apache-2.0
"""Loaders of targets by name: each makes a call of the code in a folder.

| target | what runs it |
|---|---|
| `c` | the system's C compiler (`CC`) and the loader of shared libraries |
| `library` | the loader of shared libraries: the library is there already |
| `llvm` | llvmlite's compiler |
| `opencl`, `spirv` | pyopencl, on a device of OpenCL |
| `ptx` | the driver of CUDA |
| `wasm` | wasmtime, if it is installed |

A loader is asked twice for the same folder: in a child that tries the vectors, then in this
process.
"""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ferryvm import child
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.portable.harness.golden import Call

LIBRARY = "kernel.so"
"""The shared library that is made of sources in C."""

_SECONDS = 120.0
"""The time in which a C compiler has to end."""


class LoadError(FerryError):
    """Code that cannot be loaded here."""


class Loader(NamedTuple):
    """The means to run one form of code."""

    suffix: str
    """Of the file with the code."""
    load: Callable[[Path, Any, str], Call]
    """From the folder, the manifest and the name of a device. Raises LoadError."""
    prepare: Callable[[Path, Any], None] | None = None
    """Compile what is in the folder, once for both processes. Raises LoadError."""
    has_devices: bool = False


def loader(name: str) -> Loader:
    """The loader of a target. Raises UnknownNameError."""
    if name not in LOADERS:
        raise UnknownNameError("target that can be imported:", name, LOADERS)
    return LOADERS[name]


def _needed(package: str, target: str, module: str = "") -> Any:
    """A package that a loader needs. Raises LoadError."""
    try:
        return importlib.import_module(module or package)
    except ImportError as error:
        what = f"target {target} needs {package}, which is not usable here: {error}"
        raise LoadError(f"{what}; pip install {package}") from None


def _only_source(manifest: Any, suffix: str) -> str:
    """The file with the code. Raises LoadError for several."""
    names: list[str] = manifest["build"].get("sources") or [f"{manifest['entry']}{suffix}"]
    if len(names) != 1:
        raise LoadError(f"{len(names)} sources; target {manifest['target']} takes one")
    return names[0]


# --- C --------------------------------------------------------------------------------------


def _compile(folder: Path, manifest: Any) -> None:
    build = manifest["build"]
    try:
        command = shlex.split(os.environ.get("CC", "cc"))
        level = shlex.split(os.environ.get("CFLAGS", "-O3"))
    except ValueError as error:
        raise LoadError(f"CC or CFLAGS cannot be read as words: {error}") from None
    if not command or shutil.which(command[0]) is None:
        raise LoadError(f"there is no C compiler {' '.join(command)!r}; set CC to one")
    sources = build.get("sources") or [f"{manifest['entry']}.c"]
    words = [*command, *level, *build["flags"], "-fPIC", "-shared", "-o", LIBRARY, *sources, "-lm"]
    try:
        done = child.run(words, _SECONDS, {**os.environ, "LC_ALL": "C"}, folder)
    except OSError as error:
        raise LoadError(f"{command[0]} did not compile it: {error or 'it ran too long'}") from None
    if done.code:
        lines = done.errors.strip().splitlines() or [child.ending(done.code)]
        said = next((line for line in lines if "error" in line), lines[0])
        raise LoadError(f"{command[0]} did not compile it: {said}")


def _load_library(folder: Path, manifest: Any, _device: str) -> Call:
    import ctypes

    name = manifest["build"].get("library") or LIBRARY
    path = str(folder / name) if (folder / name).is_file() else name
    try:
        function = getattr(ctypes.CDLL(path), manifest["entry"])
    except (OSError, AttributeError) as error:
        raise LoadError(f"the library does not load: {error}") from None
    return _of_function(function, manifest)


def _of_function(function: Any, manifest: Any) -> Call:
    from ferryvm.portable.harness.check import Function

    return Function(function, manifest).call


# --- LLVM IR --------------------------------------------------------------------------------


def _load_llvm(folder: Path, manifest: Any, _device: str) -> Call:
    import ctypes

    llvm = _needed("llvmlite", "llvm", "llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = (folder / _only_source(manifest, ".ll")).read_text(encoding="utf-8")
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        said = next(iter(str(error).strip().splitlines()[1:]), str(error))
        raise LoadError(f"LLVM refuses it: {said}") from None
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address(manifest["entry"])
    if not address:
        raise LoadError(f"it has no function {manifest['entry']!r}")
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int32)(address)
    function.argtypes = None
    function.engine = engine  # it owns the code
    return _of_function(function, manifest)


# --- devices, WebAssembly ---------------------------------------------------------------------


def _load_opencl(folder: Path, manifest: Any, device: str) -> Call:
    opencl = _needed("pyopencl", "opencl")
    from ferryvm.portable.harness import check_opencl

    try:
        found = check_opencl.device_of(device)
        return check_opencl.Kernel(folder, manifest, found).call
    except ValueError as error:
        raise LoadError(str(error)) from None
    except opencl.Error as error:
        said = " ".join(str(error).split())[:300]
        raise LoadError(f"OpenCL refuses it: {said}") from None


def _load_ptx(folder: Path, manifest: Any, device: str) -> Call:
    from ferryvm.portable.harness import check_ptx

    try:
        driver = check_ptx.Driver(int(device or 0))
        return check_ptx.Kernel(folder, manifest, driver).call
    except ValueError as error:
        raise LoadError(str(error)) from None


def _load_wasm(folder: Path, manifest: Any, _device: str) -> Call:
    runtime = _needed("wasmtime", "wasm")
    from ferryvm.portable.imported.wasm import WasmFunction

    try:
        return WasmFunction(runtime, folder / _only_source(manifest, ".wasm"), manifest).call
    except runtime.WasmtimeError as error:
        raise LoadError(f"wasmtime refuses it: {str(error).splitlines()[0]}") from None


LOADERS = {
    "c": Loader(".c", _load_library, _compile),
    "library": Loader("", _load_library),
    "llvm": Loader(".ll", _load_llvm),
    "opencl": Loader(".cl", _load_opencl, has_devices=True),
    "ptx": Loader(".ptx", _load_ptx, has_devices=True),
    "spirv": Loader(".spv", _load_opencl, has_devices=True),
    "wasm": Loader(".wasm", _load_wasm),
}
"""The loader of each target."""
