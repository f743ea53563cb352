# SPDX-License-Identifier: Apache-2.0
"""Text that binds the values read by a meaning to names, where effects would change them.

A meaning reads a location and may change it before it uses the value it read: `heap.alloc` returns
the heap pointer from before it moves it. As text, such a value needs a name, bound where it is
read:

    old_hp = hp
    hp = (old_hp + a)
    push old_hp

A value that is not used after its location changes is written where it is used, without a name.
"""

from __future__ import annotations

import dataclasses

_NAMES = {"stack": "word", "operands": "first"}
"""Names of values read from locations, if they need one; `old_` and the location for others."""


@dataclasses.dataclass
class _Line:
    text: str
    place: str = ""
    """The location that the line changes or, with a token, reads."""
    token: str = ""
    """Placeholder of the value read, until it is known whether the value needs a name."""
    is_bound: bool = False


class Lines:
    """The lines of a meaning, in order."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []

    def add(self, text: str, changes: str = "") -> None:
        """Append a line; `changes` is the location that it modifies, if any."""
        self._lines.append(_Line(text, changes))

    def read(self, place: str, text: str) -> str:
        """A token for the present value of `text`, for use in later texts."""
        token = f"\0{len(self._lines)}\0"
        self._lines.append(_Line(text, place, token))
        return token

    def render(self) -> list[str]:
        """The lines, with names for the values that need one."""
        lines = [dataclasses.replace(line) for line in self._lines]
        # Backwards, so that a text that uses a read is final when that read is decided.
        for index in reversed(range(len(lines))):
            line, later = lines[index], lines[index + 1 :]
            if line.token:
                line.is_bound = _is_used_after_a_change(line, later)
                if not line.is_bound:
                    _replace(later, line.token, line.text)
        bound = [line for line in lines if line.is_bound or not line.token]
        taken: dict[str, int] = {}
        for line in bound:
            if line.token:
                stem = _NAMES.get(line.place, f"old_{line.place}")
                taken[stem] = taken.get(stem, 0) + 1
                name = stem if taken[stem] == 1 else f"{stem}{taken[stem]}"
                _replace(bound, line.token, name)
                line.text = f"{name} = {line.text}"
        return [line.text for line in bound]


def _is_used_after_a_change(read: _Line, later: list[_Line]) -> bool:
    has_changed = False
    for line in later:
        is_done = line.is_bound or not line.token  # the other reads are not lines any more
        if has_changed and is_done and read.token in line.text:
            return True
        has_changed = has_changed or (line.place == read.place and not line.token)
    return False


def _replace(lines: list[_Line], old: str, new: str) -> None:
    for line in lines:
        line.text = line.text.replace(old, new)
