# SPDX-License-Identifier: Apache-2.0
"""Code: entered, counted, forced, shown, and freed when nobody holds it."""

from __future__ import annotations

import gc
import shutil
import sys
from pathlib import Path

import ferryvm
import pytest
from ferryvm.backend import BackendError, Forcing, Options
from ferryvm.isa import BY_MNEMONIC
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.region.cost import too_costly
from ferryvm.region.region import Region, region, regions
from ferryvm.verify import verify

from ferryvm_cc.backend import LIMITS, CcBackend
from ferryvm_cc.compiler import has_loop

from .entering import enter


def test_a_program_runs_to_its_end(backend: CcBackend, loop: Region) -> None:
    machine = Machine(loop.verified)
    status, _ = enter(backend.compile(loop, Options()), machine)
    assert status is Status.HALT
    assert machine.result()[1] == 499500


THROWN = """
.tag other
.tag pair i32 f64
.function main
    i64.const 8
:try
    i64.const 5
    call middle
    halt
:end
:handler
    halt
.catch pair from try to end using handler depth 1
.function middle (n i64) -> i64
    local.get n
    local.get n
    call thrower
    i64.add
    return
.function thrower (n i64) -> i64
    local.get n
    i32.const -3
    f64.const 2.5
    throw pair
"""


@pytest.mark.parametrize("counting", [False, True])
def test_an_exception_of_a_callee_stays_in_the_code(backend: CcBackend, counting: bool) -> None:
    program = region(verify(ferryvm.assemble(THROWN)), "program")
    machine = Machine(program.verified)
    machine.control.fuel = 100
    code = backend.compile(program, Options(counting=counting, check=True))
    status, _ = enter(code, machine)
    assert status is Status.HALT
    halt = machine.control.pc
    assert program.verified.program.code.opcodes[halt] == BY_MNEMONIC["halt"].opcode
    assert machine.memory.stack[2 : machine.control.sp].tolist() == [8, 0xFFFF_FFFD, 0x4004 << 48]
    assert machine.control.fuel == (100 - 10 if counting else 100)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_does_the_same(backend: CcBackend, loop: Region, level: int) -> None:
    machine = Machine(loop.verified)
    enter(backend.compile(loop, Options(optimize=level)), machine)
    assert machine.result()[1] == 499500


