# SPDX-License-Identifier: Apache-2.0
"""Rules of machines beyond the types of keys: names that exist, units that fit files.

The rules are checked on the parts of a document without faults, so that they find as much as
possible beside other faults; consequences of another fault are not reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ferryvm.toml.fault import Path, TomlFault, dotted, listed, show, unknown
from ferryvm.toml.table import sound
from ferryvm_backends.vliw.machine.model import FileKind, Work

_INTEGER, _BOOLEAN = FileKind.INTEGER, FileKind.BOOLEAN

_NO_RESULT = {Work.STORE, Work.BRANCH}
_PREDICATES = {Work.COMPARE, Work.FLOAT_COMPARE, Work.BOOLEAN}
"""Work that yields predicates; all other results are words."""

WRITES: Mapping[FileKind, Collection[Work]] = {
    _INTEGER: [work for work in Work if work not in _NO_RESULT | _PREDICATES],
    _BOOLEAN: _PREDICATES,
}
"""Work with results for files of a kind."""

READS: Mapping[FileKind, Collection[Work]] = {
    # A constant can be moved without a register, and predicates are no words.
    _INTEGER: [work for work in Work if work not in {Work.MOVE, Work.BOOLEAN, Work.BRANCH}],
    _BOOLEAN: {Work.SELECT, Work.BOOLEAN, Work.BRANCH},
}
"""Work that needs operands from files of a kind."""

NEEDED = (Work.MOVE, Work.ADD, Work.LOAD, Work.STORE, Work.BRANCH)
"""Work that every program needs."""


def names(name: str, count: int) -> list[str]:
    """The names of the files or units of one table."""
    return [name] if count == 1 else [f"{name}{index}" for index in range(count)]


def rule_faults(
    document: Mapping[str, Any], key_faults: Sequence[TomlFault]
) -> Iterator[TomlFault]:
    """Faults besides the given faults of keys."""
    faulty = {fault.path for fault in key_faults}
    rest = sound(document, key_faults)
    files, units = _tables(rest, "file"), _tables(rest, "unit")
    yield from _name_faults(files, units)
    kinds: dict[str, FileKind] = {}
    """By each name that units may use; empty unless all of them are known."""
    if not _doubted(faulty, "file", "name", "kind", "count"):
        kinds = {name: FileKind(file["kind"]) for file in files for name in _all_names(file)}
        yield from _kind_faults(rest, set(kinds.values()))
    for index, unit in enumerate(units):
        yield from _unit_faults(("unit", index), unit, kinds)
    if not _doubted(faulty, "unit", "work"):
        yield from _lack_faults(units)
    total = sum(unit.get("count", 1) for unit in units)
    slots = rest.get("slots", 0)
    if 0 < total < slots and not _doubted(faulty, "unit", "count"):
        found = f"{slots} slots, {slots - total} more than there are units"
        yield TomlFault(("slots",), found, is_warning=True)


def _tables(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of an array; an empty one for each that is none."""
    return [table or {} for table in document.get(name, [])]


def _doubted(faulty: Collection[Path], array: str, *keys: str) -> bool:
    """True if there are faults in some keys of an array's tables, or in the tables themselves."""
    return any(path[0] == array and (len(path) < 3 or path[2] in keys) for path in faulty)


def _all_names(table: Mapping[str, Any]) -> list[str]:
    """The name of a table, and the names that it declares."""
    return list(dict.fromkeys([table["name"], *names(table["name"], table.get("count", 1))]))


def _name_faults(files: list[dict[str, Any]], units: list[dict[str, Any]]) -> Iterator[TomlFault]:
    owners: dict[str, Path] = {}
    places: list[Path] = [("file", index) for index in range(len(files))]
    places += [("unit", index) for index in range(len(units))]
    for path, table in zip(places, [*files, *units], strict=True):
        if "name" not in table:
            continue
        own = _all_names(table)
        taken = next((name for name in own if name in owners), None)
        if taken is not None:
            found = f"found {show(taken)}, a name of {dotted(owners[taken])} too"
            yield TomlFault((*path, "name"), found, "a name that nothing else has")
        for name in own:
            owners.setdefault(name, path)


def _kind_faults(document: Mapping[str, Any], kinds: Collection[FileKind]) -> Iterator[TomlFault]:
    for kind in FileKind:
        if kind not in kinds:
            found = f"found no {kind.value} file"
            yield TomlFault(("file",), found, "one at least of each kind")
    if document.get("predication") is True and _BOOLEAN not in kinds:
        found = "found true, but no boolean file that operations could depend on"
        yield TomlFault(("predication",), found, "false, or a boolean file")


def _unit_faults(
    path: Path, unit: Mapping[str, Any], kinds: Mapping[str, FileKind]
) -> Iterator[TomlFault]:
    work = [Work(name) for name in unit.get("work", {})]
    for key, verb, needs in (("reads", "read", READS), ("writes", "write", WRITES)):
        named = unit.get(key)
        if named is None or not kinds:
            continue
        wrong = [name for name in named if name is not None and name not in kinds]
        for index, name in enumerate(named):
            if name in wrong:
                yield unknown((*path, key, index), "file", name, kinds)
        if wrong or None in named:
            continue
        for kind in FileKind:
            fitting = [name for name in kinds if kinds[name] is kind]
            needy = [one.value for one in work if one in needs[kind]]
            if needy and fitting and not set(fitting) & set(named):
                found = f"found no {kind.value} file to {verb} for {', '.join(needy)}"
                yield TomlFault((*path, key), found, f"one at least of {listed(fitting)}")


def _lack_faults(units: Sequence[Mapping[str, Any]]) -> Iterator[TomlFault]:
    there = {name for unit in units for name in unit["work"]}
    lacking = [work.value for work in NEEDED if work.value not in there]
    if lacking:
        needed = ", ".join(work.value for work in NEEDED)
        found = f"found no unit that does {', '.join(lacking)}"
        yield TomlFault(("unit",), found, f"units that do {needed} among them")
