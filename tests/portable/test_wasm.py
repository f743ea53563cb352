# SPDX-License-Identifier: Apache-2.0
"""Functions exported as WebAssembly pass their vectors in wasmtime and in node."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.portable import ExportError, ExportOptions, export_region
from ferryvm.portable.harness import golden
from ferryvm.portable.imported.wasm import WasmFunction
from ferryvm.portable.wasm.encode import signed, unsigned
from ferryvm.verify import Verified

from ..tier import sample
from .conftest import run

wasmtime = pytest.importorskip("wasmtime")

FUNCTIONS = (
    *("axpy", "narrow", "histogram", "buckets", "scaled", "dot", "steps", "divide", "mix", "norm"),
    *("shift!", "daxpy", "doubled!", "dot/loop.1"),
)
WASM = ExportOptions(target="wasm")


def faults(folder: Path) -> dict[int, str | None]:
    """The fault of each vector of a folder, called in wasmtime."""
    manifest = golden.read_manifest(folder)
    call = WasmFunction(wasmtime, folder / f"{manifest['entry']}.wasm", manifest).call
    vectors = golden.read_vectors(folder / "vectors.txt", manifest["entry"])
    return {each.number: golden.fault(call, manifest, each) for each in vectors}


@pytest.mark.parametrize("name", sample(FUNCTIONS, 3))
def test_vectors_pass_in_wasmtime(kernels: Verified, tmp_path: Path, name: str) -> None:
    export_region(kernels, name, tmp_path / "folder", WASM)
    found = faults(tmp_path / "folder")
    assert len(found) == 60
    assert {*found.values()} == {None}, found


@pytest.mark.parametrize("name", sample(FUNCTIONS, 1))
def test_the_text_is_the_same_module(kernels: Verified, tmp_path: Path, name: str) -> None:
    made = export_region(kernels, name, tmp_path / "folder", WASM)
    entry = made.directory / f"{made.interface.name}.wat"
    assert wasmtime.wat2wasm(entry.read_text("utf-8")) == entry.with_suffix(".wasm").read_bytes()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_folder_proves_itself_in_node(kernels: Verified, tmp_path: Path) -> None:
    export_region(kernels, "axpy", tmp_path / "folder", WASM)
    checked = run(tmp_path / "folder", "make", "-s", "check")
    assert (checked.returncode, checked.stdout) == (0, "axpy: 60 vectors pass (JavaScript)\n")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_finds_a_mutation(kernels: Verified, tmp_path: Path) -> None:
    export_region(kernels, "dot", tmp_path / "folder", WASM)
    module = tmp_path / "folder" / "dot.wasm"
    content = module.read_bytes()
    assert content.count(b"\xa2") >= 1  # f64.mul
    at = content.rindex(b"\xa2")
    module.write_bytes(content[:at] + b"\xa0" + content[at + 1 :])
    checked = run(tmp_path / "folder", "make", "-s", "check")
    assert checked.returncode != 0
    assert "vector 1: result is" in checked.stdout


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_ends_a_call_that_does_not_end(kernels: Verified, tmp_path: Path) -> None:
    export_region(kernels, "steps", tmp_path / "folder", WASM)
    text = (tmp_path / "folder" / "steps.wat").read_text("utf-8")
    assert text.count("i64.gt_s") == 1
    (tmp_path / "folder" / "steps.wasm").write_bytes(
        wasmtime.wat2wasm(text.replace("i64.gt_s", "i64.ne"))
    )
    checked = run(tmp_path / "folder", "make", "-s", "check", "CHECK_SECONDS=0.5")
    assert checked.returncode != 0
    assert re.search(r"^vector \d+: does not end$", checked.stdout, re.MULTILINE), checked.stdout


def test_a_fused_product_and_sum_is_refused(kernels: Verified, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"\(fma\); WebAssembly has no instruction for it"):
        export_region(kernels, "roots", tmp_path / "folder", WASM)
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("value", "content"),
    [(0, b"\0"), (63, b"\x3f"), (64, b"\xc0\0"), (-1, b"\x7f"), (-64, b"\x40"), (-65, b"\xbf\x7f")],
)
def test_signed_numbers_are_leb128(value: int, content: bytes) -> None:
    assert signed(value) == content
    if value >= 0:
        assert unsigned(value)[0] & 0x7F == value & 0x7F


def test_a_python_function_becomes_a_module(tmp_path: Path) -> None:
    made = ferryvm.export(_hypot, (float, float), tmp_path / "folder", target="wasm", vectors=20)
    assert {*faults(made.directory).values()} == {None}


def _hypot(a: Any, b: Any) -> Any:
    return math.sqrt(a * a + b * b)
