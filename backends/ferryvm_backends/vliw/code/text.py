# SPDX-License-Identifier: Apache-2.0
"""A program as text: for each block a table with a row for each cycle and a column for each used
unit.

b7:  not pipelined: REASON  the block is a loop whose iterations do not overlap
r1.4=add.i64 r0.2 #8      register 4 of file r1 becomes register 2 of file r0, and 8
=fmul.f64 <load0 r0.1     the result is only in the output register; one operand is what load0 has
exit p0.3 b7              continue at bundle 7 if register 3 of file p0 holds
store64 heap[r0.1+0] r0.2 unless p0.3     nothing, if register 3 of file p0 holds
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot, Source

_LARGEST = 1 << 63


def program_text(program: Program) -> str:
    """The text of a program."""
    starts = sorted(program.labels)
    ends = [*starts[1:], len(program.bundles)]
    return "\n".join(
        "\n".join(_block(program, start, end)) for start, end in zip(starts, ends, strict=True)
    )


def _block(program: Program, start: int, end: int) -> Iterator[str]:
    units = sorted({slot.unit for bundle in program.bundles[start:end] for slot in bundle})
    head = ["", *(program.machine.units[unit].name for unit in units)]
    rows = [head]
    for number in range(start, end):
        cells = {slot.unit: slot_text(program, slot) for slot in program.bundles[number]}
        rows.append([str(number), *(cells.get(unit, "") for unit in units)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    reasons = {loop.label: loop.reason for loop in program.loops if not loop.is_pipelined}
    label = program.labels[start]
    yield f"{label}:  not pipelined: {reasons[label]}" if label in reasons else f"{label}:"
    for row in rows:
        first, *rest = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([first.rstrip().rjust(widths[0]), *rest]).rstrip()
    yield ""


def operation_name(slot: Slot) -> str:
    """The name of a slot's operation."""
    if slot.place is not None:
        return f"{slot.name}{8 * slot.place.size}"
    static = ".".join(getattr(each, "value", str(each)) for each in slot.static)
    return f"{slot.name}.{static}" if static else slot.name


def slot_text(program: Program, slot: Slot) -> str:
    """The text of one slot."""
    parts = [operation_name(slot)]
    for number, source in enumerate(slot.sources):
        text = _source(program, source)
        if slot.place is not None and number == 0:
            text = f"{slot.place.segment.value}[{text}{slot.place.offset:+}]"
        parts.append(text)
    if slot.again is not None:
        parts.append(f"b{slot.again}")
    if slot.target is not None:
        parts.append(f"b{slot.target}")
    if slot.predicate is not None:
        predicate, holds = slot.predicate
        parts += ["if" if holds else "unless", _source(program, predicate)]
    said = " ".join(parts)
    if not slot.has_result:
        return said
    return f"{_source(program, slot.written) if slot.written else ''}={said}"


def _source(program: Program, source: Source) -> str:
    match source:
        case Immediate(bits):
            return f"#{bits - 2 * _LARGEST if bits >= _LARGEST else bits}"
        case Read(file, number):
            return f"{program.machine.files[file].name}.{number}"
        case Bypass(unit):
            return f"<{program.machine.units[unit].name}"
