# SPDX-License-Identifier: Apache-2.0
"""Kernels read and write elements, fields and types as the reference does, and leave to allocate."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine.memory import Limits
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm_backends.opencl import OpenClBackend

from ...engine.object_program import MIXED
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


@pytest.mark.parametrize("text", [SUM.format(length=9), SUM.format(length=3000), MIXED])
def test_a_kernel_ends_as_the_reference_does(text: str) -> None:
    program = ferryvm.assemble(text)
    assert ended(engine(OpenClBackend()), program) == ended(Engine("reference"), program)
