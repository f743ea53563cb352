# SPDX-License-Identifier: Apache-2.0
"""Running, stopping and moving programs through the engine, on every backend."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import Artifact, Backend, BackendError, Capabilities
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa import I64, Trap
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostError, HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.program import Code, HostImport, Signature
from ferryvm.verify import Verified, verify
from ferryvm_backends.reference import ReferenceBackend

from ..double.interpreter import Wrong
from ..double.registry import registry

FIB = "(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(print! (fib 12))\n(fib 10)"
DEEP = "(define (down n) (if (= n 0) 0 (+ 1 (down (- n 1)))))\n"
HEAP = """
(define v (heap.alloc 8000))
(define i 0)
(while (< i 1000) (i64.store 0 (+ v (* 8 i)) (* i i)) (set! i (+ i 1)))
(print! (i64.load 7992 v))
(i64.load 248 v)
"""
PAIRS = [
    (first, second)
    for first in ("reference", "switch", "threaded")
    for second in ("reference", "switch", "threaded")
]


def test_result_output_and_figures(backend: str) -> None:
    result = ferryvm.run(ferryvm.compile(FIB), backend)
    assert (result.status, result.value, result.type) == (Status.HALT, 55, I64)
    assert result.output == "144\n"
    assert result.statistics.backend == backend
    assert result.statistics.instructions is None
    assert result.statistics.seconds.run > 0


def test_program_without_a_value_has_no_result(backend: str) -> None:
    result = ferryvm.run(ferryvm.compile("(define x 1)"), backend)
    assert (result.type, result.bits, result.value) == (None, None, None)


def test_counting_gives_one_number_on_every_backend() -> None:
    program = ferryvm.compile(FIB)
    counts = {
        name: ferryvm.Engine(name).start(program).run(count=True).statistics.instructions
        for name in ("reference", "switch", "threaded")
    }
    assert len(set(counts.values())) == 1
    assert (counts["reference"] or 0) > 1000


@pytest.mark.parametrize("text", [FIB, HEAP])
def test_fuel_stops_in_the_same_state_on_every_backend(text: str) -> None:
    program = ferryvm.compile(text)
    total = ferryvm.Engine("switch").start(program).run(count=True).statistics.instructions
    assert total is not None
    for fuel in [*range(60), total // 3, total - 1]:
        states = []
        for name in ("reference", "switch", "threaded"):
            execution = ferryvm.Engine(name).start(program)
            result = execution.run(fuel)
            assert result.status is Status.FUEL
            assert result.statistics.instructions == fuel
            states.append(execution.machine.snapshot())
        assert states[0] == states[1] == states[2], fuel


@pytest.mark.rotate("backend", most=1)
def test_fuel_that_is_just_enough_halts(backend: str) -> None:
    program = ferryvm.compile(FIB)
    total = ferryvm.Engine(backend).start(program).run(count=True).statistics.instructions
    assert ferryvm.run(program, backend, fuel=total).status is Status.HALT


@pytest.mark.rotate("first", most=4)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_program_that_moves_ends_as_one_that_does_not(first: str, second: str) -> None:
    program = ferryvm.compile(HEAP)
    whole = ferryvm.Engine("reference").start(program)
    expected = whole.run(count=True)
    moved = ferryvm.Engine(first).start(program)
    names = [first, second]
    result = moved.run(97)
    while result.status is Status.FUEL:
        names.reverse()
        result = moved.run(1009, backend=names[0])
    assert (result.value, result.output) == (expected.value, expected.output)
    assert result.statistics.instructions == expected.statistics.instructions
    assert moved.machine.snapshot() == whole.machine.snapshot()


def test_run_after_the_end_returns_the_result_again(backend: str) -> None:
    execution = ferryvm.Engine(backend).start(ferryvm.compile(FIB))
    assert execution.run().value == execution.run().value == 55
    assert execution.run().output == "144\n"


def test_trap_carries_kind_place_and_calls(backend: str) -> None:
    text = "(define (f x) (/ 10 x))\n(define (g x) (+ 1 (f x)))\n(print! (g 5))\n(g 0)"
    execution = ferryvm.Engine(backend).start(ferryvm.compile(text, "t.skiff"))
    with pytest.raises(ferryvm.TrapError) as caught:
        execution.run()
    trap = caught.value
    assert trap.kind is Trap.INTEGER_DIVIDE_BY_ZERO
    assert str(trap.position).startswith("t.skiff:1:")
    assert [frame.function for frame in trap.stack] == ["f", "g", "main"]
    assert [frame.position.line for frame in trap.stack if frame.position] == [1, 2, 4]
    lines = str(trap).splitlines()
    assert lines[0].endswith("trap: integer division by zero")
    assert len(lines) == 4
    assert execution.statistics.seconds.run > 0


def test_trapping_again_is_the_same_trap(backend: str) -> None:
    execution = ferryvm.Engine(backend).start(ferryvm.compile("(/ 1 0)"))
    for _ in range(2):
        with pytest.raises(ferryvm.TrapError, match="integer division by zero"):
            execution.run()


def test_runaway_recursion_is_a_trap_with_a_short_message(backend: str) -> None:
    program = ferryvm.compile("(define (f n) (+ 1 (f n)))\n(f 1)")
    engine = ferryvm.Engine(backend, limits=Limits(stack=1 << 16))
    with pytest.raises(ferryvm.TrapError) as caught:
        engine.start(program).run()
    assert caught.value.kind is Trap.STACK_OVERFLOW
    assert len(caught.value.stack) == 24
    assert sum(frame.skipped for frame in caught.value.stack) > 1000
    assert "more calls ..." in str(caught.value)


@pytest.mark.parametrize("name", ["switch", "threaded"])
def test_a_million_calls_deep_is_no_trouble(name: str) -> None:
    program = ferryvm.compile(DEEP + "(down 1000000)")
    assert ferryvm.run(program, name).value == 1_000_000
    forever = ferryvm.compile(DEEP + "(down -1)")
    with pytest.raises(ferryvm.TrapError, match="stack overflow"):
        ferryvm.run(forever, name)


def test_main_that_needs_more_stack_than_there_is_traps(backend: str) -> None:
    text = ".function main () -> ()\n" + "i64.const 1\n" * 2000 + "halt\n"
    engine = ferryvm.Engine(backend, limits=Limits(stack=8192))
    with pytest.raises(ferryvm.TrapError, match="stack overflow"):
        engine.start(ferryvm.assemble(text)).run()


def test_heap_grows_to_its_limit_and_then_traps(backend: str) -> None:
    text = "(define n 0)\n(while #t (heap.alloc 8200) (set! n (+ n 1)))"
    engine = ferryvm.Engine(backend, limits=Limits(heap=1 << 20, first_heap=1 << 14))
    execution = engine.start(ferryvm.compile(text))
    with pytest.raises(ferryvm.TrapError) as caught:
        execution.run()
    assert caught.value.kind is Trap.HEAP_EXHAUSTED
    assert execution.machine.memory.statics[0] == (1 << 20) // (8 * 1025)


def test_grown_heap_keeps_its_content_and_new_memory_is_zero(backend: str) -> None:
    text = """
