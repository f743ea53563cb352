# SPDX-License-Identifier: Apache-2.0
"""Cases: reading cases/*.toml, whose form the README beside them defines.

A case is a program, the manners in which it is run, and statements about its end, written by hand.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import tomli

from ferryvm.asm import assemble
from ferryvm.backend import Interpreter
from ferryvm.errors import FerryError, suggestion
from ferryvm.isa import INSTRUCTIONS, Trap, Type
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.testing.conformance.manner import MANNERS, counting, plain, whole
from ferryvm.testing.conformance.record import PLENTY, CaseError, Recorder, Task
from ferryvm.testing.conformance.script import Script
from ferryvm.verify import Verified, verify

LIMITS = {"stack": 1 << 16, "heap": 1 << 20, "first_heap": 1 << 16}
"""Limits of cases that state none, in bytes."""


@dataclasses.dataclass(frozen=True)
class End:
    """The expected end of a program, written by hand; None: not stated."""

    status: Status = Status.HALT
    trap: Trap | None = None
    at: str | None = None
    """Mnemonic of the instruction at which it ends."""
    function: str | None = None
    """Name of the function that is then running."""
    depth: int | None = None
    """Active calls then, main included."""
    operands: tuple[tuple[Type, int], ...] | None = None
    """Type and bits of the running function's operands, deepest first."""
    statics: tuple[int, ...] | None = None
    """Words of the statics."""
    heap: bytes | None = None
    wanted: int | None = None
    output: str | None = None
    instructions: int | None = None
    """Completed by then, in a run that counts; the last one is not."""

    def complaint(self, recorder: Recorder, is_counting: bool) -> str | None:
        """The first difference of the reference's end from the stated one."""
        machine = recorder.machines[0]
        for name, found in _facts(recorder).items():
            stated = getattr(self, name)
            if stated is not None and stated != found:
                return f"{name} {_show(stated)} is stated, {_show(found)} found"
        completed = PLENTY - machine.control.fuel
        if is_counting and self.instructions not in (None, completed):
            return f"instructions {self.instructions} are stated, {completed} found"
        return None


def _show(value: object) -> str:
    return value.name if isinstance(value, Status | Trap) else repr(value)


def _facts(recorder: Recorder) -> dict[str, object]:
    machine = recorder.machines[0]
    control, memory = machine.control, machine.memory
    pc, verified = control.pc, machine.verified
    owner = verified.owner(pc)
    types = verified.operand_types(pc)
    first = control.fp + HEADER_WORDS + len(verified.program.functions[owner].locals)
    operands = zip(types, memory.stack[first : control.sp].tolist(), strict=False)
    return {
        "status": machine.status,
        "trap": Trap(control.trap) if machine.status is Status.TRAP else None,
        "at": INSTRUCTIONS[verified.program.code.opcodes[pc]].mnemonic,
        "function": verified.program.functions[owner].name,
        "depth": _depth(machine),
        "operands": tuple(operands),
        "statics": tuple(memory.statics.tolist()),
        "heap": bytes(memory.heap[: control.hp]),
        "wanted": control.wanted if machine.status is Status.GROW else None,
        "output": recorder.output.decode(errors="replace"),
    }


def _depth(machine: Machine) -> int:
    depth, fp = 1, machine.control.fp
    while distance := machine.memory.stack[fp + 1]:
        depth, fp = depth + 1, fp - distance
    return depth


@dataclasses.dataclass(frozen=True)
class Case:
    """One case of a file."""

    group: str
    name: str
    about: str
    text: str
    """Of the program, in assembly."""
    limits: Limits
    manners: tuple[str, ...]
    end: End

    @property
    def label(self) -> str:
        """Its name for users."""
        return f"{self.group}/{self.name}"

    def program(self) -> Verified:
        """Its program, the same object in all its manners. Raises CaseError if it has faults."""
        return _program(self.text, self.label)

    def scripts(self, manner: str, reference: Interpreter) -> Iterator[Script]:
        """Its scripts in one of its manners."""
        task = Task(self.label, self.program(), self.limits, reference)
        run = MANNERS[manner]
        if run in (plain, counting):
            script, recorder = whole(task, PLENTY if run is counting else None)
            complaint = self.end.complaint(recorder, run is counting)
            yield dataclasses.replace(script, complaint=complaint)
        else:
            yield from run(task)


@functools.lru_cache(maxsize=1)  # the manners of a case are consecutive
def _program(text: str, label: str) -> Verified:
    try:
        return verify(assemble(text, label))
    except FerryError as error:
        raise CaseError(f"case {label}: {error}") from None


@functools.cache
def cases() -> tuple[Case, ...]:
    """Every case, by file and in its order. Raises CaseError."""
    folder = resources.files(__package__) / "cases"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        case
        for file in files
        if file.name.endswith(".toml")
        for case in read(file.name.removesuffix(".toml"), file.read_text(encoding="utf-8"))
    )


# --- reading --------------------------------------------------------------------------------

_FILE_KEYS = ("about", "manners", "limits", "case")
_CASE_KEYS = ("name", "about", "program", "manners", "limits", "end", "variants")
_END_KEYS = tuple(field.name for field in dataclasses.fields(End))


def read(group: str, text: str) -> Iterator[Case]:
    """The cases in the text of a file. Raises CaseError."""
    try:
        content = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise CaseError(f"{group}.toml: {error}") from None
    _check_keys(group, content, _FILE_KEYS)
    for entry in content["case"]:
        where = f"{group}/{entry.get('name', '?')}"
        _check_keys(where, entry, _CASE_KEYS)
        variants = entry.get("variants", {"": {}})
        for name, variant in variants.items():
            _check_keys(f"{where}-{name}", variant, ("put", "end"))
            program = entry["program"]
            for word, replacement in variant.get("put", {}).items():
                program = program.replace(f"<{word}>", replacement)
            manners = tuple(entry.get("manners", content.get("manners", ())))
            for manner in manners:
                if manner not in MANNERS:
                    raise CaseError(f"{where}: no manner {manner!r}{suggestion(manner, MANNERS)}")
            yield Case(
                group,
                f"{entry['name']}-{name}" if name else entry["name"],
                entry["about"],
                program,
                Limits(**(LIMITS | content.get("limits", {}) | entry.get("limits", {}))),
                manners,
                _end(where, entry.get("end", {}) | variant.get("end", {})),
            )


def _check_keys(where: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise CaseError(f"{where}: no key {key!r}{suggestion(key, allowed)}")


def _end(where: str, table: Mapping[str, Any]) -> End:
    _check_keys(f"{where}: end", table, _END_KEYS)
    stated = dict(table)
    if "trap" in stated:
        stated["status"], stated["trap"] = "TRAP", Trap[stated["trap"]]
    stated["status"] = Status[stated.get("status", "HALT")]
    if "operands" in stated:
        stated["operands"] = tuple(_operand(text) for text in stated["operands"])
    if "statics" in stated:
        stated["statics"] = tuple(word & (1 << 64) - 1 for word in stated["statics"])
    if "heap" in stated:
        stated["heap"] = bytes.fromhex(stated["heap"])
    return End(**stated)


def _operand(text: str) -> tuple[Type, int]:
    """`i32 -1`, `f64 0x7ff8000000000000`: a type and an integer, the bits of a float."""
    name, number = text.split()
    t = Type(name)
    return t, int(number, 0) & t.mask
