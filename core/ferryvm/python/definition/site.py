# SPDX-License-Identifier: Apache-2.0
"""The places of a program at which Python raises an exception, by their source positions."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from ferryvm import record
from ferryvm.errors import Position
from ferryvm.isa.trap import Trap


def _message(action: Callable[[], object]) -> str:
    """The message of an error in this Python."""
    try:
        action()
    except (ZeroDivisionError, NameError) as error:
        return str(error)
    raise AssertionError("no error")


_ZERO, _ZERO_F, _ONE = 0, 0.0, 1
DIVISION = {
    "/": _message(lambda: _ONE / _ZERO),
    "//": _message(lambda: _ONE // _ZERO),
    "%": _message(lambda: _ONE % _ZERO),
    "f/": _message(lambda: _ONE / _ZERO_F),
    "f//": _message(lambda: _ONE // _ZERO_F),
    "f%": _message(lambda: _ONE % _ZERO_F),
}
"""Messages of a ZeroDivisionError by operator, `f` in front for floats."""


def _unassigned() -> object:
    none: tuple[str, ...] = ()
    for name in none:
        return name
    return name


UNASSIGNED = _message(_unassigned).replace("'name'", "{!r}")
"""The message of an UnboundLocalError, for the name of a variable."""


def _unassigned_outside() -> object:
    none: tuple[str, ...] = ()

    def read() -> object:
        return name

    for name in none:
        return name
    return read()


UNASSIGNED_OUTSIDE = _message(_unassigned_outside).replace("'name'", "{!r}")
"""The message of a NameError, for the name of a variable of the function around one."""

EXCEPTIONS: tuple[type[BaseException], ...] = tuple(
    value
    for _, value in sorted(vars(builtins).items())
    if isinstance(value, type) and issubclass(value, BaseException)
)
"""The built-in exceptions; programs use their numbers."""


@record.dataclass(frozen=True)
class Site:
    """An exception that a place may raise."""

    type: type[BaseException]
    message: str | None
    position: Position
    function: str
    """The name of the Python function."""
    is_limit: bool = False
    """True if Python itself would go on: a number does not fit into 64 bits."""


class Sites:
    """The sites of a program."""

    def __init__(self) -> None:
        self.thrown: list[Site] = []
        """By the number that a program throws."""
        self._trapping: dict[tuple[Position, Trap], Site] = {}

    def number(self, site: Site) -> int:
        """The number of a site that throws."""
        if site not in self.thrown:
            self.thrown.append(site)
        return self.thrown.index(site)

    def traps(self, kind: Trap, site: Site) -> None:
        """State what a trap at a position is in Python."""
        self._trapping[site.position, kind] = site

    def of_trap(self, kind: Trap, position: Position | None) -> Site | None:
        """The site of a trap."""
        return None if position is None else self._trapping.get((position, kind))
