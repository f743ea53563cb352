# SPDX-License-Identifier: Apache-2.0
"""The manifest of an exported folder: all that a program needs to call the function and to check
it.

docs/export.md describes it, `manifest.schema.json` beside this module is its JSON Schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ferryvm.portable.expression import Compound, Expression, expression_text
from ferryvm.portable.interface import ArrayArgument, Geometry, Interface
from ferryvm.portable.vector import Vectors

if TYPE_CHECKING:
    from ferryvm.portable.subject import Subject

FORMAT = "ferryvm-export/1"
"""The version of the form."""


def version() -> str:
    """The version of ferryvm, as it is installed."""
    return metadata.version("ferryvm")


def manifest_text(
    subject: Subject,
    interface: Interface,
    target: str,
    build: Mapping[str, object],
    vectors: Vectors,
    files: Mapping[str, bytes],
) -> str:
    """The manifest as JSON. `build`: what the target says about compilation."""
    position = subject.position(subject.entry)
    origin: dict[str, object] = {"region": subject.origin}
    if position is not None:
        origin |= {"file": position.file.replace("\\", "/").rpartition("/")[2]}
        origin |= {"line": position.line}
    made: dict[str, object] = {
        "format": FORMAT,
        "entry": interface.name,
        "target": target,
        "exporter": {"name": "ferryvm", "version": version()},
        "origin": origin,
        "arguments": _arguments(interface),
        "folded": [
            {"name": each.name, "type": each.type.value, "value": each.value}
            for each in interface.folded
        ],
        "aliasing": "two arrays are the same or apart",
        "status": {"type": "i32", "success": 0, "error_mask": 255, "line_shift": 8},
        "errors": [
            {
                "number": int(kind),
                "name": kind.name,
                "message": kind.message,
                "lines": [line for line in lines if line],
            }
            for kind, lines in interface.errors.items()
        ],
        "launch": _launch(interface),
        "groups": _groups(interface),
        "build": build,
        "vectors": {
            "file": "vectors.txt",
            "count": len(vectors.vectors),
            "seed": vectors.seed,
            "unfinished": vectors.unfinished,
            "dependent": vectors.dependent,
        },
        "files": [
            {
                "name": name,
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for name, content in sorted(files.items())
        ],
    }
    return json.dumps(made, indent=2) + "\n"


def _launch(interface: Interface) -> dict[str, object] | None:
    """The work-items of a launch; None for a function that is called once."""
    geometry = interface.geometry
    if geometry is not None:
        return _geometry(geometry)
    if not interface.is_item:
        return None
    items = interface.arguments[0].name if interface.group else "items"
    group = {"group": interface.group} if interface.group else {}
    return {"dimensions": 1, "items": items, **group}


def _geometry(geometry: Geometry) -> dict[str, object]:
    """The numbers of work-items and the members of a group, by dimension if there are several."""
    dimensions = range(geometry.dimensions)
    items: list[str | int] = []
    for n in dimensions:
        count, size = geometry.count(n), geometry.size(n)
        items.append(_size(size if count is None else count if size == 1 else _times(size, count)))
    found: dict[str, object] = {"dimensions": geometry.dimensions}
    found["items"] = items if len(items) > 1 else items[0]
    if geometry.group is not None:
        sizes = [_size(geometry.size(n)) for n in dimensions]
        found["group"] = sizes if len(sizes) > 1 else sizes[0]
    return found


def _lent(interface: Interface, array: ArrayArgument) -> list[dict[str, Any]]:
    """The argument that is memory for an array of a group; of a kernel it is local memory, which
    needs no length."""
    made: dict[str, Any] = {"name": array.name, "kind": "lent", "type": array.element.kind}
    made["shape"] = list(array.shape)
    if interface.geometry is not None:
        return [made]
    length = {"name": array.length_name, "kind": "length", "type": "i64", "of": array.name}
    return [made, length]


def _times(size: Expression, count: str) -> Expression:
    return Compound("*", size, count)


def _size(size: Expression) -> str | int:
    """A number, or an expression as text."""
    return size if isinstance(size, int) else expression_text(size)


def _groups(interface: Interface) -> dict[str, object] | None:
    """The sizes of groups: an integer is a constant of the code. None if there are no groups."""
    if not interface.members:
        return None
    members = [_size(each) for each in interface.members]
    return {
        "members": members if len(members) > 1 else members[0],
        "arrays": [
            {"name": name, "type": element.kind, "length": _size(length)}
            for name, element, length in interface.group_arrays
        ],
    }


def _arguments(interface: Interface) -> list[dict[str, Any]]:
    """The arguments in the order in which the function takes them."""
    found: list[dict[str, Any]] = []
    for place, each in enumerate(interface.arguments):
        if not isinstance(each, ArrayArgument):
            counts = interface.geometry.counts if interface.geometry else ()
            is_item = interface.is_item and place == 0 and not interface.group
            name, kind = each.name, "items" if is_item or place < len(counts) else "scalar"
            name = "items" if is_item else name
            found.append({"name": name, "kind": kind, "type": each.type.value})
            continue
        if each.borrowed is not None:
            found += _lent(interface, each)
            continue
        length = each.length_name
        found.append(
            {
                "name": each.name,
                "kind": "array",
                "type": each.element.kind,
                "direction": each.direction.value,
                "shape": list(each.shape) or ([f"{length} // 2", 2] if each.is_pair else [length]),
            }
        )
        found.append({"name": length, "kind": "length", "type": "i64", "of": each.name})
    for result in interface.results:
        found.append({"name": result.name, "kind": "result", "type": result.type.value})
    if interface.status is not None:
        found.append({"name": interface.status, "kind": "status", "type": "i32"})
    return found
