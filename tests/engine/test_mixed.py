# SPDX-License-Identifier: Apache-2.0
"""What is hot is compiled and entered, and wherever compiled code leaves the state is exact."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.engine.journal import Event, Outcome, Placement
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.program import Program, Signature

from .mixing import end, entries, listen, noticed, placements, policy, start, state

LOOP = ferryvm.compile("(define i 0) (while (< i 5000) (set! i (+ i 1))) i")
CALLS = ferryvm.compile("""
(define (square x) (* x x))
(define total 0) (define i 0)
(define (more) (set! total (+ total (square i))) (set! i (+ i 1)))
(more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more)
(more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more)
total""")
SCOPE = ferryvm.compile("""
(define i 0) (define total 0)
(enter-jit ((while (< i 1000) (set! total (+ total (* i i))) (set! i (+ i 1)))))
total""")
NEST = ferryvm.compile("""
(define total 0) (define i 0) (define j 0) (define k 0)
(while (< i 9)
  (set! j 0)
  (while (< j 30)
    (set! k 0)
    (while (< k 5) (set! total (+ total (* i (+ j k)))) (set! k (+ k 1)))
    (set! j (+ j 1)))
  (print! total)
  (set! i (+ i 1)))
total""")


def same_as_reference(program: Program, execution: Execution, count: bool = False) -> None:
    """A run that ended as the reference's does, in the same state."""
    expected = Engine("reference", limits=execution.engine.limits).start(program)
    assert end(execution, count) == end(expected)


# --- getting hot ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize(
    ("program", "kind", "regions"),
    [
        (LOOP, "loop", {"main/loop.1"}),
        (CALLS, "function", {"more"}),
        (SCOPE, "scope", {"main/scope.1"}),
    ],
    ids=["loop", "function", "scope"],
)
def test_a_place_that_gets_hot_has_its_region_installed_and_entered(
    program: Program, kind: str, regions: set[str], count: bool
) -> None:
    execution = start(program, policy())
    same_as_reference(program, execution, count)
    found = [p for p in placements(execution) if p.kind == kind]
    assert {p.region for p in found} == regions
    assert {(p.state, p.counting) for p in found} == {("installed", count)}
    assert all(entries(p) > 0 for p in found)


def test_a_scope_is_compiled_the_first_time_and_what_is_not_marked_is_not() -> None:
    execution = start(SCOPE, policy(threshold=1 << 40))
    same_as_reference(SCOPE, execution)
    (placement,) = placements(execution)
    assert (placement.region, placement.why, entries(placement)) == (
        "main/scope.1",
        "reached once",
        1,
    )


ENDLESS = ferryvm.assemble("""
.static n i64
.function main
:again
    static.get n
    i64.const 1
    i64.add
    static.set n
    jump again
""")


def test_code_that_is_ready_is_entered_by_the_program_that_went_on_meanwhile() -> None:
    execution = start(ENDLESS, policy(background=True))
    installed = noticed(execution, Event.INSTALLED)

    def interrupt_once_entered() -> None:
        installed.wait()
        while not entries(placements(execution)[0]):
            pass
        execution.machine.control.interrupt = 1

    other = threading.Thread(target=interrupt_once_entered)
    other.start()
    with pytest.raises(ProgramInterrupted):
        execution.run()
    other.join()
    (placement,) = placements(execution)
    assert (placement.state, entries(placement)) == ("installed", 1)
    assert execution.machine.control.pc == 0


def test_a_program_that_waits_for_its_code_is_compiled_at_the_very_count() -> None:
    execution = start(ENDLESS, policy(threshold=37))
    execution.run(fuel=5 * 36)
    assert placements(execution) == []
    execution.run(fuel=1)
    (placement,) = placements(execution)
    assert (placement.why, placement.state) == ("reached 37 times", "installed")
    assert execution.machine.memory.statics[0] == 36


