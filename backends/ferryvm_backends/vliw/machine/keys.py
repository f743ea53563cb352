# SPDX-License-Identifier: Apache-2.0
"""The schema of machine descriptions: tables, their keys, and the values of each key.

They hold nothing that a compiler uses: `model` does. What holds between keys is in `check`.
"""

from __future__ import annotations

from typing import Annotated

import pydantic

from ferryvm.toml.allowed import Words
from ferryvm.toml.table import Table
from ferryvm_backends.vliw.machine.model import FileKind, RegisterFile, Timing, Unit, Work

_LARGEST = 10**12
"""Most that a number of bytes can be."""

Cycles = Annotated[int, pydantic.Field(ge=1, le=64)]
Count = Annotated[int, pydantic.Field(ge=1, le=64)]
Ports = Annotated[int, pydantic.Field(ge=1, le=64)]
Cost = Annotated[float, pydantic.Field(ge=0, le=10**9)]
Name = Annotated[
    str,
    pydantic.Field(pattern="^[A-Za-z][A-Za-z0-9_]*$"),
    Words("letters, digits and _, a letter first", "names"),
]
FileName = Annotated[str, Words("the name of a file", "names of files")]


class TransferKeys(Table):
    """The connection between the host's memory and the machine's own."""

    bytes_per_cycle: Annotated[float, pydantic.Field(gt=0, le=10**6)]
    """Bytes that are moved in a cycle of the machine's clock."""
    setup: Annotated[int, pydantic.Field(ge=0, le=10**9)]
    """Cycles that each transfer takes before its first byte."""


class FileKeys(Table):
    """A register file, or several of a kind."""

    name: Name
    """Its name for units; of several it names all, and each is this with its number from 0."""
    kind: Annotated[FileKind, pydantic.Field(strict=False)]
    """`integer` holds words of 64 bits, `boolean` predicates."""
    count: Count = 1
    """The number of such files."""
    registers: Annotated[int, pydantic.Field(ge=2, le=1024)]
    """Registers in one file."""
    read_ports: Ports
    """Registers of one file that can be read in a cycle."""
    write_ports: Ports
    """Registers of one file that can be written in a cycle."""
    cost: Cost = RegisterFile.cost
    """Of one file, in whatever the description counts: for comparing machines."""


class TimingKeys(Table):
    """The cycles that an operation takes."""

    latency: Cycles
    """Cycles from its issue to its result."""
    interval: Cycles = Timing.interval
    """Cycles from its issue to the next operation that the unit takes. 1 is pipelined; as long as
    the latency, or longer, is not."""


def _latency_or_table(entry: object) -> object:
    is_number = isinstance(entry, int) and not isinstance(entry, bool)
    return {"latency": entry} if is_number else entry


class UnitKeys(Table):
    """A function unit, or several of a kind."""

    name: Name
    """As the name of a file."""
    count: Count = 1
    """The number of such units."""
    work: Annotated[
        dict[
            Annotated[Work, pydantic.Field(strict=False)],
            Annotated[
                TimingKeys,
                pydantic.BeforeValidator(_latency_or_table),
                Words("a latency from 1 to 64, or a table with latency and interval"),
            ],
        ],
        pydantic.Field(min_length=1),
        Words("a table of one operation or more with latencies, such as { add = 1, multiply = 3 }"),
    ]
    """Its work: a latency for each operation, or a table with latency and interval."""
    reads: list[FileName] | None = None
    """Files that its operands may come from. Left out, all."""
    writes: list[FileName] | None = None
    """Files that its results may go to. Left out, all."""
    cost: Cost = Unit.cost
    """Of one unit, in what files are counted in."""


class MachineKeys(Table):
    """Keys of the file itself. They come before the first table."""

    name: Annotated[str, pydantic.Field(min_length=1), Words("a text that is not empty")]
    """The machine's name in reports."""
    clock: Annotated[float, pydantic.Field(gt=0, le=10**5)]
    """MHz."""
    slots: Annotated[int, pydantic.Field(ge=1, le=1024)]
    """Operations that can be issued in a cycle."""
    immediates: Annotated[int, pydantic.Field(ge=1, le=1024)]
    """Constants that a bundle can hold."""
    delay_slots: Annotated[int, pydantic.Field(ge=0, le=64)]
    """Bundles after a branch that are done whether or not it is taken."""
    predication: bool
    """True if operations can be predicated on a register of a boolean file."""
    bypass: bool
    """True if an operation can read a unit's latest result from the unit, without a port."""
    instructions: Annotated[int, pydantic.Field(ge=1, le=_LARGEST)]
    """Bundles that the instruction memory holds."""
    memory: Annotated[int, pydantic.Field(ge=1, le=_LARGEST)]
    """Bytes of local memory."""
    transfer: TransferKeys
    """See `[transfer]`."""
    file: list[FileKeys]
    """See `[[file]]`."""
    unit: list[UnitKeys]
    """See `[[unit]]`."""
