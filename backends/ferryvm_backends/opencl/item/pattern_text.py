# SPDX-License-Identifier: Apache-2.0
"""Kernels of the items of reductions and scans, which follow the order in ways of their own.

| items | on a processor: a work-item | on a device with memory of its own: work-items |
|---|---|---|
| a block is reduced | runs items, its accumulators in an array | are the accumulators, 16 for an item |
| blocks are scanned | runs items | scan a block each, through tiles in local memory |
| blocks are combined | runs items | combine an element each, 64 at a time |

Neighbouring work-items of a device access neighbouring elements, in local memory where the order
has one of them access a row. (Bell and Hoberock: Thrust, in GPU Computing Gems, 2011, has both
forms; Harris: Optimizing Parallel Reduction in CUDA, 2007.)

Nothing here can trap: the host has checked that all elements exist before
(`ferryvm_backends.opencl.item.pattern`). An element that is stored is canonical if it is a NaN,
unless it was only copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.opencl import CONSTANTS_READ
from ferryvm.ir.c.opencl_item import BEGIN, ItemEntry, items_dialect, opening
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.object import PLACE_OFFSET
from ferryvm.isa.type import CANONICAL_NAN, I64, Type
from ferryvm.machine.declaration import declarations
from ferryvm.skeleton import reduction, scan
from ferryvm.skeleton.array_type import OF_VALUE, ArrayType
from ferryvm.skeleton.recognition import Pattern, PatternKind

_TILE = 16
"""Elements of each block in a tile."""

_ELEMENTS = {8: "char", 16: "short", 32: "int", 64: "long"}


@dataclasses.dataclass(frozen=True)
class PatternText:
    """The source of a kernel for a pattern, and how it is launched."""

    source: str
    arguments: int
    """Words: the references of the pattern, and the number of elements."""
    lanes: int
    """Work-items for each item."""
    group: int
    """Work-items of a group; 0 for any number."""


def pattern_text(pattern: Pattern, *, apart: bool, aligned: bool) -> PatternText:
    """The kernel of a pattern; the flags are those of `ferryvm.ir.c.opencl.opencl`."""
    base = items_dialect(ItemEntry(0, 1, False, ""), aligned=aligned, apart=apart, objects=True)
    body, lanes, group = (_GROUPS if apart else _ITEMS)[pattern.kind]
    references = 3 if pattern.kind is PatternKind.SCANNED_BLOCKS else 2
    head = opening(
        references + 1,
        1,
        _values(base, pattern),
        apart=apart,
        objects=True,
        group=(group,) if group else (),
        runs_dry=not group,
    )
    names = ("source", "to", "last")[:references]
    types = [pattern.array, *[_results(pattern)] * (references - 1)]
    arrays = "".join(
        _array(name, number, _element(kind), apart)
        for number, (name, kind) in enumerate(zip(names, types, strict=True))
    )
    length = f"    const ulong length = launch.arguments[{references}];\n"
    begin = BEGIN + _END if not group else _DRY
    begin += "" if apart else CONSTANTS_READ
    dialect = dataclasses.replace(base, entry=f"{head}{begin}{arrays}{length}{body(pattern)}}}\n")
    parts = [dialect.prelude, declarations(dialect), *dialect.definitions(())]
    return PatternText("\n".join([*parts, dialect.entry]), references + 1, lanes, group)


_END = """\
    const ulong end = launch.limit - item < launch.block ? launch.limit : item + launch.block;
"""

_DRY = """\
    if (launch.first == FERRY_DRY && !place)
        suspended->count += 1u + *memory.interrupt;
