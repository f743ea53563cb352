# SPDX-License-Identifier: Apache-2.0
"""Wherever compiled code leaves the state is the reference's: traps, growth, host calls, fuel,
interrupts."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.program import Signature

from .mixing import (
    TWO_WAYS_IN,
    entries,
    placements,
    policy,
    same_as_reference,
    start,
    state,
)

EXITS = {
    "trap in a loop": "(define d 60) (define s 0) (while #t (set! d (- d 1)) (set! s (/ 99 d)))",
    "trap in callees": """
        (define (inner n) (/ 1000 (- 70 n)))
        (define (middle n) (+ 1 (* 2 (inner (+ n 1)))))
        (define (outer n) (let ((a (* n n)) (b (+ n 5))) (+ a (+ b (middle n)))))
        (define i 0) (define s 0)
        (while (< i 1000) (set! s (+ s (outer i))) (set! i (+ i 1)))""",
    "index out of bounds": """
        (define v (make-array i32 50)) (define i 0)
        (while #t (array-set! v i (i32 i)) (set! i (+ i 1)))""",
    "growth": """
        (define (fill n) (define v (heap.alloc (* 8 n))) (i64.store 0 (+ v (* 8 (- n 1))) n)
          (i64.load 0 (+ v (* 8 (- n 1)))))
        (define i 1) (define s 0)
        (while (< i 100) (set! s (+ s (fill i))) (set! i (+ i 1))) s""",
    "heap exhausted": """
        (define i 1) (define s 0)
        (while #t (i64.store 0 (heap.alloc (* 8 i)) i) (set! i (+ i 1)))""",
    "host calls": """
        (define (say n) (print! n) (+ n 1))
        (define i 0) (while (< i 60) (set! i (say i)))""",
    "the end of a region": """
        (define (count n) (define i 0) (while (< i n) (set! i (+ i 1))) i)
        (define j 0) (define s 0)
        (while (< j 60) (set! s (+ s (count j))) (print! s) (set! j (+ j 1)))""",
    "return to a caller": """
        (define (scaled x k) (* (f64 k) (+ x 0.5)))
        (define x 1.0) (define k 0)
        (while (< k 50) (print! (scaled x k)) (set! x (/ (scaled x 2) 2.5)) (set! k (+ k 1))) x""",
    "recursion without end": "(define (down n) (+ 1 (down (+ n 1)))) (down 0)",
    "recursion in three": """
        (define (a n) (if (< n 1) 0 (+ 1 (b (- n 1)))))
        (define (b n) (if (< n 1) 0 (* 3 (c (- n 1)))))
        (define (c n) (if (< n 1) 0 (- 7 (+ (a (- n 1)) (a (- n 2))))))
        (print! (a 20)) (a 23)""",
}


@pytest.mark.rotate("text", "count", most=5)
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("text", EXITS.values(), ids=EXITS)
def test_state_is_exact_at_every_kind_of_exit(text: str, count: bool) -> None:
    program = ferryvm.compile(text)
    limits = Limits(stack=1 << 13, heap=1 << 15, first_heap=1 << 9)
    for chosen in (policy(), policy(threshold=1), "llvm"):
        execution = start(program, chosen, limits=limits)
        same_as_reference(program, execution, count)
        assert any(entries(p) for p in placements(execution))


FUELLED = ferryvm.compile("""
(define total 0) (define i 0)
(define (mix a b) (if (< (% a 3) 1) (+ b (mix (+ a 1) b)) (* a b)))
(while (< i 40)
  (define j 0)
  (while (< j 3) (set! total (+ total (mix i j))) (set! j (+ j 1)))
  (set! i (+ i 1)))
total""")


def test_fuel_stops_compiled_code_at_every_single_instruction() -> None:
    whole = start(FUELLED, policy(threshold=4))
    steps = whole.run(count=True).statistics.instructions
    assert steps is not None
    expected = Engine("reference").start(FUELLED)
    expected.run(fuel=steps - 400)
    for fuel in range(steps - 400, steps - 200):
        execution = whole.again()
        assert execution.run(fuel=fuel).status is Status.FUEL
        assert state(execution) == state(expected)
        expected.run(fuel=1)
    assert {p.state for p in placements(whole)} == {"installed"}


