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
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ferryvm.errors import Position
from ferryvm.ir.graph import Constant, FrameState
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.element import Element
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.portable.outline import outline
from ferryvm.portable.refusal import ExportError
from ferryvm.program import Code, Export, Function, Program, Signature, SourceMap
from ferryvm.region.effect import function_effects
from ferryvm.region.launch import item_call
from ferryvm.region.region import Region, RegionKind, region
from ferryvm.verify import Verified, verify

_GET, _CALL, _HALT, _RETURN, _STATIC_GET, _STATIC_SET, _LENGTH = (
    BY_MNEMONIC[name].opcode
    for name in ("local.get", "call", "halt", "return", "static.get", "static.set", "array.length")
)
_BEGIN, _TEST, _UNLESS, _ITEM, _JUMP, _DROP = (
    BY_MNEMONIC[name].opcode
    for name in ("launch.begin", "launch.test", "jump_unless", "launch.item", "jump", "drop")
)
_NONE: Mapping[int, int] = MappingProxyType({})
_NO_SHAPES: Mapping[int, tuple[int, ...]] = MappingProxyType({})
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
    """pc of its first instruction that has a source position."""
    parameters: tuple[tuple[str, Type | Element], ...]
    """Names and types; an element kind stands for an array of it."""
    results: tuple[tuple[str, Type], ...]
    statics: dict[int, int]
    """Parameters by the numbers of the statics that they set."""
    changed: frozenset[int]
    """Statics that are results, too."""
    shapes: Mapping[int, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Of arrays with dimensions, the parameters that are the lengths of these."""
    may_throw: bool = False
    """True if an exception that nothing catches is an error like others."""
    folded: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """Parameters that are constants in the code, and no arguments: their bits."""
    item: Subject | None = None
    """Of a launch: one of its items, whose first parameter is its number; that of the launch is the
    number of items, the others are the same."""

    def static_at(self, place: int) -> int:
        """The static that a parameter sets."""
        return next(n for n, at in self.statics.items() if at == place)

    def position(self, pc: int) -> Position | None:
        """The source position of an instruction."""
        return self.verified.program.source_map.position(pc)

    def place(self, state: FrameState) -> Position | None:
        """The source position of an exit: of the innermost call that has one, since generated functions
        have none."""
        pc, header = state.pc, state.header
        found = self.position(pc)
        while found is None and header is not None:
            back, distance = state.words[header], state.words[header + 1]
            if not isinstance(back, Constant) or not isinstance(distance, Constant):
                break
            found, header = self.position(back.bits - 1), header - distance.bits
        return found


def function_subject(
    verified: Verified,
    number: int,
    lengths: Mapping[int, int] = _NONE,
    shapes: Mapping[int, tuple[int, ...]] = _NO_SHAPES,
    may_throw: bool = False,
    result_names: Sequence[str] = (),
) -> Subject:
    """A function of a program as the subject. Raises ExportError if it takes or returns what has no
    plain form.

    `lengths`: the parameters that are no arguments, but the length of the array that another parameter
    is; `shapes`, by parameters of the function: as of `Subject`; `result_names`: other ones than `result`.
    """
    program = verified.program
    function = program.functions[number]
    entry = _placed(verified, number)
    position = program.source_map.position(entry)
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
    own = [n for n in range(len(signature.parameters)) if n not in lengths]
    places = {n: place for place, n in enumerate(own)}
    given = _parameter_names(function, signature)
    names = [*(given[n] for n in own), *(program.statics[n].name for n in used)]
    types = [*(signature.parameters[n] for n in own), *(program.statics[n].type for n in used)]
    parameters = tuple(
        (name, _plain(name, t, position)) for name, t in zip(names, types, strict=True)
    )
    results: list[tuple[str, Type]] = []
    for index, t in enumerate(signature.results):
        name = "result" if len(signature.results) == 1 else f"result_{index}"
        name = result_names[index] if result_names else name
        results.append((name, _number(t, "it returns a reference", position)))
    for n in sorted(changed):
        static = program.statics[n]
        what = f"it stores a reference into static {static.name!r}"
        results.append((f"new_{static.name}", _number(static.type, what, position)))
    code: list[tuple[int, int]] = []
    count = len(parameters)
    for place, n in enumerate(used, len(own)):
        code += [(_GET, word_of(place, count) & _MASK), (_STATIC_SET, n)]
    for n in range(len(signature.parameters)):
        code.append((_GET, word_of(places[lengths.get(n, n)], count) & _MASK))
        if n in lengths:
            code.append((_LENGTH, 0))
    code += [(_CALL, number), *((_STATIC_GET, n) for n in sorted(changed))]
    result_types = (*signature.results, *(program.statics[n].type for n in sorted(changed)))
    code.append((_RETURN, return_immediate(count, len(result_types))))
    wrapped = Signature(tuple(types), result_types)
    return Subject(
        verify(_with_function(program, function.name, wrapped, code, names)),
        len(program.functions),
        function.name,
        entry,
        parameters,
        tuple(results),
        {n: len(own) + place for place, n in enumerate(used)},
        changed,
        {places[at]: tuple(places[n] for n in of) for at, of in shapes.items()},
        may_throw,
    )


def _placed(verified: Verified, number: int) -> int:
    """The first instruction of a function that has a source position; its entry if none has."""
    program = verified.program
    entry = pc = program.functions[number].entry
    while pc < len(program.code) and verified.owner(pc) == number:
        if program.source_map.position(pc) is not None:
            return pc
        pc += 1
    return entry


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


def _with_function(
    program: Program,
    name: str,
    signature: Signature,
    code: Sequence[tuple[int, int]],
    names: Sequence[str],
    locals_: tuple[ValueType, ...] = (),
    origins: Sequence[int] = (),
) -> Program:
    """The program with one more function, which is its only export, and a start function that halts.

    `origins`: the instructions whose source positions its own have.
    """
    size = len(program.code)
    signatures = {signature: place for place, signature in enumerate(program.signatures)}
    own = signatures.setdefault(signature, len(signatures))
    function = Function(name, size, own, locals_, tuple(names))
    start = dataclasses.replace(program.functions[0], entry=size + len(code), locals=())
    added = array("Q", bytes(16 * (len(code) + 1)))
    added[0::2] = array("Q", [*(opcode for opcode, _ in code), _HALT])
    added[1::2] = array("Q", [*(immediate for _, immediate in code), 0])
    files = {name: number for number, name in enumerate(program.source_map.files)}
    places = [program.source_map.position(origin) for origin in origins]
    placed = [
        (size + at, files[place.file] if place else 0, *(place[1:] if place else (0, 0)))
        for at, place in enumerate(places)
    ]
    placed.append((size + len(places), 0, 0, 0))
    rows = program.source_map.tobytes() + SourceMap(rows=placed).tobytes()
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
    count = len(signature.parameters)
    shared = count - len(item.statics)
    code: list[tuple[int, int]] = []
    for n, place in item.statics.items():
        code += [(_GET, word_of(place, count) & _MASK), (_STATIC_SET, n)]
    code += [(_GET, word_of(place, count) & _MASK) for place in [*range(1, shared), 0]]
    test = len(program.code) + len(code) + 1
    over = test + 5
    code += [(_BEGIN, 0), (_TEST, 0), (_UNLESS, over), (_ITEM, number)]
    code += [(_CALL, number), (_JUMP, test)]
    code += [(_DROP, 0)] * (LAUNCH_WORDS + shared - 1)
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


def loop_subject(found: Region) -> Subject:
    """A loop as the subject. Raises ExportError as `function_subject` does, and as `outline`."""
    outlined = outline(found)
    program = found.verified.program
    size, number = len(program.code), len(program.functions)
    code = [
        (opcode, immediate + size if at in outlined.targets else immediate)
        for at, (opcode, immediate) in enumerate(outlined.code)
    ]
    made = _with_function(
        program,
        found.name,
        outlined.signature,
        code,
        outlined.names,
        outlined.locals,
        outlined.origins,
    )
    return function_subject(verify(made), number, result_names=outlined.results)


def region_subject(verified: Verified, name: str) -> Subject:
    """A region of a program as the subject. Raises UnknownNameError, or ExportError."""
    found = region(verified, name)
    if found.kind is RegionKind.LAUNCH:
        call = item_call(verified.program, found.entry)
        assert call is not None
        return launch_subject(verified, verified.program.code.immediates[call], name)
    if found.loop is not None:
        return loop_subject(found)
    if found.kind is not RegionKind.FUNCTION:
        what = f"region {name!r} is a {found.kind.value}"
        position = verified.program.source_map.position(found.entry)
        raise ExportError(what, "name a function, a loop or a launch", position)
    return function_subject(verified, found.function)
