# SPDX-License-Identifier: Apache-2.0
"""Inference for classic listings: functions, their signatures, the number of statics.

    steps ──follow control from main and from every called label──> bodies ──emit──> Listing

This is a small abstract interpretation: an operand stack is a list of words and marks, and each
step of a body is visited once, with one stack on which all paths to it must agree. The results of a
call depend on the callee's RETURN, which may not have been visited yet (recursion): such a path is
suspended until it has been. A body consists of all steps that control reaches from its label, so
functions may stand anywhere in the text, and steps that two functions reach are in both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container

from ferryvm.asm.classic import DEFAULT_STATICS, MNEMONICS, MOST_WORDS, OperandKind, Step, Steps
from ferryvm.asm.source import Source, Token
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, I64
from ferryvm.listing import FunctionListing, Item, Label, Line, Listing
from ferryvm.program import HostImport, Signature, Static

_ENDS = ("JMP", "RETURN", "STOP")
_PRINT = HostImport("print_i64", Signature((I64,)))


def infer(source: Source, steps: Steps) -> Listing:
    """The listing of a classic text; raises SourceError where no signatures fit."""
    if not steps.steps:
        source.fault(Token("", 1, 1), "no instructions: a listing starts with its main program")
        source.check()
    statics = _statics(source, steps)
    analysis = _analyse(source, steps)
    source.check()
    functions = _functions(source, steps, analysis)
    lines = [i for f in functions for i in f.items if isinstance(i, Line)]
    return Listing(
        functions=functions,
        statics=[Static(f"s{number}", I64) for number in range(statics)],
        hosts=[_PRINT] if any(line.row.mnemonic == "host" for line in lines) else [],
    )


def _analyse(source: Source, steps: Steps) -> _Analysis:
    """The analysis that finds no fault, or the first one with its faults recorded.

    A function whose RETURNs are reachable only through a call of itself never returns. The code
    after its call must still agree on a stack, so 0 results are assumed, then 1.
    """
    assumed: dict[str, int] = {}
    first = analysis = _Analysis(source, steps, assumed)
    analysis.run()
    while analysis.faults and 0 in assumed.values():
        latest = [label for label, results in assumed.items() if results == 0][-1]
        assumed[latest] = 1
        analysis = _Analysis(source, steps, assumed)
        analysis.run()
    if analysis.faults:
        analysis = first
    for token, message in analysis.faults.items():
        source.fault(token, message)
    return analysis


def _statics(source: Source, steps: Steps) -> int:
    """Number of statics: as declared, or one more than the highest constant number."""
    highest, is_computed = -1, False
    for index, step in enumerate(steps.steps):
        if MNEMONICS[step.name].kind is not OperandKind.STATIC:
            continue
        number = step.number
        before = steps.steps[index - 1] if index and not step.labels else None
        if number is None and before is not None and before.name == "PUSH_WORD":
            number = before.number
        if number is None:
            is_computed = True
            continue
        limit = MOST_WORDS if steps.statics is None else steps.statics
        if number >= limit:
            allowed = f"0 to {limit - 1} are allowed" if limit else "there are none"
            source.fault(step.token, f"no static {number}: {allowed}")
        highest = max(highest, number)
    if steps.statics is not None:
        return steps.statics
    return max(highest + 1, DEFAULT_STATICS if is_computed else 0)


class _Stack:
    """An operand stack. `_Stacks` interns stacks, so equal ones are one object."""

    __slots__ = ("above_mark", "below", "depth", "has_mark", "is_mark")

    def __init__(self, below: _Stack | None, is_mark: bool) -> None:
        self.below, self.is_mark = below, is_mark
        self.has_mark: bool = is_mark or (below is not None and below.has_mark)
        self.depth: int = 0 if below is None else below.depth + (not is_mark)
        """Number of its words; marks do not count."""
        self.above_mark: int = 0 if below is None or is_mark else below.above_mark + 1
        """Number of words above the nearest mark, or above the bottom."""

    def __str__(self) -> str:
        words = f"{self.above_mark} word{'' if self.above_mark == 1 else 's'}"
        if not self.has_mark:
            return words
        return f"{words} above MARK_STK and {self.depth - self.above_mark} below it"


class _Stacks:
    def __init__(self) -> None:
        self.empty = _Stack(None, False)
        self.known: dict[tuple[int, bool], _Stack] = {}

    def push(self, stack: _Stack, is_mark: bool = False) -> _Stack:
        key = (id(stack), is_mark)
        if key not in self.known:
            self.known[key] = _Stack(stack, is_mark)
        return self.known[key]


@dataclasses.dataclass
class _Body:
    """The steps that control reaches from a label (None: from the start of the text)."""

    label: str | None
    entry: int
    stacks: dict[int, _Stack] = dataclasses.field(default_factory=dict)
    """The stack before each reachable step."""
    sources: dict[int, int] = dataclasses.field(default_factory=dict)
    """The predecessor from which each step was first reached."""


_Path = tuple[_Body, int, _Stack]
"""A path after a step of a body, with its stack."""


class _Analysis:
    """One attempt, under assumptions about functions without a visited RETURN."""

    def __init__(self, source: Source, steps: Steps, assumed: dict[str, int]) -> None:
        self.source, self.assumed = source, assumed
        self.steps, self.labels = steps.steps, steps.labels
        self.stacks = _Stacks()
        self.bodies: dict[str | None, _Body] = {}
        self.parameters: dict[str, tuple[int, Step]] = {}
        """Words passed to each called label, and the first call."""
        self.results: dict[str, tuple[int, Step | None]] = {}
        """Words returned, and the RETURN that determines it."""
        self.unresolved: dict[str, list[_Path]] = {}
        self.pending: list[tuple[_Body, int]] = []
        self.faults: dict[Token, str] = {}
        """The first fault at each token: a step that two bodies share fails in both."""

    def run(self) -> None:
        """Follow all paths; adds an assumption whenever every path is suspended."""
        self._start(None, 0)
        while True:
            while self.pending:
                self._visit(*self.pending.pop())
            if not self.unresolved or self.faults:
                return
            label = next(iter(self.unresolved))
            self._settle(label, self.assumed.setdefault(label, 0), None)

    def _start(self, label: str | None, entry: int) -> None:
        if label not in self.bodies:
            self.bodies[label] = body = _Body(label, entry)
            self._reach(body, entry, self.stacks.empty, entry)

    def _reach(self, body: _Body, index: int, stack: _Stack, came_from: int) -> None:
        if index >= len(self.steps):
            last = self.steps[min(came_from, len(self.steps) - 1)]
            self._fault(
                last,
                "control runs past the end of the listing after this; expected STOP, RETURN or JMP",
            )
            return
        known = body.stacks.get(index)
        if known is None:
            body.stacks[index] = stack
            body.sources[index] = came_from
            self.pending.append((body, index))
        elif known is not stack:
            first = self.steps[body.sources[index]]
            self._fault(
                self.steps[index],
                f"the stack has {known} here from {self._at(first)}, "
                f"but {stack} from {self._at(self.steps[came_from])}",
            )

    def _at(self, step: Step) -> str:
        return f"{step.name} at {self.source.position(step.token)}"

    def _fault(self, step: Step, message: str) -> None:
        self.faults.setdefault(step.token, message)

    def _visit(self, body: _Body, index: int) -> None:
        step, stack = self.steps[index], body.stacks[index]
        if step.name == "CALL":
            self._call(body, index, stack)
        elif step.name == "RETURN":
            self._return(body, step, stack)
        elif step.name == "JMP":
            self._reach(body, self.labels[step.label], stack, index)
        elif step.name == "MARK_STK":
            self._reach(body, index + 1, self.stacks.push(stack, is_mark=True), index)
        elif step.name != "STOP":
            mnemonic = MNEMONICS[step.name]
            pops = mnemonic.pops - (mnemonic.kind is OperandKind.STATIC and step.number is not None)
            if stack.above_mark < pops:
                self._underflow(step, stack, f"takes {pops} word{'' if pops == 1 else 's'}")
                return
            for _ in range(pops):
                assert stack.below is not None
                stack = stack.below
            for _ in range(mnemonic.pushes):
                stack = self.stacks.push(stack)
            self._reach(body, index + 1, stack, index)
            if mnemonic.kind is OperandKind.LABEL:
                self._reach(body, self.labels[step.label], stack, index)

    def _underflow(self, step: Step, stack: _Stack, needs: str) -> None:
        words = f"{stack.above_mark} word{'' if stack.above_mark == 1 else 's'}"
        above = " above MARK_STK" if stack.has_mark else ""
        self._fault(step, f"{step.name} {needs}, the stack has {words} here{above}")

    def _call(self, body: _Body, index: int, stack: _Stack) -> None:
        step = self.steps[index]
        if not stack.has_mark:
            self._fault(step, f"CALL {step.label} needs a MARK_STK before its arguments")
            return
        count = stack.above_mark
        first, where = self.parameters.setdefault(step.label, (count, step))
        if first != count:
            self._fault(
                step,
                f"CALL {step.label} passes {count} word{'' if count == 1 else 's'} "
                f"here, but {first} at {self.source.position(where.token)}",
            )
            return
        for _ in range(count + 1):
            assert stack.below is not None
            stack = stack.below
        self._start(step.label, self.labels[step.label])
        if step.label in self.results:
            self._resume(body, index, stack, self.results[step.label][0])
        else:
            self.unresolved.setdefault(step.label, []).append((body, index, stack))

    def _resume(self, body: _Body, index: int, stack: _Stack, results: int) -> None:
        """Continue after a call."""
        self._reach(body, index + 1, self.stacks.push(stack) if results else stack, index)

    def _return(self, body: _Body, step: Step, stack: _Stack) -> None:
        if body.label is None:
            self._fault(step, "the main program reaches this RETURN; it ends with STOP")
            return
        count = min(stack.depth, 1)
        known = self.results.get(body.label)
        if known is None:
            self._settle(body.label, count, step)
        elif known[0] != count:
            self._disagree(body.label, known, count, step)

    def _disagree(self, label: str, known: tuple[int, Step | None], count: int, step: Step) -> None:
        words, (other, at) = ("nothing", "a word"), known
        where = "" if at is None else f", but {words[other]} at {self.source.position(at.token)}"
        self._fault(step, f"function {label} returns {words[count]} here{where}")

    def _settle(self, label: str, count: int, step: Step | None) -> None:
        """Record the number of results of a function and resume the paths that depend on it."""
        self.results[label] = (count, step)
        for body, index, stack in self.unresolved.pop(label, []):
            self._resume(body, index, stack, count)


def _unused(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _functions(source: Source, steps: Steps, analysis: _Analysis) -> list[FunctionListing]:
    """A function for each body; main is the first."""
    main = _unused("main", analysis.parameters)
    functions = []
    for label, body in analysis.bodies.items():
        parameters = analysis.parameters[label][0] if label is not None else 0
        results = analysis.results.get(label, (0, None))[0] if label is not None else 0
        signature = Signature((I64,) * parameters, (I64,) * results)
        used = [
            number
            for index in body.stacks
            if MNEMONICS[steps.steps[index].name].kind is OperandKind.FRAME
            and (number := steps.steps[index].number) is not None
        ]
        locals_ = max(0, max(used, default=-1) + 1 - parameters)
        items = _Emitter(source, steps, body, results).items()
        functions.append(FunctionListing(label or main, signature, (I64,) * locals_, items))
    return functions


class _Emitter:
    """A body as the items of a function."""

    def __init__(self, source: Source, steps: Steps, body: _Body, results: int) -> None:
        self.source, self.steps, self.body, self.results = source, steps, body, results
        reached = (steps.steps[index] for index in body.stacks)
        self.targets = {step.label for step in reached if step.name in ("JMP", "JMPT", "JMPF")}

    def items(self) -> list[Item]:
        """The steps in the order of the text, rotated to begin at the entry."""
        entry = self.body.entry
        order = sorted(self.body.stacks)
        items: list[Item] = []
        for index in order:
            if index >= entry:
                items += self._step(index)
        for index in order:
            if index < entry:
                items += self._step(index)
        last = entry - 1
        if last in self.body.stacks and self.steps.steps[last].name not in _ENDS:
            # The step before the entry falls through to it, and is the last one now.
            name = self._entry_label(items)
            items.append(Line(BY_MNEMONIC["jump"], name, self._position(self.steps.steps[last])))
        return items

    def _entry_label(self, items: list[Item]) -> str:
        if isinstance(items[0], Label):
            return items[0].name
        name = _unused("entry", self.steps.labels)
        items.insert(0, Label(name))
        return name

    def _position(self, step: Step) -> Position:
        return self.source.position(step.token)

    def _step(self, index: int) -> list[Item]:
        step = self.steps.steps[index]
        mnemonic = MNEMONICS[step.name]
        is_numbered = mnemonic.kind is OperandKind.STATIC and step.number is not None
        code = mnemonic.numbered if is_numbered else mnemonic.code
        operand: int | str | None = step.label or step.number
        if step.name == "RETURN":
            operand = self.results
        items: list[Item] = [Label(name) for name in step.labels if name in self.targets]
        for instruction in filter(None, code.split("; ")):
            name, _, argument = instruction.partition(" ")
            value: int | str | None = operand if argument == "{}" else (argument or None)
            if isinstance(value, str) and value.isdigit() and argument != "{}":
                value = int(value)
            items.append(Line(BY_MNEMONIC[name], value, self._position(step)))
        return items
