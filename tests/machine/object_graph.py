# SPDX-License-Identifier: Apache-2.0
"""Random object graphs in memory, with an independent model of what a collection makes of them."""

from __future__ import annotations

import dataclasses
import random
from array import array

from ferryvm.isa.object import ARRAY_HEADER_BYTES, FIRST_OFFSET, READ_ONLY, header, padded
from ferryvm.machine.collection import Request, ShapeKind
from ferryvm.machine.object_space import Collector, ObjectSpace

I8, I64, NODES, PAIR, LEAF, EMPTY = range(6)
"""Type numbers of the graphs."""

SHAPES = {
    I8: (ShapeKind.NUMBERS, 1, 0, 0),
    I64: (ShapeKind.NUMBERS, 8, 0, 0),
    NODES: (ShapeKind.REFERENCES, 8, 0, 0),
    PAIR: (ShapeKind.STRUCT, 32, 0, 2),  # references at 8 and 24
    LEAF: (ShapeKind.STRUCT, 16, 2, 0),
    EMPTY: (ShapeKind.STRUCT, 8, 2, 0),
}
OFFSETS = (8, 24)

BOTH, ONE = 2, 6
"""Positions of rows: of a frame with a parameter and an operand, and of one with a local, which is
entered from outside; the row at 0 has no references."""

FRAME_ROWS = (*(0, 0), *(2, 0, -2 & ((1 << 64) - 1), 3), *(1, 1, 2))

ROOTS = {0: [], BOTH: [0, 3], ONE: [2]}
"""Which of its four words are roots, by row of a frame."""
STOPPED = 8
"""Added to the pc of a frame on which a call from outside stands."""

FRAME_WORDS = 6
"""Parameters 2, header 2, 2 more; `fp` is at word 2 of each."""


@dataclasses.dataclass(eq=False)
class Node:
    """An object: numbers, and nodes or None where it has references."""

    type: int
    content: list[int | Node | None]
    is_outside: bool = False
    is_read_only: bool = False
    offset: int = 0

    @property
    def header(self) -> int:
        return header(self.type) | (READ_ONLY if self.is_read_only else 0)

    @property
    def size(self) -> int:
        """Bytes in the space."""
        if self.type in (I8, I64, NODES):
            return ARRAY_HEADER_BYTES + (0 if self.is_outside else self.element_bytes)
        return SHAPES[self.type][1]

    @property
    def element_bytes(self) -> int:
        return padded(len(self.content) * SHAPES[self.type][1])


Root = Node | None | int


