# SPDX-License-Identifier: Apache-2.0
"""The schema of policy files: tables, their keys, and the values of each key.

These models are the checker, the JSON schema for editors and the tables in docs/policies.md at
once. They hold nothing that the engine uses: `ferryvm.policy.model` does, and gives the defaults.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pydantic

from ferryvm.policy.model import Options, Policy, Profile, Rule, Shadow
from ferryvm.toml.allowed import Words
from ferryvm.toml.table import Table

_LARGEST = 10**12
"""Most that a count can be: hours of running."""

Count = Annotated[int, pydantic.Field(ge=1, le=_LARGEST)]
Milliseconds = Annotated[int, pydantic.Field(ge=0, le=60_000)]
CountOrNever = Annotated[int, pydantic.Field(ge=0, le=_LARGEST)]


class ProfileKeys(Table):
    """Counting, and the thresholds from which a site is hot."""

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


class ShadowKeys(Table):
    """A paranoid run: a second backend repeats each stay in compiled code, and the states are
    compared. Slow; for finding faults. See [what a shadow does](#what-a-shadow-does)."""

    enabled: bool = True
    """Off, the table does nothing."""
    against: str = Shadow.against
    """The interpreter that repeats what compiled code did."""


class ChoiceKeys(Table):
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
    """The number of times a region is compiled again with what is left of its guesses; then without
    any."""
    retry_after: CountOrNever = Options.retry_after
    """Further counts after which a region that was given up is tried again; 0 is never."""
    device: str = Options.device
    """For a backend with devices the one to compile for: to `opencl` `cpu`, `gpu`, or a part of a
    platform's name, a colon, and a part of a device's name; to `vliw` a machine's name or file.
    Left out, it takes one by itself."""
    recompile_after: CountOrNever | None = Options.recompile_after
    """For a backend that can compile quickly, `vliw`: code is first made quickly, and after so much
    work of it (cycles of the machine) made again at the level of `optimize`. 0: at once at that
    level. Left out, the backend's own number; 0 where `background` is off."""


def _name_or_table(entry: object) -> object:
    return {"name": entry} if isinstance(entry, str) else entry


class RuleKeys(Table):
    """A rule. The first rule that matches a region decides about it; a region that no rule
    matches is interpreted."""

    name: str = Rule.name
    """For people: messages and `ferry explain` show it."""
    when: dict[str, Any] = pydantic.Field({})
    """The regions that it is for: [conditions](#conditions) on facts, which must all hold. Left
    out, all regions."""
    action: Literal["compile", "interpret"] = "compile"
    """`interpret` leaves the region to the interpreter; then there are no `backends`."""
    backends: list[
        Annotated[
            ChoiceKeys,
            pydantic.BeforeValidator(_name_or_table, json_schema_input_type=str | ChoiceKeys),
            Words(
                "a backend's name, or a table with a name",
                "names of backends, or tables with a name",
            ),
        ]
    ] = pydantic.Field([])
    """Backends to ask, in order: names, or [tables with options](#backends-of-a-rule). The first
    that takes the region wins."""


class PolicyKeys(Table):
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
    rule: list[RuleKeys] = pydantic.Field([])
    """See [`[[rule]]`](#rule)."""


TABLES: dict[tuple[str, ...], type[Table]] = {
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
