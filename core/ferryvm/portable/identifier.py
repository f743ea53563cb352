# SPDX-License-Identifier: Apache-2.0
"""Identifiers of C and its relatives, from names of programs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferryvm.errors import FerryError
from ferryvm.ir.c.c11 import C11
from ferryvm.ir.c.opencl import plain_opencl
from ferryvm.ir.c.opencl_atomic import group_atomics
from ferryvm.isa.trap import Trap
from ferryvm.portable.c.check import NAMES
from ferryvm.portable.c.processor import CLONED
from ferryvm.portable.reserved import BUILT_IN, BUILT_IN_FAMILIES, KEYWORDS, LIBRARY, MACROS, TYPES

_KERNEL_WORDS = """
atomic_min barrier get_global_id get_global_offset get_global_size get_group_id get_local_id
get_num_groups reqd_work_group_size
"""
KERNEL_WORDS = frozenset(_KERNEL_WORDS.split())
"""Names that printed kernels use themselves, not by a helper."""

HELPERS = frozenset(
    {*C11.helpers, *plain_opencl().helpers, *group_atomics(), "group_barrier", CLONED}
)
"""Functions and macros that the printed text calls, which no exported name may hide."""

_GENERATED = re.compile(r"[a-z]\d+|ferry_.*|_.*|.*_[if](32|64)|object_.*_at")
"""Names that the printer makes, and those of functions of the instruction table."""

_OWN_KERNELS = ("item", "member", "once")
_OWN_MACROS = ("ERROR", "H", "LINE", *(kind.name for kind in Trap))
"""Ends of names that are made of the name of the exported function."""


def identifier(name: str) -> str:
    """A valid identifier near a name; it is not empty."""
    found = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    if not found or found[0].isdigit():
        found = f"x{found}"
    if _has_meaning(found) or found in KERNEL_WORDS or _GENERATED.fullmatch(found):
        found += "_"
    return found


def _has_meaning(name: str) -> bool:
    """True if a compiler or the printed text knows a name as something else."""
    is_known = name in KEYWORDS or TYPES.fullmatch(name) or MACROS.fullmatch(name)
    return bool(is_known) or name in HELPERS


def identifiers(names: Iterable[str], entry: str = "", taken: Iterable[str] = ()) -> list[str]:
    """Identifiers near some names, all different, and not those that are taken, or made of the name
    of the exported function (`entry`)."""
    found: list[str] = []
    used = {entry, *(f"{entry}_{end}" for end in _OWN_KERNELS), *taken}
    used |= {f"{entry.upper()}_{end}" for end in _OWN_MACROS}
    for name in names:
        first = wanted = identifier(name)
        number = 1
        while wanted in used or f"{wanted}_length" in used:
            number += 1
            wanted = f"{first}_{number}"
        used |= {wanted, f"{wanted}_length"}
        found.append(wanted)
    return found


def entry_name(name: str | None, origin: str, target: str = "c") -> str:
    """The name of the exported function: the one that is given, or one near that of its origin.

    Raises FerryError for a given name that is no identifier or means something else.
    """
    if name is None:
        made = re.sub(r"\W+", "_", origin, flags=re.ASCII).strip("_") or "kernel"
        made = f"f{made}" if made[0].isdigit() else made
        return made if _meaning(made, target) is None else f"{made}_kernel"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise FerryError(f"name {name!r}: letters, digits and _ expected, a letter first")
    meaning = _meaning(name, target)
    if meaning is not None:
        raise FerryError(f"name {name!r}: is {meaning}; choose another one")
    return name


def _meaning(name: str, target: str) -> str | None:
    """The other meaning of a function's name; None if there is none."""
    if name in KEYWORDS or TYPES.fullmatch(name):
        return "a keyword of C or OpenCL C"
    if MACROS.fullmatch(name):
        return "a macro of C or OpenCL C"
    if name in HELPERS or re.fullmatch(r"ferry_.*|.*_[if](32|64)", name):
        return "a function that exported text calls"
    if target == "opencl":
        if name in BUILT_IN or BUILT_IN_FAMILIES.fullmatch(name):
            return "a built-in function of opencl"
    elif name in LIBRARY:
        return "a function of C's library"
    if target in ("c", "llvm") and (name in NAMES or re.fullmatch(r"[amnr]\d+", name)):
        return "a name of check.c"
    if target == "wasm" and name == "memory":
        return "the exported memory"
    return None
