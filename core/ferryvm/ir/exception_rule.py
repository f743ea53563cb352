# SPDX-License-Identifier: Apache-2.0
"""Rules of the IR for exceptions that cross calls, for the verifier.

%1: i64 = call 3 2 %0 @14 [...]       `caught` is directly after a call
%2: i64 = caught (5 6)
switch %2 b1() b2() b3()
b2 @40 ():                            `thrown` only in a block with one edge, that of a tag,
  %3: i64 = thrown 0                  before operations that could throw
"""

from __future__ import annotations

import itertools

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Body, Operation
from ferryvm.ir.operation import PURE, SHAPES, Role
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, as_number
from ferryvm.program import Tag
from ferryvm.verify import Verified


def exception_fault(
    body: Body, graph: ControlFlowGraph, place: int, verified: Verified | None
) -> tuple[Operation, str] | None:
    """The first operation of a block that breaks a rule, and the expected form; None if there is
    none.

    `place`: the number of the block; `verified`: the program, if it is known.
    """
    block = graph.blocks[place]
    tags = None if verified is None else verified.program.tags
    is_start = True
    for before, operation in itertools.pairwise((None, *block.operations)):
        assert operation is not None
        fault = None
        if operation.name == "caught":
            fault = _caught(before, operation, tags)
        elif operation.name == "thrown":
            fault = _thrown(graph, place, operation, is_start, tags)
        is_start = is_start and (operation.name == "thrown" or operation.name in PURE)
        if fault is not None:
            return operation, fault
    if block.end.name == "throw":
        fault = _throw(body, block.end, tags)
        return None if fault is None else (block.end, fault)
    return None


def _caught(
    before: Operation | None, caught: Operation, tags: tuple[Tag, ...] | None
) -> str | None:
    if before is None or SHAPES[before.name].role is not Role.CALLS:
        return "a call directly in front expected"
    return _unknown(max(caught.fact(0, tuple)), tags)


def _thrown(
    graph: ControlFlowGraph,
    place: int,
    thrown: Operation,
    is_start: bool,
    tags: tuple[Tag, ...] | None,
) -> str | None:
    only = graph.only_edge(place)
    end = None if only is None else graph.blocks[only[0]].end
    caught = end.arguments[0] if end is not None and end.name == "switch" else None
    if only is None or end is None or not isinstance(caught, Operation) or caught.name != "caught":
        return "the edge of one tag that is caught expected, and no other to here"
    number = end.edges.index(only[1])
    names = caught.fact(0, tuple)
    if not 0 < number <= len(names):
        return "the edge of a tag expected"
    if not is_start:
        return "it is behind something that is no computation"
    if tags is None:
        return None
    types = tags[names[number - 1]].parameters
    value = thrown.fact(0, int)
    if value >= len(types):
        return f"a value below {len(types)} expected, found {value}"
    expected = as_number(types[value])
    if thrown.type is not expected:
        return f"{expected} expected, found {thrown.type}"
    return None


def _throw(body: Body, throw: Operation, tags: tuple[Tag, ...] | None) -> str | None:
    if body.is_root:
        return "a function expected, whose caller may catch it"
    tag, first = throw.fact(0, int), throw.fact(1, int)
    fault = _unknown(tag, tags)
    if fault is not None or tags is None:
        return fault
    types, words = tags[tag].parameters, throw.exit.words[first:]
    if first < body.parameters + HEADER_WORDS or len(words) < len(types):
        return f"{len(types)} operands from word {first} on expected"
    for word, t in zip(words, types, strict=False):
        if word is None or word.type not in (t, I64):  # an i64: the word of a record
            return f"{t} expected, found {'nothing' if word is None else word.type}"
    return None


def _unknown(tag: int, tags: tuple[Tag, ...] | None) -> str | None:
    if tags is None or tag < len(tags):
        return None
    return f"a tag below {len(tags)} expected, found {tag}"
