# SPDX-License-Identifier: Apache-2.0
"""The subject of an export: a function of a program in a wrapper, whose interface is the exported
one.

    f          (i64 i64) -> (f64)             reads static s, changes static t
    wrapper    (i64 i64 S T) -> (f64 T)       static.set s, static.set t, call f, static.get t, return

The wrapper is bytecode that is added to the program, so the reference interpreter runs the same
thing that compilers lift. The start function of the program with the wrapper only halts: its work
is no part of the export.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ferryvm.errors import Position
from ferryvm.ir.graph import Constant, FrameState
from ferryvm.isa.element import Element
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.portable.outline import outline
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.wrapper import Wrapper, with_function
from ferryvm.program import Function, Signature
from ferryvm.region.effect import function_effects
from ferryvm.region.region import Region
from ferryvm.verify import Verified, verify

_NONE: Mapping[int, int] = MappingProxyType({})
_NO_SHAPES: Mapping[int, tuple[int, ...]] = MappingProxyType({})
_NO_PAIRS: frozenset[int] = frozenset()
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
    pairs: frozenset[int] = _NO_PAIRS
    """The arrays of complex numbers, whose parts are neighbours."""
    may_throw: bool = False
    """True if an exception that nothing catches is an error like others."""
    folded: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """Parameters that are constants in the code, and no arguments: their bits."""
    item: Subject | None = None
    """Of a launch: one of its items, whose first parameters are its indices along the axes, where
    the launch has the numbers of items; the others are those of the launch, without these numbers
    unless `counts_items`."""
    axes: int = 0
    """Of a launch: the number of its first parameters that are numbers of items, or of groups if it
    has some."""
    counts_items: bool = False
    """True if items take the numbers of items behind their indices."""
    has_groups: bool = False
    """True for a launch whose items launch members that wait for each other."""
    members: int | None = None
    """The members of a group in the program, if they are a constant there."""
    sizes: tuple[int, ...] = ()
    """The members of a group along each axis, if there are several."""

    def at(self, function: int) -> Subject:
        """The same, as if it stood where a function does that the program names."""
        item = None if self.item is None else self.item.at(function)
        name = self.verified.program.functions[function].name
        entry = _placed(self.verified, function)
        return dataclasses.replace(self, item=item, origin=name, entry=entry)

    def static_at(self, place: int) -> int:
        """The static that a parameter sets."""
        return next(n for n, at in self.statics.items() if at == place)

    def position(self, pc: int) -> Position | None:
        """The source position of an instruction."""
        return self.verified.program.source_map.position(pc)

    def place(self, state: FrameState) -> Position | None:
        """The source position of an exit: of the innermost call that has one, since generated
        functions have none."""
        return self.position(self.placed(state))

    def placed(self, state: FrameState) -> int:
        """The instruction that has the position of an exit."""
        pc, header = state.pc, state.header
        while self.position(pc) is None and header is not None:
            back, distance = state.words[header], state.words[header + 1]
            if not isinstance(back, Constant) or not isinstance(distance, Constant):
                break
            pc, header = back.bits - 1, header - distance.bits
        return pc


def function_subject(
    verified: Verified,
    number: int,
    lengths: Mapping[int, int] = _NONE,
    shapes: Mapping[int, tuple[int, ...]] = _NO_SHAPES,
    may_throw: bool = False,
    result_names: Sequence[str] = (),
    sets_statics: bool = True,
    pairs: frozenset[int] = _NO_PAIRS,
) -> Subject:
    """A function of a program as the subject. Raises ExportError if it takes or returns what has no
    plain form.

    `lengths`: the parameters that are no arguments, but the length of the array that another
    parameter is; `shapes`, `pairs`, by parameters of the function: as of `Subject`, a length of
    the latter being the number of pairs; `result_names`: other ones than `result`; `sets_statics`: statics are set to their arguments, which the launch of an
    item does.
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
    result_types = (*signature.results, *(program.statics[n].type for n in sorted(changed)))
    wrapper = Wrapper(program, function.name, types, names)
    for place, n in enumerate(used if sets_statics else (), len(own)):
        wrapper.get(place)
        wrapper.emit("static.set", n)
    for n in range(len(signature.parameters)):
        wrapper.get(places[lengths.get(n, n)])
        if n in lengths:
            wrapper.emit("array.length")
        if lengths.get(n) in pairs:
            wrapper.emit("i64.const", 1)
            wrapper.emit("i64.shr_u")
    wrapper.emit("call", number)
    for n in sorted(changed):
        wrapper.emit("static.get", n)
    return Subject(
        verify(wrapper.finish(result_types)),
        len(program.functions),
        function.name,
        entry,
        parameters,
        tuple(results),
        {n: len(own) + place for place, n in enumerate(used)},
        changed,
        {places[at]: tuple(places[n] for n in of) for at, of in shapes.items()},
        frozenset(places[at] for at in pairs),
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


def launch_subject(
    verified: Verified,
    number: int,
    origin: str,
    has_groups: bool = False,
    lengths: Mapping[int, int] = _NONE,
    shapes: Mapping[int, tuple[int, ...]] = _NO_SHAPES,
    may_throw: bool = False,
    pairs: frozenset[int] = _NO_PAIRS,
) -> Subject:
    """A launch of a function's items as the subject; `origin`: the region; `has_groups`: the items
    are groups; the others are as of `function_subject`. Raises ExportError as that does, and for
    items that change statics."""
    item = function_subject(
        verified, number, lengths, shapes, may_throw, sets_statics=not lengths, pairs=pairs
    )
    _refuse_changes(item)
    program, called = item.verified.program, item.wrapper if lengths else number
    (_, *rest) = item.parameters
    types = program.signature(item.wrapper).parameters
    shared = len(types) - len(item.statics)
    items = "groups" if has_groups else "items"
    name = program.functions[number].name
    wrapper = Wrapper(program, name, types, [items, *(name for name, _ in rest)])
    for n, place in item.statics.items():
        wrapper.get(place)
        wrapper.emit("static.set", n)
    given = len(types) if lengths else shared
    wrapper.get(*range(1, given), 0)
    wrapper.launch(called, given - 1)
    return dataclasses.replace(
        item,
        verified=verify(wrapper.finish()),
        wrapper=len(program.functions),
        origin=origin,
        parameters=((items, Type.I64), *rest),
        item=item,
        axes=1,
        has_groups=has_groups,
    )


def _refuse_changes(item: Subject) -> None:
    if item.changed:
        static = item.verified.program.statics[min(item.changed)].name
        what = f"its items change static {static!r}, each after the other"
        position = item.position(item.entry)
        raise ExportError(what, "let each item store into an element of an array", position)


def grid_subject(item: Subject, axes: int, has_groups: bool, sizes: tuple[int, ...]) -> Subject:
    """A launch of an item that takes an index and a number of items for each axis, then what all
    share; items along the last axis are neighbours. `sizes`: the members of a group along each
    axis, if items are groups. The launch sets the statics of its items."""
    _refuse_changes(item)
    program, called = item.verified.program, item.wrapper
    types = program.signature(called).parameters[axes:]
    rest = item.parameters[2 * axes :]
    kind = "groups" if has_groups else "items"
    counts = [kind if axes == 1 else f"{kind}_{axis}" for axis in range(axes)]
    names = [*counts, *(name for name, _ in rest)]
    if axes > 1:
        indexed = Wrapper(program, item.origin, (Type.I64, *types), ["item", *names])
        strides = [indexed.local(Type.I64) for _ in range(axes)]
        for axis in reversed(range(axes)):
            indexed.get(0, 1 + axis)
            indexed.emit("i64.rem_s")
            indexed.set(strides[axis])
            indexed.get(0, 1 + axis)
            indexed.emit("i64.div_s")
            indexed.set(0)
        indexed.get(*strides, *range(1, 1 + len(types)))
        indexed.emit("call", called)
        program, called = indexed.finish(), len(program.functions)
    wrapper = Wrapper(program, item.origin, types, names)
    for n, place in item.statics.items():
        wrapper.get(place - axes)
        wrapper.emit("static.set", n)
    wrapper.get(*range(len(types)), *range(axes))
    for _ in range(axes - 1):
        wrapper.emit("i64.mul")
    wrapper.launch(called, len(types))
    return dataclasses.replace(
        item,
        verified=verify(wrapper.finish()),
        wrapper=len(program.functions),
        parameters=(*((count, Type.I64) for count in counts), *rest),
        shapes={at - axes: tuple(n - axes for n in of) for at, of in item.shapes.items()},
        pairs=frozenset(at - axes for at in item.pairs),
        item=item,
        axes=axes,
        counts_items=True,
        has_groups=has_groups,
        sizes=sizes if has_groups else (),
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
    made = with_function(
        program,
        found.name,
        outlined.signature,
        code,
        outlined.names,
        outlined.locals,
        outlined.origins,
    )
    return function_subject(verify(made), number, result_names=outlined.results)