(define a (heap.alloc 800))
(i64.store 792 a 7)
(define b (heap.alloc 100000))
(+ (i64.load 792 a) (i64.load8_u 99999 b))
"""
    engine = ferryvm.Engine(backend, limits=Limits(first_heap=4096))
    assert engine.start(ferryvm.compile(text)).run().value == 7


def test_limits_that_cannot_be_had_are_one_clear_line() -> None:
    engine = ferryvm.Engine("reference", limits=Limits(heap=1 << 60))
    with pytest.raises(FerryError, match=r"cannot reserve .* lower the heap or stack limit"):
        engine.start(ferryvm.compile("1"))


def test_data_past_the_heap_s_limit_is_one_clear_line(backend: str) -> None:
    program = ferryvm.assemble('.data 3000000 "x"\n.function main\nheap.size\nhalt\n')
    assert ferryvm.run(program, backend).value == 3_000_008
    engine = ferryvm.Engine(backend, limits=Limits(heap=1 << 20))
    message = "data needs 3000001 bytes of heap, the limit is 1048576; raise the limit"
    with pytest.raises(FerryError, match=message):
        engine.start(program)


def test_unknown_backend_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no backend 'thread'; did you mean 'threaded'"):
        ferryvm.Engine("thread")
    execution = ferryvm.Engine("switch").start(ferryvm.compile("1"))
    with pytest.raises(UnknownNameError, match=r"known: llvm, opencl, reference, switch, threaded"):
        execution.run(backend="gpu")


ADD = HostFunction("add", Signature((I64, I64), (I64,)), lambda a, b: a + b)


def _program_that_calls(name: str, signature: Signature) -> ferryvm.Program:
    text = f"""
