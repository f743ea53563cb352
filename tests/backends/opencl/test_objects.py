# SPDX-License-Identifier: Apache-2.0
"""Kernels read and write elements, fields and types as the reference does, and leave to
allocate."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.isa.element import Element
from ferryvm.isa.object import LARGEST_INLINE
from ferryvm.machine.memory import Limits
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm_backends.opencl import OpenClBackend

from ...engine.object_program import GARBAGE, LISTS, MIXED, on_elements
from ..ending import ended
from .entering import NAME, named

SUM = """
.function main
.local a i64[]
.local n i64
.local s i64
    i64.const {length}
    array.new_default_i64
    local.set a
:fill
    local.get a
    local.get n
    local.get n
    i64.const 3
    i64.mul
    array.set_i64
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const {length}
    i64.lt_s
    jump_if fill
:sum
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get a
    local.get n
    array.get_i64
    local.get s
    i64.add
    local.set s
    local.get n
    i64.const 0
    i64.ne
    jump_if sum
    local.get s
    halt
"""
"""Fills an array and adds its elements up."""


def engine(backend: OpenClBackend, limits: Limits | None = None) -> Engine:
    """An engine whose programs are kernels, again soon after they have left."""
    options = Options(optimize=3, background=False, required=True, cache=False)
    rules = (Rule(backends=(Choice(NAME, options),)),)
    soon = Profile(loop_threshold=3, function_threshold=3)
    policy = Policy(rules=rules, whole_program=True, profile=soon)
    return Engine(policy=policy, limits=limits or Limits(), registry=named(backend))


PROGRAMS = {
    "inside": SUM.format(length=9),
    "outside": SUM.format(length=LARGEST_INLINE // 8 + 1),
    "mixed": MIXED,
    "lists": LISTS.format(length=40, times=6),
    "garbage": GARBAGE.format(rounds=3),
    **{
        f"arrays of {element}": on_elements(element, is_outside=element.bits != 32)
        for element in Element
    },
}


@pytest.mark.rotate("name", "backend", most=4)  # building a kernel takes long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_ends_as_the_reference_does(name: str, backend: OpenClBackend) -> None:
    program, limits = ferryvm.assemble(PROGRAMS[name]), Limits(objects=1 << 20)
    expected = ended(Engine("reference", limits=limits), program)
    assert ended(engine(backend, limits), program) == expected
