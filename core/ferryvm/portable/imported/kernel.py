# SPDX-License-Identifier: Apache-2.0
"""Imported kernels as functions of Python over arrays of NumPy, and as host functions of
programs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferryvm import child
from ferryvm.engine.array_argument import Place, host_array
from ferryvm.engine.marshal import CallError, expected, fits
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, ValueType
from ferryvm.machine.host import Determinism, HostError, HostFunction
from ferryvm.machine.host_array import HostArray
from ferryvm.portable.harness.golden import (
    SCALARS,
    Call,
    Memory,
    expression,
    inputs_of,
    integers_of,
    results_of,
)
from ferryvm.portable.imported.description import Description, ImportRefusedError, read_description
from ferryvm.portable.imported.loader import LoadError, loader
from ferryvm.program import Signature

_SECONDS = 600.0
"""The time in which all vectors have to pass; each call has ten seconds."""


class ImportedTrapError(FerryError):
    """An imported kernel returned an error."""

    def __init__(self, name: str, status: int, kind: Trap | None, line: int, message: str) -> None:
        self.name = name
        """Of the kernel."""
        self.status = status
        self.kind = kind
        """The error, if it is one of ferryvm's."""
        self.line = line
        """Of the source from which the kernel was made; 0 if it is not known."""
        super().__init__(message)


