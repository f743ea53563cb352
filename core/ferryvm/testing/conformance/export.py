# SPDX-License-Identifier: Apache-2.0
"""Scripts as JSON Lines: one file an item, one line a script, for runners in any language.

docs/conformance.md describes every field. Memory is a list of pieces, hex digits of bytes as they
stand there, or a number of zero bytes; files are base64; numbers are all below 2^63.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ferryvm.atomic_file import replace_file
from ferryvm.backend import Interpreter
from ferryvm.errors import FerryError
from ferryvm.image import to_bytes
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.testing.conformance.script import (
    Allocate,
    Enter,
    Flag,
    Grow,
    Host,
    Litter,
    Load,
    Move,
    Put,
    Save,
    Script,
    ScriptState,
    Start,
    Step,
    TrailPosition,
)
from ferryvm.testing.conformance.suite import Item

FORMAT = 3
"""Version of the format of the lines."""


def export(
    chosen: Sequence[Item],
    folder: Path,
    reference: Interpreter,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Write the scripts of items to a new or empty folder, as `group/name/manner.jsonl`.

    The folder appears when it is complete: until then it is a temporary one beside it. Raises
    FerryError if that fails, or if the reference violates a case.
    """
    folder = Path(os.path.realpath(folder))  # replace the target of a link, not the link
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FerryError(f"{folder}: is there already; name a folder that is new or empty")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".ferry-", suffix=".part", dir=folder.parent, ignore_cleanup_errors=True
        ) as name:
            part = Path(name) / "cases"
            part.mkdir()
            for item in chosen:
                path = part / f"{item.label}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, "".join(lines(item, reference)).encode())
                progress()
            part.replace(folder)
    except OSError as error:
        raise FerryError(f"{folder}: cannot be written: {error.strerror}") from None


def lines(item: Item, reference: Interpreter) -> list[str]:
    """The lines of an item's file."""
    found = []
    for script in item.scripts(reference):
        if script.complaint is not None:
            raise FerryError(f"{script.about}: {script.complaint}, by the reference backend itself")
        found.append(json.dumps(_script(item, script), separators=(",", ":")) + "\n")
    return found


def _script(item: Item, script: Script) -> dict[str, Any]:
    verified, program = script.program, script.program.program
    machine = Machine(verified, script.limits)
    return {
        "format": FORMAT,
        "case": item.label,
        "about": script.about,
        "needs": {
            "fuel": script.counts,
            "heap": script.heap,
            "objects": machine.objects is not None,
        },
        "image": _base64(to_bytes(program)),
        "limits": {
            "stack": script.limits.stack,
            "heap": script.limits.heap,
            "first_heap": script.limits.first_heap,
            "objects": script.limits.objects,
        },
        "functions": machine.descriptors,
        "table": list(program.table),
        "types": None if machine.objects is None else verified.types.rows(),
        "operands": [
            [str(t) for t in verified.operand_types(pc)] if verified.is_reachable(pc) else None
            for pc in range(len(program.code))
        ],
        "trail": None
        if script.trail is None
        else {
            "states": [_state(state) for state in script.trail.states],
            "period": script.trail.period,
        },
        "steps": [_step(step) for step in script.steps],
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _state(state: ScriptState) -> dict[str, Any]:
    """A state; what its status leaves open is left out."""
    fields: dict[str, Any] = {"status": int(state.status)}
    for name in ("trap", "exit_id", "wanted", "wanted_type", "fuel"):
        value = getattr(state, name)
        if value is not None:
            fields[name] = int(value)
    for name in ("pc", "sp", "fp", "hp", "heap_capacity"):
        fields[name] = getattr(state, name)
    for name in ("statics", "stack", "heap"):
        fields[name] = _pieces(getattr(state, name))
    if state.objects is not None:
        fields["objects"] = _pieces(state.objects.space)
        fields["elements"] = [[at, _pieces(content)] for at, content in state.objects.elements]
    return fields


_ZEROS = re.compile(rb"(\0{32,})")


def _pieces(content: bytes) -> list[str | int]:
    """Memory without its long runs of zeros."""
    found: list[str | int] = []
    for number, piece in enumerate(_ZEROS.split(content)):
        if piece:
            found.append(len(piece) if number % 2 else piece.hex())
    return found


def _step(step: Step) -> dict[str, Any]:
    fields: dict[str, Any] = {"do": type(step).__name__.lower(), "machine": step.machine}
    match step:
        case Start(_, expected):
            fields |= {"expected": _state(expected)}
        case Put(_, state) | Move(_, state):
            fields |= {"state": _state(state)}
        case Litter(_, word):
            fields |= {"word": word.to_bytes(8, "little").hex()}
        case Host(_, arguments, result, counting):
            bits = None if result is None else result.to_bytes(8, "little").hex()
            fields |= {"arguments": arguments, "result": bits, "counting": counting}
        case Grow(_, capacity):
            fields |= {"heap_capacity": capacity}
        case Allocate(_, object_end, elements):
            fields |= {"object_end": object_end, "elements": elements}
        case Save(_, file):
            fields |= {"file": _base64(file)}
        case Load(_, file, expected):
            fields |= {"file": _base64(file), "expected": _state(expected)}
        case Enter():
            fields |= _enter(step)
    return fields


def _enter(step: Enter) -> dict[str, Any]:
    expected = step.expected
    fields: dict[str, Any] = {"counting": step.counting}
    if step.fuel is not None:
        fields["fuel"] = step.fuel
    if step.flag is not Flag.CLEAR:
        fields["interrupt"] = "before" if step.flag is Flag.SET else "later"
    if isinstance(expected, ScriptState):
        fields["expected"] = _state(expected)
    elif isinstance(expected, TrailPosition):
        fields["trail"] = expected.value
    else:
        fields |= {"trail": "ahead", "ahead": expected, "status": int(Status.FUEL)}
    return fields
