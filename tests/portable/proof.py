# SPDX-License-Identifier: Apache-2.0
"""Exported folders prove themselves: built and checked where `import ferryvm` fails."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from .conftest import run
from .opencl_host import in_python

TARGETS = ("c", "opencl", "wasm", "llvm")


def prove(folder: Path, target: str) -> str:
    """What the check of a folder prints; it fails the test unless all vectors pass."""
    if target == "wasm" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    if target == "opencl":
        pytest.importorskip("pyopencl")
    checked = {"c": _c, "opencl": in_python, "wasm": _wasm, "llvm": _llvm}[target](folder)
    assert checked.returncode == 0, checked.stdout
    count = json.loads((folder / "manifest.json").read_text("utf-8"))["vectors"]["count"]
    assert f"{count} vectors pass" in checked.stdout
    return checked.stdout


def _c(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "make", "-s", "check", "CC=gcc", "PYTHON=python3 -S -s -E")


def _wasm(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "make", "-s", "check")


def _llvm(folder: Path) -> subprocess.CompletedProcess[str]:
    (text,) = folder.glob("*.ll")
    module = llvm.parse_assembly(text.read_text("utf-8"))
    module.verify()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, reloc="pic")
    (folder / "kernel.o").write_bytes(machine.emit_object(module))
    built = run(folder, *["gcc", "-o", "check-program", "check.c", "kernel.o", "-lm"])
    return built if built.returncode else run(folder, "./check-program")
