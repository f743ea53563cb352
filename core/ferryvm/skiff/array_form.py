# SPDX-License-Identifier: Apache-2.0
"""The forms of arrays, as data: their operands, and the type of their values."""

from __future__ import annotations

import enum

from ferryvm.named_tuple import NamedTuple
from ferryvm.skiff.type import ELEMENTS, UPDATED_ELEMENTS


class Role(enum.Enum):
    """The meaning of an operand, or of the value, of a form."""

    ARRAY = "array"
    VALUE = "value"
    """An element, as it is read and stored."""
    INDEX = "index"
    BOOLEAN = "boolean"
    NOTHING = "nothing"


class ArrayForm(NamedTuple):
    """A form whose arrays all have one element type."""

    name: str
    usage: str
    """The text of the form without its name."""
    roles: tuple[Role, ...]
    result: Role
    optional: tuple[Role, ...] = ()
    rest: Role | None = None
    """The role of all further operands."""
    has_type: bool = False
    """True if the element type is the first operand."""
    elements: frozenset[str] = ELEMENTS
    """The elements that its arrays may have."""

    update: str = ""
    """The verb of the instruction for an atomic update; empty for another form."""

    def roles_of(self, count: int) -> tuple[Role, ...] | None:
        """The roles of that many operands, None if the form cannot have so many."""
        known = (*self.roles, *self.optional)
        if count < len(self.roles) or (count > len(known) and self.rest is None):
            return None
        further = () if self.rest is None else (self.rest,) * (count - len(known))
        return (*known[:count], *further)


_A, _V, _I = Role.ARRAY, Role.VALUE, Role.INDEX


def _update(name: str, verb: str, result: Role, values: str = "value") -> ArrayForm:
    return ArrayForm(
        f"atomic-{name}!",
        f"array index {values}",
        (_A, _I, *[_V] * len(values.split())),
        result,
        elements=UPDATED_ELEMENTS,
        update=f"atomic_{verb}",
    )


_COMMUTING = ("add", "min", "max", "and", "or")
_UPDATES = (
    *(_update(verb, verb, Role.NOTHING) for verb in _COMMUTING),
    *(_update(f"fetch-{verb}", verb, _V) for verb in _COMMUTING),
    _update("exchange", "exchange", _V),
    _update("compare-exchange", "compare_exchange", _V, "expected value"),
)

ARRAY_FORMS = {
    row.name: row
    for row in (
        ArrayForm("make-array", "element-type length [value]", (_I,), _A, (_V,), has_type=True),
        ArrayForm("array", "element-type value ...", (), _A, rest=_V, has_type=True),
        ArrayForm("array-ref", "array index", (_A, _I), _V),
        ArrayForm("array-set!", "array index value", (_A, _I, _V), Role.NOTHING),
        ArrayForm("array-length", "array", (_A,), _I),
        ArrayForm("array-fill!", "array value [start [end]]", (_A, _V), Role.NOTHING, (_I, _I)),
        ArrayForm("array-copy", "array [start [end]]", (_A,), _A, (_I, _I)),
        ArrayForm("array-copy!", "to at from [start [end]]", (_A, _I, _A), Role.NOTHING, (_I, _I)),
        ArrayForm("array-append", "array array ...", (_A, _A), _A, rest=_A),
        ArrayForm("array=?", "array array", (_A, _A), Role.BOOLEAN),
        *_UPDATES,
        ArrayForm("index-2d", "row column rows columns", (_I, _I, _I, _I), _I),
    )
}
"""The forms by name."""