"""
"""The dry run of a group, whose items are beyond the limit of none. PoCL 3.0 takes a return in front
of barriers for a condition of them, and may then have `place` be that of the first work-item."""


def _results(pattern: Pattern) -> ArrayType:
    return OF_VALUE[pattern.value]


def _element(array: ArrayType) -> str:
    """The C type of elements in memory."""
    element = array.element
    assert isinstance(element, Element)
    if element.type.is_float:
        return "float" if element.bits == 32 else "double"
    return _ELEMENTS[element.bits] if element.is_signed else f"u{_ELEMENTS[element.bits]}"


def _array(name: str, number: int, c: str, apart: bool) -> str:
    """The elements of an array, from its reference."""
    place = (
        f"*(__global const ulong *)(memory.objects + launch.arguments[{number}] + {PLACE_OFFSET}ul)"
    )
    place = f"object_place({place})" if apart else place
    return f"    __global {c} *const {name} = (__global {c} *)(memory.objects + {place});\n"


# --- values -----------------------------------------------------------------------------------


class _Statements:
    """The emitter of a meaning: each operation of `Arithmetic` is a statement. The selection of the
    canonical NaN for another one is left out."""

    def __init__(self, dialect: Dialect) -> None:
        self.lines: list[str] = []
        self._arithmetic = Arithmetic(dialect)
        self._types = dialect.types
        self._type_of: dict[str, str] = {}
        self._nan_of: dict[str, str] = {}
        """By a condition the value of which it says that it is a NaN."""

    def constant(self, t: Type, bits: int) -> str:
        found = self._arithmetic.constant(t, bits)
        self._type_of[found] = self._types[t]
        return found

    def compare(self, t: Type, condition: Condition, a: str, b: str) -> str:
        made = self._named("bool", self._arithmetic.compare(t, condition, a, b))
        if t.is_float and condition is Condition.NE and a == b:
            self._nan_of[made] = a
        return made

    def select(self, p: str, a: str, b: str) -> str:
        if self._nan_of.get(p) == b and a in map(
            self.constant, CANONICAL_NAN, CANONICAL_NAN.values()
        ):
            return b
        return self._named(self._type_of[b], self._arithmetic.select(p, a, b))

    def name(self, c: str, text: str) -> str:
        """Note the type of an operand."""
        self._type_of[text] = c
        return text

    def _named(self, c: str, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"const {c} {name} = {text};")
        self._type_of[name] = c
        return name

    def __getattr__(self, operation: str) -> Callable[..., str]:
        def emit(*arguments: Type | str) -> str:
            text = getattr(self._arithmetic, operation)(*arguments)
            first = arguments[0]
            return self._named(self._types[first] if isinstance(first, Type) else "bool", text)

        return emit


def _values(dialect: Dialect, pattern: Pattern) -> str:
    """The functions on values: of one from an element, of two, and what of one is stored."""
    t = pattern.value
    c = dialect.types[t]
    m = _Statements(dialect)
    found = pattern.operation.value(m, t, m.name(c, "a"), m.name(c, "b"))  # type: ignore[arg-type]  # it has all operations by name
    body = "".join(f"    {line}\n" for line in [*m.lines, f"return {found};"])
    element = pattern.array.element
    widened = "(long)a" if t is I64 and isinstance(element, Element) and element.is_signed else "a"
    stored = f"canonical_{t}(a)" if t.is_float else "a"
    return f"""\
static inline {c} loaded({_element(pattern.array)} a) {{ return ({c}){widened}; }}
static inline {c} stored({c} a) {{ return {stored}; }}
static inline {c} combined({c} a, {c} b)
{{
{body}}}
typedef {c} value;

