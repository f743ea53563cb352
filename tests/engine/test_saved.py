# SPDX-License-Identifier: Apache-2.0
"""Saved states: they go on anywhere as if nothing had happened, and lies in them are refused."""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine, Execution, Program, TrapError
from ferryvm.engine import saved
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.errors import FerryError
from ferryvm.image import ImageError, to_bytes
from ferryvm.image.container import pack, unpack
from ferryvm.isa import BY_MNEMONIC, I64, Trap
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.machine.sparse import Sparse
from ferryvm.program import HostImport, Signature
from ferryvm_backends import ferryvm_backends

from ..tier import sample

BACKENDS = tuple(entry.name for entry in ferryvm_backends())
LIMITS = Limits(stack=1 << 14, heap=1 << 16, first_heap=1 << 12)


@functools.cache
def engine(backend: str) -> Engine:
    return Engine(backend, limits=LIMITS)


def state(execution: Execution) -> dict[str, object]:
    """Everything that must be equal on every backend."""
    control, memory = execution.machine.control, execution.machine.memory
    return {
        "status": Status(control.status),
        "registers": (control.trap, control.pc, control.sp, control.fp, control.hp),
        "statics": memory.statics.tobytes(),
        "stack": memory.stack[: control.sp].tobytes(),
        "heap": memory.heap[: control.hp].tobytes(),
    }


def reload(execution: Execution, backend: str, path: Path) -> Execution:
    execution.save(path)
    return engine(backend).resume(path)


# --- going on -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_each", sample([False, True], 1))
def test_states_out_of_fuel_are_equal_on_every_backend_after_every_instruction(
    rich: Program, is_each: bool
) -> None:
    total = engine("reference").start(rich).run(count=True).statistics.instructions
    assert total is not None
    assert total > 60
    # A step without common factors with the number of backends that take turns.
    for fuel in range(total + 2) if is_each else (*range(0, total, 7), total, total + 1):
        states = []
        for backend in (
            BACKENDS if is_each else (BACKENDS[0], BACKENDS[1 + fuel % len(BACKENDS[1:])])
        ):
            execution = engine(backend).start(rich)
            output = execution.run(fuel).output
            states.append((output, execution.instructions, state(execution)))
        assert all(state == states[0] for state in states), f"after {fuel}"
        expected = Status.FUEL if fuel < total else Status.HALT
        assert states[0][2]["status"] is expected


@pytest.mark.rotate("first", "second", most=3)
@pytest.mark.parametrize("step", sample([19, 1], 1))
@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("second", BACKENDS)
def test_saved_after_any_instruction_it_ends_on_any_backend_as_without_a_stop(
    rich: Program, first: str, second: str, step: int, tmp_path: Path
) -> None:
    whole = engine(second).start(rich)
    expected = whole.run(count=True)
    assert expected.statistics.instructions is not None
    for fuel in range(len(second) % step, expected.statistics.instructions + 1, step):
        execution = engine(first).start(rich)
        before = execution.run(fuel)
        resumed = reload(execution, second, tmp_path / "s.ferry")
        assert state(resumed) == state(execution)
        after = resumed.run(count=True)
        assert before.output + after.output == expected.output
        assert (after.value, after.type) == (expected.value, expected.type)
        assert after.statistics.instructions == expected.statistics.instructions
        assert state(resumed) == state(whole)


def test_saved_before_the_first_instruction_it_starts(
    rich: Program, backend: str, tmp_path: Path
) -> None:
    resumed = reload(engine(backend).start(rich), backend, tmp_path / "s.ferry")
    assert resumed.machine.status is Status.RUNNING
    assert resumed.run().value == 14


def test_halted_state_gives_its_result_again(rich: Program, backend: str, tmp_path: Path) -> None:
    execution = engine("reference").start(rich)
    execution.run(count=True)
    resumed = reload(execution, backend, tmp_path / "s.ferry")
    result = resumed.run(fuel=5)
    assert (result.status, result.value, result.output) == (Status.HALT, 14, "")
    assert resumed.instructions == execution.instructions


