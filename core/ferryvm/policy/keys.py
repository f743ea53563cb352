# SPDX-License-Identifier: Apache-2.0
"""What a policy file may say: its tables, their keys, and what each key may be.

These models are the checker, the JSON schema for editors and the tables in docs/policies.md at
once. They hold nothing that the engine uses: `ferryvm.policy.model` does, and gives the defaults.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import annotated_types
import pydantic
from pydantic.fields import FieldInfo

from ferryvm.policy.fault import show
from ferryvm.policy.model import Options, Policy, Profile, Rule, Shadow

_LARGEST = 10**12
"""Most that a count can be: hours of running."""

Count = Annotated[int, pydantic.Field(ge=1, le=_LARGEST)]
Milliseconds = Annotated[int, pydantic.Field(ge=0, le=60_000)]
CountOrNever = Annotated[int, pydantic.Field(ge=0, le=_LARGEST)]


class _Table(pydantic.BaseModel):
    """A table whose keys are all declared."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


class ProfileKeys(_Table):
    """What is counted, and from which count on a place is hot."""

    enabled: bool = Profile.enabled
    """Count at loop heads, function entries and marked scopes. Off, nothing is counted and
    nothing gets hot: then only `whole_program` compiles anything."""
    loop_threshold: Count = Profile.loop_threshold
    """Times round a loop head after which the rules are asked about the loop."""
    function_threshold: Count = Profile.function_threshold
    """Entries of a function after which the rules are asked about the function."""
    scope_threshold: Count = Profile.scope_threshold
    """Entries of an enter-jit scope after which the rules are asked about the scope."""
    delay_ms: Milliseconds = Profile.delay_ms
    """Milliseconds that a place goes on in the interpreter after it got hot, before the rules are
    asked in the background: a program that ends meanwhile is spared the compilation. A program that
    waits for its code does not wait for this."""


class ShadowKeys(_Table):
    """A paranoid run: a second backend repeats each stay in compiled code, and the states are
    compared. Slow; for finding faults. See [what a shadow does](#what-a-shadow-does)."""

    enabled: bool = True
    """Off, the table does nothing."""
    against: str = Shadow.against
    """The interpreter that repeats what compiled code did."""


class ChoiceKeys(_Table):
    """One step of a chain: a backend, and how it is to compile."""

    name: str
    """The backend."""
    threshold: Count | None = Options.threshold
    """The count of the place below which this backend is not asked. Left out, it is asked as
    soon as the place is hot; a number below the threshold in `[profile]` means the same."""
    optimize: Annotated[int, pydantic.Field(ge=0, le=3)] = Options.optimize
    """Optimisation level."""
    background: bool = Options.background
    """Compile in the background while the interpreter goes on. Off, the program waits."""
    speculate: bool = Options.speculate
    """Leave out branches that the profile never saw taken, with a guard in their place."""
    cache: bool = Options.cache
    """Keep the code on disk, and take it from there."""
    required: bool = Options.required
    """If this backend refuses or fails it is an error. Off, the next one is asked, and after the
    last the interpreter runs the region; why is recorded."""
    guard_limit: Count = Options.guard_limit
    """Failures of one guard after which the region is compiled again without it."""
    recompile_limit: CountOrNever = Options.recompile_limit
    """How many times a region is compiled again with what is left of its guesses; then without any."""
    retry_after: CountOrNever = Options.retry_after
    """Further counts after which a region that was given up is tried again; 0 is never."""
    device: str = Options.device
    """For a backend with devices the one to compile for: to `opencl` `cpu`, `gpu`, or a part of a
    platform's name, a colon, and a part of a device's name. Left out, it takes one by itself."""


def _name_or_table(entry: object) -> object:
    return {"name": entry} if isinstance(entry, str) else entry