NOTHING = Signature()


def _interrupting(text: str) -> Execution:
    """A program on compiled code whose host function `stop` sets the interrupt flag."""

    def act() -> None:
        execution.machine.control.interrupt = 1

    hosts = {"stop": HostFunction("stop", NOTHING, act)}
    execution = Engine("llvm", hosts=hosts).start(ferryvm.assemble(text))
    return execution


COUNTED = """
.host stop () -> ()
.static n i64
.function main
    host stop
:outer
    i64.const 0
    static.set n
:inner
    static.get n
    i64.const 1
    i64.add
    static.set n
    static.get n
    i64.const {inner}
    i64.lt_s
    jump_if inner
    jump outer
"""
CALLING = """
.host stop () -> ()
.static n i64
.function main
    host stop
:outer
    i64.const 0
    call count
    static.set n
    jump outer
.function count (i i64) -> i64
:inner
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const {inner}
    i64.lt_s
    jump_if inner
    local.get i
    return
"""


@pytest.mark.parametrize("text", [COUNTED, CALLING], ids=["nest", "calls"])
@pytest.mark.parametrize("inner", [1, 3, 4095, 4096, 1 << 40])
def test_an_interrupt_is_seen_within_4096_back_edges_in_an_exact_state(
    text: str, inner: int
) -> None:
    program = text.format(inner=inner)
    execution = _interrupting(program)
    with pytest.raises(ProgramInterrupted):
        execution.run(count=True)
    steps = execution.instructions
    assert steps is not None
    assert steps <= 4097 * 12
    assert entries(placements(execution)[0]) >= 1
    hosts = {"stop": HostFunction("stop", NOTHING, lambda: None)}
    expected = Engine("reference", hosts=hosts).start(ferryvm.assemble(program))
    expected.run(fuel=steps)
    assert state(execution) == state(expected)


HOST_CALLS = """
.host stop () -> ()
.static n i64
.function main
:again
    static.get n
    i64.const 1
    i64.add
    static.set n
    host stop
    static.get n
    i64.const 20000
    i64.lt_s
    jump_if again
    halt
"""


@pytest.mark.rotate("chosen", most=2)
@pytest.mark.parametrize("chosen", ["llvm", "hot", "threaded", "reference"])
def test_an_interrupt_is_seen_where_every_stay_in_a_backend_is_short(chosen: str) -> None:
    def act() -> None:
        if execution.machine.memory.statics[0] == 5000:
            execution.machine.control.interrupt = 1

    hosts = {"stop": HostFunction("stop", NOTHING, act)}
    engine = (
        Engine(policy=policy(), hosts=hosts) if chosen == "hot" else Engine(chosen, hosts=hosts)
    )
    execution = engine.start(ferryvm.assemble(HOST_CALLS))
    with pytest.raises(ProgramInterrupted):
        execution.run()
    assert execution.machine.memory.statics[0] in (5000, 5001)
    result = execution.run()
    assert result.status is Status.HALT
    assert execution.machine.memory.statics[0] == 20_000


IRREDUCIBLE = f"""
.host stop () -> ()
.static n i64
.function main
    host stop
{TWO_WAYS_IN}
    jump first
"""


def test_a_cycle_that_is_entered_in_two_places_hears_an_interrupt() -> None:
    execution = _interrupting(IRREDUCIBLE)
    with pytest.raises(ProgramInterrupted):
        execution.run(count=True)
    assert execution.instructions is not None
    assert execution.instructions <= 4097 * 9


def test_calls_without_loop_and_recursion_hear_an_interrupt() -> None:
    depth = 45
    calls = "".join(f".function f{n}\ncall f{n + 1}\ncall f{n + 1}\nreturn\n" for n in range(depth))
    last = f".function f{depth}\nstatic.get n\ni64.const 1\ni64.add\nstatic.set n\nreturn\n"
    text = ".host stop () -> ()\n.static n i64\n.function main\nhost stop\ncall f0\nhalt\n"
    execution = _interrupting(text + calls + last)
    with pytest.raises(ProgramInterrupted):
        execution.run(count=True)
    assert execution.instructions is not None
    assert execution.instructions < 10_000
