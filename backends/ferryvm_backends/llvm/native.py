# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to code that can be entered."""

from __future__ import annotations

import ctypes
import json
import re
import time
from collections.abc import Mapping

import llvmlite.binding as llvm

from ferryvm.backend import Activity, Code, NestActivity
from ferryvm.flowgraph.component import cycle_without
from ferryvm.ir.graph import Module
from ferryvm.ir.versioned_nest import VersionedNest
from ferryvm.machine.host_stack import frame_bytes
from ferryvm.machine.lane import LaneEntry
from ferryvm.named_tuple import NamedTuple
from ferryvm_backends._llvm import cache_entry, codegen, ir
from ferryvm_backends._llvm.codegen import ObjectCode, target_machine
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm.symbol import (
    ACTIVITY,
    CROWDED,
    CYCLES,
    ENTRIES,
    ENTRY,
    FAILURES,
    INSTRUCTIONS,
    LANES,
    NEST_WORDS,
    STACK,
)


def parsed(module: ir.Module) -> llvm.ModuleRef:
    """LLVM's own form of a module. Raises RuntimeError for one that is wrong."""
    target = target_machine()
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    return codegen.parsed(str(module))


def parsed_text(text: str) -> llvm.ModuleRef:
    """LLVM's own form of a module of functions for this processor, from their text. Raises
    RuntimeError for one that is wrong."""
    target = target_machine()
    head = f'target triple = "{target.triple}"\ntarget datalayout = "{target.target_data}"\n'
    return codegen.parsed(head + text)


def optimised(module: llvm.ModuleRef, level: int) -> llvm.ModuleRef:
    """A module after LLVM's pipeline of a level (0 to 3); the one given may be changed."""
    return improve(module, Pipeline(level))


_LABEL = re.compile(r'(?:"[^"]*"|[-\w.$]+)(?=:)')
_TARGET = re.compile(r'label %("[^"]*"|[-\w.$]+)')


def has_loop(module: llvm.ModuleRef) -> bool:
    """True if a function's control-flow graph has a cycle."""
    # Looked for in the text: there every block has a name, if only a number, and asking llvmlite
    # for all instructions one by one takes ten times as long.
    places: dict[str, int] = {}
    onward: list[list[str]] = []
    for line in str(module).splitlines():
        label = _LABEL.match(line)
        if line.startswith("define"):
            if _is_cyclic(places, onward):
                return True
            places, onward = {}, [[]]  # the first block, which nothing leads to
        elif label is not None:
            places[label[0]] = len(onward)
            onward.append([])
        elif onward:
            onward[-1] += _TARGET.findall(line)
    return _is_cyclic(places, onward)


def _is_cyclic(places: Mapping[str, int], onward: list[list[str]]) -> bool:
    """True if the blocks at these places lead back to one another."""
    return bool(cycle_without([[places[name] for name in names] for names in onward], ()))


def emitted(module: llvm.ModuleRef, level: int = 2) -> bytes:
    """The object code of a module; `level`: of LLVM's code generator."""
    return bytes(target_machine(level).emit_object(module))


def stack_bytes(module: llvm.ModuleRef, code: bytes) -> int:
    """Bytes of the host's stack that the functions of a module take together; `code`: its
    object."""
    functions = sum(not function.is_declaration for function in module.functions)
    sections = llvm.ObjectFileRef.from_data(code).sections()
    return sum(
        (frame_bytes(s.data(), 0) for s in sections if s.is_text()), frame_bytes(b"", functions)
    )


def packed(module: Module, stack: int, code: bytes, lanes: tuple[int, int]) -> bytes:
    """The content of a region's cache entry: the notes are bytes of the host's stack that its
    frames take, the pcs of its guards, its nests; `lanes`, and the reason that a launch has none.

    `lanes`: the number of its lanes, and the rows of a buffer of theirs; zeros: none.
    """
    notes = [stack, module.guards, module.nests, [*lanes, module.scalar]]
    return cache_entry.packed(json.dumps(notes).encode(), code)


