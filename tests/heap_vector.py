# SPDX-License-Identifier: Apache-2.0
"""Skiff texts whose vectors lie on the heap, for tests of what compilers make of plain heap loops.

    (make-vector f64 n)      a block from heap.alloc: the length in 8 bytes, then the elements
    (vector-ref v i)         (f64.load 0 ELEMENT)
    (vector-set! v i x)      (f64.store 0 ELEMENT x)
    (vector-length v)        (i64.load 0 v)
    (v (vector f64))         (v i64), of a parameter

ELEMENT is (i64.add (i64.add v 8) (i64.shl i 3)). So the check of an access is that of the address.
The vector of an access is a variable.

The type of an element follows from the name of the vector: from its definition, from the type of
the parameter, from the first call of the function; else it is i64. Lines stay where they are.
"""

from __future__ import annotations

import re

_LOADS = {
    "i8": "i64.load8_s", "u8": "i64.load8_u", "i16": "i64.load16_s", "u16": "i64.load16_u",
    "u32": "i64.load32_u",
}  # fmt: skip
_STORES = {"i8": "i64.store8", "u8": "i64.store8", "i16": "i64.store16", "u16": "i64.store16"}
_STORES["u32"] = "i64.store32"
_NAME = r"[^\s()]+"


def on_heap(text: str) -> str:
    """The text with instructions in place of the forms of vectors."""
    elements = _elements(text)
    text = re.sub(rf"\(({_NAME}) \(vector \w+\)\)", r"(\1 i64)", text)
    while (
        match := re.search(r"\((make-vector|vector-ref|vector-set!|vector-length) ", text)
    ) is not None:
        start, end = match.start(), _end(text, match.start())
        operands = _operands(text[match.end() : end - 1])
        text = text[:start] + _form(match[1], operands, elements) + text[end:]
    return text


def _form(name: str, operands: list[str], elements: dict[str, str]) -> str:
    """A form with instructions; operands have the white space in front of them."""
    if name == "make-vector":
        block = f"(heap.alloc (i64.add 8 {_bytes('size', operands[0].strip())}))"
        return f"(let ((size{operands[1]})) (let ((new {block})) (i64.store 0 new size) new))"
    vector = operands[0].strip()
    if name == "vector-length":
        return f"(i64.load 0 {vector})"
    assert re.fullmatch(_NAME, vector), f"the vector of an access is {vector!r}, no variable"
    element = elements.get(vector, "i64")
    where = f"(i64.add (i64.add {vector} 8) {_bytes(operands[1].strip(), element)})"
    if name == "vector-ref":
        return f"({_LOADS.get(element, f'{element}.load')} 0 {where})"
    return f"({_STORES.get(element, f'{element}.store')} 0 {where}{operands[2]})"


def _bytes(count: str, element: str) -> str:
    """The bytes of so many elements."""
    shift = int(element[1:]).bit_length() - 4
    return f"(i64.shl {count} {shift})" if shift else count


def _end(text: str, start: int) -> int:
    """The offset after the list that starts at an offset."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError(f"a list is not closed: {text[start:]!r}")


def _operands(text: str) -> list[str]:
    found, place = [], 0
    while text[place:].strip():
        first = re.compile(r"\s*").match(text, place)
        assert first is not None
        start = first.end()
        name = re.compile(_NAME).match(text, start)
        end = _end(text, start) if text[start] == "(" else name.end() if name else len(text)
        found.append(text[place:end])
        place = end
    return found


def _elements(text: str) -> dict[str, str]:
    """Types of elements by the names of vectors."""
    found = dict(re.findall(rf"\((?:define )?({_NAME}) \(make-vector (\w+)", text))
    found |= dict(re.findall(rf"\(({_NAME}) \(vector (\w+)\)\)", text))
    for function, parameters in re.findall(rf"\(define \(({_NAME})([^()]*)\)", text):
        call = re.search(rf"(?<!define )\({re.escape(function)} ", text)
        if call is None:
            continue
        given = _operands(text[call.end() : _end(text, call.start()) - 1])
        for name, argument in zip(parameters.split(), given, strict=False):
            made = re.match(r"\s*\(make-vector (\w+)", argument)
            element = made[1] if made else found.get(argument.strip())
            if element is not None:
                found.setdefault(name, element)
    return found