def test_running_loops_are_entered_in_their_middle_inner_ones_too() -> None:
    execution = start(NEST, policy(threshold=7))
    same_as_reference(NEST, execution)
    found = placements(execution)
    # The whole nest, by each of its heads: the innermost one is hot first.
    assert [p.region for p in found] == ["main/nest.1"] * 3
    assert len({p.pc for p in found}) == 3
    assert all(p.state == "installed" and entries(p) > 0 for p in found)


def test_a_policy_that_asks_nobody_leaves_all_to_the_interpreter() -> None:
    execution = start(LOOP, "threaded")
    same_as_reference(LOOP, execution)
    quiet = start(LOOP, policy(threshold=1 << 40))
    same_as_reference(LOOP, quiet)
    assert placements(quiet) == []


def test_whole_programs_are_compiled_before_their_first_instruction() -> None:
    execution = start(NEST, "llvm")
    same_as_reference(NEST, execution)
    first = placements(execution)[0]
    assert (first.region, first.kind, first.pc) == ("program", "program", 0)
    assert first.attempts[0].outcome in (Outcome.COMPILED, Outcome.CACHED)
    assert entries(first) == 1


# --- leaving --------------------------------------------------------------------------------

EXITS = {
    "trap in a loop": "(define d 60) (define s 0) (while #t (set! d (- d 1)) (set! s (/ 99 d)))",
    "trap in callees": """
        (define (inner n) (/ 1000 (- 70 n)))
        (define (middle n) (+ 1 (* 2 (inner (+ n 1)))))
        (define (outer n) (let ((a (* n n)) (b (+ n 5))) (+ a (+ b (middle n)))))
        (define i 0) (define s 0)
        (while (< i 1000) (set! s (+ s (outer i))) (set! i (+ i 1)))""",
    "index out of bounds": """
        (define v (make-vector i32 50)) (define i 0)
        (while #t (vector-set! v i (i32 i)) (set! i (+ i 1)))""",
    "growth": """
        (define (fill n) (define v (make-vector i64 n)) (vector-set! v (- n 1) n)
          (vector-ref v (- n 1)))
        (define i 1) (define s 0)
        (while (< i 100) (set! s (+ s (fill i))) (set! i (+ i 1))) s""",
    "heap exhausted": """
        (define i 1) (define s 0)
        (while #t (vector-set! (make-vector i64 i) (- i 1) i) (set! i (+ i 1)))""",
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

    def act(_output: object) -> None:
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
    mark
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
    hosts = {"stop": HostFunction("stop", NOTHING, lambda _: None)}
    expected = Engine("reference", hosts=hosts).start(ferryvm.assemble(program))
    expected.run(fuel=steps)
    assert state(execution) == state(expected)


IRREDUCIBLE = """
.host stop () -> ()
.static n i64
.function main
    host stop
    static.get n
    i64.eqz
    jump_if second
:first
    static.get n
    i64.const 1
    i64.add
    static.set n
:second
    static.get n
    i64.const 3
    i64.xor
    static.set n
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
    calls = "".join(
        f".function f{n}\nmark\ncall f{n + 1}\nmark\ncall f{n + 1}\nreturn\n" for n in range(depth)
    )
    last = f".function f{depth}\nstatic.get n\ni64.const 1\ni64.add\nstatic.set n\nreturn\n"
    text = ".host stop () -> ()\n.static n i64\n.function main\nhost stop\nmark\ncall f0\nhalt\n"
    execution = _interrupting(text + calls + last)
    with pytest.raises(ProgramInterrupted):
        execution.run(count=True)
    assert execution.instructions is not None
    assert execution.instructions < 10_000


# --- recursion ------------------------------------------------------------------------------

DEEP = {
    "itself": """
        .function main
            mark
            i64.const 1000000
            call down
            halt
        .function down (n i64) -> i64
            local.get n
            i64.eqz
            jump_if end
            mark
            local.get n
            i64.const 1
            i64.sub
            call down
            i64.const 1
            i64.add
            return
        :end
            i64.const 0
            return
        """,
    "each other": """
        .function main
            mark
            i64.const 1000000
            call even
            halt
        .function even (n i64) -> i64
            local.get n
            i64.eqz
            jump_if end
            mark
            local.get n
            i64.const 1
            i64.sub
            call odd
            i64.const 1
            i64.add
            return
        :end
            i64.const 0
            return
        .function odd (n i64) -> i64
            mark
            local.get n
            i64.const 1
            i64.sub
            call even
            i64.const 1
            i64.add
            return
        """,
    "through the table": """
        .table down odd
        .function main
            mark
            i64.const 1000000
            call down
            halt
        .function down (n i64) -> i64
            local.get n
            i64.eqz
            jump_if end
            mark
            local.get n
            i64.const 1
            i64.sub
            local.get n
            i32.wrap_i64
            i32.const 1
            i32.and
            call_indirect (i64) -> i64
            i64.const 1
            i64.add
            return
        :end
            i64.const 0
            return
        .function odd (n i64) -> i64
            local.get n
            i64.eqz
            jump_if end
            mark
            local.get n
            i64.const 1
            i64.sub
            call down
            i64.const 1
            i64.add
            return
        :end
            i64.const 0
            return
        """,
}


@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("chosen", ["llvm", "hot"])
def test_a_recursion_may_be_a_million_deep(text: str, count: bool, chosen: str) -> None:
    program = ferryvm.assemble(text)
    execution = start(program, policy() if chosen == "hot" else chosen)
    expected = start(program, "threaded")
    assert execution.run(count=count).value == 1_000_000
    assert state(execution) == (expected.run(count=count), state(expected))[1]
    assert execution.instructions == expected.instructions
    assert sum(entries(p) for p in placements(execution)) > 10


def test_a_recursion_without_end_traps_in_the_state_that_the_interpreter_has() -> None:
    program = ferryvm.compile("(define (down n) (+ 1 (down (+ n 1)))) (down 0)")
    found = []
    for chosen in ("threaded", "llvm"):
        execution = start(program, chosen)
        with pytest.raises(ferryvm.TrapError) as caught:
            execution.run()
        assert caught.value.kind is Trap.STACK_OVERFLOW
        found.append(execution.machine.snapshot())
    assert found[0] == found[1]


def test_recursion_in_a_thread_with_a_small_stack_stays_within_it() -> None:
    execution = start(ferryvm.assemble(DEEP["itself"]), "llvm")
    found: list[int | float | None] = []
    usual = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: found.append(execution.run().value))
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    assert found == [1_000_000]


# --- many executions ------------------------------------------------------------------------


def in_threads(actions: list[Callable[[], object]]) -> None:
    """Do all of them at once."""
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
def test_executions_of_one_program_share_code_in_many_threads(background: bool) -> None:
    first = start(NEST, policy(threshold=10, background=background))
    executions = [first, *(first.again() for _ in range(7))]
    found: dict[int, object] = {}

    def run(number: int) -> None:
        found[number] = end(executions[number])

    in_threads([lambda n=number: run(n) for number in range(8)])  # type: ignore[misc]
    expected = end(Engine("reference").start(NEST))
    assert found == dict.fromkeys(range(8), expected)


def test_a_copy_of_a_program_in_the_middle_of_its_loop_goes_on_in_the_same_code() -> None:
    execution = start(NEST, policy(threshold=4))
    execution.run(fuel=3000)
    copy = execution.fork()
    expected = end(Engine("reference").start(NEST), count=True)
    assert end(copy, count=True) == expected
    assert end(execution, count=True) == expected
    assert {p.state for p in placements(execution)} == {"installed"}


def test_what_was_told_of_a_place_is_told_in_order() -> None:
    told: list[tuple[Event, int]] = []

    def note(event: Event, placement: Placement) -> None:
        told.append((event, placement.pc))

    execution = start(LOOP, policy())
    listen(execution, note)
    execution.run()
    (placement,) = placements(execution)
    kinds = (Event.HOT, Event.ATTEMPT, Event.INSTALLED)
    assert told == [(event, placement.pc) for event in kinds]
