# SPDX-License-Identifier: Apache-2.0
"""Cold functions that write frames and registers at exits.

Exits that write words of the same types share one, so that a check costs the optimiser one call and
not a store for each word of the frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ferryvm.ir.graph import FrameState
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, WORD, StraightLineArithmetic, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.storage import Storage

INT32 = ir.IntType(32)
Layout = Sequence[Type | None]
"""Of each word of a frame, its type where it is stored."""

_LETTER = {t: "ilfd"[number] for number, t in enumerate(Type)}


class ExitStubs:
    """The writers of a module, each made when it is first called."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._functions: dict[str, ir.Function] = {}
        self._calls: Counter[str] = Counter()

    def write_frame(
        self, builder: ir.IRBuilder, frame: ir.Value, types: Layout, words: list[ir.Value]
    ) -> None:
        """Store words into a frame; `types`: of every word of it, as far as it is one of
        `words`."""

        def body(arithmetic: StraightLineArithmetic, frame: ir.Value, *words: ir.Value) -> None:
            _store_words(arithmetic, frame, types, words)

        parameters = [WORD, *(LLVM_TYPE[t] for t in types if t is not None)]
        self._call(builder, "frame." + _letters(types), parameters, [frame, *words], body)

    def leave(
        self,
        builder: ir.IRBuilder,
        where: tuple[ir.Value, ir.Value],
        parameters: int,
        pc: int,
        status: ir.Value,
        types: Layout,
        words: list[ir.Value],
    ) -> None:
        """As `write_frame`, and write the registers; `where`: control block and frame;
        `parameters`: words of the frame below the header."""

        def body(
            arithmetic: StraightLineArithmetic,
            control: ir.Value,
            frame: ir.Value,
            parameters: ir.Value,
            pc: ir.Value,
            status: ir.Value,
            *words: ir.Value,
        ) -> None:
            _store_words(arithmetic, frame, types, words)
            where = control, frame
            self.leave_bare(arithmetic.builder, where, parameters, pc, status, len(types))

        stored = (LLVM_TYPE[t] for t in types if t is not None)
        given = [POINTER, WORD, WORD, WORD, INT32, *stored]
        arguments = [*where, word(parameters), word(pc), status, *words]
        self._call(builder, "leave." + _letters(types), given, arguments, body)

    def leave_bare(
        self,
        builder: ir.IRBuilder,
        where: tuple[ir.Value, ir.Value],
        parameters: int | ir.Value,
        pc: int | ir.Value,
        status: ir.Value,
        length: int,
    ) -> None:
        """Write the registers, where the words of a frame are there already; `length`: of the frame
        with its operands, in words."""

        def body(arithmetic: StraightLineArithmetic, control: ir.Value, *rest: ir.Value) -> None:
            _store_registers(arithmetic.builder, control, *rest)

        given = [POINTER, WORD, WORD, WORD, WORD, INT32]
        numbers = [word(n) if isinstance(n, int) else n for n in (parameters, length, pc)]
        self._call(builder, "leave_bare", given, [*where, *numbers, status], body)

    def go_back(
        self,
        builder: ir.IRBuilder,
        where: tuple[ir.Value, ir.Value],
        parameters: int,
        results: list[ir.Value],
    ) -> None:
        """Return to the caller's frame, as the instruction `return` does; `parameters`: words below
        the header; `results`: as words, of which the first is stored."""

        def body(
            arithmetic: StraightLineArithmetic,
            control: ir.Value,
            frame: ir.Value,
            parameters: ir.Value,
            result: ir.Value,
            results: ir.Value,
        ) -> None:
            builder = arithmetic.builder
            storage = Storage(builder)
            header = builder.add(frame, builder.shl(parameters, word(3)))
            pc = storage.load(storage.pointer(header), "stack")
            above = storage.pointer(builder.add(header, word(WORD_BYTES)))
            distance = storage.load(above, "stack")
            storage.store(result, storage.pointer(frame), "stack")
            start = storage.field(control, "stack")
            own = builder.lshr(builder.sub(frame, start), word(3))
            storage.set_field(control, "pc", pc)
            storage.set_field(control, "fp", builder.sub(builder.add(own, parameters), distance))
            storage.set_field(control, "sp", builder.add(own, results))
            storage.set_field(control, "status", ir.Constant(INT32, int(Status.LEAVE)))

        arguments = [*where, word(parameters), *(results[:1] or [word(0)]), word(len(results))]
        self._call(builder, "go_back", [POINTER, WORD, WORD, WORD, WORD], arguments, body)

    def settle(self) -> None:
        """Decide, after all calls are emitted, the placement of each writer's code."""
        for name, function in self._functions.items():
            if self._calls[name] == 1:  # a function of its own would only cost time to compile
                function.attributes.add("alwaysinline")
            else:
                function.attributes.add("noinline")
                function.attributes.add("cold")
                # They are a third of LLVM's input, and rarely run.
                function.attributes.add("optnone")

    def _call(
        self,
        builder: ir.IRBuilder,
        name: str,
        parameters: Sequence[ir.Type],
        arguments: Sequence[ir.Value],
        body: Callable[..., None],
    ) -> None:
        """Call a writer, which `body` generates if it does not exist yet."""
        function = self._functions.get(name)
        if function is None:
            signature = ir.FunctionType(ir.VoidType(), parameters)
            function = self._functions[name] = ir.Function(self._module, signature, name)
            function.linkage = "internal"
            function.attributes.add("nounwind")
            own = ir.IRBuilder(function.append_basic_block())
            body(StraightLineArithmetic(own), *function.args)
            own.ret_void()
        self._calls[name] += 1
        builder.call(function, arguments)


def _letters(types: Layout) -> str:
    return "".join("_" if t is None else _LETTER[t] for t in types)


def _store_words(
    arithmetic: StraightLineArithmetic, frame: ir.Value, types: Layout, words: Sequence[ir.Value]
) -> None:
    storage = Storage(arithmetic.builder)
    start = storage.pointer(frame)
    stored = [(place, t) for place, t in enumerate(types) if t is not None]
    for (place, t), value in zip(stored, words, strict=True):
        where = storage.offset(start, WORD_BYTES * place)
        storage.store(arithmetic.to_slot(t, value), where, "stack")


def _store_registers(
    builder: ir.IRBuilder,
    control: ir.Value,
    frame: ir.Value,
    parameters: ir.Value,
    length: ir.Value,
    pc: ir.Value,
    status: ir.Value,
) -> None:
    storage = Storage(builder)
    first = builder.lshr(builder.sub(frame, storage.field(control, "stack")), word(3))
    storage.set_field(control, "fp", builder.add(first, parameters))
    storage.set_field(control, "sp", builder.add(first, length))
    storage.set_field(control, "pc", pc)
    storage.set_field(control, "status", status)


def layout_of(state: FrameState) -> list[Type | None]:
    """Types of the words that a state writes, at their places in the frame."""
    return [None if word is None else word.word_type for word in state.words]
