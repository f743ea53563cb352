# SPDX-License-Identifier: Apache-2.0
"""Multiply-adds where the processor has no instruction for them."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.type import F32, F64, Type, from_float, to_float
from ferryvm.policy import Profile
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends._llvm import codegen
from ferryvm_backends.llvm import LlvmBackend

from ...engine.mixing import placements
from .compiled import COMPILED

SOON = dataclasses.replace(COMPILED, profile=Profile(function_threshold=3))

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="others have it always")


@pytest.fixture(autouse=True)
def _without_instruction(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(codegen, "host_processor", lambda: ("x86-64", ""))
    codegen.target_machine.cache_clear()
    yield
    codegen.target_machine.cache_clear()


@pytest.mark.parametrize("t", [F32, F64])
def test_fma_is_rounded_once_on_a_processor_without_it(t: Type) -> None:
    program = ferryvm.compile(f"(define (f (x {t}) (y {t}) (z {t})) ({t}.fma x y z))")
    code = LlvmBackend().show(region(verify(program), "f"), Options(), "asm")
    assert "vfmadd" not in code
    assert "$fma" in code
    x, y, z = (from_float(t, each) for each in (1.1, 2.3, -2.53))
    m = PythonArithmetic()
    exact = m.ffma(t, x, y, z)
    assert exact != m.fadd(t, m.fmul(t, x, y), z)
    instance = Engine(policy=SOON).instantiate(program)
    operands = [to_float(t, each) for each in (x, y, z)]
    results = {instance.exports["f"](*operands) for _ in range(10)}
    assert results == {to_float(t, exact)}
    ran = (
        backend for each in placements(instance.idle_execution()) for backend, _ in each.activity()
    )
    assert "llvm" in ran
