# SPDX-License-Identifier: Apache-2.0
"""A disagreement as text; docs/reading-a-disagreement.md shows one."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

from ferryvm import asm, image
from ferryvm.durable import replace_file
from ferryvm.errors import FerryError, Position
from ferryvm.testing.bisect import Parting
from ferryvm.testing.disagreement.model import Disagreement
from ferryvm.testing.disagreement.reading import FORMAT, VERSION, DisagreementError
from ferryvm.testing.state import Difference
from ferryvm.testing.trace import TraceLine

_BASE64_COLUMNS = 76
_COLUMNS = 140


def save(disagreement: Disagreement, path: str | Path) -> None:
    """Write the file. Raises DisagreementError where that cannot be done."""
    try:
        replace_file(Path(path), to_text(disagreement).encode())
    except OSError as error:
        raise DisagreementError(f"{path}: cannot be written: {error.strerror}") from None


def to_text(disagreement: Disagreement) -> str:
    """The content of the file."""
    one = disagreement
    encoded = base64.b64encode(image.to_bytes(one.program)).decode()
    try:
        listing = asm.disassemble(one.program).splitlines()
    except FerryError as error:  # an image that no assembler laid out
        listing = [f"; {error}"]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "origin": one.origin,
        "good": one.good,
        "bad": one.bad,
        "difference": _difference(one.difference),
        "parting": _parting(one.parting) if one.parting else None,
        "backends": one.backends,
        "schedule": one.schedule.value,
        "seed": one.seed,
        "most": one.most,
        "forcing": sorted(kind.value for kind in one.forcing),
        "limits": dataclasses.asdict(one.limits),
        "versions": dict(one.versions),
        "listing": listing,
        "image": [
            encoded[at : at + _BASE64_COLUMNS] for at in range(0, len(encoded), _BASE64_COLUMNS)
        ],
    }
    # Escaping what is not ASCII keeps names that are not Unicode (half a surrogate pair) writable.
    return _pretty(content) + "\n"


def _pretty(value: Any, indent: int = 0) -> str:
    """JSON in which what fits on a line stands on one."""
    line = json.dumps(value)
    if len(line) + indent <= _COLUMNS or not isinstance(value, dict | list | tuple):
        return line
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {_pretty(v, indent + 1)}" for k, v in value.items()]
        return f"{{\n{inner}" + f",\n{inner}".join(parts) + "\n" + " " * indent + "}"
    parts = [_pretty(v, indent + 1) for v in value]
    return f"[\n{inner}" + f",\n{inner}".join(parts) + "\n" + " " * indent + "]"


def _difference(one: Difference) -> dict[str, str]:
    return {"field": one.field, "good": one.left, "bad": one.right}


def _parting(one: Parting) -> dict[str, Any]:
    return {
        "way": one.way.value,
        "good": one.good,
        "bad": one.bad,
        "entered": one.entered,
        "number": one.number,
        "pc": one.pc,
        "mnemonic": one.mnemonic,
        "position": _position(one.position),
        "regions": [
            {**dataclasses.asdict(region), "position": _position(region.position)}
            for region in one.regions
        ],
        "difference": _difference(one.difference),
        "good_trace": [_line(line) for line in one.good_trace],
        "bad_trace": [_line(line) for line in one.bad_trace],
        "after": [list(row) for row in one.after],
    }


def _position(one: Position | None) -> dict[str, Any] | None:
    return None if one is None else dataclasses.asdict(one)


def _line(one: TraceLine) -> dict[str, Any]:
    return {
        "pc": one.pc,
        "mnemonic": one.mnemonic,
        "immediate": one.immediate,
        "operands": [f"{word:#x}" for word in one.operands],
        "results": [f"{word:#x}" for word in one.results],
        "then": one.then,
    }
