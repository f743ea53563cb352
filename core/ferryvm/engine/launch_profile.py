# SPDX-License-Identifier: Apache-2.0
"""The facts of launches that a program shows while it runs: items, their work, their arrays.

HOT in an item ── machine ──> LaunchSight: items, arrays among the arguments
decision ── count cells, sight ──> LaunchProfile, for the facts of the region
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ferryvm.isa.declared_type import ArrayType
from ferryvm.isa.element import Element
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET, PLACE_OFFSET, is_object, type_number
from ferryvm.isa.type import I64, WORD_BYTES, Reference, signed
from ferryvm.machine.active_item import MOST_FRAMES, innermost, running_launch
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.call import call_graph
from ferryvm.region.fact import ITERATIONS, LaunchProfile
from ferryvm.region.graph import graph
from ferryvm.region.known_word import KnownWord, candidates
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region
from ferryvm.residency import memories
from ferryvm.verify import Verified

_MASK = (1 << 64) - 1

_BYTES = {element.array.number: element.bytes for element in Element}

Passes = Callable[[int], int | None]
"""The times that control has come to a pc; None if that is not counted."""


class LaunchSight(NamedTuple):
    """A launch as a program had it on its stack."""

    items: int
    arrays: tuple[tuple[int, int], ...]
    """Type number and bytes of each array among the arguments that all items share."""
    done: int
    """Items that have begun or are done, of all its launches together; counted until its code is
    compiled."""
    words: frozenset[KnownWord]
    """The numbers that its items share, and the statics that they read and do not write."""
    resident: tuple[int, str]
    """Bytes of these arrays of which a device has copies, and the device that has most; 0 and empty
    if none has any."""


def sight(machine: Machine, pc: int, passes: Passes) -> tuple[int, LaunchSight] | None:
    """pc and sight of the launch that control is at, if `pc` is its `launch.test`, or whose item it
    is in; None if there is none."""
    fp: int | None = machine.control.fp
    if machine.control.pc != pc:
        found, fp = running_launch(machine), innermost(machine, MOST_FRAMES)
        if found is None or fp is None:
            return None
        pc = found
    assert fp is not None
    program, verified, stack = machine.program, machine.verified, machine.memory.stack
    locals_ = len(program.functions[verified.owner(pc)].locals)
    end = fp + 2 + locals_ + verified.depth(pc)
    item = program.code.immediates[pc + CALL_DISTANCE]
    count = len(program.signature(item).parameters) - 1
    types = verified.operand_types(pc)[-LAUNCH_WORDS - count : -LAUNCH_WORDS]
    words = stack[end - LAUNCH_WORDS - count : end - LAUNCH_WORDS].tolist()
    references = [word for t, word in zip(types, words, strict=True) if isinstance(t, Reference)]
    items = signed(I64, stack[end - LAUNCH_WORDS])
    shared = [*_arrays(machine, references)]
    arrays = tuple((number, size) for number, size, _ in shared)
    sizes = {address: size for _, size, address in shared}
    known, resident = words_at(machine, pc, end), _resident(machine, sizes)
    return pc, LaunchSight(max(items, 0), arrays, passes(pc) or 0, known, resident)


def _resident(machine: Machine, sizes: Mapping[int, int]) -> tuple[int, str]:
    """Bytes of elements that a device has copies of, and the device that has most; `sizes`: by
    address."""
    found = [
        (sum(size for address, size in sizes.items() if memory.has(machine, address)), memory.where)
        for memory in memories
    ]
    return max((each for each in found if each[0]), default=(0, ""))


def words_at(machine: Machine, pc: int, end: int) -> frozenset[KnownWord]:
    """The words that items of the launch at a pc may take for constant, with their values; `end`:
    the word of the stack above the launch."""
    arguments, statics = candidates(machine.verified, pc)
    program, memory = machine.program, machine.memory
    item = program.code.immediates[pc + CALL_DISTANCE]
    first = end - LAUNCH_WORDS - len(program.signature(item).parameters) + 1
    found = [KnownWord(False, k, memory.stack[first + k]) for k in arguments]
    found += [KnownWord(True, n, memory.statics[n]) for n in statics]
    return frozenset(found)


def _arrays(machine: Machine, references: list[int]) -> Iterator[tuple[int, int, int]]:
    """Types and bytes of the arrays that references refer to, each once, and addresses of
    elements."""
    objects, types = machine.objects, machine.verified.types
    assert objects is not None  # the program has launches
    for reference in dict.fromkeys(references):
        if not is_object(reference):
            continue
        at = reference // WORD_BYTES
        number = type_number(objects.space.words[at])
        if number in _BYTES or isinstance(types.declared(number), ArrayType):
            length = objects.space.words[at + LENGTH_OFFSET // WORD_BYTES]
            place = objects.space.words[at + PLACE_OFFSET // WORD_BYTES]
            address = (machine.control.objects + place) & _MASK
            yield number, length * _BYTES.get(number, WORD_BYTES), address


def profile(region: Region, seen: LaunchSight | None, passes: Passes) -> LaunchProfile:
    """The profile of a launch's region; `seen`: None if no program has shown it yet."""
    verified = region.verified
    item = verified.program.code.immediates[region.entry + CALL_DISTANCE]
    if seen is None:
        return LaunchProfile(0, _item_work(verified, item, 0, passes), 0, 0)
    work = _item_work(verified, item, seen.done, passes)
    access = object_access(region)
    read = sum(size for number, size in seen.arrays if number in access.read)
    written = sum(size for number, size in seen.arrays if number in access.written)
    return LaunchProfile(seen.items, work, read, written, *seen.resident)


def _item_work(verified: Verified, item: int, done: int, passes: Passes) -> int:
    """Instructions of one item, with callees: each as often as its loop or function was counted for
    an item, or, where it was not, ten times for each loop around it."""
    found = 0.0
    for function in call_graph(verified).reached([item]):
        own = graph(verified, function)
        entered = passes(own.entry) if done and function != item else None
        once = 1.0 if not entered else entered / done
        for first, block in own.blocks.items():
            loop, times = own.loop(first), once
            counted = passes(loop.head) if loop is not None and done else None
            if counted:
                times = counted / done
            elif loop is not None:
                times = once * ITERATIONS ** min(loop.depth, 9)
            found += times * (block.last - first + 1)
    return max(int(found), 1)
