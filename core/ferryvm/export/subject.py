# SPDX-License-Identifier: Apache-2.0
"""The subject of an export: a function of a program in a wrapper, whose interface is the exported one.

    f          (i64 i64) -> (f64)             reads static s, changes static t
    wrapper    (i64 i64 S T) -> (f64 T)       static.set s, static.set t, call f, static.get t, return

The wrapper is bytecode that is added to the program, so the reference interpreter runs the same thing
that compilers lift. The start function of the program with the wrapper only halts: its work is no part
of the export.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence

from ferryvm.errors import Position
from ferryvm.export.refusal import ExportError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.element import Element
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.program import Code, Export, Function, Program, Signature, SourceMap
from ferryvm.region.effect import function_effects
from ferryvm.region.launch import item_call
from ferryvm.region.region import RegionKind, region
from ferryvm.verify import Verified, verify

_GET, _CALL, _HALT, _RETURN, _STATIC_GET, _STATIC_SET = (
    BY_MNEMONIC[name].opcode
    for name in ("local.get", "call", "halt", "return", "static.get", "static.set")
)
_BEGIN, _TEST, _UNLESS, _ITEM, _JUMP, _DROP = (
    BY_MNEMONIC[name].opcode
    for name in ("launch.begin", "launch.test", "jump_unless", "launch.item", "jump", "drop")
)
_MASK = (1 << 64) - 1
_BY_ARRAY = {element.array: element for element in Element}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A wrapper, and its interface in names and types of the program."""

    verified: Verified
    """The program with the wrapper."""
    wrapper: int
    """Its number."""
    origin: str
    """The region that is exported."""
    entry: int
    """pc of its first instruction."""
    parameters: tuple[tuple[str, Type | Element], ...]
    """Names and types; an element kind stands for an array of it."""
    results: tuple[tuple[str, Type], ...]
    statics: dict[int, int]
    """Parameters by the numbers of the statics that they set."""
    changed: frozenset[int]
    """Statics that are results, too."""
    item: Subject | None = None
    """Of a launch: one of its items, whose first parameter is its number; that of the launch is the
    number of items, the others are the same."""

    def position(self, pc: int) -> Position | None:
        """The source position of an instruction."""
        return self.verified.program.source_map.position(pc)


def function_subject(verified: Verified, number: int) -> Subject:
    """A function of a program as the subject. Raises ExportError if it takes or returns what has no
    plain form."""
    program = verified.program
    function = program.functions[number]
    position = program.source_map.position(function.entry)
    if number == 0:
        what = f"{function.name!r} is the start function, which halts"
        raise ExportError(what, "move the code into a function and name that", position)
    signature = program.signature(number)
    effects = function_effects(verified, number)
    if effects.all_read or effects.all_written:
        what = "it accesses statics by numbers that are computed"
        raise ExportError(what, "use an array instead", position)
    changed = frozenset(effects.statics_written)
    used = sorted(effects.statics_read | changed)
    names = [*_parameter_names(function, signature), *(program.statics[n].name for n in used)]
    types = [*signature.parameters, *(program.statics[n].type for n in used)]
    parameters = tuple(
        (name, _plain(name, t, position)) for name, t in zip(names, types, strict=True)
    )
    results: list[tuple[str, Type]] = []
    for index, t in enumerate(signature.results):
        name = "result" if len(signature.results) == 1 else f"result_{index}"
        results.append((name, _number(t, "it returns a reference", position)))
    for n in sorted(changed):
        static = program.statics[n]
        what = f"it stores a reference into static {static.name!r}"
        results.append((f"new_{static.name}", _number(static.type, what, position)))
    with_wrapper = _wrapped(program, number, used, sorted(changed), names)
    first = len(signature.parameters)
    return Subject(
        verify(with_wrapper),
        len(program.functions),
        function.name,
        function.entry,
        parameters,
        tuple(results),
        {n: first + place for place, n in enumerate(used)},
        changed,
    )


def _parameter_names(function: Function, signature: Signature) -> list[str]:
    given = function.parameters or ("",) * len(signature.parameters)
    return [name or f"argument_{place}" for place, name in enumerate(given)]


def _plain(name: str, t: ValueType, position: Position | None) -> Type | Element:
    if not isinstance(t, Reference):
        return t
    element = _BY_ARRAY.get(t)
    if element is None:
        what = f"{name!r} is a reference of type {t}"
        raise ExportError(what, "pass numbers and arrays of numbers", position)
    return element


