# SPDX-License-Identifier: Apache-2.0
"""Assembling a disassembly gives the same image, whatever the program holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferryvm import asm
from ferryvm.errors import Position
from ferryvm.image import to_bytes
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.isa.declared_type import ArrayType, Field, StructType, TypeHierarchy
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.type import Reference
from ferryvm.listing import (
    ClauseListing,
    FunctionListing,
    Item,
    Label,
    Line,
    Listing,
    Operand,
    peephole,
)
from ferryvm.listing.decode import decode
from ferryvm.listing.encode import encode
from ferryvm.program import Data, HostImport, Signature, Static, Tag

from ..tier import examples

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
DECLARED = [
    StructType("node", None, (Field("value", Type.I64), Field("next", Reference(14, "node")))),
    ArrayType(Reference(14, "node")),
    StructType(
        "extends", None, (Field("extends", Type.I32), Field("i32", Reference(15, "node[]")))
    ),
    StructType(
        "leaf",
        14,
        (
            Field("value", Type.I64),
            Field("next", Reference(14, "node")),
            Field("more", Reference(18, "node[][]")),
        ),
    ),
    ArrayType(Reference(15, "node[]")),
]
REFERENCES = TypeHierarchy(DECLARED).references
TYPES = st.sampled_from(Type) | st.sampled_from(REFERENCES)
TYPE_LISTS = st.lists(TYPES, max_size=3).map(tuple)
SIGNATURES = st.builds(Signature, TYPE_LISTS, TYPE_LISTS)
POSITIONS = st.none() | st.builds(
    Position, NAMES, st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 1)
)


def bits(type_: Type | Reference) -> st.SearchStrategy[int]:
    """Bit patterns: any, and those at the edges (NaNs, denormals, infinities, extremes)."""
    if isinstance(type_, Reference):
        return st.just(0)
    top = type_.mask ^ type_.mask >> 1
    edges = [0, 1, 2, top, top - 1, top + 1, type_.mask, type_.mask - 1]
    for float_ in (0x7F80_0000, 0x7FC0_0000, 0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000):
        edges += [float_, float_ - 1, float_ + 1, float_ ^ top]
    return st.integers(0, type_.mask) | st.sampled_from([e & type_.mask for e in edges])


STATICS = TYPES.flatmap(lambda t: st.builds(Static, NAMES, st.just(t), bits(t)))


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    """Listings that encode, though most of them could not run."""
    functions = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    hosts = draw(st.lists(NAMES, max_size=2, unique=True))
    tags = draw(st.lists(NAMES, max_size=2, unique=True))
    whole = Listing(
        types=DECLARED,
        statics=draw(st.lists(STATICS, max_size=3)),
        data=draw(
            st.lists(st.builds(Data, st.integers(0, 2**40), st.binary(max_size=150)), max_size=2)
        ),
        table=draw(st.lists(st.sampled_from(functions), max_size=3)),
        hosts=[HostImport(name, draw(SIGNATURES)) for name in hosts],
        exports=draw(st.dictionaries(NAMES, st.sampled_from(functions), max_size=2)),
        tags=[Tag(name, draw(TYPE_LISTS)) for name in tags],
        extra_signatures=tuple(draw(st.lists(SIGNATURES, max_size=2))),
    )
    needed = {Immediate.HOST: hosts, Immediate.TAG: tags}
    rows = [row for row in INSTRUCTIONS if needed.get(row.immediate, True)]
    for name in functions:
        items = draw(_items(st.sampled_from(rows), functions, hosts, tags))
        clauses = draw(_clauses(items, tags))
        signature = draw(SIGNATURES)
        count = len(signature.parameters)
        known = draw(st.lists(NAMES | st.just(""), min_size=count, max_size=count))
        is_apart = len({*filter(None, known)}) == len([*filter(None, known)])
        parameters = tuple(known) if any(known) and is_apart else ()
        whole.functions.append(
            FunctionListing(name, signature, draw(TYPE_LISTS), items, clauses, parameters)
        )
    return whole


@st.composite
def _items(
    draw: st.DrawFn,
    rows: st.SearchStrategy[Instruction],
    functions: list[str],
    hosts: list[str],
    tags: list[str],
) -> list[Item]:
    chosen = draw(st.lists(st.tuples(rows, POSITIONS), max_size=12))
    labels = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    items: list[Item] = []
    for row, position in chosen:
        items.append(
            Line(row, draw(_operand(row.immediate, labels, functions, hosts, tags)), position)
        )
    for label in labels:
        items.insert(draw(st.integers(0, len(items))), Label(label))
    return items


@st.composite
def _clauses(draw: st.DrawFn, items: list[Item], tags: list[str]) -> list[ClauseListing]:
    """Clauses that cover something, or would if they ended further down."""
    lines = [at for at, item in enumerate(items) if isinstance(item, Line)]
    labels = [(at, item.name) for at, item in enumerate(items) if isinstance(item, Label)]
    starts = [name for at, name in labels if lines and at < lines[-1]]
    if not starts:
        return []
    places = st.sampled_from([name for _, name in labels])
    found = []
    for start in draw(st.lists(st.sampled_from(starts), max_size=2)):
        tag = draw(st.none() | st.sampled_from(tags)) if tags else None
        record = tag is None and draw(st.booleans())
        depth = draw(st.integers(0, 2**32 - 1))
        found.append(ClauseListing(start, draw(places), draw(places), depth, tag, record))
    return found


def _operand(
    kind: Immediate, labels: list[str], functions: list[str], hosts: list[str], tags: list[str]
) -> st.SearchStrategy[Operand]:
    if kind.literal is not None:
        return bits(kind.literal)
    return {
        Immediate.NONE: st.none(),
        Immediate.TARGET: st.sampled_from(labels),
        Immediate.LABELS: st.lists(st.sampled_from(labels), min_size=1, max_size=4).map(tuple),
        Immediate.FUNCTION: st.sampled_from(functions),
        Immediate.ITEM: st.sampled_from(functions),
        Immediate.HOST: st.sampled_from(hosts or [""]),
        Immediate.TAG: st.sampled_from(tags or [""]),
        Immediate.SIGNATURE: SIGNATURES,
        Immediate.TYPE: st.sampled_from([t.number for t in REFERENCES]),
        Immediate.STRUCT: st.sampled_from([14, 16, 17]),
        Immediate.FIELDS: st.sampled_from([14, 16, 17]),
        Immediate.ARRAY: st.sampled_from([15, 18]),
        Immediate.FIELD: st.builds(field_immediate, st.sampled_from([14, 16, 17]), st.just(1)),
    }.get(kind, st.integers(0, 2**32 - 1))


@examples(12)
@given(listings())
def test_disassembly_assembles_to_the_same_image(listing: Listing) -> None:
    program = encode(listing)
    text = asm.disassemble(program)
    again = asm.assemble(text, "elsewhere.fasm")
    assert to_bytes(again) == to_bytes(program)
    assert asm.disassemble(again) == text


@examples(12)
@given(listings())
def test_decoding_is_undone_by_encoding(listing: Listing) -> None:
    program = encode(listing)
    assert to_bytes(encode(decode(program))) == to_bytes(program)


@examples(12)
@given(listings())
def test_written_listing_reads_as_the_same_listing(listing: Listing) -> None:
    assert asm.parse(asm.write(listing)) == listing


@examples(12)
@given(listings())
def test_optimized_listing_still_encodes_and_is_at_its_fixed_point(listing: Listing) -> None:
    once = peephole.optimize(listing)
    assert len(encode(once).code) <= len(encode(listing).code)
    assert peephole.optimize(once) == once
