# SPDX-License-Identifier: Apache-2.0
"""Functions exported as WebAssembly pass their vectors in wasmtime and in node."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.portable import ExportError, ExportOptions, export_region
from ferryvm.portable.harness.golden import Vector, equal, read_vectors
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


class Memory:
    """The function of a module, called with vectors."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        self.name = self.manifest["entry"]
        self.store = wasmtime.Store()
        module = wasmtime.Module.from_file(self.store.engine, str(folder / f"{self.name}.wasm"))
        exported = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.function: Any = exported[self.name]
        self.memory: Any = exported["memory"]

    def fault(self, vector: Vector) -> str | None:
        """What is not as expected; None if all is."""
        kinds = [each for each in self.manifest["arguments"] if each["kind"] in ("scalar", "array")]
        results = [each for each in self.manifest["arguments"] if each["kind"] == "result"]
        at, given, arrays = 1024, [], {}
        for place, (kind, argument) in enumerate(zip(kinds, vector.arguments, strict=True)):
            if isinstance(argument, int):
                given.append(_number(argument, kind["type"]))
                continue
            if argument.same is None:
                width = _width(kind["type"])
                content = b"".join(bits.to_bytes(width, "little") for bits in argument.bits)
                self.memory.write(self.store, content, at)
                arrays[place] = at, argument
                at += len(content) + 8 & ~7
            start, elements = arrays[place if argument.same is None else argument.same]
            given += [start, len(elements.bits)]
        places = [at + 8 * place for place in range(len(results))]
        status = self.function(self.store, *given, *places)
        if status != vector.status:
            return f"status {status}, expected {vector.status}"
        for each, place, wanted in zip(results, places, vector.results, strict=False):
            if not self._is(place, each["type"], [wanted]):
                return str(each["name"])
        after = dict(vector.outputs)
        for place, (start, elements) in arrays.items():
            if not self._is(start, kinds[place]["type"], after.get(place, elements.bits)):
                return str(kinds[place]["name"])
        return None

    def _is(self, at: int, kind: str, wanted: list[int]) -> bool:
        width = _width(kind)
        content = bytes(self.memory.read(self.store, at, at + width * len(wanted)))
        found = [
            int.from_bytes(content[place : place + width], "little")
            for place in range(0, len(content), width)
        ]
        return all(equal(a, b, kind) for a, b in zip(found, wanted, strict=True))


def _width(kind: str) -> int:
    return int(kind[1:]) // 8


def _number(bits: int, kind: str) -> float:
    import numpy as np

    content = bits.to_bytes(_width(kind), "little")
    return np.frombuffer(content, f"<{kind[0]}{_width(kind)}")[0].item()  # type: ignore[no-any-return]  # a number


@pytest.mark.parametrize("name", sample(FUNCTIONS, 6))
def test_vectors_pass_in_wasmtime(kernels: Verified, tmp_path: Path, name: str) -> None:
    export_region(kernels, name, tmp_path / "folder", WASM)
    called = Memory(tmp_path / "folder")
    vectors = [*read_vectors(tmp_path / "folder" / "vectors.txt", called.name)]
    assert len(vectors) == 60
    faults = {each.number: called.fault(each) for each in vectors}
    assert {*faults.values()} == {None}, faults


@pytest.mark.parametrize("name", sample(FUNCTIONS, 2))
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
    called = Memory(made.directory)
    for each in read_vectors(made.directory / "vectors.txt", "hypot_kernel"):
        assert called.fault(each) is None


def _hypot(a: Any, b: Any) -> Any:
    return math.sqrt(a * a + b * b)
