# SPDX-License-Identifier: Apache-2.0
"""Memory that is copied between the host and devices with memory of their own, in all and by
array."""

from __future__ import annotations

from ferryvm import record
from ferryvm.backend import ArrayActivity, Transfers
from ferryvm.isa.declared_type import declaration
from ferryvm.isa.element import FIRST_ARRAY, Element
from ferryvm.isa.type import WORD_BYTES
from ferryvm.program import Program

SPACE = "objects"
"""The name of the object space in metrics."""

_MOST_ARRAYS = 64
"""Arrays with amounts of their own, for each kernel."""

OTHERS = "other arrays"
"""The name of the arrays past this number, together."""


@record.dataclass
class Traffic(Transfers):
    """Memory that is copied for one piece of code: in all, and by array."""

    arrays: dict[int, ArrayActivity] = record.field(default_factory=dict)
    """By the number of the copy on the device; 0: the object space."""

    def of_array(self, number: int, name: str) -> ArrayActivity:
        """The metrics of an array; `number`: of its copy, and 0 for the object space. Those of
        arrays past `_MOST_ARRAYS` are together."""
        found = self.arrays.get(number)
        if found is None:
            if len(self.arrays) >= _MOST_ARRAYS:
                return self.arrays.setdefault(-1, ArrayActivity(name=OTHERS))
            same = sum(one.name.partition(" ")[0] == name for one in self.arrays.values())
            found = ArrayActivity(name=f"{name} #{same + 1}" if same else name)
            self.arrays[number] = found
        return found


def array_name(program: Program, type_: int | None, size: int) -> str:
    """The type of an array of so many bytes, with its length; with the bytes if the type is not
    known."""
    if type_ is None:
        return f"array[{size} bytes]"
    declared = declaration(program.types, type_)
    if declared is None:
        element = [*Element][type_ - FIRST_ARRAY]
        return f"{element}[{size // element.bytes}]"
    return f"{declared.name.removesuffix('[]')}[{size // WORD_BYTES}]"


def array_metrics(one: ArrayActivity) -> dict[str, object]:
    """The copies of one array as data that JSON can represent."""
    return {
        "name": one.name,
        "bytes_to_device": one.to_device,
        "bytes_to_host": one.to_host,
        "seconds_to_device": one.seconds_to_device,
        "seconds_to_host": one.seconds_to_host,
        "entries": one.entries,
        "unchanged": one.unchanged,
    }
