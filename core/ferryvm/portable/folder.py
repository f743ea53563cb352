# SPDX-License-Identifier: Apache-2.0
"""The exported folder: files of the target, golden vectors, manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from ferryvm.errors import FerryError
from ferryvm.ir.graph import Body
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.if_conversion import convert_branches
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.portable.expression import Expression, Place, renamed
from ferryvm.portable.failure import end_at_failures
from ferryvm.portable.fold import folded
from ferryvm.portable.identifier import entry_name
from ferryvm.portable.interface import Interface, length_name
from ferryvm.portable.item_loop import item_loops
from ferryvm.portable.manifest import manifest_text
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.plain_form import plain_form, plain_member
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.region import region_subject
from ferryvm.portable.sample_group import GroupSizes
from ferryvm.portable.subject import Subject
from ferryvm.portable.target import OF_GRIDS, OF_ITEMS, OF_SIZES, target
from ferryvm.portable.vector import golden_vectors, vector_text
from ferryvm.portable.verifier import verify_plain
from ferryvm.verify import Verified

SELECTING = frozenset({"c"})
"""Targets of which compilers make branches, not selections, of short sides."""

SELECTIONS = 2
"""The level from which on such branches of loops are selections."""

VECTORS = 60
"""Golden vectors, unless their number is asked for."""

VECTOR_BYTES = 100_000
"""The largest size of the vectors unless their number is asked for: a folder has at most 200 kB."""

LEAST_MEMBERS = 3
"""Members of a work-group in vectors where they are an argument. PoCL 3.0 ends the process for
kernels with several barriers in a loop and groups of one or two."""


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Choices of an export."""

    target: str = "c"
    name: str | None = None
    """Of the exported function; None: near that of its origin."""
    seed: int = 1
    """Of random inputs of vectors."""
    vectors: int | None = None
    """Vectors to make. None: 60, or as many as fit in 100 kB."""
    optimize: int = 2
    """The level of the passes, 0 to 3: the lower, the nearer is the text to the program."""
    fold: Mapping[str, str | float] = dataclasses.field(default_factory=dict)
    """Numbers, by the names of arguments, which are constants of the code in place of arguments."""
    group: int | None = None
    """Members of a group; None: they are an argument, or as many as in the program if the target
    has constant sizes only."""


@dataclasses.dataclass(frozen=True)
class Exported:
    """A folder that has been written."""

    directory: Path
    interface: Interface
    vectors: int
    dependent: int
    """Launches that are no vectors, since their items are not independent."""
    bytes: int


def check_directory(directory: Path) -> None:
    """Raise FerryError unless a folder is empty or can be made."""
    if directory.is_dir():
        if any(directory.iterdir()):
            raise FerryError(f"{directory}: is not empty; name a new folder")
    elif directory.exists():
        raise FerryError(f"{directory}: is a file; a folder is to be written")


def _plain(
    subject: Subject, name: str, options: ExportOptions
) -> tuple[PlainFunction, GroupSizes | None]:
    """The plain form for a target, and the sizes of groups if there are some."""
    runs_items = options.target in OF_ITEMS
    if subject.item is None or not (runs_items or subject.has_groups):
        return plain_form(subject, name, options.optimize), None
    if runs_items and not subject.has_groups and options.target not in OF_GRIDS:
        return _item(subject, name, options), None
    if not subject.has_groups:
        return plain_form(subject.item, name, options.optimize).of_launch(subject), None
    first = subject.axes * (1 + subject.counts_items) if options.target in OF_SIZES else None
    level = options.optimize
    member = plain_member(subject.item, name, level, runs_members=runs_items, first=first)
    made = member.of_launch(subject)
    return made if runs_items else item_loops(made), _sizes(subject, made, options.target)


def _sizes(subject: Subject, made: PlainFunction, target_name: str) -> GroupSizes:
    """The sizes of groups of a launch, by places of its parameters."""
    assert made.member is not None
    assert made.launch is not None
    own = (place for place in range(len(subject.parameters)) if place not in subject.folded)
    places: dict[str, Place] = {}
    for place, argument in zip(own, made.launch.inputs, strict=True):
        places[argument.name] = Place(place)
        places[length_name(argument.name)] = Place(place, True)

    def at(expression: Expression) -> Expression:
        return renamed(expression, places)

    size, arrays = made.member.size, made.launch.group_arrays
    members = subject.sizes or (made.member.members,)
    return GroupSizes(
        members if size is None else (at(made.sizes[size]),),
        [(at(n), element.bytes) for _, element, n in arrays if not isinstance(n, int)],
        subject.members,
        LEAST_MEMBERS if target_name in OF_ITEMS else 1,
    )


def _select(body: Body) -> None:
    """Make short branches of loops selections."""
    if convert_branches(body):
        thread_jumps(body)
        remove_dead_code(body)


def _item(subject: Subject, name: str, options: ExportOptions) -> PlainFunction:
    """The plain form of an item for a target that knows no more than its number."""
    assert subject.item is not None
    if subject.counts_items:
        what = f"target {options.target!r} has no number of items"
        position = subject.position(subject.entry)
        raise ExportError(what, "use the target opencl", position)
    function = plain_form(subject.item, name, options.optimize)
    interface = dataclasses.replace(function.interface, is_item=True)
    return dataclasses.replace(function, interface=interface)


def export_subject(subject: Subject, directory: Path, options: ExportOptions) -> Exported:
    """Write the folder of a subject. Raises ExportError for what cannot be exported, FerryError for
    a folder that is not empty or cannot be written."""
    write = target(options.target)
    check_directory(directory)
    subject = folded(subject, options.fold)
    name = entry_name(options.name, subject.origin, options.target)
    function, groups = _plain(subject, name, options)
    if options.target in SELECTING and options.optimize >= SELECTIONS:
        _select(function.body)
    end_at_failures(function)
    verify_plain(function)
    written = write(function)
    size = VECTOR_BYTES if options.vectors is None else 1 << 40
    vectors = golden_vectors(subject, options.seed, options.vectors or VECTORS, size, groups)
    files = {
        file: content if isinstance(content, bytes) else content.encode()
        for file, content in written.files.items()
    }
    files["vectors.txt"] = vector_text(name, vectors.vectors).encode()
    manifest = manifest_text(
        subject, written.interface, options.target, written.build, vectors, files
    )
    files["manifest.json"] = manifest.encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (directory / file).write_bytes(content)
    except OSError as error:
        raise FerryError(f"{directory}: cannot be written: {error.strerror}") from None
    bytes_ = sum(map(len, files.values()))
    count = len(vectors.vectors)
    return Exported(directory, written.interface, count, vectors.dependent, bytes_)


def export_region(
    verified: Verified, name: str, directory: Path, options: ExportOptions | None = None
) -> Exported:
    """Write a folder with a region of a program as a function.

    Raises UnknownNameError for an unknown region or target, ExportError for code that cannot be
    exported, FerryError for a folder that is not empty.
    """
    options = options or ExportOptions()
    target(options.target)
    check_directory(directory)
    takes_sizes = options.target in OF_SIZES
    subject = region_subject(verified, name, options.group, takes_sizes)
    return export_subject(subject, directory, options)
