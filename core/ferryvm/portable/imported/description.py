# SPDX-License-Identifier: Apache-2.0
"""The description of a kernel that is to be imported: its manifest, checked, and the files that it
names.

    manifest.json ── keys (types, names) ── rules between arguments ──> Description
                                                                          │ files, each read once
                                                                          └─ digests ──> a private copy

A manifest that is written by hand may leave out all but `format`, `entry`, `target` and
`arguments`. Code is loaded from the private copy only, so it is the code whose digest was checked.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pydantic

from ferryvm.errors import FerryError
from ferryvm.input_file import read_bytes
from ferryvm.portable.imported.loader import loader
from ferryvm.portable.manifest import FORMAT

MANIFEST = "manifest.json"

_MOST = 64 << 20
"""The largest size of a file, in bytes."""

_Name = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_File = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")]
_Expression = str | int
_Sizes = _Expression | list[_Expression]
_ELEMENTS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64")
_NUMBERS = ("i32", "i64", "f32", "f64")


class ImportRefusedError(FerryError):
    """A folder that is not imported. The message names the folder, and the cause in one line."""


class _Keys(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore", frozen=True, strict=True)


class _Argument(_Keys):
    name: _Name
    kind: Literal["scalar", "array", "length", "lent", "result", "returned", "items", "status"]
    type: Literal[_ELEMENTS]  # type: ignore[valid-type]  # a list of names
    direction: Literal["in", "out", "inout"] = "inout"
    shape: list[_Expression] = []
    of: str = ""


class _Status(_Keys):
    error_mask: int = 255
    line_shift: int = 8


class _Error(_Keys):
    number: int
    name: str = ""
    message: str = ""


class _Origin(_Keys):
    region: str = ""
    file: str = ""


class _Launch(_Keys):
    items: _Sizes
    group: _Sizes | None = None


class _Division(_Keys):
    flag: str
    otherwise: str


class _Build(_Keys):
    flags: list[str] = []
    sources: list[_File] = []
    library: _File | None = None
    division: _Division | None = None


class _Vectors(_Keys):
    file: _File


class _Listed(_Keys):
    name: _File
    sha256: str = ""


class Manifest(_Keys):
    """The keys of a manifest that an import reads."""

    format: Literal[FORMAT]  # type: ignore[valid-type]  # the version
    entry: _Name
    target: str
    arguments: list[_Argument]
    status: _Status | None = None
    errors: list[_Error] = []
    origin: _Origin = _Origin()
    launch: _Launch | None = None
    build: _Build = _Build()
    vectors: _Vectors | None = None
    files: list[_Listed] = []


class Description(NamedTuple):
    """A manifest and the content of the files that it names."""

    folder: Path
    keys: Manifest
    document: Any
    """The manifest as JSON has it, for harnesses."""
    files: dict[str, bytes]

    def refusal(self, what: str) -> ImportRefusedError:
        """The error that refuses the folder."""
        return ImportRefusedError(f"{self.folder}: not imported: {what}")

    def copy(self, folder: Path) -> None:
        """Write the files into another folder."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        (folder / MANIFEST).write_text(json.dumps(self.document), encoding="utf-8")


def read_description(folder: Path) -> Description:
    """The description of a folder.

    Raises UnknownNameError for a target that cannot be imported, ImportRefusedError for a folder
    without a manifest, with a fault in it, or with a file that is not as the manifest says.
    """
    text = read_bytes(folder / MANIFEST, _MOST, error=ImportRefusedError) or b""
    try:
        document = json.loads(text)
        keys = Manifest.model_validate_json(text)
    except (ValueError, RecursionError) as error:
        raise ImportRefusedError(f"{folder / MANIFEST}: {_fault(error)}") from None
    made = Description(folder, keys, document, {})
    for what in _faults(keys):
        raise ImportRefusedError(f"{folder / MANIFEST}: {what}")
    document.setdefault("build", {}).setdefault("flags", [])
    for each in document["arguments"]:
        if each["kind"] == "array":
            each.setdefault("direction", "inout")
    for name, digest in _named_files(folder, keys, loader(keys.target).suffix).items():
        content = read_bytes(folder / name, _MOST, error=ImportRefusedError) or b""
        if digest and hashlib.sha256(content).hexdigest() != digest:
            raise made.refusal(f"{name} is not as the manifest says: its digest differs")
        made.files[name] = content
    return made


def _named_files(folder: Path, keys: Manifest, suffix: str) -> dict[str, str]:
    """Files by their digests; that of a file of which the manifest does not tell is empty."""
    found = {each.name: each.sha256 for each in keys.files if each.name != MANIFEST}
    for name in _code_names(folder, keys, suffix):
        found.setdefault(name, "")
    if keys.vectors is not None:
        found.setdefault(keys.vectors.file, "")
    return found


def _code_names(folder: Path, keys: Manifest, suffix: str) -> list[str]:
    """The files of the code: those that the manifest names, or the one that is named like the
    entry. A library that is not in the folder is the system's."""
    if keys.build.library is not None:
        return [keys.build.library] if (folder / keys.build.library).is_file() else []
    return keys.build.sources or [f"{keys.entry}{suffix}"]


def _fault(error: Exception) -> str:
    """The first fault of a document, in one line."""
    if not isinstance(error, pydantic.ValidationError):
        return f"is no JSON: {error}"
    first = error.errors(include_url=False)[0]
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"])
    return f"{where.lstrip('.') or 'the document'}: {first['msg']}"


def _faults(keys: Manifest) -> Iterator[str]:
    """The faults of keys that a model cannot see."""
    seen: set[str] = set()
    for each in keys.arguments:
        if each.name in seen:
            yield f"two arguments are called {each.name!r}"
        seen.add(each.name)
    arrays = {each.name for each in keys.arguments if each.kind in ("array", "lent")}
    names = {e.name for e in keys.arguments if e.kind in ("scalar", "items", "length")}
    for each in keys.arguments:
        if each.kind == "lent" and len(each.shape) != 1:
            yield f"argument {each.name!r} is lent memory: its shape is one number or expression"
        if each.kind not in ("array", "lent") and each.type not in _NUMBERS:
            known = ", ".join(_NUMBERS)
            yield f"argument {each.name!r} is {each.type}; one of {known} is expected"
        if each.kind == "length" and each.of not in arrays:
            yield f"argument {each.name!r} is the length of {each.of!r}, which is no array"
        for expression in each.shape:
            yield from _expression_faults(f"the shape of {each.name!r}", expression, names)
    if keys.launch is not None:
        for sizes in (keys.launch.items, keys.launch.group or 1):
            for expression in sizes if isinstance(sizes, list) else [sizes]:
                yield from _expression_faults("the launch", expression, names)
    if keys.target == "library" and keys.build.library is None:
        yield "build.library is missing: the name of the shared library"
    returned = [each.name for each in keys.arguments if each.kind == "returned"]
    if len(returned) > 1 or (returned and keys.status is not None):
        yield f"{returned[-1]!r} is returned, and something else is, too"


def _expression_faults(what: str, expression: str | int, names: set[str]) -> Iterator[str]:
    try:
        used = {n.id for n in ast.walk(ast.parse(str(expression))) if isinstance(n, ast.Name)}
    except SyntaxError as error:
        yield f"{what}: {expression!r} is no expression: {error.msg}"
        return
    for name in sorted(used - names):
        yield f"{what}: {name!r} is no argument that is an integer"
