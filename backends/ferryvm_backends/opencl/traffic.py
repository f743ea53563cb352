# SPDX-License-Identifier: Apache-2.0
"""Amounts of copied memory, in all and by array."""

from __future__ import annotations

import dataclasses

_MOST_ARRAYS = 64
"""Arrays with amounts of their own, for each kernel."""

OTHERS = "other arrays"
"""The name of the arrays past this number, together."""


@dataclasses.dataclass
class ArrayTraffic:
    """Amounts that were copied of one array; or of the object space, or of other arrays."""

    name: str
    """Such as `f64[8388608]`, with a number if there are several."""
    to_device: int = 0
    """Bytes."""
    to_host: int = 0
    """Bytes."""
    seconds_to_device: float = 0.0
    """Spent on comparing and copying."""
    seconds_to_host: float = 0.0
    pushes: int = 0
    """Entries that needed it on the device."""
    unchanged: int = 0
    """Number of them at which nothing had to be copied."""


@dataclasses.dataclass
class Traffic:
    """Amounts of copied memory."""

    to_device: int = 0
    """Bytes."""
    to_host: int = 0
    """Bytes."""
    seconds: float = 0.0
    """Spent on copying, and on the decision what to copy."""
    arrays: dict[int, ArrayTraffic] = dataclasses.field(default_factory=dict)
    """By the number of the copy on the device; 0: the object space."""

    def of_array(self, number: int, name: str) -> ArrayTraffic:
        """The amounts of an array; `number`: of its copy, and 0 for the object space."""
        found = self.arrays.get(number)
        if found is None:
            if len(self.arrays) >= _MOST_ARRAYS:
                return self.arrays.setdefault(-1, ArrayTraffic(OTHERS))
            same = sum(one.name.partition(" ")[0] == name for one in self.arrays.values())
            found = ArrayTraffic(f"{name} #{same + 1}" if same else name)
            self.arrays[number] = found
        return found
