# SPDX-License-Identifier: Apache-2.0
"""Programs of launches, as bodies of their items, and a policy that gives them to native code."""

from __future__ import annotations

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm.policy import Choice, Options, Policy, Profile, Rule

from ..launching import launch

ITEMS = 600

HEAD = f"""
.host print_i64 (i64)
.tag odd i64
.struct cell value i64

.function main
.local to i64[] at i64 sum i64 round i64
    i64.const {ITEMS}
    array.new_default_i64
    local.set to
:rounds
    local.get to
    i64.const 3
    i64.const {ITEMS}
{launch("body", drops=5)}
    local.get round
    i64.const 1
    i64.add
    local.set round
    local.get round
    i64.const 4
    i64.lt_s
    jump_if rounds
:add
    local.get sum
    i64.const 31
    i64.mul
    local.get to
    local.get at
    array.get_i64
    i64.add
    local.set sum
    local.get at
    i64.const 1
    i64.add
    local.set at
    local.get at
    i64.const {ITEMS}
    i64.lt_s
    jump_if add
    local.get sum
    halt

.function body (item i64, to i64[], factor i64)
.local made cell
"""

STORE = """
    local.get to
    local.get item
    local.get item
    local.get factor
    i64.mul
    array.set_i64
    return
"""

UPDATE = """
    local.get to
    local.get item
    i64.const 3
    i64.and
    local.get factor
    array.atomic_add_i64
    drop
"""

BODIES = {
    "stores": STORE,
    "updates elements that others update": f"""
{UPDATE * 40}
    return
""",
    "prints where it is divisible by 100": f"""
    local.get item
    i64.const 100
    i64.rem_s
    i64.const 0
    i64.eq
    jump_unless store
    local.get item
    host print_i64
:store
{STORE}""",
    "prints always": f"""
    local.get item
    host print_i64
{STORE}""",
    "makes an object": """
    local.get item
    struct.new cell
    local.set made
    local.get to
    local.get item
    local.get made
    struct.get cell.value
    local.get factor
    i64.mul
    array.set_i64
    return
""",
    "makes an object now and then": f"""
    local.get item
    i64.const 50
    i64.rem_s
    i64.const 7
    i64.eq
    jump_unless store
    local.get item
    struct.new cell
    local.set made
    local.get to
    local.get item
    local.get made
    struct.get cell.value
    array.set_i64
    return
:store
{STORE}""",
}

TRAPPING = """
    local.get to
    local.get item
    i64.const 1000000000
    local.get item
    i64.const 411
    i64.sub
    local.get item
    i64.const 499
    i64.sub
    i64.mul
    i64.div_s
    array.set_i64
    return
"""

EXCEPTION = f"""
    local.get item
    i64.const 300
    i64.eq
    jump_unless store
    local.get item
    throw odd
:store
{STORE}"""

ENDLESS = """
:for_ever
    jump for_ever
"""


def policy(threads: int, *, lanes: int = 0, whole_program: bool = False) -> Policy:
    """Everything to llvm at once."""
    options = Options(background=False, required=True, cache=False, threads=threads, lanes=lanes)
    rules = (Rule(backends=(Choice("llvm", options),)),)
    return Policy(
        rules=rules,
        profile=Profile(loop_threshold=2),
        whole_program=whole_program,
    )


def started(body: str, threads: int, lanes: int = 0) -> Execution:
    return Engine(policy=policy(threads, lanes=lanes)).start(ferryvm.assemble(HEAD + body))