def test_trapped_state_traps_again_at_the_same_place(backend: str, tmp_path: Path) -> None:
    text = "(define (f n) (if (= n 0) (/ 1 n) (f (- n 1))))\n(f 3)"
    execution = engine("reference").start(ferryvm.compile(text, "t.skiff"))
    with pytest.raises(TrapError) as first:
        execution.run()
    resumed = reload(execution, backend, tmp_path / "s.ferry")
    with pytest.raises(TrapError) as second:
        resumed.run()
    assert second.value.kind is Trap.INTEGER_DIVIDE_BY_ZERO
    assert str(second.value) == str(first.value)
    assert state(resumed) == state(execution)


@pytest.mark.parametrize("locals_", [10, 2000, 3000])
def test_state_that_trapped_for_want_of_stack_at_its_start_can_be_saved(
    locals_: int, tmp_path: Path
) -> None:
    lines = f".local {'i64 ' * locals_}\n" + "i64.const 1\n" * 2100
    program = ferryvm.assemble(f".function main\n{lines}halt")
    execution = engine("switch").start(program)
    execution.save(tmp_path / "s.ferry")
    resumed = Engine("switch").resume(tmp_path / "s.ferry")
    with pytest.raises(TrapError) as caught:
        resumed.run()
    assert caught.value.kind is Trap.STACK_OVERFLOW


def test_state_says_how_much_memory_it_needs(rich: Program, tmp_path: Path) -> None:
    path = tmp_path / "s.ferry"
    execution = Engine("switch").start(ferryvm.compile(
        "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1)))))\n(heap.alloc 160008)\n(f 5000)"
    ))  # fmt: skip
    execution.run(fuel=30_000)
    execution.save(path)
    with pytest.raises(ImageError) as caught:
        Engine("switch", limits=Limits(stack=4096)).resume(path)
    assert str(caught.value).startswith(f"{path}: needs a stack of ")
    with pytest.raises(ImageError) as caught:
        Engine("switch", limits=Limits(heap=8192)).resume(path)
    assert str(caught.value) == f"{path}: needs a heap of 160008 bytes; raise the limit"


def test_state_left_at_a_failed_host_call_makes_the_call_again(
    backend: str, tmp_path: Path
) -> None:
    calls = []

    def action(bits: int) -> int:
        calls.append(bits)
        if len(calls) == 1:
            raise FerryError("no answer")
        return 2 * bits

    signature = Signature((I64,), (I64,))
    offering = Engine(backend, hosts={"ask": HostFunction("ask", signature, action)})
    program = ferryvm.assemble(
        ".host ask (i64) -> i64\n.function main\ni64.const 4\nhost ask\nhalt"
    )
    assert program.hosts == (HostImport("ask", signature),)
    execution = offering.start(program)
    with pytest.raises(FerryError, match="no answer"):
        execution.run()
    execution.save(tmp_path / "s.ferry")
    assert offering.resume(tmp_path / "s.ferry").run().value == 8
    assert calls == [4, 4]


def test_count_is_kept_or_known_to_be_unknown(rich: Program, tmp_path: Path) -> None:
    path = tmp_path / "s.ferry"
    execution = engine("switch").start(rich)
    execution.run(fuel=10)
    assert reload(execution, "threaded", path).instructions == 10
    execution.run()
    assert reload(execution, "threaded", path).instructions is None


def test_a_million_calls_deep_are_checked_one_by_one(tmp_path: Path) -> None:
    text = "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1)))))\n(f 1000000)"
    execution = Engine("threaded").start(ferryvm.compile(text))
    execution.run(fuel=8_000_000)
    assert execution.machine.control.fp > 3_000_000
    execution.save(tmp_path / "s.ferry")
    assert Engine("switch").resume(tmp_path / "s.ferry").run().value == 1_000_000


# --- files ----------------------------------------------------------------------------------