"""


# --- a work-item runs items -------------------------------------------------------------------


def _reduced_items(pattern: Pattern) -> str:
    width, size = reduction.ACCUMULATORS, reduction.BLOCK
    return f"""\
    for (ulong block = item; block < end; ++block) {{
        __global const {_element(pattern.array)} *const x = source + block * {size};
        const ulong left = length - block * {size};
        const ulong count = left < {size} ? left : {size};
        const ulong rows = count / {width};
        ulong at = 1;
        value total = loaded(x[0]);
        if (rows) {{
            value sums[{width}];
            for (uint a = 0; a < {width}; ++a)
                sums[a] = loaded(x[a]);
            for (ulong row = 1; row < rows; ++row)
                for (uint a = 0; a < {width}; ++a)
                    sums[a] = combined(sums[a], loaded(x[row * {width} + a]));
            for (uint step = {width // 2}; step; step /= 2)
                for (uint a = 0; a < step; ++a)
                    sums[a] = combined(sums[a], sums[a + step]);
            total = sums[0];
            at = rows * {width};
        }}
        for (; at < count; ++at)
            total = combined(total, loaded(x[at]));
        to[block] = count > 1 ? stored(total) : total;
    }}
"""


def _scanned_items(pattern: Pattern) -> str:
    size, whole = scan.BLOCK, scan.BLOCK * scan.ITEM_BLOCKS
    return f"""\
    const ulong past = end * {whole} < length ? end * {whole} : length;
    for (ulong at = item * {whole}; at < past;) {{
        const ulong block = at / {size}, stop = past - at < {size} ? past : at + {size};
        value total = loaded(source[at]), kept = total;
        to[at] = total;
        for (++at; at < stop; ++at) {{
            total = combined(total, loaded(source[at]));
            to[at] = kept = stored(total);
        }}
        last[block] = kept;
    }}
"""


def _combined_items(pattern: Pattern) -> str:
    size, whole = scan.BLOCK, scan.BLOCK * scan.ITEM_BLOCKS
    return f"""\
    const ulong past = end * {whole} < length ? end * {whole} : length;
    for (ulong at = item ? item * {whole} : {size}; at < past;) {{
        const value left = source[at / {size} - 1];
        const ulong stop = past - at < {size} ? past : at + {size};
        for (; at < stop; ++at)
            to[at] = stored(combined(left, to[at]));
    }}
"""


# --- groups of work-items -----------------------------------------------------------------------

_REDUCING, _SCANNING, _COMBINING = 128, 64, 64
"""Work-items of a group."""


def _store(pattern: Pattern, name: str, index: str, value: str, indent: str) -> str:
    """Statements that store an element and set the mark of its chunk."""
    t = pattern.value
    bits = f"bits_of_{t}({value})" if t.is_float else value
    address = f"(ulong)({name} + {index})"
    return f"{indent}object_store_{t.bits // 8}({address}, {bits});\n"


def _reduced_group(pattern: Pattern) -> str:
    width, size = reduction.ACCUMULATORS, reduction.BLOCK
    store = _store(pattern, "to", "block", "count > 1 ? stored(total) : total", "        ")
    return f"""\
    __local value sums[{_REDUCING}];
    const uint me = get_local_id(0), lane = me % {width};
    const ulong block = launch.first + place / {width};
    const ulong left = block < launch.limit ? length - block * {size} : 0;
    const ulong count = left < {size} ? left : {size};
    const ulong rows = count / {width};
    __global const {_element(pattern.array)} *const x = source + block * {size};
    if (rows) {{
        value sum = loaded(x[lane]);
        for (ulong row = 1; row < rows; ++row)
            sum = combined(sum, loaded(x[row * {width} + lane]));
        sums[me] = sum;
    }}
    for (uint step = {width // 2}; step; step /= 2) {{
        barrier(CLK_LOCAL_MEM_FENCE);
        if (rows && lane < step)
            sums[me] = combined(sums[me], sums[me + step]);
    }}
    if (lane == 0 && count) {{
        value total = rows ? sums[me] : loaded(x[0]);
        for (ulong at = rows ? rows * {width} : 1; at < count; ++at)
            total = combined(total, loaded(x[at]));
{store}\
    }}
"""


def _scanned_group(pattern: Pattern) -> str:
    size, whole = scan.BLOCK, scan.BLOCK * scan.ITEM_BLOCKS
    c = _element(_results(pattern))
    bits = f"object_set_{pattern.value.bits // 8}"
    word = f"bits_of_{pattern.value}" if pattern.value.is_float else ""
    store = _store(pattern, "last", "block", "kept", "        ")
    return f"""\
    __local value tile[{_SCANNING}][{_TILE} + 1];
    const uint me = get_local_id(0);
    const ulong first = launch.first * {scan.ITEM_BLOCKS} + place - me, block = first + me;
    const ulong start = first * {size}, row_start = block * {size};
    const ulong all = launch.limit * {whole}, past = all < length ? all : length;
    value total = 0, kept = 0;
    for (uint column = 0; column < {size}; column += {_TILE}) {{
        for (uint k = 0; k < {_TILE}; ++k) {{
            const uint cell = k * {_SCANNING} + me, row = cell / {_TILE}, place = cell % {_TILE};
            const ulong at = start + row * {size} + column + place;
            if (at < past)
                tile[row][place] = loaded(source[at]);
        }}
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < {_TILE}; ++k)
            if (row_start + column + k < past) {{
                const value element = tile[me][k];
                total = column + k ? combined(total, element) : element;
                kept = column + k ? stored(total) : total;
                tile[me][k] = kept;
            }}
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < {_TILE}; ++k) {{
            const uint cell = k * {_SCANNING} + me, row = cell / {_TILE}, place = cell % {_TILE};
            const ulong at = start + row * {size} + column + place;
            if (at < past) {{
                const ulong address = (ulong)(to + at);
                if (place == 0 || ((address - memory.objects) & 4095) < sizeof({c}))
                    marked(memory.objects, address, sizeof({c}));
                {bits}(address, {word}(tile[row][place]));
            }}
        }}
    }}
    if (row_start < past) {{
{store}\
    }}
"""


def _combined_group(pattern: Pattern) -> str:
    size, whole = scan.BLOCK, scan.BLOCK * scan.ITEM_BLOCKS
    made = "stored(combined(source[at / " + str(size) + " - 1], to[at]))"
    store = _store(pattern, "to", "at", made, "            ")
    return f"""\
    const uint me = get_local_id(0);
    const ulong number = launch.first + place / {_COMBINING};
    if (number >= launch.limit)
        return;
    for (uint k = 0; k < {whole}; k += {_COMBINING}) {{
        const ulong at = number * {whole} + k + me;
        if (at >= {size} && at < length) {{
{store}\
        }}
    }}
"""


_Body = Callable[[Pattern], str]

_ITEMS: dict[PatternKind, tuple[_Body, int, int]] = {
    PatternKind.REDUCED_BLOCK: (_reduced_items, 1, 0),
    PatternKind.SCANNED_BLOCKS: (_scanned_items, 1, 0),
    PatternKind.COMBINED_BLOCKS: (_combined_items, 1, 0),
}
_GROUPS: dict[PatternKind, tuple[_Body, int, int]] = {
    PatternKind.REDUCED_BLOCK: (_reduced_group, reduction.ACCUMULATORS, _REDUCING),
    PatternKind.SCANNED_BLOCKS: (_scanned_group, scan.ITEM_BLOCKS, _SCANNING),
    PatternKind.COMBINED_BLOCKS: (_combined_group, _COMBINING, _COMBINING),
}
"""The text of each kernel, work-items for an item, and of a group."""