def test_two_codes_of_one_entry_count_apart(backend: CcBackend, loop: Region) -> None:
    first, second = backend.compile(loop, Options()), backend.compile(loop, Options())
    for _ in range(3):
        enter(first, Machine(loop.verified))
    assert (first.activity().entries, second.activity().entries) == (3, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_code_is_unloaded_when_nobody_holds_it(backend: CcBackend, loop: Region) -> None:
    def mapped() -> int:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sum("/region-" in line for line in lines)

    gc.collect()
    before = mapped()
    code = backend.compile(loop, Options())
    assert mapped() > before
    del code
    gc.collect()
    assert mapped() == before


def test_observed_code_knows_its_time_and_its_instructions(
    backend: CcBackend, loop: Region
) -> None:
    code = backend.compile(loop, Options(observe=True, counting=True))
    machine = Machine(loop.verified)
    machine.control.fuel = 1 << 40
    enter(code, machine)
    found = code.activity()
    assert found.entries == 1
    assert 0 < found.seconds < 10
    assert found.instructions == (1 << 40) - machine.control.fuel
    assert found.instructions > 3000


def test_fuel_that_does_not_suffice_leaves_before_the_block(
    backend: CcBackend, loop: Region
) -> None:
    code = backend.compile(loop, Options(counting=True))
    machine = Machine(loop.verified)
    machine.control.fuel = 100
    status, _ = enter(code, machine)
    assert status is Status.LEAVE
    assert 0 <= machine.control.fuel < 100


def interrupted(backend: CcBackend, step: str, times: int = 100_000_000_000) -> Status:
    """How a loop with that step ends when the flag is set before it begins."""
    text = f"(define i 0)(define x 1)(while (< i {times}) {step} (set! i (+ i 1)))x"
    program = verify(ferryvm.compile(text))
    machine = Machine(program)
    machine.control.interrupt = 1
    return enter(backend.compile(region(program, "program"), Options()), machine)[0]


def test_the_interrupt_flag_is_seen(backend: CcBackend) -> None:
    assert interrupted(backend, "(set! x (+ (* x 3) 1))") is Status.INTERRUPTED


def test_a_short_stay_looks_too(backend: CcBackend) -> None:
    assert interrupted(backend, "(set! x (+ (* x 3) 1))", 1000) is Status.INTERRUPTED


@pytest.mark.skipif(shutil.which("gcc") is None, reason="clang 14 unrolls where gcc folds")
def test_a_loop_that_only_counts_is_folded_away(
    backend: CcBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "gcc")
    assert interrupted(backend, "(set! x (+ x 2))") is Status.HALT


@pytest.mark.parametrize(
    ("assembly", "expected"),
    [
        ("f:\n\tje\t.L2\n\tret\n.L2:\n\tret", False),
        ("f:\n.L2:\n\tdec %rax\n\tjne\t.L2\n\tret", True),
        ("f:\n.LBB0_1:\n\tb.ne\t.LBB0_1\n\tret", True),
        ("f:\n\tjmp\t*%rax\n.L2:\n\tret", True),
        ("f:\n\tbr\tx3\n", True),
        ("f:\n.L2:\n\tret\n\t.quad\t.L2", False),
    ],
)
def test_a_loop_is_seen_in_assembly(assembly: str, expected: bool) -> None:
    assert has_loop(assembly) is expected


def test_a_guard_that_fails_counts_and_then_says_so(backend: CcBackend) -> None:
    text = "(define i 0)(define s 0)(while (< i 9) (if (= i 5) (set! s 7)) (set! i (+ i 1)))s"
    program = verify(ferryvm.compile(text))
    whole = region(program, "program")
    (branch, rare), *_ = [
        (pc, onward)
        for pc, onward in _branches(whole)
        if enter(_unseen(backend, whole, pc, onward), Machine(program))[0] is Status.LEAVE
    ]
    code = backend.compile(whole, Options(unseen=frozenset({(branch, rare)}), guard_limit=2))
    statuses = [enter(code, Machine(program))[0] for _ in range(3)]
    assert statuses == [Status.LEAVE, Status.GUARD, Status.GUARD]
    assert code.activity().failures == {branch: 3}


def _branches(whole: Region) -> list[tuple[int, int]]:
    found = []
    for block in whole.graph.blocks.values():
        if len(block.successors) == 2:
            found += [(block.last, onward) for onward in block.successors]
    return found


def _unseen(backend: CcBackend, whole: Region, pc: int, onward: int) -> object:
    return backend.compile(whole, Options(unseen=frozenset({(pc, onward)})))


def test_forced_code_gives_up_somewhere(backend: CcBackend, loop: Region) -> None:
    code = backend.compile(loop, Options(forcing=frozenset({Forcing.DEOPT})))
    machine = Machine(loop.verified)
    status, _ = enter(code, machine)
    assert status is Status.LEAVE
    assert loop.verified.is_reachable(machine.control.pc)


def test_the_c_that_is_shown_names_source_lines_and_instructions(
    backend: CcBackend, loop: Region
) -> None:
    text = backend.show(loop, Options(), "c")
    assert "i64.add" in text
    assert "uint32_t ferry_region(struct ferry_control *restrict control)" in text
    assert "module program" in backend.show(loop, Options(), "ir")
    assert "ferry_region:" in backend.show(loop, Options(), "asm")


WITHOUT = '#pragma GCC optimize("-fno-tree-vectorize")'
TURN = """
(define (turn! (o (array f64)) (x (array f64)) (y (array f64)) i)
  (define j (+ i 1))
  (array-set! o i (- (* (array-ref x i) (array-ref y i)) (* (array-ref x j) (array-ref y j))))
  (array-set! o j (+ (* (array-ref x i) (array-ref y j)) (* (array-ref x j) (array-ref y i)))))
(define a (array f64 1 2))
(turn! a a (array f64 3 4) 0)
"""
"""A product of complex numbers, whose parts GCC would compute by fused operations."""


def test_products_that_gcc_would_fuse_are_without_vectors(backend: CcBackend, loop: Region) -> None:
    turn = region(verify(ferryvm.compile(TURN)), "program")
    assert WITHOUT in backend.show(turn, Options(), "c")
    assert "fmadd" not in backend.show(turn, Options(), "asm")
    assert WITHOUT not in backend.show(loop, Options(), "c")


def test_a_stage_that_is_not_there_is_told_with_those_that_are(
    backend: CcBackend, loop: Region
) -> None:
    with pytest.raises(BackendError, match="shows no 'llvm'"):
        backend.show(loop, Options(), "llvm")


def test_a_region_that_is_too_large_is_refused_with_its_size(backend: CcBackend) -> None:
    lines = "i64.const 1\ndrop\n" * (LIMITS.instructions // 2)
    whole = regions(verify(ferryvm.assemble(f".function main\n{lines}halt\n")))[0]
    reason = too_costly(whole, backend.capabilities.limits)
    assert (
        reason
        == f"{len(whole.pcs)} instructions with what it calls, more than {LIMITS.instructions}"
    )
