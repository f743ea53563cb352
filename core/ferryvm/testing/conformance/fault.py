# SPDX-License-Identifier: Apache-2.0
"""The fault of a state: the first field that is not as expected, named for a reader."""

from __future__ import annotations

import dataclasses

import numpy as np

from ferryvm.isa.frame import number_of
from ferryvm.testing.conformance.script import Script, ScriptState
from ferryvm.testing.conformance.script_object import ScriptObjects


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """The first violation of a script."""

    field: str
    expected: str
    found: str
    step: int = 0
    """Number of the step in the script."""


_NUMBERS = (
    *("status", "trap", "exit_id", "wanted", "wanted_type"),
    *("pc", "sp", "fp", "hp", "heap_capacity", "fuel"),
)


def compare(script: Script, expected: ScriptState, found: ScriptState) -> Mismatch | None:
    """The first difference of two states, to the bit; None if they are equal."""
    if expected == found:
        return None
    for name in _NUMBERS:
        wanted, got = getattr(expected, name), getattr(found, name)
        if wanted != got:
            return Mismatch("fuel left" if name == "fuel" else name, _text(wanted), _text(got))
    for segment in ("statics", "stack"):
        left = np.frombuffer(getattr(expected, segment), "<u8")
        right = np.frombuffer(getattr(found, segment), "<u8")
        for word in np.flatnonzero(left != right).tolist():
            name = _static(script, word) if segment == "statics" else _word(script, expected, word)
            return Mismatch(name, f"{int(left[word]):016x}", f"{int(right[word]):016x}")
    if expected.heap != found.heap:
        return _part("heap", expected.heap, found.heap)
    return _objects(expected.objects, found.objects)


def _part(what: str, wanted: bytes, got: bytes) -> Mismatch:
    """The first word of a part of memory that differs."""
    if len(wanted) != len(got):
        return Mismatch(f"bytes of {what}", str(len(wanted)), str(len(got)))
    byte = int(np.flatnonzero(_bytes(wanted) != _bytes(got))[0]) & ~7
    words = wanted[byte : byte + 8].hex(" "), got[byte : byte + 8].hex(" ")
    return Mismatch(f"{what} at byte {byte}", *words)


def _objects(wanted: ScriptObjects | None, got: ScriptObjects | None) -> Mismatch:
    """The first difference of two sets of objects, which differ."""
    if wanted is None or got is None:
        return Mismatch("objects", "none" if wanted is None else "some", "others")
    if wanted.space != got.space:
        return _part("objects", wanted.space, got.space)
    for (offset, stated), (other, found) in zip(wanted.elements, got.elements, strict=False):
        if offset != other:
            break
        if stated != found:
            return _part(f"the elements of the array at {offset}", stated, found)
    left, right = (str([offset for offset, _ in one.elements]) for one in (wanted, got))
    return Mismatch("arrays with elements outside", left, right)


def _bytes(content: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.frombuffer(content, np.uint8)


def _text(value: object) -> str:
    name = getattr(value, "name", None)
    return "none" if value is None else str(name or value)


def _static(script: Script, number: int) -> str:
    return f"static {number} ({script.program.program.statics[number].name})"


def _word(script: Script, state: ScriptState, word: int) -> str:
    """The name of a word of the stack, by the frames of the expected state."""
    if word in script.names:
        return f"the result of {script.names[word]}"
    verified, stack = script.program, np.frombuffer(state.stack, "<u8")
    pc, fp = state.pc, state.fp
    while word < fp - verified.parameters(pc):
        pc, fp = int(stack[fp]) - 1, fp - int(stack[fp + 1])
    owner = verified.owner(pc)
    function = verified.program.functions[owner].name
    parameters = verified.parameters(pc)
    index = number_of(word - fp, parameters)
    if index is None:
        part = "distance" if word > fp else "return pc"
        return f"{part} in the header of {function}"
    count = len(verified.program.frame_types(owner))
    if index < count:
        return f"local {index} of {function}"
    return f"operand {index - count} of {function}"
