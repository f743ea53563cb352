# SPDX-License-Identifier: Apache-2.0
"""A program with references of all sorts, changed at random: what the verifier lets pass ends alike
on every interpreter, and the reference backend finds every reference to be of its type."""

from __future__ import annotations

import dataclasses
from importlib import resources

import ferryvm
from ferryvm.engine.result import TrapError
from ferryvm.machine.memory import Limits
from ferryvm.program import Code
from ferryvm.testing.generate import mutation
from ferryvm.testing.generate.chance import Chance
from ferryvm.verify import Verified, VerifyError, verify

LIMITS = Limits(stack=1 << 16, heap=1 << 20, first_heap=1 << 12, objects=1 << 18)
SEEDS = 300


def _end(engine: ferryvm.Engine, program: Verified) -> tuple[object, ...]:
    execution = engine.start(program)
    machine = execution.machine
    try:
        status = execution.run(3000).status.name
    except TrapError as error:
        status = error.kind.name
    return status, machine.control.pc, machine.control.sp, machine.control.hp


def test_changed_programs_end_alike_on_every_interpreter() -> None:
    folder = resources.files("ferryvm.testing.generate")
    linked = ferryvm.assemble(folder.joinpath("linked.fasm").read_text("utf-8"))
    engines = {
        name: ferryvm.Engine(name, limits=LIMITS, output=lambda _: None)
        for name in ("reference", "switch", "threaded")
    }
    verified = 0
    for seed in range(SEEDS):
        chance = Chance(seed)
        content = linked.code.tobytes()
        for _ in range(chance.pick((1, 1, 2, 3))):
            content = mutation._code(chance, content)
        try:
            program = verify(dataclasses.replace(linked, code=Code(content)))
        except VerifyError:
            continue
        verified += 1
        ends = {name: _end(engine, program) for name, engine in engines.items()}
        assert len(set(ends.values())) == 1, (seed, ends)
    assert verified > SEEDS // 4