def fault(payload: bytes) -> str | None:
    """The reason that this is not a result of `packed`; None if it is."""
    try:
        _noted(cache_entry.unpacked(payload)[0])
    except (ValueError, TypeError, LookupError, RecursionError):
        return "it has no pcs of guards"
    return cache_entry.fault(payload)


class _Notes(NamedTuple):
    """The notes of a region's cache entry."""

    stack: int
    """Bytes of the host's stack."""
    guards: list[int]
    nests: list[VersionedNest]
    lanes: int
    """0: it has no code for lanes."""
    rows: int
    scalar: str
    """The reason that a launch has no code for lanes."""


def _noted(notes: bytes) -> _Notes:
    """The notes of a region. Raises ValueError, TypeError or LookupError for others."""
    stack, guards, nests, (lanes, rows, scalar) = json.loads(notes)
    numbers = (stack, *guards, lanes, rows) if isinstance(guards, list) else ()
    if not numbers or not all(type(number) is int for number in numbers):
        raise TypeError
    if not isinstance(scalar, str):
        raise TypeError
    found = [VersionedNest.from_json(each) for each in nests]
    return _Notes(stack, guards, found, lanes, rows, scalar)


_calibrated: list[float] = []


def seconds_a_cycle() -> float:
    """Duration of one tick of the processor's time stamp counter, measured once."""
    if not _calibrated:
        code = ObjectCode(emitted(parsed(_counter_module())))
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(code.address("ferry_cycles"))
        began, first = time.perf_counter(), read()
        while time.perf_counter() - began < 0.002:
            pass
        _calibrated.append((time.perf_counter() - began) / (read() - first))
    return _calibrated[0]


def _counter_module() -> ir.Module:
    module = ir.Module("cycles")
    word = ir.IntType(64)
    counter = ir.Function(module, ir.FunctionType(word, []), "llvm.readcyclecounter")
    function = ir.Function(module, ir.FunctionType(word, []), "ferry_cycles")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.call(counter, []))
    return module


class RegionCode(Code):
    """A loaded region."""

    def __init__(self, content: bytes) -> None:
        """`content`: as `packed` makes it."""
        noted, code = cache_entry.unpacked(content)
        notes = _noted(noted)
        self._guards, self._nests = notes.guards, notes.nests
        """The pc of each guard, in the order of their counts; nests, likewise."""
        self._native = ObjectCode(code)
        self.address = self._native.address(ENTRY)
        words = ctypes.c_uint64 * (FAILURES + len(self._guards) + NEST_WORDS * len(self._nests))
        self._activity = words.from_address(self._native.address(ACTIVITY))
        self._activity[STACK] = notes.stack
        if notes.lanes:
            self.lanes = LaneEntry(self._native.address(LANES), notes.lanes, notes.rows)
        self.scalar = notes.scalar

    def activity(self) -> Activity:
        words = list(self._activity)
        return Activity(
            words[ENTRIES],
            words[CYCLES] * seconds_a_cycle() if words[CYCLES] else 0.0,
            words[INSTRUCTIONS],
            {pc: words[FAILURES + number] for number, pc in enumerate(self._guards)},
            nests=self._activity_of_nests(words),
            crowded=words[CROWDED],
            stack=words[STACK],
        )

    def _activity_of_nests(self, words: list[int]) -> tuple[NestActivity, ...]:
        """Executions of nests that store; metrics of one that was copied are added up."""
        found = []
        for number, nest in enumerate(self._nests):
            first = FAILURES + len(self._guards) + NEST_WORDS * number
            fast, slow, last = words[first : first + NEST_WORDS]
            reason = nest.doubts[last - 1] if last else nest.unfit
            text, pcs = ("", ()) if reason is None else reason
            found.append(NestActivity(nest.pc, nest.unfit is None, fast, slow, text, tuple(pcs)))
        return tuple(found)
