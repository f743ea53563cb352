# SPDX-License-Identifier: Apache-2.0
"""From a region to its optimised LLVM IR.

Region ─ lift, passes ─> Module ─ lower ─> LLVM IR ─ optimise ─> LLVM IR
                                             ▲           │
                                             └─ polls ───┘ if a loop is left that has none
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterator

import llvmlite.binding as llvm

from ferryvm.architecture import IS_X86
from ferryvm.backend import BackendError, Options
from ferryvm.compiler import lifted
from ferryvm.ir.function_body import function_body
from ferryvm.ir.graph import Block, Body, Module, Operation
from ferryvm.ir.group.improve import improve_item_loops
from ferryvm.ir.group.lanes import run_in_lanes
from ferryvm.ir.lane.vectorise import vectorise
from ferryvm.ir.operation import SHAPES, Role
from ferryvm.ir.passes.back_substitution import substitute_back
from ferryvm.ir.passes.if_conversion import convert_branches
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.overflow_check import gather_overflow_checks
from ferryvm.ir.passes.pipeline import checker
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unroll_and_jam import unroll_and_jam
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F64
from ferryvm.region.region import Region, RegionKind
from ferryvm_backends._llvm import codegen
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm.lane_count import lane_count, vector_bits
from ferryvm_backends.llvm.lower import lower
from ferryvm_backends.llvm.native import has_loop, inline_single_calls, parsed
from ferryvm_backends.llvm.reciprocal import has_reciprocals, with_reciprocals
from ferryvm_backends.llvm.streaming import marked, stream_stores
from ferryvm_backends.llvm.strip_mining import strip_mined_loops

_VECTORISING = (Pipeline.LEVEL_2, Pipeline.LEVEL_3)

_CLOSED_FORM = frozenset(
    [
        "add",
        "all",
        "any",
        "bit_and",
        "compare",
        "mul",
        "none",
        "poll",
        "select",
        "set_static",
        "shl",
        "static",
        "sub",
        "word",
    ]
)
"""Operations of loops that LLVM can replace by a closed form, and of the code around them."""

_MEMORY = frozenset({Role.READS, Role.CHANGES})

LARGE_LOOP = 25
"""Operations of a loop that LLVM's own unswitching may find too large to copy, with its default
threshold."""

MOST_INLINED = 90
"""Operations of a function that LLVM inlines into a loop over items, and so vectorises: it does so
with 81, but not with 97."""

LARGE_GROUPS = 450
"""Operations of a region with groups that is generated without LLVM's reduction of strength in
loops. With it 20 of 37 kernels take 1.5 times as long to generate or more, since it has to
choose among sums of many terms for each access of a group; what addresses it saves the processor
computes within accesses."""

Step = Callable[[str], None]
"""Told the name of a step when it is done."""


def improved(region: Region, options: Options) -> tuple[Module, int]:
    """The IR that is lowered, and at which of its levels LLVM is to optimise it."""
    module = lifted(
        region,
        options,
        least=1,
        remarks=options.observe,
        natives=True,
        exceptions=True,
        launches=True,
        fields=True,
        groups=True,
        rows=True,
    )
    if region.kind is RegionKind.LAUNCH and options.lanes != 1 and options.optimize >= 2:
        if options.lanes == 0 and not vector_bits():
            module.scalar = "the processor has no masked loads and stores of vectors"
        elif module.groups:
            module.scalar = "its items are groups, whose own items wait for each other"
        elif options.lanes == 0 and _is_vectorised(module.root):
            module.scalar = "LLVM vectorises the loop over its items itself"
        else:
            vectorise(
                module,
                region,
                options.unseen,
                options.known,
                always=options.lanes > 1,
                check=options.check,
            )
    hoisted = 0
    if options.optimize >= 2:
        for body in module.bodies if module.groups else ():
            improve_item_loops(body)
        hoisted = sum(hoist_range_checks(body) for body in module.bodies)
        rests: set[Block] = set()
        for body in module.bodies:
            if unroll_and_jam(body, module.footprints, rests) and module.groups:
                number_values(body)  # the numbers of items that run together become constants apart
                thread_jumps(body)
        if module.groups:
            _run_groups_in_lanes(module, options, rests)
        for body in module.bodies if hoisted else ():
            unswitch(body, module.footprints, least=0 if module.groups else LARGE_LOOP)
        for body in module.bodies:
            convert_branches(body)
            gather_overflow_checks(body)
        for body in () if module.groups or module.lanes is not None else module.bodies:
            substitute_back(body)
        if (
            region.kind is RegionKind.LAUNCH
            and module.lanes is None
            and not module.groups
            and IS_X86
        ):
            stream_stores(module.root, module.streams, module.footprints)
        checker(module, region.verified, options.check)()
    # Level 3 makes two loops of one where a condition does not vary, also of large ones around
    # others.
    return module, 3 if hoisted and not module.groups else options.optimize


def _run_groups_in_lanes(module: Module, options: Options, rests: Collection[Block]) -> None:
    """Run items of parallel regions in lanes; `rests`: headers of loops that are left."""
    if options.lanes == 1 or module.counting or not (options.lanes or vector_bits()):
        return
    for body in module.bodies:
        module.one_by_one |= run_in_lanes(
            body,
            lambda lanes: lane_count(lanes, options),
            rests,
            always=options.lanes > 1,
        )


def _is_vectorised(body: Body) -> bool:
    """True if LLVM can vectorise the loop of a launch: then all lanes are full, and nothing checks
    them."""
    return not any(map(_prevents_vectors, body.operations)) and any(
        strip.poll.exit.pc == body.entry and not strip.is_checked
        for strip in strip_mined_loops(body)
    )


def _prevents_vectors(operation: Operation) -> bool:
    """True if LLVM vectorises no loop with an operation, or not well: a fenced square root, a call
    of a function that it does not inline, or one with a part that is branched over; a look-up,
    which it makes a gather."""
    if operation.name != "apply":
        return operation.name in ("fsqrt", "lookup")
    body = function_body(operation.fact(0, PureFunction))
    is_large = len(body.operations) > MOST_INLINED
    return is_large or bool(body.conditional()) or any(map(_prevents_vectors, body.operations))


@contextlib.contextmanager
def refused(region: Region) -> Iterator[None]:
    """Raise BackendError, which names the region, where LLVM raises."""
    try:
        yield
    except RuntimeError as error:
        line = str(error).strip().splitlines()[0]
        raise BackendError(f"llvm: region {region.name}: LLVM refuses the code: {line}") from error


def optimised(
    module: Module, options: Options, level: int, step: Step = lambda name: None
) -> llvm.ModuleRef:
    """The optimised LLVM IR of a region; `level`: of LLVM.

    A poll in a loop prevents LLVM from replacing the loop by its closed form. So if that may be
    possible polls are omitted at first, and the result is used only if no loop is left: then every
    path through it is short. Endless loops, which LLVM does not remove, count as loops.
    """

    pipeline = Pipeline.LEVEL_0 if options.quick else passes_for(module, level)

    def attempt(polls: bool) -> llvm.ModuleRef:
        whole = lower(module, options, polls)
        if pipeline is Pipeline.ARITHMETIC:
            inline_single_calls(whole)
        native = parsed(whole)
        step("lower")
        native = improve(native, pipeline)
        if module.streams:
            native = codegen.parsed(marked(str(native)))
        if pipeline in _VECTORISING and _divides(module) and has_reciprocals():
            divided = with_reciprocals(str(native))
            if divided is not None:
                native = improve(codegen.parsed(divided), Pipeline.INLINE)
        step("optimise")
        return native

    # At its lowest level LLVM replaces no loop.
    if pipeline is not Pipeline.LEVEL_0 and may_be_closed_form(module):
        native = attempt(polls=False)
        if not has_loop(native):
            return native
    return attempt(polls=True)


def _divides(module: Module) -> bool:
    """True if a region divides numbers of f64."""
    bodies = [*module.bodies, *([] if module.lanes is None else [module.lanes])]
    return any(o.name == "fdiv" and o.type is F64 for body in bodies for o in body.operations)


def reduces_strength(module: Module) -> bool:
    """True if LLVM's code generator is to reduce the strength of operations in the loops of a
    region."""
    if not module.groups:
        return True
    blocks = itertools.chain.from_iterable(body.blocks for body in module.bodies)
    return sum(len(block.operations) for block in blocks) < LARGE_GROUPS


def passes_for(module: Module, level: int) -> Pipeline:
    """The passes for a region; `level`: of LLVM.

    If a region without loops and accesses to memory applies functions of the instruction table,
    nearly all of its code is theirs, which has hardly a branch and no operation twice. The pipeline
    of a level would go through it before and after it is inlined and at the end, and finds no more
    than a few passes do.
    """
    applies = any(each.name == "apply" for body in module.bodies for each in body.operations)
    is_arithmetic = applies and level > 0 and _only_computes(module)
    return Pipeline.ARITHMETIC if is_arithmetic else Pipeline(level)


def _only_computes(module: Module) -> bool:
    """True if a region has no loop and no recursion, and accesses no memory but its parameters."""
    if module.lanes is not None or any(body.recurs for body in module.bodies):
        return False
    for body in module.bodies:
        places = {block: place for place, block in enumerate(body.blocks)}
        for place, block in enumerate(body.blocks):
            if any(places[edge.block] <= place for edge in block.end.edges):
                return False
            if any(map(_accesses_memory, block.operations)):
                return False
    return True


def _accesses_memory(operation: Operation) -> bool:
    return operation.name != "word" and SHAPES[operation.name].role in _MEMORY


def may_be_closed_form(module: Module) -> bool:
    """True if a region's loops do nothing but count, so that LLVM may need none."""
    return (
        not module.functions
        and not module.counting
        and all(operation.name in _CLOSED_FORM for operation in module.root.operations)
    )
