# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans by kernels of their patterns: the bits of the order, and no access
elsewhere."""

from __future__ import annotations

import dataclasses
import types
from array import array
from typing import Any, cast

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Code
from ferryvm.backend import Options as CompilerOptions
from ferryvm.engine import launching
from ferryvm.ir.c.opencl import CONSTANTS_READ, opencl
from ferryvm.ir.c.opencl_item import block_of_items, one_item
from ferryvm.isa.element import Element
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import READ_ONLY
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region.region import Region
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.recognition import Pattern, PatternKind
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.pattern import PatternKernel
from ferryvm_backends.opencl.item.pattern_text import pattern_text

from .entering import NAME, named

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

FORMS = {
    "reduce + f64": "(array f64 (reduce + xs))",
    "reduce * f32": "(array f32 (reduce * xs))",
    "reduce min f64": "(array f64 (reduce min xs))",
    "reduce max i16": "(array i64 (reduce max xs))",
    "reduce + u8": "(array i64 (reduce + xs))",
    "reduce & i32": "(array i32 (reduce & xs))",
    "scan + f64": "(scan + xs)",
    "scan max i16": "(scan max xs)",
    "scan min f32": "(scan min xs)",
    "scan | u32": "(scan | xs)",
}
SIZES = (1, 15, 17, 257, 1025, 2047, 5000, 70_000)
DEFAULT = ("reduce + f64", "scan + f64")
"""Run by the default tier, which runs one size; the others are for each night."""


def elements(kind: str, size: int) -> Array:
    """Elements of a kind, two of them a NaN that is not canonical and a negative zero."""
    random = np.random.default_rng(size)
    if kind[0] != "f":
        bounds = np.iinfo({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
        return random.integers(bounds.min, bounds.max, size, np.dtype(bounds.dtype))
    found = random.normal(size=size).astype(f"float{kind[1:]}")
    found[0] = -0.0
    if size == 1025:
        found.view(f"int{kind[1:]}")[size // 2] = -251
    return found


def found(engine: Engine, form: str, sizes: tuple[int, ...]) -> list[bytes]:
    kind = form.rpartition(" ")[2]
    text = f"(define (go (xs (array {kind}))) {FORMS[form]})"
    call = engine.instantiate(ferryvm.compile(text)).exports["go"]
    return [cast(Array, call(elements(kind, size))).tobytes() for size in sizes]


def launching_engine(backend: OpenClBackend) -> Engine:
    rule = Rule(
        when=When((Test("kind", (Like("launch"),)),)),
        backends=(Choice(NAME, Options(background=False, required=True)),),
    )
    policy = Policy(rules=(rule,), profile=Profile(loop_threshold=1))
    return Engine(policy=policy, registry=named(backend))


@pytest.mark.rotate("backend", "form", most=1)
@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=() if f in DEFAULT else pytest.mark.nightly) for f in FORMS]
)
def test_bits_are_those_of_an_interpreter(
    form: str, backend: OpenClBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    used: list[bool] = []
    given = PatternKernel.arguments

    def noted(self: PatternKernel, *arguments: Any) -> list[int] | None:
        words = given(self, *arguments)
        used.append(words is not None)
        return words

    monkeypatch.setattr(PatternKernel, "arguments", noted)
    sizes = (5000,) if form in DEFAULT else SIZES
    assert found(launching_engine(backend), form, sizes) == found(Engine("threaded"), form, sizes)
    assert used
    assert all(used)


@pytest.mark.nightly
@pytest.mark.parametrize("form", DEFAULT)
def test_bits_of_all_sizes_are_those_of_an_interpreter(
    form: str, backend: OpenClBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    assert found(launching_engine(backend), form, SIZES) == found(Engine("threaded"), form, SIZES)


HEADER = 1
SOURCE, TO, LAST = 8, 32, 56
"""References of arrays whose headers are behind each other."""


def arguments(
    kind: PatternKind, limit: int, lengths: tuple[int, ...], *, flags: int = 0, to: int = TO
) -> list[int] | None:
    """The words for a kernel whose items go up to a limit; `flags`: of the array of results."""
    words = array("Q", [0])
    for number, length in enumerate(lengths):
        words.extend([HEADER | (flags if number == 1 else 0), length, 0])
    objects = types.SimpleNamespace(space=types.SimpleNamespace(words=words))
    pattern = Pattern(kind, Operation("add"), ArrayType.of(Element.F64))
    operands = [99, SOURCE, to, LAST][: len(lengths) + 1] + [0] * LAUNCH_WORDS
    kernel = PatternKernel(pattern, cast(ItemKernel, None))
    return kernel.arguments(cast(ObjectMemory, objects), operands, limit)


class QuickBackend(OpenClBackend):
    """The backend, for which drivers compile at their lowest level."""

    def compile(self, region: Region, options: CompilerOptions) -> Code:
        return super().compile(region, dataclasses.replace(options, quick=True))


def test_each_block_is_reduced_at_the_lowest_level_of_a_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PoCL had all work-items reduce the first block, behind a return in front of barriers."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    engine, sizes = launching_engine(QuickBackend(wraps=False, device="cpu")), (1025, 2047)
    assert found(engine, "reduce + u8", sizes) == found(Engine("threaded"), "reduce + u8", sizes)


def test_the_kernel_of_a_pattern_runs_items_whose_elements_all_exist() -> None:
    assert arguments(PatternKind.REDUCED_BLOCK, 3, (2049, 3)) == [SOURCE, TO, 2049]
    assert arguments(PatternKind.REDUCED_BLOCK, 4, (2049, 4)) is None
    assert arguments(PatternKind.REDUCED_BLOCK, 3, (2049, 2)) is None
    assert arguments(PatternKind.SCANNED_BLOCKS, 2, (2049, 2049, 9)) == [SOURCE, TO, LAST, 2049]
    assert arguments(PatternKind.SCANNED_BLOCKS, 2, (2048, 2049, 9)) is None
    assert arguments(PatternKind.SCANNED_BLOCKS, 2, (2049, 2049, 8)) is None
    assert arguments(PatternKind.SCANNED_BLOCKS, 3, (2049, 2049, 9)) is None
    assert arguments(PatternKind.COMBINED_BLOCKS, 1, (8, 2048)) == [SOURCE, TO, 2048]
    assert arguments(PatternKind.COMBINED_BLOCKS, 1, (7, 2048)) is None
    assert arguments(PatternKind.COMBINED_BLOCKS, 2, (8, 2048)) is None


def test_null_one_array_twice_and_read_only_results_are_left_to_code_that_traps() -> None:
    for to in (0, SOURCE):
        assert arguments(PatternKind.REDUCED_BLOCK, 3, (2049, 3), to=to) is None
    assert arguments(PatternKind.REDUCED_BLOCK, 3, (2049, 3), flags=READ_ONLY) is None


@pytest.mark.parametrize("apart", [False, True])
def test_kernels_in_memory_of_the_host_read_a_constant_first(apart: bool) -> None:
    pattern = Pattern(PatternKind.REDUCED_BLOCK, Operation("add"), ArrayType.of(Element.F64))
    items = one_item("item", 0, (), 1) if apart else block_of_items((), 0, 1)
    texts = [
        opencl(aligned=False, apart=apart, objects=False).entry,
        items.text,
        pattern_text(pattern, apart=apart, aligned=False).source,
    ]
    assert [CONSTANTS_READ in text for text in texts] == [not apart] * 3