.host {name} {signature}
.function main
i64.const 40
i64.const 2
host {name}
halt
"""
    return ferryvm.assemble(text)


def test_host_function_of_the_embedder_is_called(backend: str) -> None:
    engine = ferryvm.Engine(backend, hosts={"add": ADD})
    result = engine.start(_program_that_calls("add", ADD.signature)).run(count=True)
    assert result.value == 42
    assert result.statistics.instructions == 4


def test_host_function_that_raises_leaves_the_program_at_the_call(backend: str) -> None:
    answers: list[int] = []

    def ask(a: int, b: int) -> int:
        if not answers:
            raise LookupError("nothing to answer")
        return answers.pop() + a + b

    hosts = {"ask": HostFunction("ask", ADD.signature, ask)}
    execution = ferryvm.Engine(backend, hosts=hosts).start(
        _program_that_calls("ask", ADD.signature)
    )
    with pytest.raises(LookupError):
        execution.run()
    answers.append(100)
    assert execution.run().value == 142


def test_import_that_is_not_offered_is_refused() -> None:
    program = _program_that_calls("print_i46", ADD.signature)
    with pytest.raises(UnknownNameError, match="no host function 'print_i46'; did you mean"):
        ferryvm.run(program, "reference")


def test_import_of_another_signature_is_refused() -> None:
    program = _program_that_calls("print_i64", ADD.signature)
    message = r"print_i64 is \(i64\) -> \(\), the program imports it as \(i64 i64\) -> \(i64\)"
    with pytest.raises(HostError, match=message):
        ferryvm.run(program, "reference")
    assert program.hosts == (HostImport("print_i64", ADD.signature),)


def test_output_goes_where_the_engine_says(backend: str) -> None:
    written: list[bytes] = []
    engine = ferryvm.Engine(backend, output=written.append)
    result = engine.start(ferryvm.compile("(print! 1 2.5 #t)")).run()
    assert b"".join(written) == b"1\n2.5\n1\n"
    assert result.output == ""


def engine_with(backend: Backend) -> ferryvm.Engine:
    return ferryvm.Engine(backend.name, registry=registry(backend, discover=False))


@pytest.mark.parametrize("status", [Status.LEAVE, Status.GUARD, Status.HOT, Status.RUNNING])
def test_status_that_nobody_can_go_on_from_is_an_error(status: Status) -> None:
    engine = engine_with(Wrong(lambda *_: status, name="odd"))
    with pytest.raises(BackendError, match=f"'odd' left with {status.name} at pc 0"):
        engine.start(ferryvm.compile("1")).run()


def test_backend_that_refuses_a_program_says_why() -> None:
    class Picky(ReferenceBackend):
        name = "picky"

        def accepts(self, program: Verified) -> str | None:
            return "no vectors here"

    with pytest.raises(BackendError, match="'picky' refuses the program: no vectors here"):
        engine_with(Picky()).start(ferryvm.compile("1")).run()


def test_backend_that_cannot_count_refuses_fuel() -> None:
    class Uncounted(ReferenceBackend):
        name = "uncounted"
        capabilities = Capabilities(fuel=False)

    execution = engine_with(Uncounted()).start(ferryvm.compile("1"))
    with pytest.raises(BackendError, match="'uncounted' cannot count instructions"):
        execution.run(fuel=10)
    assert execution.run().value == 1


def test_interrupt_during_preparation_is_not_lost() -> None:
    class Slow(ReferenceBackend):
        name = "slow"

        def prepare(self, program: Verified) -> Artifact:
            execution.machine.control.interrupt = 1
            return super().prepare(program)

    execution = engine_with(Slow()).start(ferryvm.compile("(while #t 1)"))
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()


def test_negative_fuel_is_refused(backend: str) -> None:
    with pytest.raises(FerryError, match="fuel is -1; 0 to 9223372036854775807 is allowed"):
        ferryvm.run(ferryvm.compile("1"), backend, fuel=-1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "host function odd returned None; an int from -9223372036854775808 to 92233720"),
        (1.5, "host function odd returned 1.5; an int from -9223372036854775808 to 92233720"),
        (1 << 63, "host function odd returned 9223372036854775808; an int from -9223372036854775"),
    ],
)
def test_host_function_with_a_wrong_result_changes_nothing(
    backend: str, answer: object, message: str
) -> None:
    answers = [answer, answer, 7]
    hosts = {"odd": HostFunction("odd", ADD.signature, lambda _a, _b: answers.pop(0))}
    program = _program_that_calls("odd", ADD.signature)
    execution = ferryvm.Engine(backend, hosts=hosts).start(program)
    for _ in range(2):
        with pytest.raises(FerryError, match=message):
            execution.run()
        assert execution.machine.memory.stack[2 : execution.machine.control.sp].tolist() == [40, 2]
    assert execution.run().value == 7


def test_host_function_with_a_result_too_many_is_an_error(backend: str) -> None:
    signature = Signature((I64, I64))
    hosts = {"odd": HostFunction("odd", signature, lambda _a, _b: 3)}
    execution = ferryvm.Engine(backend, hosts=hosts).start(_program_that_calls("odd", signature))
    with pytest.raises(FerryError, match="host function odd has no result, but returned 3"):
        execution.run()


def test_execution_cannot_be_entered_while_it_runs(backend: str, tmp_path: Path) -> None:
    errors: list[str] = []

    def again(_a: int, _b: int) -> int:
        for attempt in (execution.run, lambda: execution.save(tmp_path / "s.ferry")):
            with pytest.raises(FerryError) as caught:
                attempt()
            errors.append(str(caught.value))
        return 5

    hosts = {"again": HostFunction("again", ADD.signature, again)}
    execution = ferryvm.Engine(backend, hosts=hosts).start(
        _program_that_calls("again", ADD.signature)
    )
    assert execution.run().value == 5
    assert errors == ["this execution is running; it cannot be run or saved meanwhile"] * 2
    assert not (tmp_path / "s.ferry").exists()


def test_program_changed_after_it_was_verified_still_runs_as_verified(backend: str) -> None:
    program = ferryvm.compile("(+ 1 2)")
    content = bytearray(program.code.tobytes())
    verified = verify(dataclasses.replace(program, code=Code(content)))
    content[:] = b"\xff" * len(content)
    assert ferryvm.Engine(backend).start(verified).run().value == 3


def test_heap_limit_holds_to_the_byte(backend: str) -> None:
    engine = ferryvm.Engine(backend, limits=Limits(heap=5000))
    text = ".function main\ni64.const {}\nheap.alloc\ndrop\nheap.size\nhalt\n"
    assert engine.start(ferryvm.assemble(text.format(5000))).run().value == 5000
    with pytest.raises(ferryvm.TrapError, match="heap exhausted"):
        engine.start(ferryvm.assemble(text.format(5001))).run()


@pytest.mark.parametrize("limits", [{"stack": 8}, {"heap": -1}, {"objects": -1}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(FerryError, match="a stack has at least 1024, the others at least 0"):
        Limits(**limits)


def test_continuing_another_program_s_variables_is_refused() -> None:
    engine = ferryvm.Engine("reference")
    first = engine.start(ferryvm.compile("(define x 1)"))
    with pytest.raises(FerryError, match="does not continue the earlier one"):
        engine.start(ferryvm.compile("(define y 1.5)"), after=first)
    small = ferryvm.Engine("reference", limits=Limits(heap=4096))
    big = engine.start(ferryvm.compile("(define v (heap.alloc 8008))"))
    big.run()
    with pytest.raises(FerryError, match="the heap has 8008 bytes, the limit is 4096"):
        small.start(ferryvm.compile("(define v (heap.alloc 16))"), after=big)


def test_other_signals_reach_whoever_waited_for_them() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def disturb(_a: int, _b: int) -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        return 1

    try:
        hosts = {"disturb": HostFunction("disturb", ADD.signature, disturb)}
        engine = ferryvm.Engine("reference", hosts=hosts)
        engine.start(_program_that_calls("disturb", ADD.signature)).run()
        assert os.read(reader, 10) == bytes([signal.SIGUSR1])
    finally:
        signal.set_wakeup_fd(old)
        signal.signal(signal.SIGUSR1, previous)
        os.close(reader)
        os.close(writer)


def test_interrupt_flag_stops_a_loop_and_the_program_can_go_on(backend: str) -> None:
    # The host call stands for whoever sets the flag: another thread, a signal.
    def stop(_a: int, _b: int) -> int:
        execution.machine.control.interrupt = 1
        return 0

    text = """
.host stop (i64 i64) -> (i64)
.static n i64
.function main () -> ()
i64.const 0
i64.const 0
host stop
drop
:again
static.get n
i64.const 1
i64.add
static.set n
static.get n
i64.const 1000
i64.lt_s
jump_if again
static.get n
halt
"""
    hosts = {"stop": HostFunction("stop", ADD.signature, stop)}
    execution = ferryvm.Engine(backend, hosts=hosts).start(ferryvm.assemble(text, "loop.fasm"))
    with pytest.raises(ferryvm.ProgramInterrupted) as caught:
        execution.run()
    assert "loop.fasm:" in str(caught.value)
    assert "interrupted" in str(caught.value)
    assert execution.machine.memory.statics[0] == 1
    assert execution.run().value == 1000


@pytest.mark.parametrize("returned", [4, None, 99])
def test_backend_that_returns_no_status_is_an_error_and_not_a_result(returned: object) -> None:
    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        real.enter(machine, counting)
        return returned  # type: ignore[return-value] # the fault to be found

    engine = engine_with(Wrong(enter, name="odd"))
    with pytest.raises(BackendError, match=f"'odd' returned {returned}, not a Status"):
        engine.start(ferryvm.compile("(/ 1 0)")).run()
