# SPDX-License-Identifier: Apache-2.0
"""Functions exported as LLVM IR are verified and compiled by LLVM, and pass their vectors."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import Verified

from ..tier import sample
from .conftest import run

FUNCTIONS = (
    *("axpy", "histogram", "buckets", "scaled", "roots", "narrow", "dot", "steps", "divide"),
    *("mix", "norm", "shift!", "daxpy", "doubled!", "dot/loop.1", "main/launch.1"),
)


@pytest.mark.parametrize("name", sample(FUNCTIONS, 2))
def test_llvm_compiles_a_module_that_passes(kernels: Verified, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    made = export_region(kernels, name, folder, ExportOptions(target="llvm"))
    module = llvm.parse_assembly((folder / f"{made.interface.name}.ll").read_text("utf-8"))
    module.verify()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, reloc="pic")
    (folder / "kernel.o").write_bytes(machine.emit_object(module))
    built = run(folder, *["gcc", "-o", "check-program", "check.c", "kernel.o", "-lm"])
    assert built.returncode == 0, built.stdout
    checked = run(folder, "./check-program")
    assert checked.stdout == f"{made.interface.name}: 60 vectors pass (C)\n"


def test_the_text_names_no_target_and_no_fast_math(kernels: Verified, tmp_path: Path) -> None:
    export_region(kernels, "axpy", tmp_path / "folder", ExportOptions(target="llvm"))
    text = (tmp_path / "folder" / "axpy.ll").read_text("utf-8")
    words = {*text.replace(",", " ").split()}
    assert words.isdisjoint({"target", "fast", "contract", "reassoc", "nsw", "nuw", "inbounds"})