class ImportedKernel:
    """A function of plain arguments, which is called with numbers and arrays of NumPy.

    A call takes the numbers and arrays of the manifest, in its order; lengths follow from arrays.
    Its value is the result, a tuple of several, or None. Raises CallError for arguments that do not
    fit, and ImportedTrapError for an error that the kernel returns.
    """

    def __init__(self, description: Description, call: Call, vectors: int) -> None:
        keys = description.keys
        self.name = keys.entry
        self.target = keys.target
        self.vectors = vectors
        """Golden vectors that have passed; 0 if there are none."""
        self._description, self._call = description, call
        document = description.document
        self._inputs = [(each["name"], _type(each), each) for each in inputs_of(document)]
        self._results = [_number(each["type"]) for each in results_of(document)]
        self.__name__ = keys.entry
        self.__doc__ = f"{keys.entry}{self.signature}, imported from {description.folder}."

    @property
    def signature(self) -> Signature:
        """The types of arguments and results."""
        return Signature(tuple(t for _, t, _ in self._inputs), tuple(self._results))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of arguments, without lengths and results."""
        return tuple(name for name, _, _ in self._inputs)

    @property
    def host(self) -> HostFunction:
        """The kernel as a host function of programs. Raises HostError for several results."""
        if len(self._results) > 1:
            what = f"{self.name} has {len(self._results)} results; a host function has one at most"
            raise HostError(f"{self._description.folder}: {what}")
        is_pure = all(isinstance(t, Type) for t in self.signature.parameters)
        kind = Determinism.PURE if is_pure else Determinism.PLAIN
        summary = f"imported from {self._description.folder}"
        return HostFunction(self.name, self.signature, self.__call__, summary, determinism=kind)

    def __repr__(self) -> str:
        return f"<imported kernel {self.name}{self.signature}>"

    def __call__(self, *arguments: object) -> Any:
        """The value of a call."""
        if len(arguments) != len(self._inputs):
            names = ", ".join(self.parameters) or "nothing"
            raise CallError(f"{self.name} takes {names}; found {len(arguments)} arguments")
        arrays: list[tuple[HostArray, bool]] = []
        given = [
            self._argument(number, argument, arrays) for number, argument in enumerate(arguments, 1)
        ]
        self._check_overlap(arrays)
        self._check_shapes(given)
        status, results = self._call(given)
        if status:
            raise self._error(status)
        values = [result.value for result in results]
        return tuple(values) if len(values) > 1 else values[0] if values else None

    def _argument(self, number: int, argument: object, arrays: list[tuple[HostArray, bool]]) -> Any:
        name, t, described = self._inputs[number - 1]
        what = f"{self.name}: argument {number} ({name})"
        if isinstance(t, Type):
            if not fits(t, argument):
                raise CallError(f"{what} is {shown(argument)}; {expected(t)} is expected")
            return SCALARS[described["type"]](argument)
        found = host_array(Place(what), t, argument)
        is_stored = described["direction"] != "in"
        if found.is_read_only and is_stored:
            raise CallError(
                f"{what} is a read-only array; the kernel stores into it: pass a.copy()"
            )
        arrays.append((found, is_stored))
        return Memory(found.address, found.length)

    def _check_overlap(self, arrays: Sequence[tuple[HostArray, bool]]) -> None:
        for at, (one, is_stored) in enumerate(arrays):
            for other, is_other_stored in arrays[:at]:
                if not (is_stored or is_other_stored) or one.is_same(other):
                    continue
                if one.size and other.size and one.excludes(other):
                    raise CallError(
                        f"{self.name}: two arrays overlap in part; pass the same array or a copy"
                    )

    def _check_shapes(self, given: list[Any]) -> None:
        integers: dict[str, int] | None = None
        for (name, _, described), value in zip(self._inputs, given, strict=True):
            shape = described.get("shape", [])
            if not isinstance(value, Memory) or not shape or shape == [f"{name}_length"]:
                continue
            if integers is None:
                integers = integers_of(self._description.document, given)
            size = 1
            for each in shape:
                size *= expression(each, integers)
            if size != value.length:
                words = " * ".join(map(str, shape))
                raise CallError(
                    f"{self.name}: {name} has {value.length} elements; {words} = {size} are expected"
                )

    def _error(self, status: int) -> ImportedTrapError:
        keys = self._description.keys
        assert keys.status is not None  # else the status is 0
        number, line = status & keys.status.error_mask, status >> keys.status.line_shift
        listed = next((each for each in keys.errors if each.number == number), None)
        kind = Trap.__members__.get(listed.name) if listed is not None else None
        message = f"status {status}"
        if listed is not None:
            message = listed.message or listed.name or message
        where = f"{keys.origin.file or self.name}:{line}: " if line else ""
        text = f"{where}{message}, in the imported kernel {self.name}"
        return ImportedTrapError(self.name, status, kind, line, text)


def _number(name: str) -> Type:
    return Type(name)


def _type(described: Any) -> ValueType:
    if described["kind"] == "array":
        return Element(described["type"]).array
    return Type(described["type"])


def import_kernel(
    directory: str | Path, *, device: str = "", unproved: bool = False
) -> ImportedKernel:
    """A function of the code in a folder that ferryvm has exported, or that has a manifest.

    Its golden vectors are tried first, in a child process. `device`: a part of the name of an
    OpenCL device; `unproved`: accept a manifest without vectors.

    The code runs with all rights of this process. Raises ImportRefusedError for a folder that is
    not as its manifest says, or that has no vectors; for code that cannot be loaded here, and for a
    vector that fails, which it names.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise ImportRefusedError(f"{folder}: is no folder; import names one with a manifest.json")
    found = read_description(folder)
    keys = found.keys
    how = loader(keys.target)
    if device and not how.has_devices:
        raise found.refusal(f"target {keys.target} has no devices; leave out {device!r}")
    if keys.vectors is None and not unproved:
        raise found.refusal("it has no golden vectors; unproved=True (--unproved) accepts that")
    with tempfile.TemporaryDirectory(prefix="ferryvm-import-") as made:
        private = Path(made)
        found.copy(private)
        try:
            if how.prepare is not None:
                how.prepare(private, found.document)
            vectors = 0 if keys.vectors is None else _proved(found, private, device)
            call = how.load(private, found.document, device)
        except LoadError as error:
            raise found.refusal(str(error)) from None
    return ImportedKernel(found, call, vectors)


def _proved(found: Description, private: Path, device: str) -> int:
    """The number of golden vectors, all of which pass. Raises ImportRefusedError."""
    command = [sys.executable, "-m", "ferryvm.portable.imported.prover", str(private), device]
    try:
        done = child.run(command, _SECONDS, child.environment())
    except OSError as error:
        raise found.refusal(
            f"its vectors cannot be tried: {error or 'they take too long'}"
        ) from None
    tried = "the first vector"
    for word, rest in _said(done.output.decode(errors="replace")):
        match word:
            case "try":
                tried = f"vector {rest}"
            case "fault":
                raise found.refusal(f"vector {rest}")
            case "refused":
                raise found.refusal(rest)
            case "vector":
                raise found.refusal(f"vector {rest}")
            case "passed" if int(rest):
                return int(rest)
            case "passed":
                raise found.refusal(f"{found.keys.entry} has no vectors in its file")
    last = (done.errors.strip().splitlines() or [""])[-1] if done.code > 0 else ""
    raise found.refusal(f"{tried}: ends by {child.ending(done.code)}{f': {last}' if last else ''}")


def _said(output: str) -> Iterator[tuple[str, str]]:
    """Lines of the prover: their first word, and the others."""
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        yield word.rstrip(":"), rest
