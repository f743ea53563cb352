# SPDX-License-Identifier: Apache-2.0
"""The file of a log of host calls.

FUNC      each function: name, signature, if a replay performs it
CALL      the words of all calls
RAIS      each exception: number of the call, classes, text
MEMO      each effect on memory: number of the call, heap pointer, runs of the heap, statics

Everything is checked when it is read, so a replay can trust the log.
"""

from __future__ import annotations

import sys
from array import array
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.engine.call_log import (
    MOST_WORDS,
    RAISED,
    RETURNED,
    CallLog,
    Effect,
    Raised,
)
from ferryvm.engine.host_declaration import parse_signature
from ferryvm.image.container import (
    MOST_BYTES,
    ImageError,
    ImageKind,
    Reader,
    Writer,
    pack,
    read,
    unpack,
)
from ferryvm.machine.host import HostError
from ferryvm.program import HostImport

LOG = ImageKind(
    "a log of host calls",
    b"\x89FVH\r\n\x1a\n",
    1,
    ("FUNC", "CALL", "RAIS", "MEMO"),
)


def save(log: CallLog, path: Path) -> None:
    """Write a log. Raises ImageError if the file cannot be written."""
    try:
        replace_file(path, to_bytes(log))
    except OSError as error:
        raise ImageError(f"{path}: cannot be written: {error.strerror}") from None


def load(log: CallLog, path: Path) -> None:
    """Fill an empty log with the one in a file. Raises ImageError, naming the file and the
    fault."""
    read_into(log, read(LOG, path, MOST_BYTES), str(path))


def to_bytes(log: CallLog) -> bytes:
    """The content of a log's file, without pending calls and the calls nested in them."""
    end = next((n for n in range(len(log)) if log.state(n) not in (RETURNED, RAISED)), len(log))
    functions, raised, effects = Writer(), Writer(), Writer()
    functions.number(len(log.functions))
    for function in log.functions:
        functions.text(function.imported.name)
        functions.text(str(function.imported.signature))
        functions.number(function.is_performed)
    words = log.words[: log.starts[end]] if end < len(log) else log.words[:]
    if sys.byteorder == "big":
        words.byteswap()
    whole = [number for number in sorted(log.raised) if number < end]
    raised.number(len(whole))
    for number in whole:
        raised.number(number)
        raised.number(len(log.raised[number].classes))
        for name in log.raised[number].classes:
            raised.text(name)
        raised.text(log.raised[number].text)
    whole = [number for number in sorted(log.effects) if number < end]
    effects.number(len(whole))
    for number in whole:
        effect = log.effects[number]
        for value in (number, effect.hp, len(effect.heap)):
            effects.number(value)
        for offset, content in effect.heap:
            effects.number(offset)
            effects.blob(content)
        effects.number(len(effect.statics))
        for static, word in effect.statics:
            effects.number(static)
            effects.number(word)
    return pack(
        LOG,
        {
            "FUNC": functions.bytes(),
            "CALL": words.tobytes(),
            "RAIS": raised.bytes(),
            "MEMO": effects.bytes(),
        },
    )


def read_into(log: CallLog, content: bytes, name: str) -> None:
    """Fill an empty log with the one in the content of a file called `name`. Raises ImageError."""
    sections = unpack(LOG, content, name)
    _read_functions(log, Reader(sections["FUNC"], f"{name}: section FUNC"))
    raised = _read_raised(Reader(sections["RAIS"], f"{name}: section RAIS"))
    _read_calls(log, raised, sections["CALL"], f"{name}: section CALL")
    _read_effects(log, Reader(sections["MEMO"], f"{name}: section MEMO"))


def _read_functions(log: CallLog, reader: Reader) -> None:
    for number in range(reader.count(24)):
        name, text, is_performed = reader.text(), reader.text(), reader.number()
        try:
            signature = parse_signature(text)
        except HostError:
            raise reader.fail(f"function {name!r} has no signature") from None
        if len(signature.results) > 1 or is_performed > 1:
            raise reader.fail(f"function {name!r} cannot be a host function")
        if log.number_of(HostImport(name, signature), bool(is_performed)) != number:
            raise reader.fail(f"function {name!r} is there twice")
    reader.end()


def _read_raised(reader: Reader) -> dict[int, Raised]:
    found = {}
    for _ in range(reader.count(24)):
        number = reader.number()
        classes = tuple(reader.text() for _ in range(reader.count(8)))
        if not classes or not all(classes) or number in found:
            raise reader.fail("an exception without a class, or a second one of a call")
        found[number] = Raised(classes, reader.text())
    reader.end()
    return found


def _read_calls(log: CallLog, raised: dict[int, Raised], content: bytes, where: str) -> None:
    if len(content) % 8 or len(content) // 8 > MOST_WORDS:
        raise ImageError(f"{where}: {len(content)} bytes; whole words, {MOST_WORDS} at most")
    words = array("Q", content)
    if sys.byteorder == "big":
        words.byteswap()
    at = 0
    while at < len(words):
        number = len(log)
        head, at = words[at], at + 1
        function, state = head & 0xFFFFFFFF, head >> 32
        if function >= len(log.functions) or state not in (RETURNED, RAISED):
            raise ImageError(f"{where}: call {number} is of no function, or has not ended")
        signature = log.functions[function].imported.signature
        types = (*signature.parameters, *signature.results)
        size = len(signature.parameters) + 1
        if at + size > len(words) or (state == RAISED) != (number in raised):
            raise ImageError(f"{where}: call {number} ends too early")
        if any(bits & ~t.mask for t, bits in zip(types, words[at : at + size], strict=False)):
            raise ImageError(f"{where}: call {number} has bits that their types have not")
        log.begin(function, words[at : at + size - 1])
        log.end(number, words[at + size - 1], raised.get(number))
        at += size
    if len(raised) != len(log.raised):
        raise ImageError(f"{where}: an exception is of a call that there is not")


def _read_effects(log: CallLog, reader: Reader) -> None:
    for _ in range(reader.count(32)):
        number, hp = reader.number(), reader.number()
        heap = tuple((reader.number(), reader.blob()) for _ in range(reader.count(16)))
        statics = tuple((reader.number(), reader.number()) for _ in range(reader.count(16)))
        if number >= len(log) or number in log.effects:
            raise reader.fail(f"an effect of call {number}, which is not there or has one")
        if hp % 8 or any(offset + len(content) > hp for offset, content in heap):
            raise reader.fail(f"an effect of call {number} past the heap")
        log.effects[number] = Effect(hp, heap, statics)
    reader.end()