class Graph:
    """Objects in a space of their own, with roots in statics, frames and handles."""

    def __init__(self, seed: int, count: int, frames: int = 5) -> None:
        chance = random.Random(seed)
        self.nodes: list[Node] = []
        for _ in range(count):
            type_ = chance.randrange(6)
            size = chance.choice([0, 1, 2, 9, 30])
            is_outside = type_ in (I8, I64, NODES) and chance.random() < 0.3
            if type_ == I8:
                content: list[Root] = [chance.randrange(256) for _ in range(size)]
            elif type_ == I64:
                content = [chance.getrandbits(64) for _ in range(size)]
            else:
                content = [0] * {NODES: size, PAIR: 3, LEAF: 1, EMPTY: 0}[type_]
            is_read_only = type_ == I8 and chance.random() < 0.3
            self.nodes.append(Node(type_, content, is_outside, is_read_only))
        for node in self.nodes:  # only now: cycles, sharing, references forwards and backwards
            if node.type == NODES:
                node.content = [self._root(chance) for _ in node.content]
            elif node.type == PAIR:
                node.content = [self._root(chance), chance.getrandbits(64), self._root(chance)]
            elif node.type == LEAF:
                node.content = [chance.getrandbits(64)]
        self.statics = [self._root(chance) for _ in range(3)]
        self.frames = [
            (chance.choice([*ROOTS]), [self._root(chance) for _ in range(4)]) for _ in range(frames)
        ]
        self.handles = [self._root(chance) for _ in range(2)]
        self.space = ObjectSpace(1 << 24)
        self._write()

    def _root(self, chance: random.Random) -> Root:
        kind = chance.random()
        if kind < 0.15:
            return None
        if kind < 0.25:
            return 2 * chance.getrandbits(31) + 1
        return chance.choice(self.nodes) if self.nodes else None

    # --- into memory ----------------------------------------------------------------------------

    def _write(self) -> None:
        top = FIRST_OFFSET
        for node in self.nodes:
            node.offset, top = top, top + node.size
        self.top = top
        words = self.space.words
        self.places: dict[Node, int] = {}
        for node in self.nodes:
            if node.is_outside:
                place = self.space.make_block(node.element_bytes)
                assert place is not None
                self.places[node] = place
                self.space.block(place)[: node.element_bytes] = self._elements(node)
        for node in self.nodes:
            self._write_node(words, node)
        self.static_words = array("Q", [7, *map(word, self.statics)])
        self.handle_words = array("Q", map(word, self.handles))
        stack = []
        for number, (row, roots) in enumerate(self.frames):
            # A frame returns to the instruction after the one with its caller's row.
            caller = self.frames[number - 1][0] if number else 0
            pc = caller + STOPPED if row == ONE else caller
            links = [pc + 1, FRAME_WORDS] if number else [0, 0]
            stack += [*map(word, roots[:2]), *links, *map(word, roots[2:])]
        self.stack = array("Q", stack)

    def _write_node(self, words: memoryview, node: Node) -> None:
        at = node.offset // 8
        words[at] = node.header
        if node.type not in (I8, I64, NODES):
            for index, each in enumerate(node.content):
                words[at + 1 + index] = word(each)
            return
        words[at + 1] = len(node.content)
        inline = node.offset + ARRAY_HEADER_BYTES
        words[at + 2] = self.places[node] if node.is_outside else inline
        if not node.is_outside:
            self.space.bytes[inline : inline + node.element_bytes] = self._elements(node)

    @staticmethod
    def _elements(node: Node) -> bytes:
        if node.type == I8:
            return bytes(map(int, node.content)).ljust(node.element_bytes, b"\0")  # type: ignore[arg-type]  # they are numbers
        return array("Q", map(word, node.content)).tobytes()

    # --- collections ----------------------------------------------------------------------------

    def roots(self) -> list[Root]:
        """The roots of the program in their order."""
        found = list(self.statics)
        for row, roots in self.frames:
            found += [roots[index] for index in ROOTS[row]]
        return found

    def live(self) -> list[Node]:
        """The nodes that can be reached, breadth first; those that only handles lead to come
        last."""
        queue: list[Node] = []
        seen: set[Node] = set()

        def reach(roots: list[Root]) -> None:
            for root in roots:
                if isinstance(root, Node) and root not in seen:
                    seen.add(root)
                    queue.append(root)

        scanned = 0
        for roots in (self.roots(), self.handles):
            reach(roots)
            while scanned < len(queue):
                node, scanned = queue[scanned], scanned + 1
                if node.type == PAIR:
                    reach([node.content[0], node.content[2]])
                elif node.type == NODES:
                    reach(list(node.content))
        return queue

    def collect(self, collector: Collector) -> int:
        """Perform a collection; the bytes in use."""
        request = self.request = Request()
        self._numbers = array("Q", [1, 2, 3])
        # By the pc that a frame returns to, which tells its caller's row here.
        self._rows, nowhere = array("Q", FRAME_ROWS), [0] * STOPPED
        self._calls = array("Q", [*range(STOPPED), *nowhere])
        self._stops = array("Q", [*nowhere, *range(STOPPED)])
        self._slots = array("Q", bytes(8 * len(self.stack)))
        self._shapes = array("Q", [word for row in SHAPES.values() for word in row])
        self._offsets = array("Q", OFFSETS)
        address = {
            "statics": self.static_words,
            "static_numbers": self._numbers,
            "stack": self.stack,
            "rows": self._rows,
            "calls": self._calls,
            "stops": self._stops,
            "handles": self.handle_words,
            "shapes": self._shapes,
            "offsets": self._offsets,
        }
        for name, words in address.items():
            setattr(request, name, words.buffer_info()[0])
        request.slots = self._slots.buffer_info()[0] + 8 * len(self._slots)
        request.static_count, request.handle_count = len(self.statics), len(self.handles)
        request.pc_count, request.shape_count = len(self._calls), len(SHAPES)
        request.fp, request.row = len(self.stack) - FRAME_WORDS + 2, self.frames[-1][0]
        self.top = self.space.collect(request, self.top, collector)
        return self.top

    def content(self) -> tuple[bytes, list[int], list[bytes]]:
        """The words of the space and all roots, as they are, with places outside of it numbered;
        the blocks there."""
        words = array("Q", self.space.words[: self.top // 8])
        blocks = []
        for number, offset in enumerate(self.space.large):
            blocks.append(bytes(self.space.block(words[offset // 8 + 2])))
            words[offset // 8 + 2] = number
        roots = [*self.static_words, *self.stack, *self.handle_words]
        return words.tobytes(), roots, blocks

    def leaks(self) -> bool:
        """True if elements of dead arrays are still there, or memory past the objects is not
        zero."""
        blocks = len(self.content()[2])
        return len(self.space.outside) != blocks or any(self.space.words[self.top // 8 : 4096])

    def place_again(self) -> None:
        """Give the nodes the offsets again that they have in memory: `expected` has moved them."""
        for node, offset in zip(self.nodes, self.old_offsets, strict=True):
            node.offset = offset

    def expected(self) -> tuple[bytes, list[int], list[bytes]]:
        """The same after a collection, by the model."""
        live = self.live()
        self.old_offsets = [node.offset for node in self.nodes]
        top = FIRST_OFFSET
        for node in live:
            node.offset, top = top, top + node.size
        words, blocks = array("Q", bytes(top)), []
        content = memoryview(words).cast("B")
        for node in live:
            at = node.offset // 8
            words[at] = node.header
            if node.type in (I8, I64, NODES):
                words[at + 1] = len(node.content)
                elements = self._elements(node)
                if node.is_outside:
                    words[at + 2] = len(blocks)
                    blocks.append(elements)
                else:
                    first = node.offset + ARRAY_HEADER_BYTES
                    words[at + 2] = first
                    content[first : first + len(elements)] = elements
            else:
                for index, each in enumerate(node.content):
                    words[at + 1 + index] = word(each)
        roots = [7, *map(word, self.statics)]
        old = self.stack.tolist()
        for number, (row, each) in enumerate(self.frames):
            part = old[FRAME_WORDS * number : FRAME_WORDS * (number + 1)]
            for index in ROOTS[row]:
                part[index if index < 2 else index + 2] = word(each[index])
            roots += part
        return words.tobytes(), [*roots, *map(word, self.handles)], blocks


def word(root: Root) -> int:
    """The word that a root is."""
    if isinstance(root, Node):
        return root.offset
    return root or 0
