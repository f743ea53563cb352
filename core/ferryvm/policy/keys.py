# SPDX-License-Identifier: Apache-2.0
"""The schema of policy files: tables, their keys, and the values of each key.

These models are the checker, the JSON schema for editors and the tables in docs/policies.md at
once. The engine does not use them: it uses `ferryvm.policy.model`, which has the defaults.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pydantic

from ferryvm.policy.model import Options, Policy, Profile, Rule, Shadow
from ferryvm.toml.allowed import Words
from ferryvm.toml.table import Table

_LARGEST = 10**12
"""The largest value of a count: hours of running."""

Count = Annotated[int, pydantic.Field(ge=1, le=_LARGEST)]
Milliseconds = Annotated[int, pydantic.Field(ge=0, le=60_000)]
CountOrNever = Annotated[int, pydantic.Field(ge=0, le=_LARGEST)]


class ProfileKeys(Table):
    """Counting, and the thresholds from which a site is hot."""

    enabled: bool = Profile.enabled
    """Count at loop heads, function entries and marked scopes. If off, nothing is counted and
    nothing gets hot: then only `whole_program` compiles anything, and the
    launches in it."""
    loop_threshold: Count = Profile.loop_threshold
    """Passes of a loop head after which the rules decide about the loop."""
    function_threshold: Count = Profile.function_threshold
    """Entries of a function after which the rules decide about the function."""
    scope_threshold: Count = Profile.scope_threshold
    """Entries of an enter-jit scope after which the rules decide about the scope."""
    delay_ms: Milliseconds = Profile.delay_ms
    """Milliseconds by which the decision on a hot site is deferred, while the interpreter
    continues: a program that ends meanwhile is spared the compilation. It does not apply to a
    program that waits for its code."""


class ShadowKeys(Table):
    """A paranoid run: a second backend repeats each run of compiled code, and the states are
    compared. Slow; for finding faults. See [what a shadow does](#what-a-shadow-does)."""

    enabled: bool = True
    """If off, the table has no effect."""
    against: str = Shadow.against
    """The interpreter that repeats compiled code."""


class ChoiceKeys(Table):
    """One step of a chain: a backend, and its options."""

    name: str
    """The backend."""
    threshold: Count | None = Options.threshold
    """The count of the site below which this backend is skipped. If omitted, the backend is used as
    soon as the site is hot; a number below the threshold in `[profile]` means the same."""
    optimize: Annotated[int, pydantic.Field(ge=0, le=3)] = Options.optimize
    """Optimisation level."""
    background: bool = Options.background
    """Compile in the background while the interpreter continues. If off, the program waits."""
    speculate: bool = Options.speculate
    """Leave out branches that were never taken in the profile, with a guard in their place."""
    observe_items: CountOrNever = Options.observe_items
    """With `speculate`, the items of a launch that an interpreter runs before the launch is
    compiled. 0: by their work, 16 to 10,000."""
    cache: bool = Options.cache
    """Read the code from the cache on disk, and store it there."""
    required: bool = Options.required
    """A refusal or failure of this backend is an error. If off, the next backend is tried, and
    after the last the interpreter runs the region; the reason is recorded."""
    guard_limit: Count = Options.guard_limit
    """Failures of one guard after which the region is compiled again without it."""
    guard_share: Annotated[float, pydantic.Field(ge=0, le=1)] = Options.guard_share
    """The share of the items of a launch, where they run out of order, that may fail one guard:
    from 16 failures on, or `guard_limit` if that is less, a larger share causes a recompilation
    without it."""
    recompile_limit: CountOrNever = Options.recompile_limit
    """The number of times that a region is compiled again with its remaining speculations; then it
    is compiled without any."""
    retry_after: CountOrNever = Options.retry_after
    """Further counts after which an abandoned region is tried again; 0 is never."""
    device: str = Options.device
    """For a backend with devices, its target: for `opencl` `cpu`, `gpu`, or a part of a platform's
    name, a colon, and a part of a device's name; for `vliw` a machine's name or file. If omitted,
    the backend selects one."""
    recompile_after: CountOrNever | None = Options.recompile_after
    """For a backend that can compile quickly, `vliw`: code is first compiled quickly, and after so
    much work of it (cycles of the machine) again at the level of `optimize`. 0: at once at that
    level. If omitted, the backend's own number; 0 if `background` is off."""
    threads: Annotated[int, pydantic.Field(ge=0, le=1024)] = Options.threads
    """Threads that run the items of a launch where that pays, where the region is the launch's loop
    and the backend makes native code. 0: as many as the process has cores; 1: one."""
    lanes: Literal[0, 1, 2, 4, 8, 16, 32, 64] = 0
    """Lanes of vectors in which each thread runs the items of a launch, where the region is the
    launch's loop and the backend can do so, as `llvm` can. 0: by the processor's vectors and the
    widest elements. 1: none; with one thread, items run in order then."""


def _name_or_table(entry: object) -> object:
    return {"name": entry} if isinstance(entry, str) else entry


class RuleKeys(Table):
    """A rule. The first rule that matches a region decides about it; a region that no rule
    matches is interpreted."""

    name: str = Rule.name
    """For people: messages and `ferry explain` show it."""
    when: dict[str, Any] = pydantic.Field({})
    """The regions that the rule is for: [conditions](#conditions) on facts, which must all hold. If
    omitted, all regions."""
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
    """Backends in order of preference: names, or [tables with options](#backends-of-a-rule). The
    first that compiles the region is used."""
    place: Literal["first", "measured", "split"] = "first"
    """Of launches: `first` runs their items on the first backend that compiles them; `measured` on
    the one where they are expected to end first; `split` on all at once, see
    [placement](placement.md)."""


class PolicyKeys(Table):
    """Keys of the file itself. They come before the first table."""

    interpreter: str = Policy.interpreter
    """The backend that runs code that is not compiled."""
    whole_program: bool = Policy.whole_program
    """Apply the rules to the whole program (a region of kind `program`) before its first
    instruction. If no backend compiles it, the program runs as without this key."""
    profile: ProfileKeys = ProfileKeys()
    """See [`[profile]`](#profile)."""
    shadow: ShadowKeys | None = None
    """See [`[shadow]`](#shadow). If omitted, there is no shadow."""
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
"""A link in a description; editors are shown its text alone."""