class RuleKeys(_Table):
    """A rule. The first rule that matches a region decides about it; a region that no rule
    matches is interpreted."""

    name: str = Rule.name
    """For people: messages and `ferry explain` show it."""
    when: dict[str, Any] = {}
    """Which regions the rule is for: [conditions](#conditions) on facts, which must all hold. Left
    out, all regions."""
    action: Literal["compile", "interpret"] = "compile"
    """`interpret` leaves the region to the interpreter; then there are no `backends`."""
    backends: list[
        Annotated[
            ChoiceKeys,
            pydantic.BeforeValidator(_name_or_table, json_schema_input_type=str | ChoiceKeys),
        ]
    ] = []
    """Backends to ask, in order: names, or [tables with options](#backends-of-a-rule). The first
    that takes the region wins."""


class PolicyKeys(_Table):
    """Keys of the file itself. They stand before the first table."""

    interpreter: str = Policy.interpreter
    """The backend that runs what is not compiled."""
    whole_program: bool = Policy.whole_program
    """Ask the rules about the whole program (a region of kind `program`) before its first
    instruction. What they do not take then runs as it would without this key."""
    profile: ProfileKeys = ProfileKeys()
    """See [`[profile]`](#profile)."""
    shadow: ShadowKeys | None = None
    """See [`[shadow]`](#shadow). Left out, nothing runs beside."""
    rule: list[RuleKeys] = []
    """See [`[[rule]]`](#rule)."""


TABLES: dict[tuple[str, ...], type[_Table]] = {
    (): PolicyKeys,
    ("profile",): ProfileKeys,
    ("shadow",): ShadowKeys,
    ("rule",): RuleKeys,
    ("rule", "backends"): ChoiceKeys,
}
"""The tables by their place in a file, without the indices of arrays."""


TITLES = {
    (): "The file",
    ("profile",): "`[profile]`",
    ("shadow",): "`[shadow]`",
    ("rule",): "`[[rule]]`",
    ("rule", "backends"): "Backends of a rule",
}
"""Headings of the tables in docs/policies.md."""

LINK = re.compile(r"\[([^]]*\]?\]?`?)\]\([^)]*\)")
"""A link in a meaning; editors are shown its text alone."""


def field_at(path: Sequence[str | int]) -> FieldInfo | None:
    """The declaration of the key at a place, or of the array that the element there is in."""
    names = tuple(part for part in path if isinstance(part, str))
    table = TABLES.get(names[:-1])
    return table.model_fields.get(names[-1]) if table and names else None


def allowed(field: FieldInfo, is_element: bool = False) -> str:
    """What may stand at a key, in words; `is_element`: in the array there."""
    return _words(field.annotation, field.metadata, is_element)


_ELEMENTS = {
    True: ("a table", "tables, each headed [[rule]]"),
    False: ("a backend's name, or a table with a name", "names of backends, or tables with a name"),
}
"""What one element is and what several are, by whether they are rules."""


def _words(hint: Any, metadata: Sequence[object], is_element: bool) -> str:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):  # with None: the key may be left out
        first = typing.get_args(hint)[0]
        return _words(first, metadata, is_element)
    if origin is Annotated:
        inner, *more = typing.get_args(hint)
        return _words(inner, _constraints(more), is_element)
    if origin is Literal:
        return " or ".join(show(value) for value in typing.get_args(hint))
    if origin is list:
        one, many = _ELEMENTS[typing.get_args(hint)[0] is RuleKeys]
        return one if is_element else f"a list of {many}"
    if hint is int:
        low, high = _bound(metadata, annotated_types.Ge), _bound(metadata, annotated_types.Le)
        return f"a whole number from {low} to {_short(high)}"
    return {bool: "true or false", str: "a text"}.get(hint, "a table")


def _constraints(metadata: Sequence[Any]) -> list[object]:
    return [part for one in metadata for part in getattr(one, "metadata", [one])]


def _bound(metadata: Sequence[object], kind: type) -> int:
    for constraint in metadata:
        if isinstance(constraint, annotated_types.Ge) and kind is annotated_types.Ge:
            return typing.cast(int, constraint.ge)
        if isinstance(constraint, annotated_types.Le) and kind is annotated_types.Le:
            return typing.cast(int, constraint.le)
    raise TypeError("a whole number without bounds")


def _short(number: int) -> str:
    return f"{number:.0e}".replace("e+", "e") if number >= 10**6 else str(number)
