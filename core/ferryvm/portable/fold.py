# SPDX-License-Identifier: Apache-2.0
"""Arguments that are constants of the exported code, because its author asked for it.

The wrapper has them as parameters still, so golden vectors are calls with these values. A manifest names
them: code with a constant in it computes something else than the function from which it was made.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping

from ferryvm.errors import FerryError, suggestion
from ferryvm.isa.type import Type, from_float
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.subject import Subject


def folded(subject: Subject, values: Mapping[str, str | float]) -> Subject:
    """The subject with some arguments as constants, by their names in the program or the exported
    code.

    Raises FerryError for a name that is no argument, or an array, and for a value that its type
    lacks.
    """
    if not values:
        return subject
    found: dict[int, int] = {}
    names = [name for name, _ in subject.parameters]
    exported = identifiers(names)
    for name, value in values.items():
        if name not in names and name not in exported:
            known = ", ".join(exported) or "there are no arguments"
            what = f"{subject.origin} has no argument {name!r}{suggestion(name, exported)}"
            raise FerryError(f"fold {name}={value}: {what}; it has {known}")
        place = names.index(name) if name in names else exported.index(name)
        kind = subject.parameters[place][1]
        if not isinstance(kind, Type):
            raise FerryError(f"fold {name}={value}: is an array; numbers can be folded")
        if place in subject.statics.values() and subject.static_at(place) in subject.changed:
            raise FerryError(f"fold {name}={value}: is changed by {subject.origin}")
        if place < subject.axes:
            raise FerryError(f"fold {name}={value}: is the number of items, which is no constant")
        found[place] = _bits(name, kind, value)
    item = subject.item
    if item is not None:
        more = subject.axes if subject.counts_items else 0  # its indices are in front of these
        own = {place + more: bits for place, bits in found.items()}
        item = dataclasses.replace(item, folded=own)
    return dataclasses.replace(subject, folded=found, item=item)


def _bits(name: str, t: Type, value: str | float) -> int:
    half = 1 << (t.bits - 1)
    try:
        if t.is_float:
            return from_float(t, float(value))
        number = int(value, 0) if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]  # it says so by TypeError
        if -half <= number < half:
            return number & t.mask
    except (TypeError, ValueError, OverflowError):
        pass
    among = "" if t.is_float else f" from {-half} to {half - 1}"
    raise FerryError(f"fold {name}={value}: a number{among} is expected for an {t}")
