# SPDX-License-Identifier: Apache-2.0
"""Reading a machine description: every fault in it at once, each with its position in the text.

The machines that come with the package are the `.toml` files beside this one. `multi16` is the best
introduction to the format; `keys` defines the values of each key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from ferryvm.errors import UnknownNameError
from ferryvm.toml.fault import DocumentError, TomlFault
from ferryvm.toml.reading import examine, settle, text_of
from ferryvm.toml.table import key_faults
from ferryvm_backends.vliw.machine.check import names, rule_faults
from ferryvm_backends.vliw.machine.keys import FileKeys, MachineKeys, UnitKeys
from ferryvm_backends.vliw.machine.model import Machine, RegisterFile, Timing, Transfer, Unit

_FOLDER = Path(__file__).parent
_SUFFIX = ".toml"


class MachineError(DocumentError):
    """A machine that cannot be used, with all faults of its file."""


def shipped() -> dict[str, Path]:
    """The files of the machines that come with the package, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob(f"*{_SUFFIX}"))}


def find(name_or_path: str) -> Machine:
    """A machine that comes with the package, or one in a file.

    Without a suffix and a slash it is a name; UnknownNameError lists the machines. Raises the
    errors of `load`.
    """
    return load(path_of(name_or_path))


def path_of(name_or_path: str) -> Path:
    """The file that a machine is in. Raises UnknownNameError as `find`."""
    path = Path(name_or_path)
    if path.suffix or path.name != name_or_path:
        return path
    known = shipped()
    if name_or_path not in known:
        raise UnknownNameError("machine", name_or_path, known)
    return known[name_or_path]


def load(path: Path) -> Machine:
    """The machine in a file; warnings go to the log.

    Raises MachineError with every fault, FerryError where the file cannot be read.
    """
    return read_text(text_of(path), str(path))


def read_text(text: str, file: str) -> Machine:
    """The machine in a text; `file` is its name in messages. Raises and logs as `load`."""
    return settle(*examine(text, file, MachineKeys, judge), MachineError)


def document_of(path: Path) -> dict[str, Any]:
    """The tables in the file of a machine that `load` takes."""
    return tomli.loads(text_of(path))


def judge(document: dict[str, Any]) -> tuple[Machine | None, list[TomlFault]]:
    """The machine that the tables of a file describe, None if they have errors, and all faults."""
    faults = list(key_faults(MachineKeys, document))
    faults += rule_faults(document, faults)
    if not all(one.is_warning for one in faults):
        return None, faults
    return _build(MachineKeys.model_validate(document)), faults


# --- building -------------------------------------------------------------------------------


def _build(keys: MachineKeys) -> Machine:
    groups = {file.name: names(file.name, file.count) for file in keys.file}
    return Machine(
        name=keys.name,
        clock=keys.clock,
        slots=keys.slots,
        immediates=keys.immediates,
        delay_slots=keys.delay_slots,
        predication=keys.predication,
        bypass=keys.bypass,
        instructions=keys.instructions,
        memory=keys.memory,
        transfer=Transfer(keys.transfer.bytes_per_cycle, keys.transfer.setup),
        files=tuple(one for file in keys.file for one in _files(file)),
        units=tuple(one for unit in keys.unit for one in _units(unit, groups)),
    )


def _files(keys: FileKeys) -> list[RegisterFile]:
    return [
        RegisterFile(name, keys.kind, keys.registers, keys.read_ports, keys.write_ports, keys.cost)
        for name in names(keys.name, keys.count)
    ]


def _units(keys: UnitKeys, groups: dict[str, list[str]]) -> list[Unit]:
    work = {one: Timing(timing.latency, timing.interval) for one, timing in keys.work.items()}
    reads, writes = _single(keys.reads, groups), _single(keys.writes, groups)
    return [
        Unit(name, keys.name, work, reads, writes, keys.cost)
        for name in names(keys.name, keys.count)
    ]


def _single(named: list[str] | None, groups: dict[str, list[str]]) -> frozenset[str]:
    """Single files, by names of these and of groups; all if nothing is named."""
    chosen = groups if named is None else named
    return frozenset(one for name in chosen for one in groups.get(name, [name]))