def test_altered_and_cut_files_are_one_clear_error(rich: Program, tmp_path: Path) -> None:
    path = tmp_path / "s.ferry"
    execution = engine("switch").start(rich)
    execution.run(fuel=30)
    content = pack_state(execution.machine, 30)
    for offset in range(8, len(content), 7):
        altered = bytearray(content)
        altered[offset] ^= 0x10
        for wrong in (bytes(altered), content[:offset]):
            path.write_bytes(wrong)
            with pytest.raises(ImageError) as caught:
                engine("switch").resume(path)
            assert str(caught.value).startswith(f"{path}: ")
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"(print! 1)", bytes(100)])
def test_other_file_is_no_state(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.ferry"
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        engine("switch").resume(path)
    assert str(caught.value) == f"{path}: not a saved ferryvm state (.ferry)"


def test_program_image_is_no_state_and_a_state_no_program(rich: Program, tmp_path: Path) -> None:
    image, path = tmp_path / "p.fvm", tmp_path / "s.ferry"
    ferryvm.save(rich, image)
    engine("switch").start(rich).save(path)
    with pytest.raises(ImageError, match=r"p\.fvm: not a saved ferryvm state \(\.ferry\)$"):
        engine("switch").resume(image)
    with pytest.raises(ImageError, match=r"s\.ferry: not a ferryvm program image \(\.fvm\)$"):
        ferryvm.load(path)


def test_file_that_cannot_be_read_or_written_is_named(rich: Program, tmp_path: Path) -> None:
    path = tmp_path / "absent" / "s.ferry"
    with pytest.raises(ImageError) as caught:
        engine("switch").resume(path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"
    with pytest.raises(ImageError) as caught:
        engine("switch").start(rich).save(path)
    assert str(caught.value) == f"{path}: cannot be written: No such file or directory"


# --- lies with a right checksum -------------------------------------------------------------

REGISTERS = ("status", "trap", "pc", "sp", "fp", "hp", "count")
MAX = (1 << 64) - 1


def heap_section(heap: Sparse) -> bytes:
    numbers = [len(heap.parts), heap.size]
    for start, content in heap.parts:
        numbers += [start, len(content)]
    head = struct.pack(f"<{len(numbers)}Q", *numbers)
    return head + b"".join(content for _, content in heap.parts)


@dataclasses.dataclass
class Parts:
    """The sections of a state, to be changed."""

    program: bytes
    registers: dict[str, int]
    statics: list[int]
    stack: list[int]
    heap: bytes

    @classmethod
    def of(cls, execution: Execution) -> Parts:
        sections = unpack(STATE, pack_state(execution.machine, execution.instructions), "s")
        values = struct.unpack("<7Q", sections["REGS"])
        return cls(
            sections["PROG"],
            dict(zip(REGISTERS, values, strict=True)),
            memoryview(sections["STAT"]).cast("Q").tolist(),
            memoryview(sections["STCK"]).cast("Q").tolist(),
            execution.machine.memory.heap[: values[5]].tobytes(),
        )

    def content(self) -> bytes:
        return pack(
            STATE,
            {
                "PROG": self.program,
                "REGS": struct.pack("<7Q", *self.registers.values()),
                "STAT": struct.pack(f"<{len(self.statics)}Q", *self.statics),
                "STCK": struct.pack(f"<{len(self.stack)}Q", *self.stack),
                "HEAP": heap_section(Sparse.of(self.heap)),
                "OBJS": b"",
            },
        )


def refusal(parts: Parts) -> str:
    with pytest.raises(ImageError) as caught:
        unpack_state(parts.content(), LIMITS, "s")
    return str(caught.value)


@pytest.fixture
def at(rich: Program) -> Callable[[str, int], Parts]:
    """The state of the program before the n-th time that it gets to an instruction."""

    def at(mnemonic: str, times: int = 1) -> Parts:
        execution = engine("switch").start(rich)
        while True:
            opcode = rich.code.opcodes[execution.machine.control.pc]
            times -= opcode == BY_MNEMONIC[mnemonic].opcode
            if not times:
                return Parts.of(execution)
            assert execution.run(fuel=1).status is Status.FUEL

    return at


At = Callable[..., Parts]


def test_state_as_it_was_saved_is_accepted(at: At) -> None:
    machine, count = unpack_state(at("i64.eqz", 3).content(), LIMITS, "s")
    assert (machine.control.fp, count) == (14, 31)


def register(name: str, value: int) -> Callable[[Parts], None]:
    return lambda parts: parts.registers.update({name: value})


def stack(index: int, value: int) -> Callable[[Parts], None]:
    return lambda parts: parts.stack.__setitem__(index, value)


def pop(parts: Parts) -> None:
    parts.stack.pop()
    parts.registers["sp"] -= 1


def push(parts: Parts) -> None:
    parts.stack.append(0)
    parts.registers["sp"] += 1


def in_main(parts: Parts) -> None:
    """The innermost frame is main's, and as large as that is."""
    push(parts)
    parts.registers["pc"] = 0


def only_frame(pc: int) -> Callable[[Parts], None]:
    """Nothing but one frame of a local at the bottom of the stack."""

    def alter(parts: Parts) -> None:
        parts.registers.update(pc=pc, fp=0, sp=3)
        parts.stack[:] = [0, 0, 0]

    return alter


def trapped(trap: Trap) -> Callable[[Parts], None]:
    def alter(parts: Parts) -> None:
        parts.registers.update(status=Status.TRAP, trap=trap)

    return alter


def heap(size: int) -> Callable[[Parts], None]:
    def alter(parts: Parts) -> None:
        parts.heap = parts.heap[:size]
        parts.registers["hp"] = size

    return alter


# At the third i64.eqz main's frame begins at word 0 (it called down at 13); those of down(3),
# down(2) and down(1) have their headers at words 6, 10 and 14, each behind its parameter, and the
# first two are at their calls.
LIES: list[tuple[Callable[[Parts], None], str]] = [
    *((register("status", n), f"status {n}, none of 0, 1, 4, 7, 8") for n in (2, 3, 5, 6, 9, MAX)),
    (register("trap", 2), "trap 2 with status 8"),
    (register("trap", MAX), f"trap {MAX} with status 8"),
    (register("status", 4), "trap 0 with status 4"),
    (trapped(Trap.UNCAUGHT_EXCEPTION), "an exception was thrown at pc 35, which is no throw"),
    (register("status", 1), "it halted at pc 35, which is no halt"),
    (register("count", 1 << 63), f"{1 << 63} instructions"),
    *((register("pc", n), f"control never gets to pc {n}") for n in (51, 1 << 32, MAX)),
    (register("pc", 37), "the frame at word 14 ends at 16, the next is at 17"),
    (in_main, "'main' is not called at pc 41"),
    (register("pc", 27), "'half' is not called at pc 41"),
    (register("sp", 20), "136 bytes in section STCK, not 160"),
    (register("sp", MAX), f"136 bytes in section STCK, not {8 * MAX}"),
    (pop, "the frame at word 14 ends at 17, the next is at 16"),
    (push, "the frame at word 14 ends at 17, the next is at 18"),
    (register("fp", 10), "the frame at word 10 ends at 13, the next is at 17"),
    (register("fp", MAX), f"the frame at word {MAX} ends at {MAX + 3}, the next is at 17"),
    (register("hp", 40), "a heap of 32 bytes, its heap pointer is 40"),
    (heap(31), "heap pointer 31; a multiple of 8 from 8 expected"),
    (heap(0), "heap pointer 0; a multiple of 8 from 8 expected"),
    (lambda parts: parts.statics.append(0), "24 bytes in section STAT, not 16"),
    (lambda parts: parts.statics.__setitem__(1, 1 << 32), "static 'small' is not an i32"),
    *((stack(14, n), f"a frame returns to pc {n}, which follows no call") for n in (52, MAX)),
    (stack(14, 0), "a frame returns to pc 0, which follows no call"),
    (stack(14, 43), "'down' is not called at pc 42"),
    (stack(14, 24), "'down' is not called at pc 23"),
    (stack(14, 16), "'down' is not called at pc 15"),  # the table has others of its signature
    (stack(14, 14), "the frame at word 10 ends at 15, the next is at 13"),
    *((stack(15, n), f"the frame at word 14 has its caller {n} words below") for n in (0, 15, MAX)),
    (stack(15, 8), "the frame at word 6 ends at 9, the next is at 13"),
    (stack(7, 5), "the frame at word 1 ends at 6, the next is at 5"),
    (stack(0, 1), "its outermost frame is not that of function 0"),
    (stack(1, 1), "its outermost frame is not that of function 0"),
    (only_frame(46), "its outermost frame is not that of function 0"),
    *((stack(n, 1 << 32), f"word {n} of the stack has bits that its type has not") for n in (3, 4)),
]


@pytest.mark.parametrize(("lie", "message"), LIES, ids=[message for _, message in LIES])
def test_state_that_the_program_cannot_be_in_is_refused(
    at: At, lie: Callable[[Parts], None], message: str
) -> None:
    parts = at("i64.eqz", 3)
    lie(parts)
    assert refusal(parts) == f"s: not a state of its program: {message}"


def test_callee_must_be_the_function_that_the_call_names() -> None:
    # Here the one gives a result and the other none: the caller would find its stack askew.
    program = ferryvm.assemble(
        ".function main\ncall one\ndrop\nhalt\n.function one -> i64\ni64.const 1\nreturn\n"
        ".function none\nreturn\n"
    )
    execution = engine("switch").start(program)
    execution.run(fuel=1)
    parts = Parts.of(execution)
    assert parts.registers["pc"] == 3
    parts.registers["pc"] = 5
    assert refusal(parts) == "s: not a state of its program: 'none' is not called at pc 0"


@pytest.mark.parametrize("word", [2, 5, 6, 9])
def test_parameters_and_locals_of_every_frame_have_the_bits_of_their_types(word: int) -> None:
    # Words 2 and 5 to 6 are arguments where the callers stand and parameters of the callees.
    program = ferryvm.assemble(
        ".function main\ni32.const 1\ncall f\nhalt\n"
        ".function f (n i32) -> i32\nlocal.get n\ni32.const 1\ncall g\nreturn\n"
        ".function g (a i32 b i32) -> i32\n.local i32\nlocal.get a\nreturn\n"
    )
    execution = engine("switch").start(program)
    execution.run(fuel=5)
    parts = Parts.of(execution)
    assert parts.stack == [0, 0, 1, 2, 3, 1, 1, 6, 4, 0]
    parts.stack[word] |= 1 << 32
    message = f"word {word} of the stack has bits that its type has not"
    assert refusal(parts) == f"s: not a state of its program: {message}"


def test_indirect_callee_must_have_the_signature_and_stand_in_the_table(at: At) -> None:
    parts = at("local.get", 13)
    assert (parts.registers["pc"], parts.registers["fp"]) == (30, 6)
    parts.registers["pc"] = 26
    unpack_state(parts.content(), LIMITS, "s")  # as if the index had been 0
    parts.registers["pc"] = 34
    assert refusal(parts).endswith("'down' is not called at pc 15")
    push(parts)  # it has a local and no parameter
    parts.registers["pc"] = 46
    assert refusal(parts).endswith("'nothing' is not called at pc 15")


def test_registers_of_another_size_are_refused(at: At) -> None:
    sections = unpack(STATE, at("i64.eqz").content(), "s")
    content = pack(STATE, {**sections, "REGS": bytes(48)})
    with pytest.raises(ImageError) as caught:
        unpack_state(content, LIMITS, "s")
    assert str(caught.value) == "s: not a state of its program: 48 bytes of registers, not 56"


def test_program_of_a_state_is_checked_as_any_other(at: At) -> None:
    parts = at("i64.eqz")
    parts.program = b"nothing"
    assert refusal(parts) == "s: its program: not a ferryvm program image (.fvm)"
    parts.program = to_bytes(Program())
    assert refusal(parts) == "s: V01: a program needs at least one function and its code"


def test_count_past_what_can_be_saved_becomes_unknown(rich: Program) -> None:
    execution = engine("switch").start(rich)
    content = saved.pack_state(execution.machine, 1 << 63)
    assert unpack_state(content, LIMITS, "s")[1] is None
