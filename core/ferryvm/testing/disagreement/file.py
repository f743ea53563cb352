# SPDX-License-Identifier: Apache-2.0
"""The file of a disagreement: JSON whose model is declared here; a bad file is one clear line."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from ferryvm import asm, image
from ferryvm.atomic_file import replace_file
from ferryvm.backend import Forcing
from ferryvm.engine.host_log import HostLog
from ferryvm.errors import FerryError
from ferryvm.input_file import read_bytes
from ferryvm.machine.control import UNLIMITED
from ferryvm.machine.difference import Difference
from ferryvm.machine.memory import Limits
from ferryvm.policy import Policy
from ferryvm.policy.writer import write
from ferryvm.testing.bisect import Parting
from ferryvm.testing.disagreement.model import BACKEND, Disagreement
from ferryvm.testing.environment import ENVIRONMENTS
from ferryvm.testing.mixed import read
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.watchdog import PATIENCE

FORMAT: Literal["ferryvm disagreement"] = "ferryvm disagreement"
VERSION: Literal[2] = 2

MOST_BYTES = 256 << 20
"""The largest file that is read."""

_BASE64_COLUMNS = 76
_COLUMNS = 140


class DisagreementError(FerryError):
    """A file is not a disagreement that this version can read, or cannot be written."""


class _Content(pydantic.BaseModel):
    """The content of the file, in its order; docs/reading-a-disagreement.md shows one."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["ferryvm disagreement"]
    version: Literal[2]
    origin: str | None
    good: str
    bad: str
    difference: Difference
    parting: Parting | None
    unbisected: str | None = None
    """The reason that there is no parting."""
    backends: tuple[str, ...]
    schedule: Schedule
    seed: int
    most: Annotated[int, pydantic.Field(ge=0, le=UNLIMITED)]
    patience: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] = PATIENCE
    forcing: tuple[Forcing, ...]
    policy: tuple[str, ...] | None = None
    """The policy of the backend `mixed`, as the lines of a policy file."""
    limits: Limits
    versions: dict[str, str]
    listing: tuple[str, ...]
    """The program as assembly, for the reader."""
    image: tuple[str, ...]
    """The program itself: lines of base64."""
    arguments: tuple[str, ...] = ()
    """The arguments of the program."""
    log: tuple[str, ...] | None = None
    """The host calls of the program, as the file of a log: lines of base64."""


def save(disagreement: Disagreement, path: str | Path) -> None:
    """Write the file. Raises DisagreementError where that cannot be done."""
    try:
        replace_file(Path(path), to_text(disagreement).encode(errors="replace"))
    except OSError as error:
        raise DisagreementError(f"{path}: cannot be written: {error.strerror}") from None


def to_text(disagreement: Disagreement) -> str:
    """The content of the file."""
    one = disagreement
    policy = None if one.policy is None else tuple(write(one.policy).splitlines())
    log = None if one.log is None else _lines(one.log.to_bytes())
    try:
        listing = asm.disassemble(one.program).splitlines()
    except FerryError as error:  # an image with another layout than the assembler's
        listing = [f"; {error}"]
    content = _Content(
        format=FORMAT,
        version=VERSION,
        origin=one.origin,
        good=one.good,
        bad=one.bad,
        difference=one.difference,
        parting=one.parting,
        unbisected=one.unbisected,
        backends=one.backends,
        schedule=one.schedule,
        seed=one.seed,
        most=one.most,
        patience=one.patience,
        forcing=tuple(sorted(one.forcing, key=lambda kind: kind.value)),
        policy=policy,
        limits=one.limits,
        versions=dict(one.versions),
        listing=tuple(listing),
        image=_lines(image.to_bytes(one.program)),
        arguments=one.arguments,
        log=log,
    )
    optional = {"arguments": one.arguments, "log": log}
    without = {name for name, value in optional.items() if not value}
    return _pretty(content.model_dump(mode="json", exclude=without)) + "\n"


def _lines(content: bytes) -> tuple[str, ...]:
    """Bytes as lines of base64."""
    encoded = base64.b64encode(content).decode()
    return tuple(
        encoded[at : at + _BASE64_COLUMNS] for at in range(0, len(encoded), _BASE64_COLUMNS)
    )


def _pretty(value: Any, indent: int = 0) -> str:
    """JSON in which values that fit on a line are on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _COLUMNS or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {_pretty(v, indent + 1)}" for k, v in value.items()]
        return f"{{\n{inner}" + f",\n{inner}".join(parts) + "\n" + " " * indent + "}"
    parts = [_pretty(v, indent + 1) for v in value]
    return f"[\n{inner}" + f",\n{inner}".join(parts) + "\n" + " " * indent + "]"


def load(path: str | Path) -> Disagreement:
    """The disagreement in a file. Raises DisagreementError, naming file and fault."""
    content = read_bytes(Path(path), MOST_BYTES, error=DisagreementError)
    return from_text(content or b"", str(path))


def from_text(content: bytes, name: str) -> Disagreement:
    """The disagreement in a file called `name`. Raises DisagreementError."""
    try:
        one = _Content.model_validate_json(content)
        if one.bad not in (*one.backends, one.good):
            raise FerryError(f"bad: {one.bad!r} is none of the backends")
        if one.parting is not None and one.parting.environment not in ENVIRONMENTS:
            known = ", ".join(ENVIRONMENTS)
            found = f"{one.parting.environment!r:.60}"
            raise FerryError(f"parting.environment: found {found} (allowed: {known})")
        program, policy = image.from_bytes(_bytes(one.image, "image"), "image"), _policy(one)
        log = None if one.log is None else _log(one.log)
    except pydantic.ValidationError as error:
        raise DisagreementError(f"{name}: {_first(error)}") from None
    except FerryError as error:
        raise DisagreementError(f"{name}: {error}") from None
    return Disagreement(
        program,
        one.limits,
        one.good,
        one.bad,
        one.backends,
        one.schedule,
        one.seed,
        one.versions,
        one.most,
        frozenset(one.forcing),
        one.difference,
        one.parting,
        one.origin,
        one.patience,
        one.unbisected,
        policy,
        one.arguments,
        log,
    )


def _first(error: pydantic.ValidationError) -> str:
    """The first fault of a file: its position, what was expected and what was found."""
    faults = error.errors(include_url=False)
    by_place = {fault["loc"]: fault for fault in faults}
    if () in by_place:  # not JSON, or no object
        return f"not a disagreement file: {by_place[()]['msg']}"
    if ("format",) in by_place:
        return f'not a disagreement file: no "format": "{FORMAT}"'
    if ("version",) in by_place:
        return f"version {by_place['version',]['input']!r} of the format; this is {VERSION}"
    fault = faults[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"])
    found = "" if fault["type"] == "missing" else f", found {fault['input']!r:.60}"
    return f"{place.lstrip('.')}: {fault['msg']}{found}"


def _policy(one: _Content) -> Policy | None:
    if one.policy is None:
        return None
    # Whether they are there does not matter before it is run.
    names = tuple(name.removeprefix(BACKEND) for name in one.versions)
    return read("\n".join(one.policy), "policy", names)


def _log(lines: tuple[str, ...]) -> HostLog:
    return HostLog.from_bytes(_bytes(lines, "log"), "log")


def _bytes(lines: tuple[str, ...], name: str) -> bytes:
    try:
        return base64.b64decode("".join(lines), validate=True)
    except (binascii.Error, ValueError):
        raise FerryError(f"{name}: not base64") from None
