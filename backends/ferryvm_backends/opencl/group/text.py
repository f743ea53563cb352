# SPDX-License-Identifier: Apache-2.0
"""The text of the kernel that runs groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.backend import Forcing, Options, RefusalError
from ferryvm.compiler import lifted
from ferryvm.ir.c import Choices, module_text
from ferryvm.ir.c.context import function_name
from ferryvm.ir.c.opencl_group import EVERYWHERE, LOCAL, group_dialect
from ferryvm.ir.c.opencl_item import MARKS, MOST_ARGUMENTS
from ferryvm.ir.graph import Body, FrameState, Module
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.axis import split_axes
from ferryvm.ir.member.boundary import (
    changes,
    check_barriers,
    checked_words,
    orders_all,
    split_at_barriers,
    take_exits,
)
from ferryvm.ir.member.check import (
    eliminate_member_checks,
    hoist_argument_checks,
    hoist_member_checks,
)
from ferryvm.ir.member.failure import merge_traps
from ferryvm.ir.member.first_store import mark_stored_first
from ferryvm.ir.member.form import (
    GroupForm,
    group_form,
    leave_at_begin,
    mark_barriers,
    settle,
)
from ferryvm.ir.member.size import Leaf, leaves, specialise
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.entry_exit import entry_state, hoist_entry_checks
from ferryvm.ir.passes.inline import inline_all, remove_uncalled
from ferryvm.ir.passes.launch_exit import sink_launch_exits
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import Type
from ferryvm.machine.declaration import declarations
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.group.poll import drop_polls
from ferryvm_backends.opencl.item import ItemShape, shared_types
from ferryvm_backends.opencl.item.header import changed_arrays, passed_headers, stored_arrays
from ferryvm_backends.opencl.item.text import known_arrays
from ferryvm_backends.opencl.text import (
    COPIED,
    KernelText,
    constant_tables,
    refuse_atomics,
    refuse_floats,
)

_LARGEST = 1 << 14
"""Operations of a function that becomes part of a member's code, at most: a call would refuse the
group."""

_FOLDS = 3
"""Times that constants are folded, until branches on sizes are decided."""


@dataclasses.dataclass(frozen=True)
class GroupText:
    """The kernel of groups of one size."""

    kernel: KernelText
    shape: ItemShape
    form: GroupForm


def group_leaves(items: Region, options: Options) -> tuple[Leaf, ...]:
    """The values on which the sizes of a launch's groups depend; `items`: the function of its
    items. Raises RefusalError if the launch has none that can run as work-groups."""
    from ferryvm.ir.lift import lift

    module = lift(items, False, options.unseen, (), True, {}, options.known, False)
    try:
        return leaves(_one(module, items)[0], items.verified.program, uneven=True)
    except UngroupedError as error:
        raise _refused(error) from None


def group_text(
    items: Region,
    options: Options,
    device: Device,
    memory_mode: str,
    sizes: Mapping[Leaf, int],
    is_exact: bool = False,
) -> GroupText:
    """The kernel of groups for some values of `group_leaves`. `is_exact`: each member makes its own
    checks, where it comes to them; else some are made before, for more than it needs, and loops are
    as long as the host finds them to be. Raises RefusalError for items of another form, and for
    groups that the device has no room for."""
    try:
        return _group_text(items, options, device, memory_mode, sizes, is_exact)
    except UngroupedError as error:
        raise _refused(error) from None


def _refused(error: UngroupedError) -> RefusalError:
    return RefusalError(f"its groups cannot be work-groups: {error}")


def _one(module: Module, items: Region) -> tuple[Body, FrameState]:
    """The function of the items, with all that it calls, and the state of all its exits, which is
    that of its entry."""
    program = items.verified.program
    body = module.functions[items.function]
    function = program.functions[items.function]
    locals_ = [t if isinstance(t, Type) else Type.I64 for t in function.locals]
    state = entry_state(body, locals_)
    inline_all(module, body, _LARGEST)
    mark_barriers(body, program)
    leave_at_begin(body, state)
    sink_launch_exits(body)
    settle(body)
    return body, state


def _group_text(
    items: Region,
    options: Options,
    device: Device,
    memory_mode: str,
    sizes: Mapping[Leaf, int],
    is_exact: bool,
) -> GroupText:
    program = items.verified.program
    forms: list[GroupForm] = []
    states: list[FrameState] = []

    def prepare(module: Module) -> None:
        body, state = _one(module, items)
        specialise(body, sizes)
        for _ in range(_FOLDS):
            settle(body)
        states.append(state)
        forms.append(group_form(body, program))
        forms[0] = split_axes(body, forms[0])
        eliminate_member_checks(body, forms[0])
        hoist_argument_checks(body, forms[0], state, is_exact)
        hoist_entry_checks(body, state)
        remove_uncalled(module, items.function)

    module = lifted(items, options, least=1, exceptions=True, items=True, prepare=prepare)
    (form,) = forms
    _refuse_sizes(form, device)
    refuse_floats([module], device)
    refuse_atomics([module], device)
    body = module.functions[items.function]
    eliminate_member_checks(body, form)
    if not is_exact:
        hoist_member_checks(body, states[0])
    number_values(body)  # without threading jumps, which would part members in front of barriers
    remove_dead_code(body)
    hoist_argument_checks(body, form, states[0], is_exact)
    merge_traps(body)
    bounds = drop_polls(body, form, states[0], not is_exact)
    types = shared_types(items)
    headers = passed_headers(module, items.function, MOST_ARGUMENTS - len(types))

    def where(pc: int) -> str:
        return str(items.verified.program.source_map.position(pc) or f"pc {pc}")

    split_at_barriers(body)
    number = len(program.functions)
    module.functions[number], guarded = take_exits(body, form)
    is_forced = Forcing.DEOPT in options.forcing
    checked = None if is_forced else checked_words(module.functions[number])
    check_barriers(body, form, where)
    form = mark_stored_first(body, form)
    undone = None
    if guarded is not None:
        undone = changed_arrays(body, changes(body), headers)
        if undone is None:
            raise UngroupedError("a member may leave, and its group changes what cannot be undone")
    stored = {} if memory_mode != COPIED else stored_arrays(module, items.function, headers)
    shape = ItemShape(
        items.function,
        tuple(range(-LAUNCH_WORDS - len(types), -LAUNCH_WORDS)),
        0,
        False,
        body.entry,
        headers,
        checked=checked,
        arrays=known_arrays(items, makes_own=True) if memory_mode == COPIED else None,
        bounds=bounds,
        stored=frozenset(stored.values()),
        undone=undone,
        marks_others=any(o not in stored for o in changes(body)),
    )
    access = object_access(items)
    d = group_dialect(
        form,
        function_name(number, 0),
        function_name(items.function, 0),
        (*types, *(Type.I64 for _ in headers)),
        aligned=not device.is_cpu,
        apart=memory_mode == COPIED,
        objects=access.any,
    )
    choices = Choices(
        guard_limit=options.guard_limit,
        forced=is_forced,
        at_entry=True,
        guarded=guarded or frozenset(),
        fence=EVERYWHERE if orders_all(body) else LOCAL,
        unmarked={o: "" if array.is_own else MARKS for o, array in stored.items()},
    )
    declared = declarations(d) + constant_tables([module], items.verified)
    text = module_text(module, d, declared, choices)
    kernel = KernelText(text, (), False, access if access.any else None)
    return GroupText(kernel, shape, form)


def _refuse_sizes(form: GroupForm, device: Device) -> None:
    most = int(device.handle.max_work_group_size)
    if not 0 < form.members <= most:
        raise RefusalError(
            f"its groups have {form.members} members; work-groups of {device} have 1 to {most}"
        )
    size, memory = sum(array.bytes for array in form.arrays), int(device.handle.local_mem_size)
    if size > memory:
        raise RefusalError(
            f"the arrays of a group take {size} bytes; {device} has {memory} of local memory"
        )