def _number(t: ValueType, what: str, position: Position | None) -> Type:
    if isinstance(t, Reference):
        raise ExportError(what, "let the caller pass the array that is to be filled", position)
    return t


def _wrapped(
    program: Program, number: int, used: Sequence[int], changed: Sequence[int], names: Sequence[str]
) -> Program:
    """The program with the wrapper as its last function and only export."""
    called = program.signature(number)
    parameters = (*called.parameters, *(program.statics[n].type for n in used))
    results = (*called.results, *(program.statics[n].type for n in changed))
    count, first = len(parameters), len(called.parameters)
    code: list[tuple[int, int]] = []
    for place, n in enumerate(used, first):
        code += [(_GET, word_of(place, count) & _MASK), (_STATIC_SET, n)]
    code += [(_GET, word_of(place, count) & _MASK) for place in range(first)]
    code += [(_CALL, number), *((_STATIC_GET, n) for n in changed)]
    code += [(_RETURN, return_immediate(count, len(results)))]
    name = program.functions[number].name
    return _with_function(program, name, Signature(parameters, results), code, names)


def _with_function(
    program: Program,
    name: str,
    signature: Signature,
    code: Sequence[tuple[int, int]],
    names: Sequence[str],
) -> Program:
    """The program with one more function, which is its only export, and a start function that halts."""
    size = len(program.code)
    signatures = {signature: place for place, signature in enumerate(program.signatures)}
    own = signatures.setdefault(signature, len(signatures))
    function = Function(name, size, own, (), tuple(names))
    start = dataclasses.replace(program.functions[0], entry=size + len(code), locals=())
    added = array("Q", bytes(16 * (len(code) + 1)))
    added[0::2] = array("Q", [*(opcode for opcode, _ in code), _HALT])
    added[1::2] = array("Q", [*(immediate for _, immediate in code), 0])
    rows = program.source_map.tobytes() + SourceMap(rows=[(size, 0, 0, 0)]).tobytes()
    return dataclasses.replace(
        program,
        code=Code(program.code.tobytes() + added.tobytes()),
        functions=(start, *program.functions[1:], function),
        signatures=tuple(signatures),
        exports=(Export(name, len(program.functions)),),
        source_map=SourceMap.packed(program.source_map.files, rows),
    )


def launch_subject(verified: Verified, number: int, origin: str) -> Subject:
    """A launch of a function's items as the subject; `origin`: the region. Raises ExportError as
    `function_subject` does, and for items that change statics."""
    item = function_subject(verified, number)
    if item.changed:
        static = verified.program.statics[min(item.changed)].name
        what = f"its items change static {static!r}, each after the other"
        position = item.position(item.entry)
        raise ExportError(what, "let each item store into an element of an array", position)
    program = item.verified.program
    (_, *rest) = item.parameters
    signature = program.signature(item.wrapper)
    count, first = len(signature.parameters), len(program.code)
    code = [(_GET, word_of(place, count) & _MASK) for place in [*range(1, count), 0]]
    test = first + len(code) + 1
    over = test + 5
    code += [(_BEGIN, 0), (_TEST, 0), (_UNLESS, over), (_ITEM, item.wrapper)]
    code += [(_CALL, item.wrapper), (_JUMP, test)]
    code += [(_DROP, 0)] * (LAUNCH_WORDS + count - 1)
    code += [(_RETURN, return_immediate(count, 0))]
    names = ["items", *(name for name, _ in rest)]
    name = program.functions[number].name
    with_launch = _with_function(program, name, signature, code, names)
    return dataclasses.replace(
        item,
        verified=verify(with_launch),
        wrapper=len(program.functions),
        origin=origin,
        parameters=(("items", Type.I64), *rest),
        item=item,
    )


def region_subject(verified: Verified, name: str) -> Subject:
    """A region of a program as the subject. Raises UnknownNameError, or ExportError."""
    found = region(verified, name)
    if found.kind is RegionKind.LAUNCH:
        call = item_call(verified.program, found.entry)
        assert call is not None
        return launch_subject(verified, verified.program.code.immediates[call], name)
    if found.kind is not RegionKind.FUNCTION:
        what = f"region {name!r} is a {found.kind.value}"
        position = verified.program.source_map.position(found.entry)
        raise ExportError(what, "name a function or a launch", position)
    return function_subject(verified, found.function)
